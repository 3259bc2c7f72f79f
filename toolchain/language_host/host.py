"""Stand in for Pulumi's Python language host where Pulumi itself was built from Go modules.

The engine starts this file with its own address as the last argument, reads a port from the first
line of output and calls LanguageRuntime over gRPC. All work is Pulumi's own: a program runs under
`pulumi-language-python-exec`, which lies beside this file, and a policy pack under `pulumi.policy`.
An official installation brings its own host, and then this file is not used.
"""

import json
import os
import queue
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import IO, NoReturn


def _load_only_messages() -> None:
    """Give `pulumi` and `pulumi.runtime` as packages that load nothing, for this process alone.

    Only the messages in `pulumi.runtime.proto` are needed. Each preview starts this file twice, and
    the rest of the SDK would take a fifth of a second of processor time each time.
    """
    found = find_spec("pulumi")
    for name, below in (("pulumi", ""), ("pulumi.runtime", "runtime")):
        if found is not None and found.submodule_search_locations is not None:
            sys.modules[name] = package = ModuleType(name)
            package.__path__ = [str(Path(at, below)) for at in found.submodule_search_locations]


if __name__ == "__main__":
    _load_only_messages()
try:
    import grpc
    from pulumi.runtime.proto import language_pb2 as messages
    from pulumi.runtime.proto import language_pb2_grpc as services
    from pulumi.runtime.proto import plugin_pb2 as plugins
except ImportError as error:
    sys.exit(
        f"{sys.executable} cannot import what a language host needs ({error}). Set "
        "PULUMI_PYTHON_CMD to an interpreter that has the pulumi package: "
        'in a checkout, run `make venv` and `eval "$(make -s env)"`.'
    )

EXEC = Path(__file__).with_name("pulumi-language-python-exec")
MESSAGE_ALREADY_SHOWN = 32
"""Exit code by which the exec script says that the user has seen the error."""
LARGEST_MESSAGE = 400 << 20
"""The engine's own limit, in bytes. gRPC's default of 4 MiB is too small for a large stack."""

FIND_PLUGINS = """
import json, pathlib, sys
folders = [pathlib.Path(entry) for entry in sys.path if entry]
files = [file for folder in folders for file in folder.glob("*/pulumi-plugin.json")]
print(json.dumps([json.loads(file.read_text()) for file in files]))
"""
"""Run by the program's interpreter: each provider package says which plugin it needs."""


class HostError(Exception):
    """Something the user must mend before the program can start."""


@dataclass(frozen=True)
class Interpreter:
    """The Python that a program or a policy pack asks for."""

    executable: str
    virtualenv: Path | None = None

    @classmethod
    def of(cls, info: messages.ProgramInfo) -> "Interpreter":
        """Follow the option `virtualenv` of the project or pack, else PULUMI_PYTHON_CMD."""
        wanted = dict(info.options).get("virtualenv")
        if not wanted:
            return cls(os.environ.get("PULUMI_PYTHON_CMD") or sys.executable)
        folder = Path(info.root_directory, str(wanted))
        executable = folder / "bin" / "python"
        if not executable.exists():
            raise HostError(
                f"The virtual environment {str(wanted)!r} of {info.root_directory} has no "
                f"bin/python. Make it first: `python3 -m venv {shlex.quote(str(folder))}`, "
                "and install its requirements there. `make venv` makes the one of a checkout only."
            )
        return cls(str(executable), folder)

    def environment(self, more: Mapping[str, str]) -> dict[str, str]:
        """Return our environment with the virtual one activated, as Pulumi's own host does."""
        environ = {**os.environ, **more}
        if self.virtualenv:
            environ["VIRTUAL_ENV"] = str(self.virtualenv)
            environ["PATH"] = f"{self.virtualenv / 'bin'}{os.pathsep}{environ.get('PATH', '')}"
            environ.pop("PYTHONHOME", None)
        return environ


