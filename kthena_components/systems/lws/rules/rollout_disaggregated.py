"""Checks rollouts: maxUnavailable, maxSurge and partition, and the roles of a DisaggregatedSet.

All of it is rule lws-shape. The roles of a DisaggregatedSet are updated together, which allows
less. forbidden_changes.py has further rules about updates, and system.py what a surge needs.
Source: kubernetes-sigs/lws pkg/webhooks/leaderworkerset_webhook.go generalValidate and
pkg/webhooks/disaggregatedset/disaggregatedset_webhook.go.
"""

from collections.abc import Iterator, Mapping

from kthena_components.core import naming
from kthena_components.core.findings import Finding, count_of, not_checked, part_of_rule
from kthena_components.core.remedies import either, or_more, remove, write
from kthena_components.core.values.display import display
from kthena_components.core.values.quantity import is_budget, scaled
from kthena_components.core.values.read import mapping, require_known, text, unknown_in, whole
from kthena_components.core.values.unknown import Unknown, known
from kthena_components.systems.lws.view import LEADER, ROLLING, WORKER, Group, Sets

_MOST = 100
"""Maximum percentage of a budget, including maxSurge."""


def is_refused(budget: object) -> bool:
    """Return whether the webhook rejects a budget: it is known and invalid."""
    return budget is not None and not unknown_in(budget) and not is_budget(budget, _MOST)


@part_of_rule
def check_rollout(group: Group) -> Iterator[Finding]:
    """Check the update fields of a group."""
    rolling, at = group.rolling, f"{group.path}.{ROLLING}"
    require_known(at, rolling)
    if not isinstance(rolling, Mapping):
        return
    for key in ("maxUnavailable", "maxSurge"):
        yield from _budget(f"{at}.{key}", rolling.get(key))
    if not group.in_role:
        yield from at_least(f"{at}.partition", rolling.get("partition"), 0)
    yield from _can_begin(group, rolling, at)


@part_of_rule
def _budget(path: str, budget: object) -> Iterator[Finding]:
    require_known(path, budget)
    if is_refused(budget):
        seen = f"is {display(budget)}, but must be a count or a percentage up to {_MOST}%"
        yield refusal(path, seen, "write, for example, 1 or 25%")


def _can_begin(group: Group, rolling: Mapping[str, object], at: str) -> Iterator[Finding]:
    """Check that an update may remove or add a group."""
    replicas = group.replicas
    down, up = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    if not isinstance(replicas, int) or replicas <= 0:
        return
    if scaled(down, replicas, 1, up=False) == 0 == scaled(up, replicas, 0, up=True):
        of = f" of {count_of(replicas, 'replica')}" if "%" in str(down) else ""
        seen = f"is {display(down)}{of} and maxSurge is {display(0 if up is None else up)}"
        remedy = either(
            write(1, "write maxUnavailable: 1"), write(1, "maxSurge: 1", at=f"{at}.maxSurge")
        )
        yield refusal(f"{at}.maxUnavailable", f"{seen}, so no update could start", remedy)


def check_role_rollout(group: Group) -> Iterator[Finding]:
    """Check what is forbidden only in a role of a DisaggregatedSet."""
    kind, at = mapping(group.spec.get("rolloutStrategy")).get("type"), f"{group.path}."
    if gap := unknown_in(kind):
        yield not_checked(f"{at}rolloutStrategy.type", gap, SHAPE)
    elif isinstance(kind, str) and kind not in {"", "RollingUpdate"}:
        seen = f"is {display(kind)}, but a DisaggregatedSet only supports RollingUpdate"
        yield refusal(f"{at}rolloutStrategy.type", seen, remove())
    partition, where = mapping(group.rolling).get("partition"), f"{at}{ROLLING}.partition"
    if gap := unknown_in(partition):
        yield not_checked(where, gap, SHAPE)
    elif partition is not None and whole(partition) != 0:
        seen = f"is {display(partition)}, but a DisaggregatedSet updates its roles together"
        yield refusal(where, seen, remove())


# Shared findings of lws-shape: what the webhook rejects, in the same words.


SHAPE = "lws-shape"


def refusal(path: str, seen: str, remedy: str) -> Finding:
    """Report what the webhook rejects."""
    return Finding(path=path, seen=seen, remedy=remedy, rule=SHAPE)


@part_of_rule
def at_least(path: str, value: object, lowest: int, why: str = "") -> Iterator[Finding]:
    """Report a count below its minimum. Nothing is wrong if it is left out."""
    number = known(whole(value), path)
    if value is None:
        return
    if number is None:
        yield refusal(
            path,
            f"is {display(value)}, but must be a whole number",
            write(lowest, f"write {lowest}"),
        )
    elif number < lowest:
        seen = f"is {display(number)}, but must be at least {lowest}{why}"
        yield refusal(path, seen, or_more(lowest))


_FEWEST, _MOST_ROLES = 2, 10
_SLICES = 100
_REVISION, _HASH = 8, len("-0123456789")
_EXCLUSIVE = (
    "leaderworkerset.sigs.k8s.io/exclusive-topology",
    "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology",
)


