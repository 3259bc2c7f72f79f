"""Checks the roles of a DisaggregatedSet, as part of rule lws-shape."""

from collections.abc import Iterator, Mapping

from kthena_components.core import naming
from kthena_components.core.findings import Finding, count_of, part_of_rule
from kthena_components.core.remedies import write
from kthena_components.core.values.display import display
from kthena_components.core.values.read import (
    mapping,
    require_known,
    text,
    unknown_in,
    whole,
)
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems.lws.rules.rollout import at_least, check_role_rollout, refusal
from kthena_components.systems.lws.view import LEADER, WORKER, Group, Sets

_FEWEST, _MOST = 2, 10
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
    if not _FEWEST <= count <= _MOST and view.object.spec:
        seen = f"has {count_of(count, 'role')}, but must have {_FEWEST} to {_MOST}"
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
    first: dict[str, str] = {}
    for group in view.groups:
        name, at = group.role.get("name"), f"{group.role_path}.name"
        if isinstance(name, str) and not unknown_in(name):
            where = first.setdefault(name, group.role_path)
            if where != group.role_path:
                seen = f"is {display(name)}, already the name of {where}"
                yield refusal(at, seen, "rename one of them")


def _slices(view: Sets) -> Iterator[Finding]:
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