class Children:
    """The processes we started. None may outlive the engine."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()

    def start(
        self, command: list[str], environ: Mapping[str, str], cwd: str, output: int | None = None
    ) -> subprocess.Popen[bytes]:
        """Start a process. Without `output` it uses ours, which the engine shows."""
        child = subprocess.Popen(
            command, cwd=cwd or None, env=environ, stdout=output, stderr=output
        )
        self._running.add(child)
        return child

    def wait(self, child: subprocess.Popen[bytes]) -> int:
        """Wait for a process to end and return its exit code."""
        code = child.wait()
        self._running.discard(child)
        return code

    def end(self) -> None:
        """End what still runs."""
        for child in tuple(self._running):
            child.terminate()


class Host(services.LanguageRuntimeServicer):
    """The calls that previews, updates and policy packs make. Code generation is left out."""

    def __init__(self, engine: str, children: Children) -> None:
        self._engine = engine
        self._children = children

    def Handshake(
        self, request: messages.LanguageHandshakeRequest, context: grpc.ServicerContext
    ) -> messages.LanguageHandshakeResponse:
        """Agree to the engine's greeting."""
        return messages.LanguageHandshakeResponse()

    def GetPluginInfo(self, request: object, context: grpc.ServicerContext) -> plugins.PluginInfo:
        """Call ourselves after the SDK, with which the CLI shares its version."""
        return plugins.PluginInfo(version=version("pulumi"))

    def GetRequiredPackages(
        self, request: messages.GetRequiredPackagesRequest, context: grpc.ServicerContext
    ) -> messages.GetRequiredPackagesResponse:
        """Name the provider plugins that the program's installed packages ask for."""
        interpreter = _interpreter(request.info, context)
        found = subprocess.run(
            [interpreter.executable, "-c", FIND_PLUGINS],
            env=interpreter.environment({}),
            check=True,
            stdout=subprocess.PIPE,
        )
        return messages.GetRequiredPackagesResponse(packages=required_plugins(found.stdout))

    def Run(
        self, request: messages.RunRequest, context: grpc.ServicerContext
    ) -> messages.RunResponse:
        """Run the program to its end."""
        interpreter = _interpreter(request.info, context)
        config = {
            "PULUMI_CONFIG": json.dumps(dict(request.config)),
            "PULUMI_CONFIG_SECRET_KEYS": json.dumps(list(request.configSecretKeys)),
        }
        child = self._children.start(
            [interpreter.executable, "-u", str(EXEC), *program_arguments(request, self._engine)],
            interpreter.environment(config),
            request.pwd,
        )
        context.add_callback(child.terminate)
        return run_response(self._children.wait(child))

    def RunPlugin(
        self, request: messages.RunPluginRequest, context: grpc.ServicerContext
    ) -> Iterator[messages.RunPluginResponse]:
        """Run a policy pack, or any other plugin in Python, and pass on what it prints."""
        interpreter = _interpreter(request.info, context)
        child = self._children.start(
            [interpreter.executable, "-u", *plugin_arguments(request)],
            interpreter.environment(dict(entry.split("=", 1) for entry in request.env)),
            request.pwd,
            subprocess.PIPE,
        )
        context.add_callback(child.terminate)
        with child:  # closes its outputs
            yield from _printed(child)
            yield messages.RunPluginResponse(exitcode=self._children.wait(child))

    def About(
        self, request: messages.AboutRequest, context: grpc.ServicerContext
    ) -> messages.AboutResponse:
        """Describe the interpreter that a program would get."""
        interpreter = _interpreter(request.info, context)
        return messages.AboutResponse(executable=interpreter.executable)

    def InstallDependencies(
        self, request: messages.InstallDependenciesRequest, context: grpc.ServicerContext
    ) -> Iterator[messages.InstallDependenciesResponse]:
        """Install nothing: requirements.lock decides, through `make venv`."""
        yield messages.InstallDependenciesResponse(stdout=b"`make venv` installs the packages.\n")


