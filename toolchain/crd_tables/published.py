"""The CRDs that a table was made from, for those who compare the table with an API server.

`make crd-tables` keeps the CRDs of the newest releases in the cache, by their SHA-256, which the
tables have. Of the others, those that are in a Go module are downloaded, once.
"""

import hashlib
import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from toolchain.crd_tables.sources import Source
from toolchain.programs import cache_root


def digest_of(text: bytes) -> str:
    """Return the SHA-256 of a file, as a table has it."""
    return hashlib.sha256(text).hexdigest()


def keep(text: bytes) -> None:
    """Write a CRD to the cache."""
    digest = digest_of(text)
    file = _file(digest)
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_name(f"{digest}.partial-{os.getpid()}")
        partial.write_bytes(text)
        partial.replace(file)


def crds_of(source: Source, release: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the CRDs of a release in a table. Empty if not all of them are here.

    Args:
        source: The system of the table.
        release: The version, and the SHA-256 of each file.
    """
    files: Mapping[str, str] = release["files"]
    if source.module and not all(_file(digest).exists() for digest in files.values()):
        folder = _downloaded(f"{source.module}@v{release['version']}")
        if folder is not None:
            for path in files:
                keep((folder / path).read_bytes())
    found = [_file(digest) for digest in files.values()]
    if not all(file.exists() for file in found):
        return []
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return [yaml.load(file.read_bytes(), loader) for file in found]  # noqa: S506 - a safe one


def _file(digest: str) -> Path:
    return cache_root() / "crds" / f"{digest}.yaml"


def _downloaded(module: str) -> Path | None:
    """Download a Go module, and return its folder; None if there is no Go or no such module."""
    try:
        done = subprocess.run(
            ["go", "mod", "download", "-json", module],
            env={**os.environ, "GOTOOLCHAIN": "local", "GOWORK": "off"},
            check=True, capture_output=True, cwd=Path.home(),
        )  # fmt: skip
    except (OSError, subprocess.CalledProcessError):
        return None
    return Path(json.loads(done.stdout)["Dir"])
