"""One group that the scheduler does not place, and what would place it. Pure."""

from collections.abc import Callable

from kthena_components.core.values.dataclass import dataclass
from kthena_components.placement.changes import fits, helps
from kthena_components.placement.model import Change, Cluster, PodGroup
from kthena_components.placement.volcano.scheduler import Scheduler


@dataclass(frozen=True, slots=True)
class Case:
    """A group that the scheduler does not place, and the cluster after all that it does place."""

    cluster: Cluster
    group: PodGroup
    scheduler: Scheduler
    """It has just failed to place the group alone."""

    def without(self, change: Callable[[PodGroup], PodGroup]) -> bool:
        """Say whether the group fits if it is written otherwise."""
        return fits(self.cluster, change(self.group))

    def changes(self, *found: Change) -> tuple[Change, ...]:
        """Keep the changes after which the group fits."""
        return tuple(one for one in found if helps(self.cluster, self.group, one))
