"""A Python that runs a Pulumi program in a fork of one process, which has loaded the modules.

Loading the SDK and the package takes more processor time than most programs of the tests. The
engine starts `bin/python` of a folder as it starts any interpreter. That is a small client: it
hands its arguments, variables and outputs to the server in this file, and ends as the fork ends.
The real interpreter runs everything else: other commands, programs with other variables of Python,
and those that bring a module by a name that is loaded.

Tests of the start itself, such as those of wheels and of another project's environment, never get
this folder.
"""

import atexit
import gc
import importlib
import json
import os
import pkgutil
import random
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

_READ_AT_IMPORT = ("PYTHON", "LANG", "LC_", "GRPC_", "OTEL_", "TRACE", "PULUMI_ERROR_", "SSL_")
"""First letters of variables that an interpreter or a library in C reads when it starts."""
_READ_AGAIN = frozenset({"HOME", "KUBECONFIG", "TMPDIR", "TEMP", "TMP"})
"""Variables that modules read when they are loaded, and that a fork reads again: see `_forget`.

Each stack has its own KUBECONFIG and TMPDIR, so no program would be forked if they counted.
"""
_LATE = ("kthena_components.cluster.", "kubernetes.config")
"""Modules that programs load themselves: the client of Kubernetes keeps the KUBECONFIG of then."""
_CLIENT = """#!{real} -IS
import json, os, select, signal, sys
from _socket import socket, AF_UNIX, SOCK_STREAM, SOL_SOCKET, SCM_RIGHTS

REAL, AT, EXEC = {real!r}, {at!r}, "pulumi-language-python-exec"
words, parent = sys.argv[1:], os.getppid()


def given():
    "Tell what the server can run, and connect to it."
    script = words[1] if words[:1] == ["-u"] else words[0] if words else ""
    folder, _, name = script.rpartition("/")
    known = name in ("host.py", EXEC) and os.path.exists(folder + "/" + EXEC)
    read = {{key: value for key, value in os.environ.items() if key.startswith({starts!r})}}
    same = read == {variables!r} and {{key: os.environ.get(key) for key in {found}}} == {found!r}
    if not (known or words[:3] == ["-u", "-m", "pulumi.policy"]) or not same:
        return None
    server = socket(AF_UNIX, SOCK_STREAM)
    try:
        server.connect(AT)
    except OSError:
        return None
    return server


server = given()
if server is None:
    os.execv(REAL, [REAL, *words])
sent = json.dumps([words, dict(os.environ), os.getcwd()]).encode()
rights = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
server.sendmsg([len(sent).to_bytes(4, "big")], [(SOL_SOCKET, SCM_RIGHTS, rights)])
while sent:
    sent = sent[server.send(sent):]
pid = int(server.recv(20))


def hand_on(number, _):
    "Send a signal to the fork, unless it has just ended."
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, hand_on)
while not select.select([server], [], [], 0.5)[0]:
    if os.getppid() != parent:
        sys.exit(1)  # the server ends the fork of a client that is gone
code = int(server.recv(20) or -9)
if code < 0:
    signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
sys.exit(code)
"""


def environment_folder(variables: Mapping[str, str]) -> Path:
    """Give the folder whose `bin/python` forks, for programs with these variables."""
    read = {key: value for key, value in variables.items() if key.startswith(_READ_AT_IMPORT)}
    return _started(os.getpid(), tuple(sorted(read.items())))


