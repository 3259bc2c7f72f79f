"""Checks ModelInfers."""

from collections.abc import Iterator

from kthena_components.core.findings import Finding, Level, not_checked
from kthena_components.core.plan.model import VOLCANO
from kthena_components.core.values.display import display
from kthena_components.core.values.read import unknown_in
from kthena_components.systems.kthena.view import Serving
from kthena_components.systems.matrixinfer.facts import schedulers

_SCHEDULER = "model-infer-scheduler"


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
            yield not_checked(path, gap, _SCHEDULER)
        elif name != VOLCANO:
            stated = "is not stated" if name is None else f"is {display(name)}"
            yield Finding(
                path=path,
                seen=f"{stated}, and MatrixInfer does not pass spec.schedulerName to pods, so "
                "Volcano does not schedule these with their gang",
                remedy=f"write {VOLCANO}",
                rule=_SCHEDULER,
                level=Level.ADVISORY,
            )


RULES = (model_infer_scheduler,)
