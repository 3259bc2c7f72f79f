"""Facts of a ModelInfer: those of the equivalent ModelServing, with its own paths and gang.

Source: volcano-sh/kthena 98380a67 and e4fb6663, pkg/infer-controller: gangscheduling/manager.go
isGangSchedulingEnabled, and utils/utils.go GenerateEntryPod.
"""

from collections.abc import Iterator
from dataclasses import replace

from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.facts.workload import NO_SCHEDULER
from kthena_components.core.plan.model import VOLCANO
from kthena_components.core.values.read import mapping, unknown_in
from kthena_components.core.values.unknown import MaybeBool, is_unresolved
from kthena_components.systems.kthena import facts as kthena
from kthena_components.systems.kthena.view import Serving

_GANG = "spec.template.gangSchedule"


def facts(view: Serving) -> ServingFacts:
    """Return the facts of all roles."""
    found, together = kthena.facts(view), _together(view)
    if found.gang is None or together is not True:
        return replace(found, gang=None, gang_expected=together)
    return replace(found, gang=replace(found.gang, path=view.object.at(_GANG)))


def _together(view: Serving) -> MaybeBool:
    """Return whether Volcano schedules the pods as gangs.

    The controller creates PodGroups only with `gangSchedule`. It passes `spec.schedulerName` to no
    pod, so the templates decide.
    """
    stated = view.template.get("gangPolicy")
    if gap := unknown_in(stated):
        return gap
    schedulers = list(_schedulers(view))
    if stated is None or any(not is_unresolved(s) and s != VOLCANO for s in schedulers):
        return False
    return NO_SCHEDULER if any(map(is_unresolved, schedulers)) else True


def _schedulers(view: Serving) -> Iterator[object]:
    """Return the schedulers of the templates from which pods are created."""
    for role in view.roles:
        fields = ("entryTemplate",) if role.workers == 0 else ("entryTemplate", "workerTemplate")
        for template in (role.fields.get(field) for field in fields):
            if template is not None:
                yield mapping(mapping(template).get("spec")).get("schedulerName")