@cache
def _started(_process: int, read: tuple[tuple[str, str], ...]) -> Path:
    """Start a server, which ends with this process. A fork of it needs another one."""
    folder = Path(tempfile.mkdtemp(prefix="kthena-python-"))
    client, at = folder / "bin" / "python", folder / "socket"
    client.parent.mkdir()
    kept = {key: value for key, value in os.environ.items() if not key.startswith(_READ_AT_IMPORT)}
    env = {**kept, **dict(read)}
    server = subprocess.Popen(
        [sys.executable, "-u", __file__, str(folder)],
        env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert server.stdout is not None
    told = server.stdout.readline()
    assert told, "the server of forks did not start"
    client.write_text(
        _CLIENT.format(
            real=sys.executable,
            at=str(at),
            starts=_READ_AT_IMPORT,
            variables=dict(read),
            found={key: env.get(key) for key in json.loads(told)},
        )
    )
    client.chmod(0o755)
    _SERVERS.append(server)
    return folder


_SERVERS: list[subprocess.Popen[bytes]] = []
"""The servers of this process. The end of its pipe ends one."""


def servers() -> tuple[int, ...]:
    """Give the process ids of the servers that this process has started."""
    return tuple(server.pid for server in _SERVERS)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a client wants to be run."""

    words: list[str]
    variables: dict[str, str]
    folder: str
    outputs: list[int]

    @classmethod
    def read(cls, client: socket.socket) -> "Asked":
        """Read it from a client, which is one of the tests."""
        size, outputs, _, _ = socket.recv_fds(client, 4, 3)
        with client.makefile("rb") as stream:
            words, variables, folder = json.loads(stream.read(int.from_bytes(size, "big")))
        return cls(words, variables, folder, outputs)

    def run(self) -> None:
        """Become the program, in a fresh fork."""
        os.chdir(self.folder)
        os.environ.clear()
        os.environ.update(self.variables)
        for number, output in enumerate(self.outputs):
            os.dup2(output, number)
            os.close(output)
        if self._shadows():
            os.execv(sys.executable, [sys.executable, *self.words])  # noqa: S606
        random.seed()
        tempfile.tempdir = None
        words = self.words[1:] if self.words[0] == "-u" else self.words
        if words[0] == "-m":
            sys.argv = ["-m", *words[2:]]
            sys.path.insert(0, self.folder)
            runpy.run_module(words[1], run_name="__main__", alter_sys=True)
            return
        sys.argv = words
        sys.path.insert(0, str(Path(words[0]).parent))
        main = sys.modules["__main__"] = ModuleType("__main__")
        main.__dict__.update(__file__=words[0], __builtins__=__builtins__)
        exec(compile(Path(words[0]).read_bytes(), words[0], "exec"), main.__dict__)  # noqa: S102

    def _shadows(self) -> bool:
        """Tell whether a folder of a program has modules by the names of those that are loaded."""
        if self.words[0] != "-u":  # the language host, which has no modules of a project
            return False
        words = self.words[2:]
        while words[0].startswith("--"):
            words = words[2:]
        program = Path(words[-1] if self.words[1] == "-m" else words[0])
        places = [place for place in {program, Path(self.folder)} if place.is_dir()]
        names = {path.name.partition(".")[0] for place in places for path in place.iterdir()}
        return bool(names & (sys.modules.keys() - {"__main__"}))


class Server:
    """Forks for each client, and tells it how its fork ended."""

    def __init__(self, folder: Path) -> None:
        """Listen in a folder."""
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(folder / "socket"))
        self._listener.listen(64)
        self._clients: dict[int, socket.socket] = {}
        """By the process that was forked for it."""
        self._ended, self._wake = os.pipe()

    def serve(self) -> Asked | None:
        """Serve until the input ends. In a fork, return what it is to run."""
        os.set_blocking(self._wake, False)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake)
        while True:
            watched: list[int | socket.socket] = [
                0,
                self._ended,
                self._listener,
                *self._clients.values(),
            ]
            ready = select.select(watched, [], [])[0]
            if 0 in ready:
                for process in self._clients:
                    os.kill(process, signal.SIGKILL)
                return None
            if self._ended in ready:
                os.read(self._ended, 64)
                self._tell()
            for process, client in self._clients.items():
                if client in ready:  # a client says nothing more, so it is gone
                    os.kill(process, signal.SIGKILL)
            if self._listener in ready and (asked := self._fork()) is not None:
                return asked

    def _tell(self) -> None:
        """Tell clients whose fork has ended."""
        while self._clients:
            process, status = os.waitpid(-1, os.WNOHANG)
            if not process:
                return
            with self._clients.pop(process) as client:
                _send(client, os.waitstatus_to_exitcode(status))

    def _fork(self) -> Asked | None:
        """Fork for one client. Return what it asks for in the fork only."""
        client, _ = self._listener.accept()
        try:
            asked = Asked.read(client)
        except (OSError, ValueError):  # it was ended
            client.close()
            return None
        process = os.fork()
        if process:
            for output in asked.outputs:
                os.close(output)
            self._clients[process] = client
            _send(client, process)
            return None
        signal.set_wakeup_fd(-1)
        for number, handler in (
            (signal.SIGCHLD, signal.SIG_DFL),
            (signal.SIGINT, signal.default_int_handler),
        ):
            signal.signal(number, handler)
        for open_one in (client, self._listener, *self._clients.values()):
            open_one.close()
        os.close(self._ended)
        os.close(self._wake)
        return asked


def _send(client: socket.socket, number: int) -> None:
    """Send a number of 20 characters to a client, if it is still there."""
    with suppress(OSError):
        client.send(f"{number:20}".encode(), socket.MSG_NOSIGNAL)


def _load() -> list[str]:
    """Load what programs and packs load, and return the variables that the modules read."""
    read, get = set[str](), os._Environ.__getitem__

    def watched(self: os._Environ[str], key: str) -> str:
        read.add(key)
        return get(self, key)

    os._Environ.__getitem__ = watched  # type: ignore[assignment,method-assign]
    for name in ("pulumi_kubernetes", "pulumi.runtime.proto.language_pb2_grpc", "kubernetes"):
        importlib.import_module(name)
    package = importlib.import_module("kthena_components")
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not module.name.endswith("__main__") and not module.name.startswith(_LATE):
            importlib.import_module(module.name)
    _use()
    os._Environ.__getitem__ = get  # type: ignore[method-assign]
    _forget()
    gc.collect()
    gc.freeze()
    return sorted(read - _READ_AGAIN)


def _use() -> None:
    """Compile a serving, which builds models of Pydantic and reads tables that programs need."""
    compiler = importlib.import_module("kthena_components.compiler.compile")
    engine = {"kind": "vllm", "image": "vllm/vllm-openai:v0.33.0", "model": "example/model"}
    role = {"name": "serve", "engine": engine, "resources": {"gpus_per_pod": 1}}
    for backend in ("kthena", "native"):
        compiler.compile_serving({"name": "m", "backend": backend, "roles": [role]})


def _forget() -> None:
    """Drop the modules that keep a variable of `_READ_AGAIN`, so that a program loads them anew.

    What they load is most of the client of Kubernetes, and stays. `tempfile` reads its variables
    again once its folder is unknown.
    """
    for name in [name for name in sys.modules if name.startswith(_LATE)]:
        folder, _, last = name.rpartition(".")
        delattr(sys.modules[folder], last)
        del sys.modules[name]


def _run(asked: Asked) -> None:
    """Run what is asked, and keep the status with which the interpreter will end."""
    status: int | None = 1
    try:
        asked.run()
        status = 0
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
        raise
    except KeyboardInterrupt:
        status = None  # by the signal
        raise
    finally:
        _STATUS.append(status)


def _leave() -> None:
    """End a fork without taking its modules apart: that copies most of the shared memory."""
    if _STATUS and _STATUS[0] is not None:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(_STATUS[0] & 255)


_STATUS: list[int | None] = []
"""The status of a fork, once its program has ended."""


if __name__ == "__main__":
    atexit.register(_leave)  # the first one, which is called last
    del sys.path[0]  # this folder
    _folder = Path(sys.argv[1])
    _read = _load()
    _server = Server(_folder)
    sys.stdout.write(f"{json.dumps(_read)}\n")
    _asked = _server.serve()
    if _asked is not None:
        _run(_asked)
    else:
        shutil.rmtree(_folder, ignore_errors=True)
