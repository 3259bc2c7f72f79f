"""`python -m toolchain.engine_flags.verdicts`: record which command lines releases of vLLM refuse.

The rules about what vLLM refuses when it starts are held to this record by a test: the judge is the
code of each release, not our reading of it. Releases that stand unpacked in a folder, one for each
(0.33.0/vllm/…), are taken from there; the others are fetched.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from pypi_simple import PyPISimple

from toolchain.engine_flags.isolated import run
from toolchain.engine_flags.releases import Engine, fetch, published

RECORD = Path(__file__).parents[2] / "tests" / "core" / "checks" / "parallel_verdicts.json"
RELEASES = (
    "0.8.5.post1", "0.9.0", "0.9.2", "0.10.0", "0.10.2", "0.11.0", "0.11.1", "0.12.0", "0.13.0",
    "0.14.1", "0.15.0", "0.20.2", "0.21.0", "0.25.1", "0.26.0", "0.29.0", "0.30.0", "0.31.0",
    "0.32.0", "0.33.0",
)  # fmt: skip
"""Both sides of every boundary that a rule knows."""
_KEPT = 16
"""Lines of each kind that are kept of a release."""
_START = 60
"""Characters of a reason that tell it from others, without its numbers."""

Told = Mapping[str, tuple[bool, str]]
"""A command line to whether it is refused, and why."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge the same command lines by each release, and keep some of the verdicts."""
    parser = argparse.ArgumentParser(prog="python -m toolchain.engine_flags.verdicts")
    parser.add_argument("folder", nargs="?", type=Path, help="where releases stand unpacked")
    options = parser.parse_args(arguments)
    record = {}
    for version in RELEASES:
        told = _told(version, options.folder)
        record[version] = kept(told)
        refused = sum(refuses for refuses, _ in told.values())
        print(f"vllm {version}: refuses {refused} of {len(told)}", file=sys.stderr, flush=True)
    RECORD.write_text(json.dumps(record, indent=1) + "\n")
    return 0


def kept(told: Told) -> dict[str, list[str]]:
    """Keep as many lines that are taken as that are refused, each for another reason if it goes."""
    reasons: dict[str, list[str]] = {}
    for line, (refuses, because) in told.items():
        words = "".join(c for c in because if not c.isdigit())
        reason = words.partition("Value error, ")[2] or words
        reasons.setdefault(reason[:_START] if refuses else "", []).append(line)
    taken = reasons.pop("", [])
    refused = [
        lines[at] for at in range(_KEPT) for _, lines in sorted(reasons.items()) if at < len(lines)
    ]
    return {"refused": sorted(refused[:_KEPT]), "taken": sorted(taken[:: len(taken) // _KEPT or 1])}


def _told(version: str, folder: Path | None) -> Told:
    """Ask one release."""
    judge = "toolchain.engine_flags.vllm_judge"
    root = folder / version if folder else None
    if root is not None and root.is_dir():
        return cast("Told", run(judge, root, "-O"))
    engine = Engine(name="vllm", package="vllm", first=version)
    with tempfile.TemporaryDirectory() as temporary, PyPISimple() as index:
        root = Path(temporary) / version
        root.mkdir()
        fetch(engine, published(engine, index)[version], index, root)
        return cast("Told", run(judge, root, "-O"))


if __name__ == "__main__":
    sys.exit(main())
