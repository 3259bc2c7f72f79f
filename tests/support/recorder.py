"""Run a Pulumi program without an engine and keep every request that it makes.

The monitor answers as an engine would: URNs with the whole chain of parent types, inputs given
back as outputs, no id while previewing. Each run has its own event loop and its own settings.
"""

import asyncio
import contextvars
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from threading import Lock
from typing import Any

from pulumi.runtime import mocks, rpc
from pulumi.runtime.proto import engine_pb2, resource_pb2
from pulumi.runtime.settings import Settings, configure, set_root_resource
from pulumi.runtime.stack import run_in_stack

STACK_TYPE = "pulumi:pulumi:Stack"
# Protobuf comes without types.
_to_dict: Callable[[Any], dict[str, Any]]
_to_dict = import_module("google.protobuf.json_format").MessageToDict
UNKNOWN = rpc.UNKNOWN
"""What stands in a request for a value that is not known yet."""


@dataclass(frozen=True, slots=True)
class Registration:
    """One resource as the engine would see it."""

    urn: str
    request: Any
    outputs: dict[str, Any] = field(default_factory=dict)
    """What RegisterResourceOutputs said, for components."""

    @property
    def type(self) -> str:
        return str(self.request.type)

    @property
    def name(self) -> str:
        return str(self.request.name)

    @property
    def props(self) -> dict[str, Any]:
        """The inputs as JSON; secrets and unknowns are in Pulumi's own envelopes."""
        return _to_dict(self.request.object)

    @property
    def kind(self) -> str:
        """The last part of the type: `StatefulSet`."""
        return self.type.rpartition(":")[2]


@dataclass(slots=True)
class Recorded:
    """Everything that a program asked for."""

    resources: list[Registration] = field(default_factory=list)
    """In the order in which the engine was asked, the stack itself left out."""
    exports: dict[str, Any] = field(default_factory=dict)
    logs: list[tuple[str, str, str]] = field(default_factory=list)
    """Severity, text and URN."""
    duplicates: list[str] = field(default_factory=list)
    """URNs that were registered twice, which an engine refuses."""
    finished: set[str] = field(default_factory=set)
    """URNs of the components that said that they are complete."""
    error: BaseException | None = None

    def of_kind(self, kind: str) -> list[Registration]:
        return sorted((r for r in self.resources if r.kind == kind), key=lambda r: r.name)

    def named(self, name: str, kind: str) -> Registration:
        (found,) = (r for r in self.of_kind(kind) if r.name == name)
        return found

    def by_urn(self, urn: str) -> Registration:
        (found,) = (r for r in self.resources if r.urn == urn)
        return found

    def names_of(self, kind: str) -> list[str]:
        return [registration.name for registration in self.of_kind(kind)]

    def parents(self, registration: Registration) -> list[str]:
        """Names from the closest parent up, the stack left out."""
        names = []
        while registration.request.parent and STACK_TYPE not in registration.request.parent:
            registration = self.by_urn(registration.request.parent)
            names.append(registration.name)
        return names

    def waits_for(self, registration: Registration) -> set[str]:
        """Kind and name of everything that is there first, by way of others too."""
        found: dict[str, None] = {}
        queue = list(registration.request.dependencies)
        while queue:
            urn = queue.pop()
            if urn not in found:
                found[urn] = None
                queue.extend(self.by_urn(urn).request.dependencies)
        return {f"{self.by_urn(urn).kind}/{self.by_urn(urn).name}" for urn in found}

    def infos(self) -> list[str]:
        return [text for severity, text, _ in self.logs if severity == "INFO"]


def secrets_in(value: Any) -> Iterator[Any]:
    """Find the values that travel as secrets."""
    if isinstance(value, dict):
        if value.get(rpc._special_sig_key) == rpc._special_secret_sig:
            yield value["value"]
            return
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from secrets_in(item)


class RecordingMonitor(mocks.MockMonitor):
    """The engine's side of a run."""

    def __init__(self, *, preview: bool) -> None:
        super().__init__(mocks=None)  # type: ignore[arg-type] # nothing here asks them
        self.recorded = Recorded()
        self._preview = preview
        self._found: dict[str, Registration] = {}
        self._lock = Lock()  # requests come from a pool of threads

    def make_urn(self, parent: str, type_: str, name: str) -> str:
        chain = parent.split("::")[2] if parent else STACK_TYPE
        qualified = type_ if chain == STACK_TYPE else f"{chain}${type_}"
        return f"urn:pulumi:stack::project::{qualified}::{name}"

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802 - the protocol's name
        if request.type == STACK_TYPE:
            urn = f"urn:pulumi:stack::project::{STACK_TYPE}::{request.name}"
            return resource_pb2.RegisterResourceResponse(urn=urn)
        urn = self.make_urn(request.parent, request.type, request.name)
        with self._lock:
            if urn in self._found:
                self.recorded.duplicates.append(urn)
            self._found[urn] = Registration(urn, request)
            self.recorded.resources.append(self._found[urn])
        identity = f"{request.name}-id" if request.custom and not self._preview else ""
        known = self.stored(request)
        return resource_pb2.RegisterResourceResponse(urn=urn, id=identity, object=known)

    def stored(self, request: Any) -> Any:
        """Give the outputs of a resource: its inputs."""
        return request.object

    def RegisterResourceOutputs(self, request: Any) -> Any:  # noqa: N802 - the protocol's name
        outputs = _to_dict(request.outputs)
        known = self._found.get(request.urn)
        self.recorded.finished.add(request.urn)
        (known.outputs if known else self.recorded.exports).update(outputs)
        return super().RegisterResourceOutputs(request)  # type: ignore[no-untyped-call]


class RecordingEngine:
    """Keeps what is logged."""

    def __init__(self, recorded: Recorded) -> None:
        self._recorded = recorded

    def Log(self, request: Any) -> None:  # noqa: N802 - the protocol's name
        severity = engine_pb2.LogSeverity.Name(request.severity)
        if severity != "DEBUG":
            self._recorded.logs.append((severity, request.message, request.urn))


def attempt(program: Callable[[], object], *, preview: bool = False) -> Recorded:
    """Run a program to its end or its error; the error is kept, not raised."""
    return contextvars.copy_context().run(_run, program, preview)


def record(program: Callable[[], object], *, preview: bool = False) -> Recorded:
    """Run a program that must succeed, and name no resource twice."""
    recorded = attempt(program, preview=preview)
    if recorded.error is not None:
        raise recorded.error
    assert not recorded.duplicates, f"registered twice: {recorded.duplicates}"
    return recorded


def _run(program: Callable[[], object], preview: bool) -> Recorded:
    monitor = RecordingMonitor(preview=preview)
    engine: Any = RecordingEngine(monitor.recorded)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    set_root_resource(None)  # type: ignore[arg-type] # Pulumi's own reset does the same
    configure(
        Settings(
            organization="organization",
            project="project",
            stack="stack",
            monitor=monitor,
            engine=engine,
            dry_run=preview,
        )
    )

    def run() -> None:
        program()

    try:
        loop.run_until_complete(run_in_stack(run))
    except BaseException as error:  # noqa: BLE001 - the caller judges it
        monitor.recorded.error = error
    finally:
        _close(loop)
    return monitor.recorded


def _close(loop: asyncio.AbstractEventLoop) -> None:
    """Leave nothing behind that could run inside the next program."""
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
    loop.run_until_complete(loop.shutdown_default_executor())
    # Futures of a failed program would log its error when they are collected; `error` keeps it.
    loop.set_exception_handler(lambda *_: None)
    asyncio.set_event_loop(None)
    loop.close()
