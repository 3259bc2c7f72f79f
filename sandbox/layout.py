"""Where a sandbox keeps its things, and at which addresses its programs listen."""

import json
import socket
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

HOST = "127.0.0.1"
PORTS_FILE = "ports.json"
PORTS = ("etcd", "peer", "api", "controllers", "volcano", "kthena", "kwok")
"""Whoever listens. The schedulers and the other controllers do not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """One sandbox: a folder of its own and ports that were free."""

    folder: Path
    ports: dict[str, int]

    @classmethod
    def free(cls, folder: Path) -> Self:
        """Choose ports that nobody listens on."""
        with ExitStack() as held:
            sockets = {name: held.enter_context(socket.socket()) for name in PORTS}
            for each in sockets.values():
                each.bind((HOST, 0))
            return cls(folder=folder, ports={n: s.getsockname()[1] for n, s in sockets.items()})

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

    def pki(self, name: str) -> Path:
        """Give a file of the keys and certificates."""
        return self.folder / "pki" / name

    def log(self, program: str) -> Path:
        """Give what a program said."""
        return self.folder / "log" / f"{program}.log"
