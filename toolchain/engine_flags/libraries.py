"""Write the table of the variables that the releases of NCCL and of Ray read.

NCCL's are those in its sources (NCCL_PARAM, ncclGetEnv and strings), from the newest tag of each
minor release. Ray's are those in the Python files of its packages, and the strings of its programs
in C++, which have the names of src/ray/common/ray_config_def.h. The table has too many names rather
than too few. This reads the releases that are missing in the table.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from packaging.version import Version
from pypi_simple import PyPISimple

from toolchain.engine_flags.__main__ import TABLES
from toolchain.engine_flags.releases import Engine, published
from toolchain.engine_flags.variables import by_release, write

TABLE = TABLES / "libraries.json"
_NCCL = "https://github.com/NVIDIA/nccl.git"
_FIRST = Version("2.18")
_TAG = re.compile(r"v([0-9]+\.[0-9]+\.[0-9]+)-[0-9]+")
_PARAMETER = re.compile(r'NCCL_PARAM(?:_[A-Z]+)*\(\s*\w+\s*,\s*"([A-Z0-9_]+)"')
_TEXT = re.compile(r'"(NCCL_[A-Z0-9_]*[A-Z0-9])["=]')
_RAY = Engine(name="ray", package="ray", first="2.40.0", only_minors=True)
_IN_PYTHON = re.compile(r"\bRAY_[A-Za-z0-9_]*[A-Za-z0-9]\b")
_IN_PROGRAM = re.compile(rb"\bRAY_[a-z][a-z0-9_]*[a-z0-9]\b")
_PROGRAMS = ("_raylet.so", "raylet/raylet", "gcs/gcs_server")


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the variables of both."""
    parser = argparse.ArgumentParser(prog="python -m toolchain.engine_flags.libraries")
    parser.add_argument("--nccl", default=_NCCL, help="where to clone NCCL; default: %(default)s")
    options = parser.parse_args(arguments)
    held: dict[str, dict[str, list[str]]] = {}
    if TABLE.exists():
        held = {name: by_release(rows) for name, rows in json.loads(TABLE.read_text()).items()}
    with tempfile.TemporaryDirectory() as folder:
        _add(held, "nccl", nccl(options.nccl, Path(folder) / "nccl", held.get("nccl", {})))
        _add(held, "ray", ray(Path(folder), held.get("ray", {})))
    return 0


def _add(
    held: dict[str, dict[str, list[str]]], name: str, found: Iterator[tuple[str, list[str]]]
) -> None:
    """Add what is found of each release to the table, and write it."""
    for version, names in found:
        held.setdefault(name, {})[version] = names
        print(f"{name} {version}: {len(names)} variables", file=sys.stderr, flush=True)
        TABLE.write_text(write(held))


def nccl(url: str, folder: Path, known: Mapping[str, object]) -> Iterator[tuple[str, list[str]]]:
    """Yield the variables of the releases of NCCL that are missing."""
    clone = ["git", "clone", "--quiet", "--bare", "--filter=blob:none", url, str(folder)]
    subprocess.run(clone, check=True)
    newest: dict[tuple[int, ...], tuple[Version, str]] = {}
    for tag in _git(folder, "tag").split():
        if (found := _TAG.fullmatch(tag)) and (version := Version(found[1])) >= _FIRST:
            newest[version.release[:2]] = max(
                newest.get(version.release[:2], (version, tag)), (version, tag)
            )
    for version, tag in sorted(newest.values()):
        if str(version) not in known:
            text = _git(folder, "grep", "-h", "NCCL_", tag, "--", "src", "plugins", "ext-*")
            yield str(version), variables_in(text)


def _git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), *words]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.decode(
        errors="replace"
    )


def variables_in(text: str) -> list[str]:
    """Return the variables that lines of NCCL's sources name."""
    by_macro = {f"NCCL_{name}" for name in _PARAMETER.findall(text)}
    return sorted(by_macro.union(_TEXT.findall(text)))


def ray(folder: Path, known: Mapping[str, object]) -> Iterator[tuple[str, list[str]]]:
    """Yield the variables of the releases of Ray that are missing."""
    with PyPISimple() as index:
        for version, package in published(_RAY, index).items():
            if version not in known:
                file = folder / package.filename
                index.download_package(package, file, verify=True)
                yield version, sorted(_in_wheel(file))
                file.unlink()


def _in_wheel(file: Path) -> set[str]:
    found: set[str] = set()
    with zipfile.ZipFile(file) as wheel:
        for name in wheel.namelist():
            if name.endswith(".py"):
                found.update(_IN_PYTHON.findall(wheel.read(name).decode(errors="replace")))
            elif name.endswith(_PROGRAMS):
                found.update(each.decode() for each in _IN_PROGRAM.findall(wheel.read(name)))
    return found


if __name__ == "__main__":
    sys.exit(main())
