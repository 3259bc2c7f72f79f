"""Replaces the names of workloads by fingerprints, and finds a user's own groups again. Pure.

A fingerprint is a part of a hash of the name: equal names stay equal, so that an inventory without
names still tells which of its groups a change replaces. Who guesses a name can confirm it.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from kthena_components.cluster.objects import name_of, namespace_of
from kthena_components.core.values.read import mapping, sequence, texts_in
from kthena_components.placement.model import (
    Cluster,
    Neighbour,
    PodGroup,
    PodSet,
    Quota,
    Running,
    SubGroupPolicy,
)

_LENGTH = 10
_DEVICES = "the inventory could not tell which devices pods have claimed"
"""In place of a reason, which names a pod or a claim."""
_CLAIM = "persistentVolumeClaim"
_NODES = "nodeAffinity"
"""The part of an affinity that names no other pods."""
_SPREAD = "topologySpreadConstraints"


def fingerprint(kind: str, *names: str) -> str:
    """Return a name that tells nothing, and that equal names share."""
    return f"{kind}-{hashlib.sha256('/'.join(names).encode()).hexdigest()[:_LENGTH]}"


def without_names(cluster: Cluster) -> Cluster:
    """Replace the names of namespaces, groups, pods, claims and the values of their labels."""
    return replace(
        cluster,
        quotas=tuple(_quota(each) for each in cluster.quotas),
        limit_ranges=tuple(map(_limit_range, cluster.limit_ranges)),
        volumes=tuple(map(_volume, cluster.volumes)),
        running=tuple(Running(group=_group(one.group), nodes=one.nodes) for one in cluster.running),
        waiting=tuple(map(_group, cluster.waiting)),
        unknown_devices=_DEVICES if cluster.unknown_devices else "",
        neighbours=None
        if cluster.neighbours is None
        else tuple(map(_neighbour, cluster.neighbours)),
    )


def with_names_of(cluster: Cluster, groups: Iterable[PodGroup]) -> Cluster:
    """Give their names back to some groups, and to the namespaces and claims that they use.

    A cluster with names stays as it is.
    """
    words: dict[str, str] = {}
    for one in groups:
        space, owner = one.namespace, one.owner.rpartition("/")[2]
        words[fingerprint("ns", space)] = space
        words[fingerprint("group", space, one.name)] = one.name
        words[fingerprint("owner", space, owner)] = owner
        words |= {fingerprint("claim", space, name): name for name in claims_of(one)}
        words |= {_value(name): name for name in _values_in(one)}
        words |= {fingerprint("ns", name): name for name in _values_in(one)}
    return replace(
        cluster,
        quotas=tuple(
            replace(each, namespace=_word(words, each.namespace)) for each in cluster.quotas
        ),
        limit_ranges=tuple(_moved(each, words) for each in cluster.limit_ranges),
        volumes=tuple(_renamed_volume(each, words) for each in cluster.volumes),
        running=tuple(
            Running(group=_renamed(one.group, words), nodes=one.nodes) for one in cluster.running
        ),
        waiting=tuple(_renamed(one, words) for one in cluster.waiting),
        neighbours=cluster.neighbours and tuple(
            replace(one, namespace=_word(words, one.namespace), pods=_reworded(one.pods, words))
            for one in cluster.neighbours
        ),
    )  # fmt: skip


def _word(words: Mapping[str, str], name: str) -> str:
    return words.get(name, name)


def _renamed(group: PodGroup, words: Mapping[str, str]) -> PodGroup:
    """Rename a group by the table; only the kind of its owner stays."""
    kind, _, title = group.owner.partition(" ")
    owner = "/".join(_word(words, part) for part in title.split("/"))
    return replace(
        group,
        namespace=_word(words, group.namespace),
        name=_word(words, group.name),
        owner=f"{kind} {owner}".strip(),
        pods=tuple(_reworded(one, words) for one in group.pods),
        subgroups=tuple(
            replace(one, match_labels=_words_in(one.match_labels, words)) for one in group.subgroups
        ),
    )


def _reworded(pods: PodSet, words: Mapping[str, str]) -> PodSet:
    """Give pods the names back that other pods ask for."""
    if not words:
        return pods
    spec = {key: _words_in(value, words) if key in {"affinity", _SPREAD} else value
            for key, value in pods.spec.items()}  # fmt: skip
    return replace(pods, labels=_words_in(pods.labels, words), spec=spec)


def _words_in(value: Any, words: Mapping[str, str]) -> Any:
    """Replace each string in a value."""
    if isinstance(value, Mapping):
        return {key: _words_in(inner, words) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_words_in(inner, words) for inner in value]
    return _word(words, value) if isinstance(value, str) else value


def _values_in(group: PodGroup) -> Iterator[str]:
    """List the values of labels that the pods of a group have or ask for."""
    for pods in group.pods:
        yield from pods.labels.values()
        affinity = mapping(pods.spec.get("affinity"))
        others = [value for key, value in affinity.items() if key != _NODES]
        yield from texts_in([*others, *sequence(pods.spec.get(_SPREAD))])


def _renamed_volume(body: Mapping[str, Any], words: Mapping[str, str]) -> Mapping[str, Any]:
    metadata = mapping(body.get("metadata"))
    if body.get("kind") != "PersistentVolumeClaim":
        return body
    named = {
        key: _word(words, str(metadata[key])) for key in ("name", "namespace") if key in metadata
    }
    return {**body, "metadata": {**metadata, **named}}


def claims_of(group: PodGroup) -> Iterator[str]:
    """List the claims that the pods of a group name."""
    for pods in group.pods:
        for volume in map(mapping, sequence(pods.spec.get("volumes"))):
            if name := mapping(volume.get(_CLAIM)).get("claimName"):
                yield str(name)


def _group(group: PodGroup) -> PodGroup:
    """Replace all names of a group by fingerprints; equal names get equal fingerprints."""
    space = fingerprint("ns", group.namespace)
    kind, _, title = group.owner.partition(" ")
    owner = fingerprint("owner", group.namespace, title.rpartition("/")[2])
    return replace(
        group,
        namespace=space,
        name=fingerprint("group", group.namespace, group.name),
        owner=f"{kind} {space}/{owner}",
        pods=tuple(_pods(each, group) for each in group.pods),
        task_minimum={fingerprint("task", task): n for task, n in group.task_minimum.items()},
        subgroups=tuple(_subgroup(each, group) for each in group.subgroups),
    )


def _pods(pods: PodSet, group: PodGroup) -> PodSet:
    """Keep what decides about nodes."""
    affinity = {key: value if key == _NODES else _hidden(value)
                for key, value in mapping(pods.spec.get("affinity")).items()}  # fmt: skip
    volumes = [_volume_of(each, group) for each in sequence(pods.spec.get("volumes"))]
    spreads = _hidden(list(sequence(pods.spec.get(_SPREAD))))
    changed = {"affinity": affinity, "volumes": volumes, _SPREAD: spreads}
    spec = {key: value for key, value in {**pods.spec, **changed}.items() if value}
    return replace(
        pods,
        name="pods",
        labels={key: _value(value) for key, value in pods.labels.items()},
        task=fingerprint("task", pods.task) if pods.task else "",
        spec=spec,
    )


def _value(value: object) -> str:
    """Keep a number: it tells nothing of a workload, and decides which subgroup comes first."""
    text = str(value)
    return text if text.isdecimal() else fingerprint("v", text)


def _hidden(value: Any, field: str = "") -> Any:
    """Replace the values of labels and the namespaces in an affinity or a spread constraint."""
    if isinstance(value, Mapping):
        inside = "matchLabels" if field == "matchLabels" else ""
        return {key: _hidden(inner, inside or key) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_hidden(inner, field) for inner in value]
    if field == "namespaces":
        return fingerprint("ns", str(value))
    return _value(value) if field in {"matchLabels", "values"} else value


def _neighbour(one: Neighbour) -> Neighbour:
    labels = {key: _value(value) for key, value in one.pods.labels.items()}
    hidden = {key: _hidden(value) if key == "affinity" else value
              for key, value in one.pods.spec.items()}  # fmt: skip
    pods = replace(one.pods, labels=labels, spec=hidden)
    return replace(one, namespace=fingerprint("ns", one.namespace), pods=pods)


def _subgroup(policy: SubGroupPolicy, group: PodGroup) -> SubGroupPolicy:
    """Number the names of policies in their order, which decides between subgroups."""
    names = sorted({each.name for each in group.subgroups if each.name})
    number = f"{names.index(policy.name):02}" if policy.name else ""
    selector = policy.match_labels
    plain = {key: _value(value) for key, value in mapping(selector.get("matchLabels")).items()}
    stated = [
        {**each, "values": [_value(value) for value in sequence(each.get("values"))]}
        for each in map(mapping, sequence(selector.get("matchExpressions")))
    ]
    changed = {"matchLabels": plain, "matchExpressions": stated}
    return replace(
        policy,
        name=fingerprint(f"policy-{number}", policy.name) if policy.name else "",
        match_labels={key: value for key, value in changed.items() if value},
    )


def _quota(quota: Quota) -> Quota:
    space = fingerprint("ns", quota.namespace)
    return replace(quota, namespace=space, name=fingerprint("quota", quota.namespace, quota.name))


def _limit_range(body: Mapping[str, Any]) -> Mapping[str, Any]:
    space, name = namespace_of(body), name_of(body)
    named = {"name": fingerprint("limits", space, name), "namespace": fingerprint("ns", space)}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": named,
            "spec": mapping(body.get("spec"))}  # fmt: skip


def _moved(body: Mapping[str, Any], words: Mapping[str, str]) -> Mapping[str, Any]:
    """Give a LimitRange the name of its namespace back."""
    space = _word(words, namespace_of(body))
    return {**body, "metadata": {**mapping(body.get("metadata")), "namespace": space}}


def _volume_of(volume: object, group: PodGroup) -> dict[str, Any]:
    """Write a volume of a pod without its name."""
    claim = mapping(mapping(volume).get(_CLAIM)).get("claimName")
    named = fingerprint("claim", group.namespace, str(claim))
    return {_CLAIM: {"claimName": named}} if claim else {"ephemeral": {}}


def _volume(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Keep of a claim or a volume what decides about nodes. A volume is named by its cluster."""
    metadata, spec = mapping(body.get("metadata")), mapping(body.get("spec"))
    if body.get("kind") != "PersistentVolumeClaim":
        return body
    space = str(metadata.get("namespace", ""))
    named = {
        "name": fingerprint("claim", space, str(metadata.get("name"))),
        "namespace": fingerprint("ns", space),
    }
    return {**body, "metadata": {**metadata, **named}, "spec": spec}
