"""Write the table of the variables that the releases of an engine mention, and what they take.

A release knows a variable if any file of its package names it. So the table has too many rather
than too few: a rule reports only what no release mentions. What a variable of vLLM takes is tried
with the functions that read it (`vllm_values`). This downloads the releases that are missing in the
table.
"""

import json
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from types import MappingProxyType
from typing import Any

from packaging.version import Version
from pypi_simple import PyPISimple

from toolchain.engine_flags.__main__ import ENGINES, TABLES
from toolchain.engine_flags.isolated import run
from toolchain.engine_flags.releases import fetch, published

TABLE = TABLES / "variables.json"
_VALUES = "toolchain.engine_flags.vllm_values"
Takes = Mapping[str, Mapping[str, Any]]
"""What the variables of a release take, by name."""
PREFIXES: Mapping[str, re.Pattern[str]] = {
    "vllm": re.compile(r"\bVLLM_[A-Z0-9_]*[A-Z0-9]\b"),
    "sglang": re.compile(r"\b(?:SGLANG|SGL)_[A-Z0-9_]*[A-Z0-9]\b"),
}
"""The names that are the engine's own, by the engine."""


def main() -> int:
    """Write the variables of all engines."""
    held: dict[str, dict[str, list[str]]] = {}
    values: dict[str, dict[str, Takes]] = {}
    if TABLE.exists():
        table = json.loads(TABLE.read_text())
        held = {name: by_release(rows) for name, rows in table.items()}
        values = {name: values_by_release(rows) for name, rows in table.items()}
    with PyPISimple() as index:
        for name in PREFIXES:
            engine, known = ENGINES[name][0], held.get(name, {})
            taken = values.setdefault(name, {})
            offered = published(engine, index)
            for version, package in offered.items():
                if version in known:
                    continue
                with tempfile.TemporaryDirectory() as folder:
                    fetch(engine, package, index, Path(folder))
                    known[version] = mentioned(Path(folder), PREFIXES[name])
                    if name == "vllm":
                        taken[version] = run(_VALUES, Path(folder).resolve(), "-O")
                print(f"{name} {version}: {len(known[version])} variables", file=sys.stderr)
                held[name] = {each: known[each] for each in offered if each in known}
                TABLE.write_text(write(held, values))
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


def values_by_release(rows: Mapping[str, Any]) -> dict[str, Takes]:
    """Return what the variables of each release of a written table take."""
    releases = rows["releases"]
    found: dict[str, dict[str, Mapping[str, Any]]] = {release: {} for release in releases}
    for name, spans in rows.get("values", {}).items():
        for span in spans:
            first, last = span["releases"]
            rest = {key: value for key, value in span.items() if key != "releases"}
            for release in releases[first : last + 1]:
                found[release][name] = rest
    return dict(found)


def write(
    held: Mapping[str, Mapping[str, Sequence[str]]],
    values: Mapping[str, Mapping[str, Takes]] = MappingProxyType({}),
) -> str:
    """Write each name with the first and the last of the releases in a row that have it.

    Args:
        held: The names, by engine and release.
        values: What variables take, by engine, release and name.
    """
    parts = []
    for engine, known in held.items():
        order = sorted(known, key=Version)
        names = sorted({name for listed in known.values() for name in listed})
        rows = ",\n".join(
            f'   "{name}": {json.dumps(_spans(name in known[release] for release in order))}'
            for name in names
        )
        listed, own = json.dumps(order), values.get(engine, {})
        more = ",\n".join(
            f'   "{name}": {json.dumps(list(_takes(name, own, order)))}'
            for name in sorted({name for taken in own.values() for name in taken})
        )
        told = f',\n  "values": {{\n{more}\n  }}' if more else ""
        parts.append(
            f' "{engine}": {{\n  "releases": {listed},\n  "names": {{\n{rows}\n  }}{told}\n }}'
        )
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _takes(name: str, own: Mapping[str, Takes], order: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield what a variable takes, with the first and the last of the releases in a row."""
    by_place = [own.get(release, {}).get(name) for release in order]
    for takes, group in groupby(range(len(order)), by_place.__getitem__):
        places = list(group)
        if takes is not None:
            yield {"releases": [places[0], places[-1]], **takes}


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
