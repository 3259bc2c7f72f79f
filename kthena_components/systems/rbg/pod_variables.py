"""What RoleBasedGroup tells the pods of a leader and its workers, for `convert`.

Source: sgl-project/rbg api/workloads/constants/env.go, pkg/discovery/env_builder.go.
"""

from kthena_components.core.plan.controller_variables import Told
from kthena_components.systems.rbg.facts import GROUP_SIZE
from kthena_components.systems.rbg.view import RbgView

# v1alpha1 makes LeaderWorkerSets, whose pods have LeaderWorkerSet's variables, too.
_TOLD = Told(
    size=(GROUP_SIZE, "LWS_GROUP_SIZE"),
    leader=("RBG_LWP_LEADER_ADDRESS", "LWS_LEADER_ADDRESS"),
    rank=("RBG_LWP_WORKER_INDEX", "LWS_WORKER_INDEX"),
    others=("RBG_",),
)


def tells(_view: RbgView) -> Told:
    """Return the variables of the leader-worker pattern."""
    return _TOLD
