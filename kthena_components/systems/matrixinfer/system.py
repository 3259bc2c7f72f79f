"""MatrixInfer's ModelInfer, the predecessor of Kthena's ModelServing: its reader and its rules.

The renamed field is translated; Kthena's view reads the rest. Source: volcano-sh/kthena
98380a67 and e4fb6663, pkg/apis/workload/v1alpha1.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Finding, Level, not_checked
from kthena_components.core.objects.object import VOLCANO, GroupKind, Object
from kthena_components.core.objects.retained_fields import kept_pods
from kthena_components.core.plan.controller_variables import KTHENA_POD_VARIABLES
from kthena_components.core.remedies import write
from kthena_components.core.values.display import display
from kthena_components.core.values.read import mapping, unknown_in
from kthena_components.systems.kthena import facts as kthena
from kthena_components.systems.kthena.rules.roles_names_replicas_gang import (
    kthena_gang_minimum,
    kthena_replicas,
)
from kthena_components.systems.kthena.system import ROLE_PATHS
from kthena_components.systems.kthena.view import Serving, read_serving
from kthena_components.systems.system import Kind, Restart, System

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


# Checks ModelInfers.


_COUNTS = "model-infer-counts"
_KTHENA_RELEASE = "0.1"
"""The release of Kthena whose webhook checks these counts as MatrixInfer's does."""


def model_infer_scheduler(view: Serving) -> Iterator[Finding]:
    """Each pod template of a ModelInfer with a gang names Volcano as its scheduler.

    MatrixInfer's controller passes spec.schedulerName to no pod. Pods without the name go to the
    default scheduler, which places them one by one.

    Pass: schedulerName volcano in the spec and in both templates of a role.
    Fail: schedulerName volcano in the spec alone.
    Level: advisory.
    Source: volcano-sh/kthena 98380a67 and e4fb6663, pkg/infer-controller/utils/utils.go
    GenerateEntryPod and GenerateWorkerPod.
    """
    gang = view.template.get("gangPolicy")
    if gang is None or unknown_in(gang):
        return
    for path, name in schedulers(view):
        if gap := unknown_in(name):
            yield not_checked(path, gap)
        elif name != VOLCANO:
            stated = "is not stated" if name is None else f"is {display(name)}"
            yield Finding(
                path=path,
                seen=f"{stated}, and MatrixInfer does not pass spec.schedulerName to pods, so "
                "Volcano does not schedule these with their gang",
                remedy=write(VOLCANO, f"write {VOLCANO}"),
                level=Level.ADVISORY,
            )


def model_infer_counts(view: Serving) -> Iterator[Finding]:
    """MatrixInfer's webhook accepts the counts of a ModelInfer, and the minima of its gang.

    Counts are not negative. A minimum names an existing role, and is from 0 to that role's replicas
    and workers together; of those, the controller counts the replicas only.

    Pass: minRoleReplicas serve 2, role serve with 2 replicas.
    Fail: replicas -1; serve 3 of 1 replica and 1 worker; serv, where the role is serve.
    Level: mandatory.
    Source: matrixinfer-ai/kthena pkg/infer-controller/webhook/validator.go and
    gangscheduling/manager.go calculateRequirements.
    """
    yield from (replace(finding, rule=_COUNTS) for finding in kthena_replicas(view))
    for finding in kthena_gang_minimum(replace(view, version=_KTHENA_RELEASE)):
        path = finding.path.replace("gangPolicy", "gangSchedule", 1)
        yield replace(finding, path=path, rule=_COUNTS)


RULES = (model_infer_scheduler, model_infer_counts)


SYSTEM = System(
    name="matrixinfer",
    title="MatrixInfer ModelInfer",
    kinds=tuple(
        Kind(
            group=group,
            name=name,
            view=read_model_infer,
            facts=facts,
            pods=kthena.pods,
            pod_variables=lambda _: KTHENA_POD_VARIABLES,
            rules=RULES,
            templates=(
                "spec.template.roles[].entryTemplate",
                "spec.template.roles[].workerTemplate",
            ),
            kept=kept_pods,
            restarts=Restart(paths=ROLE_PATHS, how="group after group restarts"),
            copies="replicas",
            unscalable="has no scale subresource",
            without={"rollouts": "its controller ignores maxSurge"},
        )
        for group, name in MODEL_INFERS
    ),
)
