"""What a Volcano Job tells its pods, for `convert`.

Source: Volcano v1.14 pkg/controllers/job/plugins/env/env.go (VC_TASK_INDEX), svc/svc.go (hosts).
"""

import re

from kthena_components.core.objects.object import Object
from kthena_components.core.plan.controller_variables import Told, reference
from kthena_components.core.values.read import name_of
from kthena_components.systems.kubernetes.pod_variables import first_pod
from kthena_components.systems.volcano.facts import facts
from kthena_components.systems.volcano.view import tasks_of

_INDEX = ("VC_TASK_INDEX", "VK_TASK_INDEX")


def tells(found: Object) -> Told:
    """Return the variables of the plugins env and svc, with one engine in the Job."""
    engines, name = facts(found).engines, name_of(found.body)
    tasks = {str(task.fields.get("name")) for task in tasks_of(found)}
    first = engines[0].name if engines else ""
    if len(engines) != 1 or first not in tasks:
        return Told(ordinal=_INDEX, others=("VC_", "VK_"))
    hosts, alone = f"VC_{first.replace('-', '_').upper()}", engines[0].worker is None
    return Told(
        ordinal=_INDEX,
        # The first of several hosts, or the only one.
        addresses=(
            first_pod(f"{name}-{first}-0", name, found.metadata.get("namespace")),
            rf"\$\{{{re.escape(hosts)}_HOSTS%%,\*\}}",
            *(() if alone else (reference(f"{hosts}_HOSTS"),)),
        ),
        size=(f"{hosts}_NUM",) if alone else (),
        others=("VC_", "VK_"),
    )
