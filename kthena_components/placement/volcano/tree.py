"""The tree of HyperNodes as the scheduler sees it, and the caps of topologies.

Source: Volcano v1.14.1 pkg/scheduler/framework/session.go (addClusterTopHyperNode),
pkg/scheduler/api/hyper_node_info.go, and hyperNodeGradientFn in
pkg/scheduler/plugins/network-topology-aware/network_topology_aware.go.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import field
from functools import cache, cached_property

from kthena_components.cluster.objects import name_of
from kthena_components.core.topology.domains import Domain
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import mapping, sequence
from kthena_components.placement.model import Cluster, Topology


@dataclass(frozen=True, slots=True)
class HyperNode:
    """One HyperNode: its tier, and the positions of its nodes, its parent and its children."""

    domain: Domain | None
    """None: the virtual root, which holds every node."""
    tier: int
    nodes: frozenset[int]
    parent: int | None
    children: tuple[int, ...]


class Tree:
    """All HyperNodes by their position; the last one is the virtual root."""

    def __init__(self, cluster: Cluster) -> None:
        """Link the HyperNodes, and add the root above those without a parent."""
        domains = cluster.domains
        place = {node.name: position for position, node in enumerate(cluster.nodes)}
        parents = _parents(cluster)
        self.root = len(domains)
        self.ready = all(len(found) <= 1 for found in parents) and not _has_cycle(parents)
        """With two parents or a cycle, no group with a topology is scheduled."""
        top = max([1, *(domain.tier + 1 for domain in domains)])
        above = [found[0] if found else self.root for found in parents]
        below: list[list[int]] = [[] for _ in range(self.root + 1)]
        for child, parent in enumerate(above):
            below[parent].append(child)
        self.all = [
            HyperNode(domain, domain.tier,
                      frozenset(place[name] for name in domain.nodes if name in place),
                      above[at], tuple(below[at]))
            for at, domain in enumerate(domains)
        ]  # fmt: skip
        every = frozenset(range(len(cluster.nodes)))
        self.all.append(HyperNode(None, top, every, None, tuple(below[self.root])))
        self._named = {domain.tier_name: domain.tier for domain in domains if domain.tier_name}
        self.above = cache(self._above)
        self.common = cache(self._common)
        self.below = cache(self._below)

    @property
    def top(self) -> int:
        """The tier of the virtual root."""
        return self.all[self.root].tier

    @cached_property
    def tiers(self) -> list[int]:
        """Every tier that has a HyperNode, lowest first."""
        return sorted({one.tier for one in self.all})

    @cached_property
    def leaf_of(self) -> dict[int, int]:
        """The HyperNode of the lowest tier for each node that has one.

        Source: FindHyperNodeForNode in pkg/scheduler/util/scheduler_helper.go.
        """
        found: dict[int, int] = {}
        for at, one in enumerate(self.all):
            if one.tier == self.tiers[0]:
                for node in one.nodes:
                    found.setdefault(node, at)
        return found

    def tier_named(self, name: str) -> int | None:
        """Find the tier of a tierName."""
        return self._named.get(name)

    def _above(self, at: int) -> tuple[int, ...]:
        """List a HyperNode and its ancestors, lowest first."""
        found = [at]
        while (parent := self.all[found[-1]].parent) is not None and parent not in found:
            found.append(parent)
        return tuple(found)

    def _common(self, left: int | None, right: int | None) -> int | None:
        """Find the lowest common ancestor; with one side only, that side."""
        if left is None or right is None:
            return right if left is None else left
        others = set(self.above(left))
        return next((one for one in self.above(right) if one in others), None)

    def gradient(
        self, start: int, cap: int, allocated: int | None, eligible: Callable[[int], bool]
    ) -> list[list[int]]:
        """Group the HyperNodes to try by tier, lowest first.

        Args:
            start: Search in this HyperNode.
            cap: The highest tier.
            allocated: The HyperNode that already has pods of the group. Others then stay with it.
            eligible: Whether a HyperNode has enough in total. Asked only if nothing is allocated.
        """
        root: int | None = start
        if allocated is not None:
            root = self._pinned(start, cap, allocated)
        if root is None:
            return []
        if allocated is not None:
            return self.below(root, cap)
        found = [list(filter(eligible, tier)) for tier in self.below(root, cap)]
        return [tier for tier in found if tier]

    def _below(self, root: int, cap: int) -> list[list[int]]:
        """Group a HyperNode and those below it by tier, lowest first, up to a cap."""
        found: dict[int, list[int]] = {}
        waiting, seen = deque([root]), {root}
        while waiting:
            at = waiting.popleft()
            one = self.all[at]
            if one.tier <= cap:
                found.setdefault(one.tier, []).append(at)
            for child in one.children:
                if child not in seen:
                    seen.add(child)
                    waiting.append(child)
        return [found[tier] for tier in sorted(found)]

    def _pinned(self, start: int, cap: int, allocated: int) -> int | None:
        """Intersect the search with the highest allowed ancestor (getSearchRoot)."""
        highest = None
        for one in self.above(allocated):
            if self.all[one].tier > cap:
                break
            highest = one
        if highest is None:
            return None
        common = self.common(start, highest)
        if common == highest:
            return start
        return highest if common == start else None


@dataclass(frozen=True, slots=True)
class Caps:
    """Computes the cap of a topology: the highest tier within which all pods must be."""

    tree: Tree
    active: bool
    """Whether the plugin network-topology-aware runs. Without it, nothing is capped."""
    soft_walks: bool = field(default=False)
    """Since v1.15, soft means hard with the whole cluster as the last choice."""

    def of_group(self, topology: Topology | None) -> int | None:
        """Return the cap of a group; None if it may use the whole cluster."""
        if topology is None or not self.active:
            return None
        if not topology.hard:
            return self.tree.top if self.soft_walks else None
        if topology.highest_tier is not None:
            return topology.highest_tier
        return self.tree.tier_named(topology.highest_tier_name or "")

    def of_subgroup(self, topology: Topology | None, group_cap: int | None) -> int | None:
        """Return the cap of a subgroup; None if it may use the whole cluster.

        Before v1.15, a subgroup copies its topology before the name is resolved, so that a cap
        by name does not hold: `NewSubJobInfo` in pkg/scheduler/api/sub_job_info.go.
        """
        if topology is None or not self.active:
            return None
        if not topology.hard:
            if not self.soft_walks:
                return None
            return self.tree.top if group_cap is None else group_cap
        if topology.highest_tier is None and not self.soft_walks:
            return None
        return self.of_group(topology)


def _parents(cluster: Cluster) -> list[list[int]]:
    """Find the parents of each HyperNode: by its members, or by its nodes if they are not known."""
    domains = cluster.domains
    place = {domain.name: at for at, domain in enumerate(domains)}
    found: list[list[int]] = [[] for _ in domains]
    if not cluster.hyper_nodes:
        return [_containing(domains, at) for at in range(len(domains))]
    for body in cluster.hyper_nodes:
        at = place.get(name_of(body))
        for item in sequence(mapping(body.get("spec")).get("members")):
            member = mapping(item)
            exact = mapping(mapping(member.get("selector")).get("exactMatch"))
            child = place.get(str(exact.get("name")))
            if member.get("type") == "HyperNode" and child is not None and at is not None:
                found[child].append(at)
    return [list(dict.fromkeys(each)) for each in found]


def _containing(domains: Sequence[Domain], child: int) -> list[int]:
    """Return the smallest domain of a higher tier around a domain; empty if there is none."""
    own = domains[child]
    holding = [
        at
        for at, domain in enumerate(domains)
        if domain.tier > own.tier and own.nodes <= domain.nodes
    ]
    return (
        [min(holding, key=lambda at: (domains[at].tier, len(domains[at].nodes), at))][
            : len(holding)
        ]
        if holding
        else []
    )


def _has_cycle(parents: Sequence[Sequence[int]]) -> bool:
    """Return whether the parents of any domain lead back to it."""
    for start in range(len(parents)):
        at, seen = start, {start}
        while parents[at]:
            at = parents[at][0]
            if at in seen:
                return True
            seen.add(at)
    return False
