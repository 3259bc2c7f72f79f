"""Reads MatrixInfer's ModelInfer, the predecessor of Kthena's ModelServing, and its facts.

The renamed field is translated; Kthena's view reads the rest. Source: volcano-sh/kthena
98380a67 and e4fb6663, pkg/apis/workload/v1alpha1.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.objects.object import VOLCANO, GroupKind, Object
from kthena_components.core.values.read import mapping, unknown_in
from kthena_components.systems.kthena import facts as kthena
from kthena_components.systems.kthena.view import Serving, read_serving

KIND = "ModelInfer"
MODEL_INFERS: tuple[GroupKind, ...] = (
    ("workload.matrixinfer.ai", KIND),
    ("workload.volcano.sh", KIND),
    ("workload.serving.volcano.sh", KIND),
)
"""API groups: the original one, its successor, and one that only examples have."""


def read_model_infer(found: Object) -> Serving:
    """Read a ModelInfer, whatever its fields contain."""
    return read_serving(replace(found, body=_as_model_serving(found.body)))


def _as_model_serving(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Convert a ModelInfer's spec to the spec of a ModelServing with the same pods.

    gangSchedule became gangPolicy. All fields that determine the number of pods keep their names.
    """
    spec = mapping(body.get("spec"))
    template = spec.get("template")
    if not isinstance(template, Mapping):
        return body
    renamed = {**template, "gangPolicy": template.get("gangSchedule")}
    return {**body, "spec": {**spec, "template": renamed}}


# Facts of a ModelInfer: those of the equivalent ModelServing, with its own paths and gang.
#
# Source: volcano-sh/kthena 98380a67 and e4fb6663, pkg/infer-controller: gangscheduling/manager.go
# isGangSchedulingEnabled, and utils/utils.go GenerateEntryPod.


def facts(view: Serving) -> ServingFacts:
    """Return the facts of all roles.

    The controller creates PodGroups only with `gangSchedule`. Pods join them if their templates
    name Volcano; the rule model-infer-scheduler reports the others.
    """
    found, stated = kthena.facts(view), view.template.get("gangPolicy")
    gang = found.gang if all(name == VOLCANO for _, name in schedulers(view)) else None
    if gang is not None:
        gang = replace(gang, path=view.object.at("spec.template.gangSchedule"))
    expected = unknown_in(stated) or stated is not None
    return replace(found, gang=gang if expected is True else None, gang_expected=expected)


def schedulers(view: Serving) -> Iterator[tuple[str, object]]:
    """Return the scheduler in each template from which pods are created, with its path."""
    for role in view.roles:
        fields = ("entryTemplate",) if role.workers == 0 else ("entryTemplate", "workerTemplate")
        for field in fields:
            template = role.fields.get(field)
            if template is not None:
                spec = mapping(mapping(template).get("spec"))
                yield f"{role.path}.{field}.spec.schedulerName", spec.get("schedulerName")
