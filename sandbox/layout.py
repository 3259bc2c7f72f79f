"""The files of a sandbox, and the addresses of its programs."""

import json
import os
import shlex
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

HOST = "127.0.0.1"
FOLDER = Path(".sandbox")
"""The default folder."""
PORTS_FILE = "ports.json"
PORTS = ("etcd", "peer", "api", "controllers", "volcano", "kthena", "lws", "kwok")
"""The programs that listen. The scheduler and the other controllers do not."""
_FIRST, _COUNT = 10_000, 20_000
"""The range of ports: Linux uses ports from 32768 for outgoing connections."""
_APART = 16 * len(PORTS)
"""Distance between the first ports of two processes, so that they do not choose the same."""
_GIVEN: set[int] = set()


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The folder and the ports of one sandbox."""

    folder: Path
    ports: dict[str, int]

    @classmethod
    def free(cls, folder: Path) -> Self:
        """Choose ports that are free and that this process has not chosen before.

        Another program could take them before ours start. To avoid this, they are below the ports
        of outgoing connections, and each process starts at another port.
        """
        free = (port for port in _candidates() if port not in _GIVEN and _is_free(port))
        ports = dict(zip(PORTS, free, strict=False))
        _GIVEN.update(ports.values())
        return cls(folder=folder, ports=ports)

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read a layout from its folder."""
        return cls(folder=folder, ports=json.loads((folder / PORTS_FILE).read_text()))

    def write(self) -> None:
        """Store the ports for later commands."""
        (self.folder / PORTS_FILE).write_text(json.dumps(self.ports))

    def address(self, port: str) -> str:
        """Return the host and port of a program."""
        return f"{HOST}:{self.ports[port]}"

    @property
    def server(self) -> str:
        """The API server's address."""
        return f"https://{self.address('api')}"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.folder / "kubeconfig"

    @property
    def programs(self) -> Path:
        """The kubeconfig of the cluster's own programs, who are the administrator by a token."""
        return self.folder / "programs.kubeconfig"

    @property
    def authority(self) -> Path:
        """The certificate of the certificate authority."""
        return self.folder / "pki" / "ca.crt"

    @property
    def stages(self) -> Path:
        """KWOK's config: the stages of nodes and pods."""
        return self.folder / "stages.yaml"

    def pki(self, name: str) -> Path:
        """Return the path of a key or certificate."""
        return self.folder / "pki" / name

    def log(self, program: str) -> Path:
        """Return the path of a program's log."""
        return self.folder / "log" / f"{program}.log"


def make(target: str, folder: Path) -> str:
    """Write the command that does something with the sandbox in a folder, for messages."""
    own = "" if folder == FOLDER else f" FOLDER={shlex.quote(str(folder))}"
    return f"`make {target}{own}`"


def _candidates() -> Iterator[int]:
    start = os.getpid() * _APART
    return (_FIRST + (start + step) % _COUNT for step in range(_COUNT))


def _is_free(port: int) -> bool:
    with socket.socket() as tried:
        try:
            tried.bind((HOST, port))
        except OSError:
            return False
    return True
