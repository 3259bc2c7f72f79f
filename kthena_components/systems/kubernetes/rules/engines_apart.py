"""The rule engines-apart."""

from collections.abc import Iterator

from kthena_components.core.facts.listening import Listening
from kthena_components.core.findings import Finding, advise, refuse
from kthena_components.core.objects.cluster_objects import ClusterObjects
from kthena_components.core.objects.object import PodSet
from kthena_components.core.values.display import display
from kthena_components.core.values.regex import regex
from kthena_components.systems.kubernetes.selectors import owner_title

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
