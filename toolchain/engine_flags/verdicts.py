"""Record which command lines the releases of vLLM reject.

A test compares the rules about starting vLLM with this record, which comes from the code of each
release. Releases that are unpacked in the folder (0.33.0/vllm/…) are read from there. The others
are downloaded.
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

RECORD = Path(__file__).parents[2] / "tests" / "core" / "rules" / "parallel_verdicts.json"
RELEASES = (
    "0.8.5.post1", "0.9.0", "0.9.2", "0.10.0", "0.10.2", "0.11.0", "0.11.1", "0.12.0", "0.13.0",
    "0.14.1", "0.15.0", "0.20.2", "0.21.0", "0.25.1", "0.26.0", "0.29.0", "0.30.0", "0.31.0",
    "0.32.0", "0.33.0",
)  # fmt: skip
"""The releases on both sides of every boundary in a rule."""
_KEPT = 16
"""Number of recorded lines of each kind per release."""
_START = 60
"""Length of the prefix of a reason, without its numbers, that distinguishes it from others."""

Told = Mapping[str, tuple[bool, str]]
"""For each command line: whether it is rejected, and the reason."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the same command lines with each release, and record some of the verdicts."""
    parser = argparse.ArgumentParser(prog="python -m toolchain.engine_flags.verdicts")
    parser.add_argument("folder", nargs="?", type=Path, help="a folder with unpacked releases")
    options = parser.parse_args(arguments)
    record = {}
    for version in RELEASES:
        told = _told(version, options.folder)
        record[version] = kept(told)
        refused = sum(refuses for refuses, _ in told.values())
        print(f"vllm {version}: rejects {refused} of {len(told)}", file=sys.stderr, flush=True)
    RECORD.write_text(json.dumps(record, indent=1) + "\n")
    return 0


def kept(told: Told) -> dict[str, list[str]]:
    """Keep equal numbers of accepted and rejected lines, with different reasons if possible."""
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
