"""KubeAI: a Model."""

from kthena_components.systems.contract import Kind, System
from kthena_components.systems.kubeai.facts import facts
from kthena_components.systems.kubeai.sketch import sketch
from kthena_components.systems.kubeai.view import read_model

_MADE = "KubeAI makes pods of it"

SYSTEM = System(
    name="kubeai",
    title="KubeAI",
    kinds=(
        Kind(
            group="kubeai.org",
            name="Model",
            view=read_model,
            facts=facts,
            sketch=sketch,
            without={
                "pods": _MADE,
                "templates": _MADE,
                "restarts": "KubeAI adds a pod, and then replaces the old ones one by one",
            },
        ),
    ),
)
