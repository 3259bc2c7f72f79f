"""Rules of objects that meet: selectors and templates, pods of several engines, equal names."""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.facts.listening import Listening
from kthena_components.core.findings import Finding, advise, part_of_rule, refuse
from kthena_components.core.objects.cluster_objects import ClusterObjects
from kthena_components.core.objects.object import Object, PodSet
from kthena_components.core.remedies import write
from kthena_components.core.values.display import display, listing
from kthena_components.core.values.read import (
    first_unknown,
    is_map,
    mapping,
    require_known,
    sequence,
    unknown_inside,
)
from kthena_components.core.values.regex import regex
from kthena_components.systems.kubernetes.selectors_and_routers import owner_title

_PARTS = frozenset({"", "apps", "batch"})
"""API groups whose objects may be parts of one engine, which leader-selected compares."""
_NAME = regex(r"[A-Za-z0-9][-A-Za-z0-9]*(?:\.[A-Za-z0-9][-A-Za-z0-9]*)*")

_First = tuple[PodSet, Listening]
_Place = tuple[object, ...]


def engines_apart(cluster: ClusterObjects) -> Iterator[Finding]:
    """The engines of two objects that have all of their pods do not meet at one address and port.

    Each of them starts a first rank, which listens there, and the address leads to one pod: the
    pods of the other engine join the wrong one, or wait. A name without dots is one of the
    namespace. Objects of Kubernetes' own kinds may be parts of one engine: leader-selected compares
    them.

    Pass: --dist-init-addr $(ENTRY_ADDRESS):5000 in both; meet-a:5000 and meet-b:5000.
    Fail: two ModelServings whose engines have --dist-init-addr meet:5000; two LeaderWorkerSets with
    --master-addr 10.0.0.7 and the same --master-port.
    Level: mandatory; advisory for objects in different files, which may be alternatives.
    Source: pytorch torch/csrc/distributed/c10d/TCPStore.cpp (the first rank listens, the others
    connect); sglang/srt/server_args.py (dist_init_addr); vllm/config/parallel.py (master_addr,
    master_port).
    """
    seen: dict[_Place, _First] = {}
    for pods in cluster.pods:
        ports = cluster.listening(pods)
        is_there = isinstance(pods.count, int) and pods.count > 0
        place = _place(pods, ports) if is_there and ports is not None else None
        if place is None or ports is None:
            continue
        other, _ = seen.setdefault(place, (pods, ports))
        if other.owner is pods.owner or {other.owner.group, pods.owner.group} <= _PARTS:
            continue
        together = cluster.complete or (
            cluster.source_of(other.owner) == cluster.source_of(pods.owner)
        )
        yield _finding(pods, other, ports, together=together)


def _place(pods: PodSet, ports: Listening) -> _Place | None:
    """Return where the first pods of an engine meet the others; None if that is not known."""
    if ports.meets is None or ports.answers is None:
        return None
    host, port = ports.meets
    if not _NAME.fullmatch(host) or not isinstance(pods.owner.namespace, str):
        return None
    is_short = host.count(".") == 0
    return host.lower(), pods.owner.namespace if is_short else "", port


def _finding(pods: PodSet, other: PodSet, ports: Listening, *, together: bool) -> Finding:
    host, port = ports.meets or ("", 0)
    seen = f"starts engines that meet at {display(host)}, port {port}, and so does "
    seen += f"{owner_title(other)}, but only one pod is found there"
    remedy = "write the address of its own first pod in each of the two"
    return (refuse if together else advise)(pods.at("spec"), seen, remedy)


_LABELS, _SELECTOR = "spec.template.metadata.labels", "spec.selector"
_REFUSES = "so the API server refuses the object"


