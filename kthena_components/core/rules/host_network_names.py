"""Checks that pods on the host's network can look up the name of their engine's first pod."""

from collections.abc import Iterator

from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Finding
from kthena_components.core.remedies import write
from kthena_components.core.rules.support.first_rank_address import (
    LEADERS,
    Meeting,
    is_itself,
    meetings,
)
from kthena_components.core.rules.support.messages import title
from kthena_components.core.values.display import display
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import OfController

_IN_CLUSTER = regex(r"[a-z0-9-]+(?:\.[a-z0-9-]+){1,2}(?:\.svc(?:\.cluster\.local)?)?(?::\d+)?")
_ADDRESS = regex(r"[\d.]+(?::\d+)?")
_POLICY = "ClusterFirstWithHostNet"
_SAID = f"write dnsPolicy: {_POLICY}"


def host_network_names(facts: ServingFacts) -> Iterator[Finding]:
    """Pods with hostNetwork that look for a pod by its name ask the cluster's DNS server.

    With hostNetwork and the default dnsPolicy they ask the servers of their node, which do not know
    the names of pods and Services.

    Pass: hostNetwork in 2 pods with dnsPolicy ClusterFirstWithHostNet.
    Fail: hostNetwork in 2 pods without a dnsPolicy, and --master-addr $(LWS_LEADER_ADDRESS).
    Level: mandatory.
    Source: kubernetes pkg/kubelet/network/dns/dns.go getPodDNSType; Kubernetes documentation, DNS
    for Services and Pods, Pod's DNS Policy.
    """
    for engine in facts.engines:
        for pod, meeting in meetings(engine):
            if pod.cluster_names is False and _is_name(meeting):
                spec = pod.own.path.rpartition(".containers[")[0] if pod.own else ""
                yield Finding(
                    path=spec or pod.command_path,
                    seen=f"{title(engine)} looks for its first rank at {display(meeting.shown)}, a "
                    "name of the cluster, and its pods do not ask the cluster's DNS server",
                    remedy=write(_POLICY, _SAID, at=f"{spec}.dnsPolicy") if spec else _SAID,
                )
                break


def _is_name(meeting: Meeting) -> bool:
    value = meeting.address
    if isinstance(value, OfController):
        return value.name in LEADERS
    known = isinstance(value, str) and not is_itself(value) and not _ADDRESS.fullmatch(value)
    return known and _IN_CLUSTER.fullmatch(str(value)) is not None
