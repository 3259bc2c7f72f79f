"""How Prometheus finds the pods of a serving. Each backend says it; systems/prometheus uses it."""

from collections.abc import Iterable, Mapping

from kthena_components.core import naming
from kthena_components.core.plan.serving_plan import ServingPlan
from kthena_components.core.values.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """Equal sets of pods, each of which serves as a whole: ServingGroups, or single engines."""

    roles: tuple[str, ...]
    """Roles whose pods they have."""
    pods: str
    """Names of their pods, as a pattern of RE2. Its first parentheses are the name of the set."""
    size: int | None
    """Pods of one set. None: an autoscaler changes it."""
    number: int | None
    """Sets of the whole serving. None: an autoscaler changes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrapeTargets:
    """The pods of a serving, as Prometheus and kube-state-metrics know them."""

    entries: Mapping[str, Mapping[str, str]]
    """Labels of the entry pods of each role."""
    units: tuple[Unit, ...]


def targets_of_groups(plan: ServingPlan) -> ScrapeTargets:
    """Return the pods of a backend that names them as Kthena does: a unit is a ServingGroup.

    Source: Kthena v1.0.0 pkg/model-serving-controller/utils/utils.go GeneratePodName. Workers of
    the native backend have a `w-` before their number.
    """
    roles = tuple(role.name for role in plan.roles if role.replicas)
    pods = f"({plan.name}-[0-9]+)-(?:{'|'.join(roles)})-[0-9]+-(?:w-)?[0-9]+"
    unit = Unit(roles=roles, pods=pods, size=plan.pods_per_group, number=plan.groups)
    return ScrapeTargets(entries=entry_labels(plan), units=only_with_pods([unit]))


def entry_labels(plan: ServingPlan) -> dict[str, dict[str, str]]:
    """Return the labels of entry pods that have Kthena's."""
    return {
        role.name: {naming.NAME: plan.name, naming.ROLE: role.name, naming.ENTRY: "true"}
        for role in plan.roles
    }


def only_with_pods(units: Iterable[Unit]) -> tuple[Unit, ...]:
    """Leave out units without pods: a role may have no engines."""
    return tuple(unit for unit in units if unit.size != 0 and unit.number != 0)
