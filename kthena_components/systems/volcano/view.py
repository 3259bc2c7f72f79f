"""Reads Volcano's objects with HyperNodes, and every object that may have a topology.

Reading never raises. A value that is not known yet is Unknown, one of the wrong type is None: the
schema reports it, and the rules between fields skip it.

No HyperNode is validated here: a cluster may contain whatever its API server once accepted.
rules/hypernode_names_topology.py checks HyperNodes, and core/topology/hypernode_tree.py the tree.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, field
from typing import TYPE_CHECKING, Any, Protocol

from kthena_components.core.findings import Finding, Level, not_checked
from kthena_components.core.naming import dns_name, is_dns_name
from kthena_components.core.objects.object import Object
from kthena_components.core.remedies import write
from kthena_components.core.topology.domains import MEMBER_KINDS
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import (
    count,
    group_kind,
    mapping,
    sequence,
    spec_of,
    text,
    unknown_in,
    whole,
)
from kthena_components.core.values.unknown import MaybeInt, MaybeText, Unknown

NAME_LIMIT = 253


@dataclass(frozen=True, slots=True)
class Topology:
    """One networkTopology, and its path."""

    path: str
    fields: Mapping[str, Any]

    @property
    def mode(self) -> MaybeText | None:
        """The mode, hard or soft; the CRD's default is hard."""
        return text(self.fields.get("mode"), "hard")

    @property
    def tier(self) -> MaybeInt | None:
        """The highest allowed tier, if given by number."""
        return whole(self.fields.get("highestTierAllowed"))

    @property
    def tier_name(self) -> MaybeText | None:
        """The highest allowed tier, if given by name."""
        name = text(self.fields.get("highestTierName"))
        return None if name == "" else name


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One task of a Volcano Job: equal pods."""

    path: str
    """In the object."""
    fields: Mapping[str, Any]
    replicas: MaybeInt | None
    """Its pods, 1 by default."""

    @property
    def template(self) -> object:
        """The template of its pods, even if invalid."""
        return self.fields.get("template")


class HasBody(Protocol):
    """An object, or another system's view of one."""

    @property
    def body(self) -> Mapping[str, Any]:
        """The object as it would be applied."""


Rule = Callable[[Object], Iterator[Finding]]


def tasks_of(found: Object) -> list[Task]:
    """List the tasks of a Volcano Job."""
    listed = [mapping(item) for item in sequence(found.spec.get("tasks"))]
    return [
        Task(path=f"spec.tasks[{i}]", fields=task, replicas=count(task.get("replicas"), 1))
        for i, task in enumerate(listed)
    ]


def topologies(manifest: Mapping[str, Any]) -> Iterator[Topology]:
    """List the network topologies of a PodGroup, or of an object whose controller creates one."""
    spec = spec_of(manifest)
    match group_kind(manifest):
        case ("scheduling.volcano.sh", "PodGroup"):
            places = [("spec.networkTopology", spec.get("networkTopology"))]
            for i, policy in enumerate(sequence(spec.get("subGroupPolicy"))):
                at = f"spec.subGroupPolicy[{i}].networkTopology"
                places.append((at, mapping(policy).get("networkTopology")))
        case ("batch.volcano.sh", "Job"):
            places = [("spec.networkTopology", spec.get("networkTopology"))]
            for i, task in enumerate(sequence(spec.get("tasks"))):
                policy = mapping(mapping(task).get("partitionPolicy"))
                at = f"spec.tasks[{i}].partitionPolicy.networkTopology"
                places.append((at, policy.get("networkTopology")))
        case ("workload.serving.volcano.sh", "ModelServing"):
            both = mapping(mapping(spec.get("template")).get("networkTopology"))
            at = "spec.template.networkTopology"
            places = [(f"{at}.{key}", both.get(key)) for key in ("groupPolicy", "rolePolicy")]
        case (_, "ModelInfer"):
            gang = mapping(mapping(spec.get("template")).get("gangSchedule"))
            places = [("spec.template.gangSchedule.networkTopology", gang.get("networkTopology"))]
        case _:
            places = []
    for path, fields in places:
        if fields is not None and (isinstance(fields, Mapping) or unknown_in(fields)):
            yield Topology(path, mapping(fields))


