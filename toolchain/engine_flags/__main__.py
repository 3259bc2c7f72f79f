"""`python -m toolchain.engine_flags`: bring the tables of the engines' options up to date.

Reads the releases that a table does not have yet, from what the engine's project has published, and
writes the table anew. With --all every release is read again.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pypi_simple import DistributionPackage, PyPISimple

from toolchain.engine_flags import click_programs, sglang, tables, vllm
from toolchain.engine_flags.flags import Flag
from toolchain.engine_flags.releases import Engine, fetch, published

TABLES = Path(__file__).parents[2] / "kthena_components" / "core" / "engines" / "tables"
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the tables of the engines that are named, or of all."""
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
    if path.exists() and not again:
        known = tables.releases_of(json.loads(path.read_text()))
    have = {source.version for source, _ in known}
    offered = published(engine, index)
    for version, package in offered.items():
        if version not in have:
            known.append(_read(engine, package, index, read))
            print(f"{name} {version}: {len(known[-1][1])} options", file=sys.stderr, flush=True)
    order = list(offered)
    known = [release for release in known if release[0].version in offered]
    known.sort(key=lambda release: order.index(release[0].version))
    TABLES.mkdir(exist_ok=True)
    path.write_text(tables.write(name, reader, known))


def _read(
    engine: Engine,
    package: DistributionPackage,
    index: PyPISimple,
    read: Callable[[Path], list[Flag]],
) -> tables.Release:
    with tempfile.TemporaryDirectory() as folder:
        source = fetch(engine, package, index, Path(folder))
        flags = read(Path(folder))
    if not flags:
        raise ValueError(f"no option was found in {source.file}: its parser stands elsewhere now")
    return source, flags


if __name__ == "__main__":
    sys.exit(main())
