"""Launch scripts: what is read of them, against what real shells hand to an engine."""

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.shell_judge import LEAST_READ, Told

if TYPE_CHECKING:
    from conformance.__main__ import Context

ROOT = Path(__file__).parents[2]
SCRIPTS = 10_000
PIECE = 500
"""Scripts of one process."""


def run(context: "Context") -> None:
    """Draw scripts, read them and run them; each piece in a process of its own."""
    missing = [name for name in ("bash", "dash") if shutil.which(name) is None]
    if missing:
        context.part.skip("all of it", f"there is no {' and no '.join(missing)}")
        return
    many = context.many(SCRIPTS)
    pieces = [(first, min(PIECE, many - first)) for first in range(0, many, PIECE)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(partial(_judge, context.seed), pieces))
    for (first, count), told in zip(pieces, found, strict=True):
        what = f"scripts {first:,} to {first + count:,}, seed {context.seed}"
        seen = "\n\n".join(told.faults[:3])
        context.part.check(what, holds=not told.faults, seen=seen)
        context.part.count("scripts", told.scripts)
        context.part.count("starts of engines", told.starts)
        context.part.count("scripts of which one command line is stated", told.stated)
        context.part.count("scripts with nothing hidden", told.known)
        context.part.count("of these read", told.read)
    known, read = sum(told.known for told in found), sum(told.read for told in found)
    enough = read >= LEAST_READ * known
    what = f"at least {LEAST_READ:.0%} of what has nothing hidden is read"
    context.part.check(what, holds=enough, seen=f"{read} of {known}")


def _judge(seed: int, piece: tuple[int, int]) -> Told:
    command = [sys.executable, "-m", "tests.support.shell_judge", str(seed), *map(str, piece)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        return Told(faults=[done.stderr])
    return Told(**json.loads(done.stdout))
