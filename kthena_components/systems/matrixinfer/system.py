"""MatrixInfer's ModelInfer, the predecessor of Kthena's ModelServing."""

from collections.abc import Iterator
from dataclasses import replace

from kthena_components.core.findings import Finding, Level, not_checked
from kthena_components.core.objects.object import VOLCANO
from kthena_components.core.objects.retained_fields import kept_pods
from kthena_components.core.plan.controller_variables import KTHENA_POD_VARIABLES
from kthena_components.core.remedies import write
from kthena_components.core.values.display import display
from kthena_components.core.values.read import unknown_in
from kthena_components.systems.kthena.facts import pods
from kthena_components.systems.kthena.rules.roles_names_replicas_gang import (
    kthena_gang_minimum,
    kthena_replicas,
)
from kthena_components.systems.kthena.system import ROLE_PATHS
from kthena_components.systems.kthena.view import Serving
from kthena_components.systems.matrixinfer.view import (
    MODEL_INFERS,
    facts,
    read_model_infer,
    schedulers,
)
from kthena_components.systems.system import Kind, Restart, System

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
            pods=pods,
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
