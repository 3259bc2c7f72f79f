"""What can be built, and where a build is kept. versions.json is the only place with versions."""

import hashlib
import json
import os
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
VERSIONS: dict[str, Any] = json.loads((HERE / "versions.json").read_text())
CLI = "pulumi"
PROVIDER = "pulumi-resource-kubernetes"


class ToolchainError(Exception):
    """Something the user must mend; its text says what and how, so no traceback is wanted."""


@dataclass(frozen=True, kw_only=True)
class Program:
    """One Go program: a folder with go.mod, go.sum and perhaps sources."""

    name: str
    version: str
    folder: Path
    package: str
    purpose: str
    """What it is for: pulumi, sandbox or rendering."""
    stamps: tuple[str, ...] = ()
    """Linker settings that tell the program its version; untold, it calls itself a dev build."""
    minutes: int
    """What a cold build takes on 2 cores. It is promised to the user before the build starts."""
    memory_gib: int
    beside: tuple[Path, ...] = ()
    """Files of ours that belong into the program's own folder."""
    beside_from_modules: Mapping[str, str] = field(default_factory=dict)
    """The same from Go modules that the build has fetched: module to path in it."""
    data_from_modules: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Files of Go modules that are kept with the program, such as its CRDs: module to patterns."""

    @property
    def title(self) -> str:
        """Name and version, as shown to the user."""
        return f"{self.name} {self.version}"

    def key(self) -> str:
        """Hash all that decides what comes out, so that a change in any of it is built anew."""
        fetched = (dict(self.beside_from_modules), dict(self.data_from_modules))
        recipe = (self.name, self.version, self.package, self.stamps, *fetched)
        digest = hashlib.sha256(json.dumps(recipe).encode())
        digest.update(f"{platform.system()} {platform.machine()}".encode())
        for file in self._sources():
            content = file.read_bytes()
            digest.update(f"\0{file.name}\0{len(content)}\0".encode() + content)
        return digest.hexdigest()[:12]

    def entry(self, cache: Path) -> Path:
        """Return the folder that holds the finished build. It appears whole or not at all."""
        return cache / f"{self.name}-{self.version}-{self.key()}"

    def binary(self, cache: Path) -> Path:
        """Return the built program."""
        return self.entry(cache) / "bin" / self.name

    def data(self, cache: Path) -> Path:
        """Return the folder of the files that are kept with the program."""
        return self.entry(cache) / "data"

    def _sources(self) -> Iterator[Path]:
        yield from sorted(
            path for path in self.folder.iterdir() if path.suffix in {".go", ".mod", ".sum"}
        )
        yield from self.beside


def known_programs(purpose: str = "pulumi") -> dict[str, Program]:
    """Return the programs of versions.json that are for one purpose, by name."""
    stated = (data for data in VERSIONS["programs"] if data["for"] == purpose)
    return {data["name"]: _program(data) for data in stated}


def _program(data: dict[str, Any]) -> Program:
    stated = {key: value for key, value in data.items() if key != "for"}
    places = {
        "purpose": data["for"],
        "stamps": tuple(stamp.format(version=data["version"]) for stamp in data["stamps"]),
        "folder": HERE / data["folder"],
        "beside": tuple(HERE / path for path in data.get("beside", ())),
    }
    return Program(**{**stated, **places})


def minutes_of(number: int) -> str:
    """Write a number of minutes."""
    return "1 minute" if number == 1 else f"{number} minutes"


def cache_root(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of finished builds, outside the checkout: a second clone costs nothing."""
    if chosen := environ.get("KTHENA_COMPONENTS_CACHE"):
        return Path(chosen).expanduser().absolute()
    home = environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(home).expanduser().absolute() / "kthena-components"
