"""Runs programs under Pulumi's mocks, for unit tests: no engine, no cluster, no test framework.

Each run has its own thread, event loop, settings and root stack. `pulumi.runtime.set_mocks` keeps
the root stack of the first run, which belongs to the event loop of that run, and the mocks open an
event loop in each thread that calls them, which nothing closes.
"""

import asyncio
import contextlib
import os
import runpy
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context, copy_context
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Any

import pulumi
import yaml
from pulumi.runtime import config as pulumi_config
from pulumi.runtime import mocks as pulumi_mocks
from pulumi.runtime import rpc
from pulumi.runtime.proto import engine_pb2
from pulumi.runtime.settings import Settings, configure, set_root_resource
from pulumi.runtime.stack import run_in_stack

from kthena_components.core.findings import Finding
from kthena_components.core.values.dataclass import dataclass
from kthena_components.resources.components import RefusedError

_STACK = "pulumi:pulumi:Stack"


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """What a program would apply, or why it is refused."""

    manifests: tuple[dict[str, Any], ...]
    """The Kubernetes objects, sorted by kind and name. None if the program is refused."""
    outputs: dict[str, Any] = field(default_factory=dict)
    """What the program exports. Secrets are shown."""
    findings: tuple[Finding, ...] = ()
    """Why the first component that is refused is refused. Each has a path, a remedy and a rule."""
    warnings: tuple[str, ...] = ()
    """What the program and its components warn about, such as advice about memory."""

    def manifest(self, kind: str, name: str) -> dict[str, Any]:
        """Return one object.

        Raises:
            KeyError: The program has no such object.
        """
        for one in self.manifests:
            if (one["kind"], one["metadata"]["name"]) == (kind, name):
                return one
        there = ", ".join(f"{one['kind']} {one['metadata']['name']}" for one in self.manifests)
        raise KeyError(f"no {kind} {name}; there are: {there or 'none'}")


def run_program(
    program: Callable[[], Any] | str | Path,
    *,
    project: str | None = None,
    stack: str = "stack",
    config: Mapping[str, str] | None = None,
    mocks: pulumi.runtime.Mocks | None = None,
) -> ProgramResult:
    """Run a program, and return its objects, outputs and findings.

    Any other error of the program is raised as it is.

    Args:
        program: A function without arguments, which may be async, or the path of a file, or of a
            folder with `__main__.py`. A file runs in its folder, as in `pulumi up`.
        project: The name that `pulumi.get_project()` returns. Without it, the name in the
            Pulumi.yaml beside the file, or else `project`.
        stack: The name that `pulumi.get_stack()` returns.
        config: The values that `pulumi.Config` reads, such as `{"aws:region": "…"}`. A key without
            a namespace is one of the project, as in `pulumi config set`.
        mocks: Answers for resources and functions, as in `pulumi.runtime.set_mocks`. Without them,
            a resource has its inputs as outputs.
    """
    if callable(program):
        run, own_name = program, None
    else:
        file = _file_of(Path(program))
        run, own_name = partial(_run_file, file), _project_of(file.parent)
    engine = _Engine(mocks or _Inputs())
    name = project or own_name or "project"
    settings = {
        key if ":" in key else f"{name}:{key}": value for key, value in (config or {}).items()
    }
    with ThreadPoolExecutor(1) as own:
        done = own.submit(copy_context().run, _run, run, engine, (name, stack), settings)
        try:
            done.result()
        except RefusedError as error:
            return ProgramResult((), {}, error.findings, tuple(engine.warnings))
    order = sorted(engine.objects, key=lambda one: (one["kind"], str(one["metadata"]["name"])))
    return ProgramResult(tuple(order), engine.outputs, (), tuple(engine.warnings))