def name_problem(value: object, path: str, what: str) -> Iterator[Finding]:
    """Report a name that is not a DNS-1123 subdomain. A missing name is not reported here."""
    rule, name = "volcano-name", text(value)
    if isinstance(name, Unknown):
        yield not_checked(path, name, rule)
    elif name is not None and not is_dns_name(name[: NAME_LIMIT + 1]):
        near = dns_name(name[:40])
        shown = name if len(name) <= NAME_LIMIT else f"{name[:40]}…"
        yield Finding(
            path=path,
            seen=f"'{shown}' is not a DNS-1123 subdomain (at most {NAME_LIMIT} of a-z, 0-9, '-' "
            f"and '.', each part starting and ending with a letter or digit), as {what} is",
            remedy=write(near) if near else "write, for example, 'research'",
            rule=rule,
        )


if TYPE_CHECKING:  # most files that are checked have no HyperNode
    from kthena_components.core.topology.spec import HyperNodeSpec

GROUP = "topology.volcano.sh"
KIND = "HyperNode"
_TIERS = 2**63
"""A tier is an int64."""
MEMBER_TYPES = ("Node", "HyperNode")
SELECTORS = ("exactMatch", "regexMatch", "labelMatch")


@dataclass(frozen=True, slots=True)
class HyperNodesRead:
    """HyperNodes found in manifests, and what could not be read of them."""

    hyper_nodes: tuple["HyperNodeSpec", ...]
    """As far as readable: not validated, and members may be of several kinds."""
    problems: tuple[Finding, ...]


def read_hyper_nodes(manifests: Iterable[object]) -> HyperNodesRead:
    """Read the HyperNodes among manifests, and skip everything else."""
    entries: list[HyperNodeSpec] = []
    problems: list[Finding] = []
    for index, manifest in enumerate(manifests):
        entry, found = read_hyper_node(manifest)
        entries += [entry] if entry else []
        problems += [problem.under(f"manifests[{index}]") for problem in found]
    return HyperNodesRead(tuple(entries), tuple(problems))


def read_hyper_node(manifest: object) -> tuple["HyperNodeSpec | None", list[Finding]]:
    """Read one manifest's HyperNode, None if it lacks a name or a tier, and the problems."""
    if _get_in(manifest, "kind") != KIND or not _is_group(_get_in(manifest, "apiVersion")):
        return None, []
    name, tier = _get_in(manifest, "metadata", "name"), _whole(_get_in(manifest, "spec", "tier"))
    tier_name = _get_in(manifest, "spec", "tierName")
    members, problems = _read_members(_get_in(manifest, "spec", "members"))
    if not isinstance(name, str):
        problems.append(_shape("metadata.name", "a HyperNode needs a name", "add one"))
    if tier is None:
        seen = "a HyperNode needs a tier, a whole number of 0 or more"
        problems.append(_shape("spec.tier", seen, write(1, "write 1 for the closest domain")))
    if not isinstance(name, str) or tier is None:
        return None, problems
    # Imported here, because few files have a HyperNode.
    from kthena_components.core.topology.spec import HyperNodeSpec  # noqa: PLC0415

    # Nothing is validated here: reading accepts everything that a cluster may contain.
    entry = HyperNodeSpec.model_construct(
        name=name,
        tier=tier,
        tier_name=tier_name if isinstance(tier_name, str) and tier_name else None,
        labels=_plain_labels(_get_in(manifest, "metadata", "labels")),
        **asdict(members),
    )
    return entry, problems


@dataclass(slots=True)
class _Members:
    """Members as fields of a spec, filled one by one."""

    nodes: list[str] = field(default_factory=list)
    node_regex: str | None = None
    node_labels: dict[str, str] = field(default_factory=dict)
    children: list[str] = field(default_factory=list)


def _get_in(value: object, *keys: str) -> object:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _is_group(version: object) -> bool:
    return isinstance(version, str) and version.partition("/")[0] == GROUP


