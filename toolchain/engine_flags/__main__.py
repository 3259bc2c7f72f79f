"""Update the tables of the engines' options.

This downloads the releases that are missing in a table, and rewrites the table. With --all it reads
every release again.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from packaging.version import Version
from pypi_simple import PyPISimple

from toolchain.engine_flags import click_programs, lines, sglang, tables, vllm
from toolchain.engine_flags.flags import Flag
from toolchain.engine_flags.isolated import run
from toolchain.engine_flags.releases import Engine, fetch, published

_ROOT = Path(__file__).parents[2]
TABLES = _ROOT / "kthena_components" / "core" / "engines" / "tables"
LINES = _ROOT / "tests" / "core" / "engines" / "lines.json"
_LINES_EACH = 12
"""Number of recorded lines per release."""
ENGINES: Mapping[str, tuple[Engine, Callable[[Path], list[Flag]], str]] = {
    "vllm": (
        Engine(name="vllm", package="vllm", first="0.6.0"),
        vllm.read,
        "the parser of `vllm serve`, run with stubs for PyTorch and other packages",
    ),
    "sglang": (
        Engine(name="sglang", package="sglang", first="0.4.6"),
        sglang.read,
        "ServerArgs.add_cli_args of sglang/srt/server_args.py, run with stubs for other packages",
    ),
    "ray": (
        Engine(name="ray", package="ray", first="2.10.0", only_minors=True),
        click_programs.read,
        "the decorators of `start` in ray/scripts/scripts.py",
    ),
}

_KEYS: Mapping[str, Callable[[Path], dict[str, dict[str, Any]]]] = {
    "vllm": vllm.read_keys,
    "sglang": sglang.read_keys,
}
"""How the keys inside JSON options are read."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the tables of the engines in the arguments, or of all engines."""
    parser = argparse.ArgumentParser(prog="python -m toolchain.engine_flags", description=__doc__)
    parser.add_argument("engines", nargs="*", choices=[[], *ENGINES], metavar="ENGINE")
    parser.add_argument("--all", action="store_true", help="read every release again")
    options = parser.parse_args(arguments)
    with PyPISimple() as index:
        for name in options.engines or ENGINES:
            _update(name, index, again=options.all)
    return 0


def _update(name: str, index: PyPISimple, *, again: bool) -> None:
    engine, read, reader = ENGINES[name]
    path = TABLES / f"{name}.json"
    known: list[tables.Release] = []
    keys: dict[str, dict[str, dict[str, Any]]] = {}
    if path.exists() and not again:
        table = json.loads(path.read_text())
        known, keys = tables.releases_of(table), tables.keys_of(table)
    have = {source.version for source, _ in known}
    offered = published(engine, index)
    for version, package in offered.items():
        if version in have:
            continue
        with tempfile.TemporaryDirectory() as folder:
            source = fetch(engine, package, index, Path(folder))
            flags = read(Path(folder))
            if not flags:
                raise ValueError(f"no option was found in {source.file}: its parser has moved")
            known.append((source, flags))
            inside = _KEYS[name](Path(folder)) if name in _KEYS else {}
            keys[version] = of_options(inside, flags)
            keep_lines(name, version, Path(folder))
        print(f"{name} {version}: {len(flags)} options", file=sys.stderr, flush=True)
    order = list(offered)
    known = [release for release in known if release[0].version in offered]
    known.sort(key=lambda release: order.index(release[0].version))
    TABLES.mkdir(exist_ok=True)
    path.write_text(tables.write(name, reader, known, keys))


def of_options(
    inside: Mapping[str, dict[str, Any]], flags: Sequence[Flag]
) -> dict[str, dict[str, Any]]:
    """Return the keys of the options that a release has: its classes may be older than they.

    Words of an option that its parser checks are its choices already.
    """
    names = {name for flag in flags for name in flag.names}
    checked = {name for flag in flags if flag.choices for name in flag.names}
    return {
        name: keys
        for name, keys in inside.items()
        if name.partition(".")[0] in names and not (name in checked and "keys" not in keys)
    }


def keep_lines(engine: str, version: str, root: Path) -> None:
    """Record the results of the release's own parser for some lines, as a test of our reader."""
    if engine not in lines.KEPT:
        return
    kept = json.loads(LINES.read_text()) if LINES.exists() else {}
    flag = "-O" if engine == "vllm" else "-S"
    said = run(lines.__name__, root, flag, arguments=(engine, str(_LINES_EACH), version))
    kept.setdefault(engine, {})[version] = said
    LINES.write_text(write_lines(kept))


def write_lines(kept: Mapping[str, Mapping[str, Any]]) -> str:
    """Write the recorded lines as JSON, with one record per line."""
    parts = []
    for engine, releases in sorted(kept.items()):
        rows = [
            f'  "{version}": [\n   ' + ",\n   ".join(map(json.dumps, said)) + "\n  ]"
            for version, said in sorted(releases.items(), key=lambda item: Version(item[0]))
        ]
        parts.append(f' "{engine}": {{\n' + ",\n".join(rows) + "\n }")
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    sys.exit(main())