class _Inputs(pulumi_mocks.Mocks):
    """Gives back what it is given."""

    def new_resource(self, args: pulumi_mocks.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        return f"{args.name}-id", dict(args.inputs)

    def call(self, args: pulumi_mocks.MockCallArgs) -> tuple[dict[Any, Any], None]:
        return dict(args.args), None


class _Engine(pulumi_mocks.MockMonitor):
    """Answers a program as Pulumi's engine does, and keeps what it needs for the result."""

    def __init__(self, mocks: pulumi.runtime.Mocks) -> None:
        super().__init__(mocks)
        self.objects: list[dict[str, Any]] = []
        self.outputs: dict[str, Any] = {}
        self.warnings: list[str] = []

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802 - the protocol's name
        if self.make_urn(request.parent, request.type, request.name) in self.resources:
            raise pulumi.RunError(f"two resources of type {request.type} are named {request.name}")
        inputs = _shown(request.object)
        if request.type.startswith("kubernetes:") and "kind" in inputs:
            self.objects.append(inputs)
        return super().RegisterResource(request)  # type: ignore[no-untyped-call]

    def RegisterResourceOutputs(self, request: Any) -> Any:  # noqa: N802 - the protocol's name
        if f"::{_STACK}::" in request.urn:
            self.outputs.update(_shown(request.outputs))
        return super().RegisterResourceOutputs(request)  # type: ignore[no-untyped-call]

    def Log(self, request: Any) -> None:  # noqa: N802 - the protocol's name
        is_advice = request.severity == engine_pb2.INFO and "kthena:index:" in request.urn
        if is_advice or request.severity == engine_pb2.WARNING:
            self.warnings.append(request.message)


def _shown(properties: Any) -> dict[str, Any]:
    """Read properties of the protocol, in which a value with a secret is wrapped as a whole."""
    read = rpc.deserialize_properties(properties)
    return {
        key: rpc.unwrap_rpc_secret(value) if rpc.is_rpc_secret(value) else value
        for key, value in read.items()
    }


def _run(
    program: Callable[[], Any], engine: _Engine, names: tuple[str, str], config: Mapping[str, str]
) -> None:
    """Run a program in a thread and a context of its own."""
    set_root_resource(None)  # type: ignore[arg-type] # Pulumi's own reset does the same
    # Settings are variables of the context: this sets them.
    configure(Settings(*names, engine, engine, organization="organization"))
    pulumi_config.set_all_config(dict(config), [])
    with _event_loop() as loop:
        loop.run_until_complete(run_in_stack(program))


@contextlib.contextmanager
def _event_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """Give an event loop of this thread, and leave nothing behind that could run later."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    # One thread calls the mocks, with an event loop that can be closed.
    caller = ThreadPoolExecutor(1, initializer=_enter, initargs=(copy_context(),))
    loop.set_default_executor(caller)
    try:
        yield loop
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        caller.submit(lambda: asyncio.get_event_loop().close()).result()
        loop.run_until_complete(loop.shutdown_default_executor())
        # Futures of a failed program would log its error once more when they are collected.
        loop.set_exception_handler(lambda *_: None)
        asyncio.set_event_loop(None)
        loop.close()


def _enter(context: Context) -> None:
    """Start a thread with the values of a context and an event loop."""
    for variable, value in context.items():
        variable.set(value)
    asyncio.set_event_loop(asyncio.new_event_loop())


def _file_of(path: Path) -> Path:
    return (path / "__main__.py" if path.is_dir() else path).resolve()


def _project_of(folder: Path) -> str | None:
    """Return the name in a Pulumi.yaml; None if there is none."""
    try:
        settings = yaml.safe_load((folder / "Pulumi.yaml").read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return None
    name = settings.get("name") if isinstance(settings, dict) else None
    return name if isinstance(name, str) else None


def _run_file(file: Path) -> None:
    """Run a file in its folder, and forget the modules that it has loaded from there."""
    before = set(sys.modules)
    with contextlib.chdir(file.parent):
        sys.path.insert(0, os.fspath(file.parent))
        try:
            runpy.run_path(os.fspath(file), run_name="__main__")
        finally:
            sys.path.remove(os.fspath(file.parent))
            for name in set(sys.modules) - before:
                if _is_beside(file, sys.modules[name]):
                    del sys.modules[name]


def _is_beside(file: Path, module: object) -> bool:
    """Return whether a module is a part of the program, and not of a virtual environment."""
    own = Path(getattr(module, "__file__", None) or "/")
    return own.is_relative_to(file.parent) and "site-packages" not in own.parts
