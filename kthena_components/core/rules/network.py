"""Rules of networks: names of network interfaces, and of pods on the network of the host."""

from collections.abc import Iterator

from kthena_components.core.facts.network import GLOO, NCCL, VariableFacts
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding, not_checked
from kthena_components.core.remedies import remove, write
from kthena_components.core.rules.support.engine_pods import LEADERS, Meeting, is_itself, meetings
from kthena_components.core.rules.support.messages import title
from kthena_components.core.values.display import display
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import (
    NodeAddress,
    OfController,
    OwnAddress,
    Unknown,
    Varying,
)

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
            if pod.cluster_names is False and _is_name(facts, meeting):
                spec = pod.own.path.rpartition(".containers[")[0] if pod.own else ""
                yield Finding(
                    path=spec or pod.command_path,
                    seen=f"{title(engine)} looks for its first rank at {display(meeting.shown)}, a "
                    "name of the cluster, and its pods do not ask the cluster's DNS server",
                    remedy=write(_POLICY, _SAID, at=f"{spec}.dnsPolicy") if spec else _SAID,
                )
                break


def _is_name(facts: ServingFacts, meeting: Meeting) -> bool:
    """Return whether an address is a DNS name of the cluster, which needs a cluster DNS policy."""
    value = meeting.address
    if isinstance(value, OfController) and value.name in LEADERS:
        return True
    if isinstance(value, OfController | Varying):
        listed = facts.hosts.resolve(meeting.shown) if facts.hosts is not None else "$"
        return "$" not in listed and _IN_CLUSTER.fullmatch(listed.partition(",")[0]) is not None
    known = isinstance(value, str) and not is_itself(value) and not _ADDRESS.fullmatch(value)
    return known and _IN_CLUSTER.fullmatch(str(value)) is not None


_LOOPBACK = "lo"
_PATTERN = regex(r"[\^=*?!:/\s]")
"""Characters of NCCL's lists and of patterns. The kernel rejects `/`, `:` and blanks in the name of
an interface (net/core/dev.c dev_valid_name)."""
_IP = regex(r"(?:(?:\d{1,3}\.){3}\d{1,3}|[0-9a-fA-F]*:[0-9a-fA-F:]+)(?:/\d{1,3})?")
_REMEDY = "write the name of one interface, such as eth0, or remove the variable"
_LONGEST = 15
"""Maximum characters of an interface's name: IFNAMSIZ less one (include/uapi/linux/if.h)."""


def network_interface(facts: ServingFacts) -> Iterator[Finding]:
    """GLOO_SOCKET_IFNAME has names of interfaces, and no loopback connects several pods.

    Gloo makes one device for each name between the commas, and fails if there is no such interface.
    NCCL_SOCKET_IFNAME has another form: prefixes, `=` before exact names, `^` before names to leave
    out. Through `lo` alone, no process reaches another pod.

    An address, or a network such as 10.0.0.0/16, is the name of no interface: Gloo and NCCL then
    find none.

    Pass: GLOO_SOCKET_IFNAME eth0; NCCL_SOCKET_IFNAME ^lo,docker; lo in a single pod.
    Fail: GLOO_SOCKET_IFNAME ^lo,docker, or =eth0; NCCL_SOCKET_IFNAME lo with 2 pods; either from
    status.podIP, or 10.0.1.12.
    Level: mandatory.
    Source: pytorch torch/csrc/distributed/c10d/init.cpp (GLOO_SOCKET_IFNAME) and
    ProcessGroupGloo.cpp createDeviceForInterface; NCCL documentation, Environment Variables,
    NCCL_SOCKET_IFNAME.
    """
    for engine in facts.engines:
        for pod in filter(None, (engine.entry, engine.worker)):
            yield from _check(engine, pod)


def _check(engine: EngineFacts, pod: PodFacts) -> Iterator[Finding]:
    """Check that GLOO_SOCKET_IFNAME and NCCL_SOCKET_IFNAME name an interface to other pods."""
    for name in (GLOO, NCCL):
        stated = pod.variables.get(name)
        if stated is None or pod.command is None:
            continue
        if isinstance(stated.value, OwnAddress | NodeAddress):
            yield _of_field(stated)
        elif isinstance(stated.value, Unknown):
            if engine.pods != 1 and stated.path.endswith(".value"):
                yield not_checked(stated.path, stated.value)
        elif address := _address_in(stated.value):
            yield _finding(name, stated, f"{address}, and no interface has such a name")
        elif name == GLOO and (wrong := _no_name(stated.value)):
            yield _finding(name, stated, f"{wrong} for the name of an interface")
        elif engine.pods != 1 and not pod.on_host and _is_loopback(stated.value):
            wrong = "the loopback interface, through which no other pod is reached"
            yield _finding(name, stated, wrong)


def _of_field(stated: VariableFacts) -> Finding:
    path = stated.path
    if not stated.by_script:
        path = f"{path.removesuffix('.value')}.valueFrom.fieldRef.fieldPath"
    seen = "is the name or the address of the pod or of its node, and not the name of an interface"
    return Finding(path=path, seen=seen, remedy=_REMEDY)


def _address_in(value: str) -> str:
    """Say that a list of names has an IP address; empty if it has none."""
    names = [name.strip().lstrip("=") for name in value.split(",")]
    found = next((name for name in names if _IP.fullmatch(name)), None)
    if found is None or value.startswith("^"):
        return ""
    return "an address" if len(names) == 1 else f"with {display(found)}, an address"


def _no_name(value: str) -> str:
    """Say that the first item of a list that no interface can have is taken; empty if none is."""
    for name in value.split(","):
        if _PATTERN.search(name) or len(name) > _LONGEST:
            found = f"with {display(name)}, which Gloo takes"
            return "and Gloo takes it" if name == value else found
    return ""


def _is_loopback(value: str) -> bool:
    names = [name.strip().lstrip("=") for name in value.split(",")]
    return not value.startswith("^") and all(name == _LOOPBACK for name in names)


def _finding(name: str, stated: VariableFacts, wrong: str) -> Finding:
    set_to = f"sets {name} to" if stated.by_script else "is"
    return Finding(
        path=stated.path,
        seen=f"{set_to} {display(stated.value)}, {wrong}",
        remedy=_REMEDY if stated.by_script else remove(_REMEDY),
    )
