"""Servings of the kaito backend whose refusals are tested."""

from typing import Any

from tests.support.draw_kaito import SPLITS, Split, preset_role
from tests.support.specs import Args, changed, example_for

OPTION, ENGINE = "backend_options", "roles[0].engine"
TEMPLATE = example_for("kaito", "native-8b")
"""One engine of one pod, whose template the package writes."""
PRESET = changed(example_for("kaito", "engine-native"), {"replicas": 1})
"""Llama-3.1-405B on two nodes of 8 × 80 GiB."""


def serving_of(split: Split) -> Args:
    """Give a serving of one engine."""
    options = {"preset": split.preset, "instance_type": split.nodes}
    return changed(PRESET, {"roles": [preset_role("serve", split)], OPTION: options})


LLAMA, PHI = serving_of(SPLITS[0]), serving_of(SPLITS[-1])
"""Llama-3.3-70B on two nodes of 2 × 80 GiB; phi-4 in 8 copies on one node."""


def existing(labels: Args) -> dict[str, Any]:
    """Give the options of a preset on existing nodes."""
    return {OPTION: {"preset": PRESET[OPTION]["preset"], "label_selector": labels}}
