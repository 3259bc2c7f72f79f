"""Reads the objects of a serving back to its arguments: the inverse of emit.py.

The first ServingGroup, and the first engine of each role in it, describe all others: what differs
in another object is found by comparing.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kthena_components.core import naming
from kthena_components.core.facts.workload import labels_of
from kthena_components.core.plan.read_back import (
    described_template,
    filled_map,
    namespaced,
    stated,
    without_env,
)
from kthena_components.core.templates import Template
from kthena_components.core.values.read import (
    count,
    group_kind,
    mapping,
    name_of,
    namespace_or_default,
    sequence,
)
from kthena_components.systems.emitter import Converter, Gathering
from kthena_components.systems.system import Body
from kthena_components.systems.volcano.emit import described_topology

STATEFUL_SET, POD_GROUP, SERVICE = (
    ("apps", "StatefulSet"),
    ("scheduling.volcano.sh", "PodGroup"),
    ("", "Service"),
)
_PULUMI = "pulumi.com/"
_SET_DEFAULTS = {
    "replicas": 1,
    "podManagementPolicy": "OrderedReady",
    "revisionHistoryLimit": 10,
    "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
    "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
}
"""Source: kubernetes pkg/apis/apps/v1/defaults.go SetDefaults_StatefulSet."""


def find(objects: Sequence[Body]) -> Iterator[tuple[int, ...]]:
    """Yield the indices of the objects of each serving that has pods."""
    found: dict[tuple[str, str], list[int]] = {}
    for index, body in enumerate(objects):
        labels = labels_of(body)
        serving, group = labels.get(naming.NAME), labels.get(naming.GROUP_NAME)
        ours = isinstance(serving, str) and isinstance(group, str)
        if ours and group_kind(body) in {STATEFUL_SET, POD_GROUP, SERVICE}:
            found.setdefault((_namespace(body), str(serving)), []).append(index)
    for indices in found.values():
        if any(_is_entry(objects[index]) for index in indices):
            yield tuple(indices)


def joined(objects: Sequence[Body]) -> dict[str, Any]:
    """Put the objects of a serving into one, by kind and name."""
    name = next((label for body in objects if (label := labels_of(body).get(naming.NAME))), "")
    named = {f"{group_kind(body)[1]}/{name_of(body)}": body for body in objects}
    return {"metadata": {"name": name, "namespace": _namespace(objects[0])}, **named}


def filled(body: Body) -> dict[str, Any]:
    """Fill in what the API server sets, and leave out what the package writes for Pulumi."""
    result = dict(body)
    for title, each in _members(body):
        metadata = namespaced(each.get("metadata"))
        notes = mapping(metadata.get("annotations")).items()
        own = {key: value for key, value in notes if not str(key).startswith(_PULUMI)}
        result[title] = {**each, "metadata": {**metadata, "annotations": own}}
        if group_kind(each) == STATEFUL_SET:
            result[title]["spec"] = filled_map(each.get("spec"), _SET_DEFAULTS)
        elif group_kind(each) == SERVICE:
            result[title]["spec"] = filled_map(each.get("spec"), {"type": "ClusterIP"})
    return result


def arguments(body: Body) -> dict[str, Any]:
    """Return the arguments that describe the objects of a serving, with their defaults."""
    members, metadata = [each for _, each in _members(body)], mapping(body.get("metadata"))
    sets = [each for each in members if group_kind(each) == STATEFUL_SET]
    groups = sorted({str(labels_of(each).get(naming.GROUP_NAME)) for each in sets}, key=_in_order)
    first = [each for each in sets if labels_of(each).get(naming.GROUP_NAME) == groups[0]]
    gang = next((mapping(m.get("spec")) for m in members if group_kind(m) == POD_GROUP), {})
    parts = [mapping(part) for part in sequence(gang.get("subGroupPolicy"))]
    entries = [each for each in first if _is_entry(each)]
    template = mapping(mapping(entries[0].get("spec")).get("template")) if entries else {}
    topology = stated(
        group_policy=described_topology(gang.get("networkTopology")),
        role_policy=described_topology(parts[0].get("networkTopology")) if parts else None,
    )
    roles = _roles(first, [part.get("name") for part in parts])
    revised = naming.REVISION in mapping(mapping(template.get("metadata")).get("labels"))
    return stated(
        name=metadata.get("name"),
        namespace=metadata.get("namespace"),
        replicas=len(groups),
        scheduler_name=mapping(template.get("spec")).get("schedulerName"),
        queue=gang.get("queue"),
        gang_policy=_gang(roles, parts),
        network_topology=topology or None,
        rollout_strategy=None if revised else {"type": "RoleRollingUpdate"},
        roles=roles,
        labels=_own_labels(members) or None,
    )


def _members(body: Body) -> list[tuple[str, Body]]:
    return [(key, mapping(each)) for key, each in body.items() if "/" in key]


def _namespace(body: Body) -> str:
    return str(namespace_or_default(body))


def _in_order(name: str) -> tuple[str, int, str]:
    """Sort names that end with a number by that number."""
    stem, _, number = name.rpartition("-")
    return (stem, len(number), number) if number.isdecimal() else (name, -1, "")


def _is_entry(body: Body) -> bool:
    """Return whether an object is the StatefulSet of the entry pods."""
    selector = mapping(mapping(mapping(body.get("spec")).get("selector")).get("matchLabels"))
    return group_kind(body) == STATEFUL_SET and naming.ENTRY in selector


def _own_labels(members: Sequence[Body]) -> dict[str, Any]:
    """Return the labels that all objects have, except those of the package."""
    first, *rest = [labels_of(each) for each in members]
    return {
        key: value
        for key, value in first.items()
        if key not in naming.KTHENA_LABELS and all(other.get(key) == value for other in rest)
    }


def _gang(roles: Sequence[Mapping[str, Any]], parts: Sequence[Mapping[str, Any]]) -> Any:
    """Describe the minima of roles that the gang need not have whole."""
    minima = {part.get("name"): part.get("minSubGroups") for part in parts}
    fewer = {
        name: minima[name]
        for role in roles
        if (name := role.get("name")) in minima and minima[name] != role["replicas"]
    }
    return {"min_role_replicas": fewer} if fewer else None


def _roles(sets: Sequence[Body], listed: Sequence[object]) -> list[dict[str, Any]]:
    """Describe the roles of a group in the order of its gang, or else of the file."""
    by_role: dict[str | None, list[Body]] = {}
    for each in sets:
        role = labels_of(each).get(naming.ROLE)
        by_role.setdefault(role if role is None else str(role), []).append(each)
    found = {name: own for name, own in by_role.items() if any(map(_is_entry, own))}
    ordered = sorted(found, key=lambda name: listed.index(name) if name in listed else len(listed))
    return [_role(name, found[name]) for name in ordered]


def _role(name: object, sets: Sequence[Body]) -> dict[str, Any]:
    """Return the arguments of one role from its StatefulSets."""
    entries = sorted(filter(_is_entry, sets), key=lambda s: _in_order(_instance(s)))
    own = [s for s in sets if _instance(s) == _instance(entries[0]) and not _is_entry(s)]
    workers = mapping(own[0].get("spec")) if own else {}
    return stated(
        name=name,
        replicas=len(entries),
        worker_replicas=count(workers.get("replicas")) if own else 0,
        entry_template=_template(mapping(entries[0].get("spec")).get("template")),
        worker_template=_template(workers.get("template")),
    )


def _instance(body: Body) -> str:
    return str(labels_of(body).get(naming.ROLE_ID))


def _template(template: object) -> Template | None:
    """Return a template without what the backend adds to each of its pods."""
    scheduler = mapping(mapping(template).get("spec")).get("schedulerName")
    described = described_template(template, scheduler)
    if described is None:
        return None
    metadata = dict(mapping(described.get("metadata")))
    for field, added in (
        ("labels", {naming.WORKER}),
        ("annotations", {naming.POD_GROUP, naming.TASK_SPEC}),
    ):
        kept = {k: v for k, v in mapping(metadata.pop(field, None)).items() if k not in added}
        metadata |= {field: kept} if kept else {}
    rest = {key: value for key, value in described.items() if key != "metadata"}
    result = {**({"metadata": metadata} if metadata else {}), **rest}
    return without_env(result, _added(mapping(rest.get("spec"))))


def _added(spec: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """List the variables in the containers that the backend adds, or would replace."""
    found = [
        mapping(entry)
        for kind in ("initContainers", "containers")
        for container in sequence(spec.get(kind))
        for entry in sequence(mapping(container).get("env"))
    ]
    own = [entry for entry in found if entry.get("name") in naming.INJECTED_ENV]
    values = {entry["name"]: {**entry, "name": ""} for entry in own}
    aliases = [
        entry
        for entry in found
        if {**entry, "name": ""} == values.get(naming.LWS_ENV.get(str(entry.get("name")), ""))
    ]
    return [*own, *aliases]


CONVERTER = Converter(
    kinds=(STATEFUL_SET,),
    filled=filled,
    arguments=arguments,
    gathered=Gathering(find=find, joined=joined),
    # A StatefulSet recreates only the pod that failed; other controllers recreate more by default.
    elsewhere=lambda args: {**args, "recovery_policy": "None"},
    labels=("modelserving.volcano.sh/",),
    label=lambda pair: pair,
)
