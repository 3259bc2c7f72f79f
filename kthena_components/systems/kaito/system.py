"""KAITO: Workspace, InferenceSet and MultiRoleInference."""

from typing import Any

from kthena_components.core.objects.retained_fields import kept_pods
from kthena_components.systems.kaito.facts import demand, facts, kept, pods
from kthena_components.systems.kaito.rules.preset_roles_name_selector import RULES
from kthena_components.systems.kaito.view import (
    GROUP,
    INFERENCE_SET,
    SEVERAL_ROLES,
    WORKSPACE,
    View,
    read_view,
)
from kthena_components.systems.system import Kind, System

_KEPT_RUNNING = {"restarts": "KAITO leaves running pods as they are when a template changes"}
_PRESETS = {
    "pods": "a preset creates them",
    "templates": "a preset creates them",
    "restarts": "KAITO leaves running pods as they are when a role changes",
}


def _kind(name: str, **known: Any) -> Kind[View]:
    return Kind(
        group=GROUP, name=name, view=read_view, facts=facts, demand=demand, rules=RULES, **known
    )


SYSTEM = System(
    name="kaito",
    title="KAITO",
    kinds=(
        _kind(
            INFERENCE_SET,
            pods=pods,
            templates=("spec.template.inference.template",),
            kept=kept_pods,
            without=_KEPT_RUNNING,
        ),
        _kind(SEVERAL_ROLES, without=_PRESETS),
        _kind(
            WORKSPACE,
            pods=pods,
            templates=("inference.template",),
            number_in="resource.count",
            kept=kept,
            without=_KEPT_RUNNING,
        ),
    ),
)
