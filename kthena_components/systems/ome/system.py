"""OME: its runtimes, and the InferenceServices that use them."""

from typing import Any

from kthena_components.systems.contract import Kind, System
from kthena_components.systems.ome.facts import facts
from kthena_components.systems.ome.sketch import sketch
from kthena_components.systems.ome.view import (
    GROUP,
    RUNTIMES,
    SERVICE,
    Components,
    read_components,
)

_NO_PODS = "an InferenceService takes its pods from it, and it has none itself"
_MERGED = "OME merges it with a runtime, so it may leave fields out"


def _kind(name: str, **known: Any) -> Kind[Components]:
    return Kind(group=GROUP, name=name, view=read_components, facts=facts, **known)


SYSTEM = System(
    name="ome",
    title="OME",
    kinds=(
        *(
            _kind(
                name,
                kept=None,
                without=dict.fromkeys(("pods", "templates", "restarts"), _NO_PODS),
            )
            for name in RUNTIMES
        ),
        _kind(
            SERVICE,
            sketch=sketch,
            without=dict.fromkeys(("pods", "templates", "restarts"), _MERGED),
        ),
    ),
)
