"""Write the table of the variables that the releases of an engine mention.

A release knows a variable if any file of its package names it. So the table has too many rather
than too few: a rule reports only what no release mentions. This downloads the releases that are
missing in the table.
"""

import json
import re
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from packaging.version import Version
from pypi_simple import PyPISimple

from toolchain.engine_flags.__main__ import ENGINES, TABLES
from toolchain.engine_flags.releases import fetch, published

TABLE = TABLES / "variables.json"
PREFIXES: Mapping[str, re.Pattern[str]] = {
    "vllm": re.compile(r"\bVLLM_[A-Z0-9_]*[A-Z0-9]\b"),
    "sglang": re.compile(r"\b(?:SGLANG|SGL)_[A-Z0-9_]*[A-Z0-9]\b"),
}
"""The names that are the engine's own, by the engine."""


def main() -> int:
    """Write the variables of all engines."""
    held: dict[str, dict[str, list[str]]] = {}
    if TABLE.exists():
        held = {name: by_release(rows) for name, rows in json.loads(TABLE.read_text()).items()}
    with PyPISimple() as index:
        for name in PREFIXES:
            engine, known = ENGINES[name][0], held.get(name, {})
            offered = published(engine, index)
            for version, package in offered.items():
                if version in known:
                    continue
                with tempfile.TemporaryDirectory() as folder:
                    fetch(engine, package, index, Path(folder))
                    known[version] = mentioned(Path(folder), PREFIXES[name])
                print(f"{name} {version}: {len(known[version])} variables", file=sys.stderr)
                held[name] = {each: known[each] for each in offered if each in known}
                TABLE.write_text(write(held))
    return 0


def mentioned(root: Path, pattern: re.Pattern[str]) -> list[str]:
    """Return the names in the files of a package."""
    texts = (path.read_text(errors="replace") for path in root.rglob("*.py"))
    return sorted({name for text in texts for name in pattern.findall(text)})


def by_release(rows: Mapping[str, object]) -> dict[str, list[str]]:
    """Return the names of each release of a written table."""
    releases, names = rows["releases"], rows["names"]
    assert isinstance(releases, list)  # noqa: S101 - written below
    assert isinstance(names, dict)  # noqa: S101
    found: dict[str, list[str]] = {release: [] for release in releases}
    for name, spans in names.items():
        for first, last in spans:
            for release in releases[first : last + 1]:
                found[release].append(name)
    return found


def write(held: Mapping[str, Mapping[str, Sequence[str]]]) -> str:
    """Write each name with the first and the last of the releases in a row that have it."""
    parts = []
    for engine, known in held.items():
        order = sorted(known, key=Version)
        names = sorted({name for listed in known.values() for name in listed})
        rows = ",\n".join(
            f'   "{name}": {json.dumps(_spans(name in known[release] for release in order))}'
            for name in names
        )
        listed = json.dumps(order)
        parts.append(f' "{engine}": {{\n  "releases": {listed},\n  "names": {{\n{rows}\n  }}\n }}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _spans(present: Iterable[bool]) -> list[list[int]]:
    found: list[list[int]] = []
    for number, has in enumerate(present):
        if has and found and found[-1][1] == number - 1:
            found[-1][1] = number
        elif has:
            found.append([number, number])
    return found


if __name__ == "__main__":
    sys.exit(main())
