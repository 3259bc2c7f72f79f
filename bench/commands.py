"""Measures the commands of the dev stack and their parts."""

import statistics
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import yaml

from bench.engine import COMMANDS, ROOT, Engine

PARTS: Final = ("start", "program", "rest", "seconds")


def measure_commands(repeats: int, warm: int) -> dict[str, dict[str, float]]:
    """Return the median seconds of each command, and of its parts, on an empty stack."""
    project = yaml.safe_load((ROOT / "Pulumi.yaml").read_text())["name"]
    config = ROOT / "stacks" / "Pulumi.dev.yaml"
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(Path(folder), project, config)
        return {command: _parts(engine, command, repeats, warm) for command in COMMANDS}


def _parts(engine: Engine, command: str, repeats: int, warm: int) -> dict[str, float]:
    runs = [engine.run(command, "stack") for _ in range(warm + repeats)][warm:]
    rows: list[Mapping[str, float]] = [
        {
            "start": run.start,
            "program": run.program,
            "rest": run.seconds - run.start - run.program,
            "seconds": run.seconds,
        }
        for run in runs
    ]
    return {part: statistics.median(row[part] for row in rows) for part in PARTS}
