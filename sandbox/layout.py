"""Where a sandbox keeps its things, and at which addresses its programs listen."""

import json
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

HOST = "127.0.0.1"
PORTS_FILE = "ports.json"
PORTS = ("etcd", "peer", "api", "controllers", "volcano", "kthena", "kwok")
"""Whoever listens. The schedulers and the other controllers do not."""
_FIRST, _COUNT = 10_000, 20_000
"""Ports to choose from: Linux takes those from 32768 on for connections."""
_APART = 16 * len(PORTS)
"""Ports between the places of two processes, so that those started together do not meet."""
_GIVEN: set[int] = set()


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """One sandbox: a folder of its own and ports that were free."""

    folder: Path
    ports: dict[str, int]

    @classmethod
    def free(cls, folder: Path) -> Self:
        """Choose ports that nobody listens on, and that this process has not given away.

        They are free again until the programs start. So they lie below those that connections
        take, and each process looks from a place of its own.
        """
        free = (port for port in _candidates() if port not in _GIVEN and _is_free(port))
        ports = dict(zip(PORTS, free, strict=False))
        _GIVEN.update(ports.values())
        return cls(folder=folder, ports=ports)

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read what `write` wrote."""
        return cls(folder=folder, ports=json.loads((folder / PORTS_FILE).read_text()))

    def write(self) -> None:
        """Keep the ports for later commands."""
        (self.folder / PORTS_FILE).write_text(json.dumps(self.ports))

    def address(self, port: str) -> str:
        """Give host and port of a listener."""
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
    def authority(self) -> Path:
        """The certificate that everything here is signed with."""
        return self.folder / "pki" / "ca.crt"

    @property
    def stages(self) -> Path:
        """What KWOK does to nodes and pods, and when."""
        return self.folder / "stages.yaml"

    def pki(self, name: str) -> Path:
        """Give a file of the keys and certificates."""
        return self.folder / "pki" / name

    def log(self, program: str) -> Path:
        """Give what a program said."""
        return self.folder / "log" / f"{program}.log"


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