def selector_matches_template(found: Object) -> Iterator[Finding]:
    """The selector of a workload matches the labels of its own pod template.

    A label in the selector that the template lacks, or has with another value, is refused when the
    object is created. So is a template without a label that an expression requires.

    Pass: matchLabels app chat-1, and a template with the labels app chat-1 and tier gpu.
    Fail: matchLabels app chat-1, and a template with app chat-2, or without labels.
    Level: mandatory.
    Source: kubernetes v1.34 pkg/apis/apps/validation/validation.go (ValidateDaemonSetSpec,
    ValidatePodTemplateSpecForStatefulSet, ValidatePodTemplateSpecForReplicaSet); apimachinery
    pkg/apis/meta/v1/helpers.go (LabelSelectorAsSelector).
    """
    selector, template = found.spec.get("selector"), found.spec.get("template")
    if not is_map(template):
        return  # The finding about its containers says that it is not known.
    require_known(_SELECTOR, selector)
    if not is_map(selector):
        return
    metadata = mapping(template).get("metadata")
    stated = mapping(metadata).get("labels")
    require_known(_LABELS, metadata, stated)
    labels = mapping(stated)
    for key, value in mapping(mapping(selector).get("matchLabels")).items():
        yield from _same(str(key), value, labels)
    for index, term in enumerate(sequence(mapping(selector).get("matchExpressions"))):
        yield from _holds(f"{_SELECTOR}.matchExpressions[{index}]", mapping(term), labels)


@part_of_rule
def _same(key: str, value: Any, labels: Mapping[str, Any]) -> Iterator[Finding]:
    own = labels.get(key)
    require_known(_LABELS, value, own)
    if not isinstance(value, str) or own == value or not isinstance(own, str | None):
        return
    has = f"have no {key}" if own is None else f"have {key}: {display(own)}"
    seen = f"{has}, but {_SELECTOR}.matchLabels asks for {display(value)}, {_REFUSES}"
    yield refuse(_LABELS, seen, write({**labels, key: value}, f"write {key}: {value}"))


@part_of_rule
def _holds(path: str, term: Mapping[str, Any], labels: Mapping[str, Any]) -> Iterator[Finding]:
    """Check one expression of a selector against the labels of the object's own template."""
    key, operator, listed = (term.get(name) for name in ("key", "operator", "values"))
    require_known(path, key, operator, listed, unknown_inside(listed), labels.get(str(key)))
    own = labels.get(str(key))
    values = [one for one in sequence(listed) if isinstance(one, str)]
    holds = {
        "In": own in values,
        "NotIn": own not in values,
        "Exists": own is not None,
        "DoesNotExist": own is None,
    }
    if isinstance(key, str) and not holds.get(str(operator), True):
        wanted = f" {listing(map(display, values), 'or')}" if values else ""
        has = "no such label" if own is None else f"the label {display(own)}"
        seen = f"is {key} {operator}{wanted}, and the template has {has}, {_REFUSES}"
        yield refuse(path, seen, "change the expression, or the label of the template")


def object_twice(cluster: ClusterObjects) -> Iterator[Finding]:
    """No two objects of a cluster have the same API group, kind, namespace and name.

    Pass: a StatefulSet and a Service that are both named chat.
    Fail: two Services named chat in one namespace: the second overwrites the first.
    Level: mandatory.
    Source: Kubernetes documentation, Object Names and IDs.
    """
    first: dict[tuple[str, str, str, str], Object] = {}
    for entry in cluster.objects:
        name, namespace = entry.name, entry.namespace
        if not (isinstance(name, str) and isinstance(namespace, str) and name and entry.kind):
            continue
        if not isinstance(entry.version, str) or first_unknown(entry.version, entry.kind):
            continue
        other = first.setdefault((*entry.group_kind, namespace, name), entry)
        if other is not entry:
            where = f" in namespace {display(namespace)}" if namespace else ""
            before = other.path or f"object {other.index + 1}"
            yield Finding(
                path=entry.at("metadata.name"),
                seen=f"is {display(name)}, which is also the {entry.kind}{where} of "
                f"{before}, and the "
                "second would overwrite the first",
                remedy="rename or remove one of the two",
            )
