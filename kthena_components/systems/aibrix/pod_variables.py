"""What AIBrix tells the pods of a group, for `convert`.

Source: vllm-project/aibrix v0.7 pkg/controller/constants/stormservice.go, and
pkg/controller/podset/podset_controller.go createPodFromTemplate.
"""

from kthena_components.core.plan.controller_variables import Told, reference
from kthena_components.systems.aibrix.view import GROUP_SIZE, RoleSets

_PARTS = ("ROLESET_NAME", "ROLE_NAME", "ROLE_TEMPLATE_HASH", "ROLE_REPLICA_INDEX")
_DOMAIN = rf"-0\.{reference('STORM_SERVICE_NAME')}"
_TOLD = Told(
    size=(GROUP_SIZE,),
    rank=("POD_GROUP_INDEX",),
    addresses=(
        reference("PODSET_NAME") + _DOMAIN,
        "-".join(map(reference, _PARTS)) + _DOMAIN,
    ),
    others=("STORM_SERVICE_NAME", "ROLESET_", "ROLE_NAME", "ROLE_REPLICA_INDEX", "PODSET_NAME"),
)


def tells(_view: RoleSets) -> Told:
    """Return the variables of a group of pods."""
    return _TOLD