@part_of_rule
def check_roles(view: Sets) -> Iterator[Finding]:
    """Check the roles together, and what only a DisaggregatedSet forbids."""
    roles = view.object.spec.get("roles")
    require_known("spec.roles", roles)
    count = len(roles) if isinstance(roles, list | tuple) else 0
    if not _FEWEST <= count <= _MOST_ROLES and view.object.spec:
        seen = f"has {count_of(count, 'role')}, but must have {_FEWEST} to {_MOST_ROLES}"
        yield refusal("spec.roles", seen, "use a LeaderWorkerSet" if count == 1 else "change roles")
    for group in view.groups:
        if group.stated is None:
            yield refusal(f"{group.role_path}.spec", "is missing", "add spec.leaderWorkerTemplate")
    yield from _unique(view)
    yield from _slices(view)
    yield from _replicas(view)
    for group in view.groups:
        yield from check_role_rollout(group)
        yield from _generated(view, group)
    yield from _placement(view)


def _unique(view: Sets) -> Iterator[Finding]:
    """Check that no two roles of a DisaggregatedSet have one name."""
    first: dict[str, str] = {}
    for group in view.groups:
        name, at = group.role.get("name"), f"{group.role_path}.name"
        if isinstance(name, str) and not unknown_in(name):
            where = first.setdefault(name, group.role_path)
            if where != group.role_path:
                seen = f"is {display(name)}, already the name of {where}"
                yield refusal(at, seen, "rename one of them")


def _slices(view: Sets) -> Iterator[Finding]:
    """Check slices: their range, and one only if a role is scaled externally."""
    given, at = view.object.spec.get("slices"), "spec.slices"
    yield from at_least(at, given, 1)
    number = whole(given)
    if not isinstance(number, int):
        return
    if number > _SLICES:
        yield refusal(
            at,
            f"is {display(number)}, but must be at most {_SLICES}",
            write(_SLICES, f"write {_SLICES}"),
        )
    outside = next((group for group in view.groups if _mode(group) == "External"), None)
    if number > 1 and outside is not None:
        seen = f"is {display(number)}, but {outside.role_path} is scaled externally (External)"
        yield refusal(at, seen, "write 1, or scaling.mode: Static")


def _mode(group: Group) -> object:
    mode = mapping(group.role.get("scaling")).get("mode")
    return unknown_in(mode) or mode


@part_of_rule
def _replicas(view: Sets) -> Iterator[Finding]:
    """Check that no role is empty if another one is not: half of a pair serves nothing."""
    counted = [group for group in view.groups if _mode(group) != "External"]
    require_known("spec.roles", *(group.replicas for group in counted), *map(_mode, counted))
    empty = [group for group in counted if group.replicas == 0]
    filled = [group for group in counted if isinstance(group.replicas, int) and group.replicas > 0]
    if empty and filled:
        seen = f"is 0, but {filled[0].path}.replicas is {display(filled[0].replicas)}"
        remedy = "write 1 or more, or 0 in every role"
        yield refusal(f"{empty[0].path}.replicas", seen, remedy)


@part_of_rule
def _generated(view: Sets, group: Group) -> Iterator[Finding]:
    """Check the longest name that contains a role's name: the revision label of a StatefulSet.

    The workers of a group are a StatefulSet with the name of their leader; a group of one pod has
    none. The name of the Service, with `-prv`, is shorter.
    """
    name, at = text(group.role.get("name")), f"{group.role_path}.name"
    slices, replicas = whole(view.object.spec.get("slices")), group.replicas
    require_known(at, view.object.name, name, slices, replicas, group.size)
    if not isinstance(view.object.name, str) or not isinstance(name, str):
        return
    last = max(slices - 1, 0) if isinstance(slices, int) else 0
    index = max(replicas - 1, 0) if isinstance(replicas, int) else 0
    made = naming.least_length(view.object.name) + len(name) + 3 + _digits(last) + _REVISION
    of_leader = 1 + _digits(index) if isinstance(group.size, int) and group.size > 1 else 0
    longest = made + of_leader + _HASH
    over = longest - naming.DNS_LABEL
    if over > 0:
        seen = (
            f"is {display(name)}, and the generated names have up to {longest} characters; "
            f"at most {naming.DNS_LABEL} are allowed"
        )
        yield refusal(at, seen, f"shorten it or metadata.name by {over}")


def _digits(number: int) -> int:
    return len(str(min(number, 2**63)))


@part_of_rule
def _placement(view: Sets) -> Iterator[Finding]:
    """Check a placement policy: its topology, and no exclusive placement in the groups."""
    policy = mapping(view.object.spec.get("placementPolicy"))
    kind, topology, at = policy.get("type"), policy.get("topology"), "spec.placementPolicy"
    require_known(f"{at}.type", kind)
    if not isinstance(kind, str) or kind in {"", "None"}:
        return
    if topology is None or topology == "":
        seen = f"is missing, but the type is {display(kind)}"
        yield refusal(f"{at}.topology", seen, "name the node label that a slice shares")
    for group in view.groups:
        for key in _EXCLUSIVE:
            if any(key in annotations for annotations in _annotations(group)):
                seen = f"has the annotation {key}, but {at}.type is {display(kind)}"
                yield refusal(group.role_path, seen, "keep one of them")


def _annotations(group: Group) -> Iterator[Mapping[str, object]]:
    yield group.annotations
    for field in (LEADER, WORKER):
        template = group.template.get(field)
        if not isinstance(template, Unknown):
            yield mapping(mapping(mapping(template).get("metadata")).get("annotations"))
