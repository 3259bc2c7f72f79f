"""Compares the policy pack with an empty one on the same resources, in alternating runs."""

import json
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.engine import ROOT, Engine

OURS: Final = ROOT / "policies"
_EMPTY: Final = """\
from pulumi_policy import EnforcementLevel, PolicyPack, ResourceValidationPolicy

PolicyPack(
    name="empty",
    policies=[
        ResourceValidationPolicy(
            name="nothing",
            description="Checks nothing.",
            validate=lambda _args, _report: None,
            enforcement_level=EnforcementLevel.MANDATORY,
        )
    ],
)
"""
"""A pack with one policy that does nothing. Pulumi decodes each resource once for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackCost:
    """Processor time of a preview of Kthena servings with each pack, per run."""

    servings: int
    empty: list[float]
    ours: list[float]

    def ratio(self) -> float:
        """Return ours / empty, of medians."""
        return statistics.median(self.ours) / statistics.median(self.empty)


def compare_packs(
    engine: Engine, servings: int, repeats: int, warm: int, progress: Callable[[str], None]
) -> PackCost:
    """Preview the same servings with each pack in turn."""
    packs = {"empty": _empty(engine.folder), "ours": OURS}
    recording = str(engine.recorded("kthena", servings))
    taken: dict[str, list[float]] = {name: [] for name in packs}
    for turn in range(warm + repeats):
        for name in packs if turn % 2 else reversed(packs):
            run = engine.run("preview", "raw", packs[name], recording=recording)
            progress(f"{servings} servings with the {name} pack: {run.total:.2f} s")
            if turn >= warm:
                taken[name].append(run.total)
    return PackCost(servings=servings, **taken)


def _empty(folder: Path) -> Path:
    pack = folder / "empty-pack"
    pack.mkdir()
    (pack / "__main__.py").write_text(_EMPTY)
    about = {"version": "0.0.1", "runtime": {"name": "python"}}
    (pack / "PulumiPolicy.yaml").write_text(json.dumps(about))
    return pack
