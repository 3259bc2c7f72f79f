"""Reads all random inputs, on all processors. `make test` reads a fortieth of them."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tests.toughness.guard import TOTALS

if TYPE_CHECKING:
    from conformance.__main__ import Context

ROOT = Path(__file__).parents[2]
PIECE = 25_000
"""Inputs per process."""
_SHOWN = 3_000


def run(context: "Context") -> None:
    """Read manifests, scripts, previews and stack files, each batch in its own process."""
    pieces = [
        (target, start, min(PIECE, many - start))
        for target, total in TOTALS.items()
        for many in [context.many(total)]
        for start in range(0, many, PIECE)
    ]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        done = pool.map(partial(_take, context.seed), pieces)
        for (target, start, count), told in zip(pieces, done, strict=True):
            what = f"{target} {start:,} to {start + count:,}, KTHENA_SEED={context.seed}"
            context.part.check(what, holds=not told, seen=told)
            context.part.count(f"{target} taken in", count)


def _take(seed: int, piece: tuple[str, int, int]) -> str:
    """Return the failures of a batch, or an empty string."""
    command = [sys.executable, "-m", "tests.toughness.fuzz", *map(str, piece)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "KTHENA_SEED": str(seed)},
        capture_output=True,
        text=True,
        check=False,
    )
    told = f"{done.stdout}{done.stderr}" if done.returncode else ""
    return told[:_SHOWN]