def required_plugins(found: bytes) -> list[plugins.PackageDependency]:
    """Turn the contents of pulumi-plugin.json files into what the engine should load."""
    return [
        plugins.PackageDependency(
            name=plugin["name"],
            kind="resource",
            version=f"v{plugin['version'].removeprefix('v')}" if plugin.get("version") else "",
            server=plugin.get("server", ""),
        )
        for plugin in json.loads(found)
        if plugin.get("resource")
    ]


def program_arguments(request: messages.RunRequest, engine: str) -> list[str]:
    """Return the exec script's arguments."""
    settings = {
        "monitor": request.monitor_address,
        "engine": engine,
        "project": request.project,
        "root_directory": request.info.root_directory,
        "stack": request.stack,
        "pwd": request.pwd,
        "parallel": str(request.parallel),
        "organization": request.organization,
        "dry_run": "true" if request.dryRun else "false",
    }
    flags = [word for name, value in settings.items() for word in (f"--{name}", value)]
    # Not a Path, which drops a last "." by which the exec script knows a folder from a file.
    program = f"{request.info.program_directory}/{request.info.entry_point}"
    return [*flags, program, *request.args]


def plugin_arguments(request: messages.RunPluginRequest) -> list[str]:
    """Return the interpreter's arguments. Only a policy pack wants its folder last."""
    folder = request.info.program_directory
    if request.kind == "analyzer":
        return ["-m", "pulumi.policy", *request.args, folder]
    return [folder, *request.args]


def run_response(code: int) -> messages.RunResponse:
    """Tell the engine how a program ended, without repeating an error that the user has seen."""
    if code == MESSAGE_ALREADY_SHOWN:
        return messages.RunResponse(bail=True)
    if code < 0:
        return messages.RunResponse(error=f"The program was ended by {signal.Signals(-code).name}.")
    if code:
        return messages.RunResponse(error=f"The program ended with exit code {code}.")
    return messages.RunResponse()


def _interpreter(info: messages.ProgramInfo, context: grpc.ServicerContext) -> Interpreter:
    try:
        return Interpreter.of(info)
    except HostError as error:
        context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))


def _printed(child: subprocess.Popen[bytes]) -> Iterator[messages.RunPluginResponse]:
    """Yield both outputs of a process as they come, until it has closed both."""
    pieces: queue.Queue[messages.RunPluginResponse | None] = queue.Queue()

    def pump(output: IO[bytes], wrap: Callable[[bytes], messages.RunPluginResponse]) -> None:
        while data := os.read(output.fileno(), 65536):
            pieces.put(wrap(data))
        pieces.put(None)

    outputs = (
        (child.stdout, lambda data: messages.RunPluginResponse(stdout=data)),
        (child.stderr, lambda data: messages.RunPluginResponse(stderr=data)),
    )
    for output in outputs:
        threading.Thread(target=pump, args=output, daemon=True).start()
    for _ in outputs:
        yield from iter(pieces.get, None)


def serve(engine: str) -> NoReturn:
    """Serve until the engine interrupts us or is gone."""
    children = Children()

    def leave(*_: object) -> NoReturn:
        # At once: the engine interrupts its plugins and then waits ten seconds for each.
        children.end()
        os._exit(0)

    signal.signal(signal.SIGINT, leave)
    signal.signal(signal.SIGTERM, leave)
    parent = os.getppid()
    server = grpc.server(
        ThreadPoolExecutor(16), options=[("grpc.max_receive_message_length", LARGEST_MESSAGE)]
    )
    services.add_LanguageRuntimeServicer_to_server(Host(engine, children), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)
    while os.getppid() == parent:  # the shim has made way for us, so our parent is the engine
        time.sleep(0.5)
    leave()


if __name__ == "__main__":
    serve(sys.argv[-1])
