"""Repairs the tree of HyperNodes on paper. Pure."""

from collections.abc import Mapping
from typing import Any

from kthena_components.cluster.objects import name_of
from kthena_components.core.values.read import mapping, sequence, spec_of
from kthena_components.placement.model import Body, Change, Cluster


def tree_of_hyper_nodes(cluster: Cluster) -> Change:
    """Remove the members that give a HyperNode a second parent, or close a cycle.

    A HyperNode of which none is left is removed: the API server rejects one without members.
    """
    names, parents = set(map(name_of, cluster.hyper_nodes)), dict[str, str]()
    gone, bodies = list[str](), list[Body]()
    for body in cluster.hyper_nodes:
        name, kept, lost = name_of(body), list[object](), list[str]()
        for member in sequence(spec_of(body).get("members")):
            child = _child(mapping(member))
            if child not in names or _may_be_above(name, child, parents):
                kept.append(member)
                parents.setdefault(child, name)
            else:
                lost.append(f"the member {child} of the HyperNode {name}")
        if lost and not kept:
            gone.append(f"the HyperNode {name}")
            continue
        gone += lost
        bodies.append({**body, "spec": {**spec_of(body), "members": kept}})
    return Change(text=f"Remove {' and '.join(gone)}", hyper_nodes=tuple(bodies))


def _child(member: Mapping[str, Any]) -> str:
    """Return the HyperNode that a member names. Empty: it names none."""
    exact = mapping(mapping(member.get("selector")).get("exactMatch"))
    return str(exact.get("name", "")) if member.get("type") == "HyperNode" else ""


def _may_be_above(name: str, child: str, parents: Mapping[str, str]) -> bool:
    """Say whether a HyperNode may be the parent of another one, which has one already or none."""
    line = [name]
    while (above := parents.get(line[-1])) and above not in line:
        line.append(above)
    return child not in line and parents.get(child, name) == name
