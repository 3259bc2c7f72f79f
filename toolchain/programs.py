"""The programs to build, and their cache. versions.json is the only file with versions."""

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
    """An error that the user can fix. The text describes the fix, so no traceback is shown."""


@dataclass(frozen=True, kw_only=True)
class Program:
    """One Go program: a folder with go.mod, go.sum and optional sources."""

    name: str
    version: str
    folder: Path
    package: str
    purpose: str
    """The purpose: `pulumi`, `sandbox`, `rendering`, `alerts`, `languages` or `generators`, or the
    only conformance part that needs it."""
    stamps: tuple[str, ...] = ()
    """Linker settings for the program's version. Without them it reports a dev build."""
    tags: tuple[str, ...] = ()
    """Build tags: promtool leaves out the clients of cloud providers."""
    minutes: int
    """Duration of a build without a cache, on 2 cores. It is shown before the build starts."""
    memory_gib: int
    beside: tuple[Path, ...] = ()
    """Our own files to copy into the program's folder."""
    beside_from_modules: Mapping[str, str] = field(default_factory=dict)
    """Files from Go modules to copy into the program's folder: module to path."""
    data_from_modules: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Data files from Go modules, such as CRDs: module to patterns."""

    @property
    def title(self) -> str:
        """The name and version, as shown to the user."""
        return f"{self.name} {self.version}"

    def key(self) -> str:
        """Return a hash of all inputs of the build, so that any change causes a new build."""
        fetched = (dict(self.beside_from_modules), dict(self.data_from_modules))
        recipe = (self.name, self.version, self.package, self.stamps, *fetched, *self.tags)
        digest = hashlib.sha256(json.dumps(recipe).encode())
        digest.update(f"{platform.system()} {platform.machine()}".encode())
        for file in self._sources():
            content = file.read_bytes()
            digest.update(f"\0{file.name}\0{len(content)}\0".encode() + content)
        return digest.hexdigest()[:12]

    def entry(self, cache: Path) -> Path:
        """Return the folder of the finished build. It is created atomically."""
        return cache / f"{self.name}-{self.version}-{self.key()}"

    def binary(self, cache: Path) -> Path:
        """Return the path of the built program."""
        return self.entry(cache) / "bin" / self.name

    def data(self, cache: Path) -> Path:
        """Return the folder of the data files."""
        return self.entry(cache) / "data"

    def _sources(self) -> Iterator[Path]:
        yield from sorted(
            path for path in self.folder.iterdir() if path.suffix in {".go", ".mod", ".sum"}
        )
        yield from self.beside


def known_programs(purpose: str = "pulumi") -> dict[str, Program]:
    """Return the programs of versions.json for one purpose, by name."""
    stated = (data for data in VERSIONS["programs"] if data["for"] == purpose)
    return {data["name"]: _program(data) for data in stated}


def _program(data: dict[str, Any]) -> Program:
    stated = {key: value for key, value in data.items() if key != "for"}
    places = {
        "purpose": data["for"],
        "stamps": tuple(stamp.format(version=data["version"]) for stamp in data["stamps"]),
        "tags": tuple(data.get("tags", ())),
        "folder": HERE / data["folder"],
        "beside": tuple(HERE / path for path in data.get("beside", ())),
    }
    return Program(**{**stated, **places})


def minutes_of(number: int) -> str:
    """Write a number of minutes."""
    return "1 minute" if number == 1 else f"{number} minutes"


def cache_root(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the cache folder. It is outside the checkout, so that clones share it."""
    if chosen := environ.get("KTHENA_COMPONENTS_CACHE"):
        return Path(chosen).expanduser().absolute()
    home = environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(home).expanduser().absolute() / "kthena-components"