def _whole(value: object) -> int | None:
    """Read an integer of 0 or more; those that went through protobuf are floats."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value < _TIERS and value == value // 1 else None


def _plain_labels(labels: object) -> dict[str, str]:
    pairs = labels.items() if isinstance(labels, Mapping) else ()
    return {key: value for key, value in pairs if isinstance(key, str) and isinstance(value, str)}


def _read_members(listed: object) -> tuple[_Members, list[Finding]]:
    """Read the members of a HyperNode, and list the problems of their selectors."""
    members, problems = _Members(), list[Finding]()
    match listed:
        case [_, *_]:
            found = (_take(members, item, f"spec.members[{i}]") for i, item in enumerate(listed))
            problems += [problem for problem in found if problem]
        case _:
            seen = "a HyperNode needs members, and Volcano's webhook rejects one without"
            problems.append(_shape("spec.members", seen, "add at least one"))
    kinds = [kind for kind in MEMBER_KINDS if getattr(members, kind)]
    if len(kinds) > 1:
        problems.append(
            Finding(
                path="spec.members", rule="hypernode-members", level=Level.ADVISORY,
                seen=f"the members are of {len(kinds)} kinds ({', '.join(kinds)}), and Volcano "
                "accepts them together, but a tree is clearer if each HyperNode has members of one "
                "kind",
                remedy="make a HyperNode for each kind",
            )
        )  # fmt: skip
    return members, problems


def _take(members: _Members, member: object, path: str) -> Finding | None:
    """Add one member of a manifest, or report why it cannot be added."""
    match member:
        case {"type": "Node" | "HyperNode" as kind, "selector": Mapping() as selector}:
            given = [(key, selector[key]) for key in SELECTORS if selector.get(key) is not None]
        case _:
            return _not_whole(member, path)
    match kind, given:
        case "Node", [("exactMatch", {"name": str(name)})]:
            members.nodes.append(name)
        case "HyperNode", [("exactMatch", {"name": str(name)})]:
            members.children.append(name)
        case "HyperNode", [
            ("regexMatch" as key, {"pattern": str(pattern)})
            | ("labelMatch" as key, Mapping() as pattern)
        ] if pattern or key == "labelMatch":
            seen = f"a member of type HyperNode is found by exactMatch, and Volcano ignores {key}"
            return _shape(f"{path}.selector", seen, "write an exactMatch for each child")
        case "Node", [("regexMatch", {"pattern": str()})] if members.node_regex:
            return _not_read(path, "a second regexMatch")
        case "Node", [("regexMatch", {"pattern": str(pattern)})] if pattern:
            members.node_regex = pattern
        case "Node", [("labelMatch", Mapping() as body)]:
            return _take_labels(members, body, path)
        case _:
            seen = f"the selector has {' and '.join(key for key, _ in given) or 'nothing'}, but it "
            seen += "needs one of exactMatch with a name, regexMatch with a pattern and labelMatch"
            return _shape(f"{path}.selector", seen, "write exactly one of them")
    return None


def _not_whole(member: object, path: str) -> Finding:
    kind, selector = _get_in(member, "type"), _get_in(member, "selector")
    if kind in MEMBER_TYPES and selector is None:  # which the API server accepts
        seen = "the member has no selector, and Volcano ignores such a member"
        return _shape(path, seen, "add an exactMatch, a regexMatch or a labelMatch")
    seen = "a member has a type, Node or HyperNode, and a selector; Volcano ignores others"
    return _shape(path, seen, "add what is missing")


def _take_labels(members: _Members, body: Mapping[str, object], path: str) -> Finding | None:
    """Take the labels of a labelMatch, or return why they are not read."""
    labels = _plain_labels(body.get("matchLabels"))
    if body.get("matchExpressions"):
        return _not_read(path, "matchExpressions")
    if not labels:
        seen = "the labelMatch is empty, and an empty one selects no node"
        return _shape(f"{path}.selector", seen, "add matchLabels")
    if members.node_labels:
        return _not_read(path, "a second labelMatch")
    members.node_labels = labels
    return None


def _shape(path: str, seen: str, remedy: str) -> Finding:
    return Finding(path=path, seen=seen, remedy=remedy, rule="hypernode-shape")


def _not_read(path: str, what: str) -> Finding:
    return Finding(
        path=f"{path}.selector", seen=f"not checked, because {what} is not read here",
        rule="hypernode-not-read", level=Level.UNKNOWN,
    )  # fmt: skip
