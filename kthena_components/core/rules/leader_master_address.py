"""Rules of the address at which the pods of an engine look for its first rank."""

import re
from collections.abc import Iterator

from kthena_components.core.engines.launchers import RAY_PORT
from kthena_components.core.engines.sglang import INIT_PORT
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding, Level, count_of
from kthena_components.core.rules.support.engine_pods import (
    DEFAULTS,
    RAY,
    WITH_PORT,
    Meeting,
    address_of_first,
    is_itself,
    meeting_of,
    meetings,
    port_of,
)
from kthena_components.core.rules.support.messages import title
from kthena_components.core.rules.support.own_rank_and_unset_variables import (
    in_order,
    may_be_newer,
    may_be_of_image,
    no_part,
    no_value,
)
from kthena_components.core.values.display import display
from kthena_components.core.values.read import MAX_PORT
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import (
    NodeAddress,
    NotSet,
    OfController,
    OwnAddress,
    Unknown,
    product,
)

_TWO = 2
_OF_SERVICE = regex(r"\w+_(?:SERVICE_HOST|SERVICE_PORT\w*|PORT(?:_\w+)?)")
"""Variables that Kubernetes adds for each Service (pkg/kubelet/envvars/envvars.go)."""
_API_SERVER = regex(r"KUBERNETES_(?:SERVICE_HOST|SERVICE_PORT(?:_HTTPS)?|PORT(?:_443_TCP\w*)?)")
"""Those of the Service kubernetes; one of a Service kubernetes-head begins with its own name."""
_API_HOST = regex(r"(?:tcp://)?kubernetes\.default(?:\.svc(?:\.[\w.-]+)?)?(?::\d+)?")
_WITHOUT_PORT = "which has no port"
_OF_API = "the address of the API server of Kubernetes, which has no rank"
_PORT, _PORTS = regex(r":\d+$"), regex(r":\d+:\d+$")
_LAST, _NAMED = regex(r":([A-Za-z0-9-]+)$"), regex(r":[a-z][a-z0-9-]*$")
_LINKS = "enableServiceLinks"
_HOST = regex(r"[A-Za-z0-9.:-]+")
_ALONE = regex(r"\$(?:\(\w+\)|\{\w+\}|\w+)")


def leader_address(facts: ServingFacts) -> Iterator[Finding]:
    """The address of an engine's first rank has a value, its option's form, and is one per copy.

    A controller sets only its own variables: Kthena ENTRY_ADDRESS, LeaderWorkerSet
    LWS_LEADER_ADDRESS. A $(NAME) that nothing sets stays as it is, and $NAME in a script is empty,
    unless the image sets it. Kubernetes also leaves $(NAME) in the value of a variable that comes
    before NAME in env. Kthena and the plugins of a Volcano Job add theirs at the end, and
    LeaderWorkerSet and Grove at the beginning. vLLM's --master-addr and --data-parallel-address
    are a host, SGLang's --dist-init-addr and `ray start --address` have a port, which is a number
    up to 65535. A number is not a host, and in single quotes $NAME stays as it is. The name of one
    pod is the address of one copy of the engine. Copies in a scaling group of Grove differ only in
    GROVE_PCSG_INDEX.

    Pass: --nnodes 2 --master-addr $(LWS_LEADER_ADDRESS) in a LeaderWorkerSet.
    Fail: $(LWS_LEADER_ADDRESS) in a ModelServing; $(LEADER) or $LEADER without a variable LEADER;
    LEADER: $(ENTRY_ADDRESS) in the env of a ModelServing; $LWS_LEADER_ADDR;
    --master-addr chat-0.chat:29501, or chat-0.chat with 2 replicas; --master-addr 29501;
    --dist-init-addr chat-0.chat:dist; $(KUBERNETES_SERVICE_HOST), the API server's address;
    $(GROVE_PCS_NAME)-$(GROVE_PCS_INDEX)-engine-0-leader-0.$(GROVE_HEADLESS_SERVICE) in a scaling
    group with 2 replicas; --dist-init-addr http://chat-0.chat:5000; $(CHAT_SERVICE_HOST) with
    enableServiceLinks: false.
    Level: mandatory; advisory for a $NAME that an image of your own may set, and for a name with a
    prefix of LeaderWorkerSet or Grove, which newer releases may set.
    Source: Kubernetes documentation, Define Dependent Environment Variables; volcano-sh/kthena
    v1.0.0 pkg/apis/workload/v1alpha1/model_serving_types.go and pkg/model-serving-controller/utils/
    utils.go addEnvVars; volcano v1.14 pkg/controllers/job/plugins/svc OnPodCreate;
    kubernetes-sigs/lws pkg/utils/pod/pod_utils.go; ai-dynamo/grove
    operator/internal/controller/common/component/utils/pod.go PrependEnvVarsToContainers and
    operator/api/common/namegen.go; pytorch
    torch/distributed/rendezvous.py; ray src/ray/gcs_rpc_client (StrSplit of the address).
    """
    for engine in facts.engines:
        for pod, meeting in meetings(engine):
            seen = _no_value(facts, pod, meeting) or _no_form(facts, meeting)
            seen = seen or _one_copy(facts, engine, meeting)
            if seen and not (pod.on_host and is_itself(meeting.address)):
                yield _not_usable(facts, engine, pod, meeting, seen)
                break
        else:
            yield from _of_first_rank(facts, engine)


def _of_first_rank(facts: ServingFacts, engine: EngineFacts) -> Iterator[Finding]:
    """Check the address in the first pod itself, whose store of torch is asked by that name."""
    command = engine.entry.command
    meeting = None if command is None else meeting_of(command)
    if meeting is None:
        return
    if seen := _no_value(facts, engine.entry, meeting) or _no_form(facts, meeting):
        yield _not_usable(facts, engine, engine.entry, meeting, seen)


def _no_value(facts: ServingFacts, pod: PodFacts, meeting: Meeting) -> str:
    """Explain which variable of an address has no value."""
    value = meeting.address
    if isinstance(value, NotSet) and _OF_SERVICE.fullmatch(value.name):
        if _API_SERVER.fullmatch(value.name):
            return _OF_API
        if pod.service_links:
            return ""
        return f"but {_LINKS} is false, so Kubernetes does not set {value.name}"
    seen = no_value(facts.controller_env, pod, value)
    return seen or no_part(facts.controller_env, pod, value, meeting.shown)


def _no_form(facts: ServingFacts, meeting: Meeting) -> str:
    """Say why an address cannot name a host in the form that its option takes; empty if it can."""
    shown = meeting.shown
    if is_itself(meeting.address):
        return ""
    if "://" in shown:
        return "which is a URL, and not an address"
    if isinstance(meeting.address, str) and (wrong := _no_name(meeting.address)):
        return wrong
    if _PORTS.search(shown):
        return "but only a host belongs there, and the script adds the port"
    if meeting.option not in WITH_PORT:
        return "but only a host belongs there, without a port" if _is_host_and_port(shown) else ""
    # A controller's variable has no port.
    alone = isinstance(meeting.address, OfController) and _ALONE.fullmatch(shown) is not None
    named = facts.hosts is not None and "$" in shown and _HOST.fullmatch(facts.hosts.resolve(shown))
    known = isinstance(meeting.address, str) or alone or named
    return _no_port(shown) if known or _PORT.search(shown) or _NAMED.search(shown) else ""


def _no_name(address: str) -> str:
    """Explain that a known string is the name and the address of no host."""
    host = address.partition(":")[0]
    if _API_HOST.fullmatch(address):
        return _OF_API
    if "$" in address:
        return "in which nothing replaces the variable, because it is quoted"
    return "whose host is a number" if host.isdecimal() and address.count(":") < _TWO else ""


def _no_port(shown: str) -> str:
    """Explain that what follows the host of an address is not a port."""
    found = _LAST.search(shown)
    if found is None:
        return _WITHOUT_PORT
    if not found[1].isdecimal():
        return f"and {display(found[1])} is the name of a port, and not its number"
    return "" if int(found[1][:9]) <= MAX_PORT else f"and ports end at {MAX_PORT}"


def _is_host_and_port(shown: str) -> bool:
    return _PORT.search(shown) is not None and shown.count(":") == 1


def _one_copy(facts: ServingFacts, engine: EngineFacts, meeting: Meeting) -> str:
    """Explain that an address names one pod, but there are several copies of the engine."""
    copies, value = product(engine.replicas, facts.copies), meeting.address
    if isinstance(copies, Unknown) or copies < _TWO or engine.worker is None:
        return ""
    if isinstance(value, OfController):
        value = _in_all_copies(facts, engine, meeting)
    if not isinstance(value, str):
        return ""
    host = value.partition(":")[0].partition(".")[0]
    if not facts.name or not re.fullmatch(rf"{re.escape(facts.name)}-(?:[\w-]*-)?\d+", host):
        return ""
    return f"the name of one pod, but there are {count_of(copies, 'copy')} of the engine"


def _in_all_copies(facts: ServingFacts, engine: EngineFacts, meeting: Meeting) -> object:
    """Return the address that all copies of an engine in one copy of the object have."""
    hosts, copies = facts.hosts, engine.replicas
    if hosts is None or not hosts.of_copy or isinstance(copies, Unknown) or copies < _TWO:
        return None
    found = hosts.resolve(meeting.shown)
    return None if "$" in found or any(map(meeting.shown.__contains__, hosts.of_copy)) else found


def _not_usable(
    facts: ServingFacts, engine: EngineFacts, pod: PodFacts, meeting: Meeting, seen: str
) -> Finding:
    """Write the finding of an unusable address; advisory if the image or a release decides."""
    unsure = may_be_of_image(pod, meeting.address) or may_be_newer(meeting.shown)
    unsure = unsure and seen != _OF_API  # Kubernetes' own variable replaces an image's.
    return Finding(
        path=pod.command_path,
        seen=f"{title(engine)} looks for its first rank at {display(meeting.shown)} "
        f"({meeting.option}), {seen}",
        level=Level.ADVISORY if unsure else Level.MANDATORY,
        remedy=in_order(meeting.address)
        or (f"write {meeting.shown}:{_default_port(meeting)}" if seen == _WITHOUT_PORT else "")
        or _remedy(facts, engine, pod, meeting),
    )


def _remedy(facts: ServingFacts, engine: EngineFacts, pod: PodFacts, meeting: Meeting) -> str:
    """Name the variable that the controller of the pods sets, or else the pod itself."""
    own, port = address_of_first(facts, engine), port_of(meeting.shown)
    # The script of the image adds the port.
    by_script = pod.command is not None and pod.command.ray_script is not None
    if meeting.option not in WITH_PORT or by_script:
        advice = f"write {own or _FIRST}, without a port"
    elif own:
        advice = f"write {own}:{port or _default_port(meeting)}"
    else:
        of = "Ray's head" if meeting.option == RAY else "the first rank"
        advice = f"write {_FIRST}, with the port of {of}"
    value = meeting.address
    of_service = isinstance(value, NotSet) and _OF_SERVICE.fullmatch(value.name) is not None
    linked = pod.service_links or not of_service
    return advice if linked else f"{advice}, or remove {_LINKS}: false"


_FIRST = "the name of the first pod"


def _default_port(meeting: Meeting) -> int:
    """Return the default port of Ray's head or of SGLang, for an address without a port."""
    return RAY_PORT if meeting.option == RAY else INIT_PORT


def master_address(facts: ServingFacts) -> Iterator[Finding]:
    """The pods of an engine look for its first rank at an address of that rank's pod.

    With --nnodes, all ranks meet at --master-addr (vLLM) or --dist-init-addr (SGLang), and copies
    without an HTTP server (--headless) at --data-parallel-address; workers of Ray join the head at
    `ray start --address`. Each is the pod itself,
    127.0.0.1, if it is not stated; newer SGLang takes --host instead. The first pod may use it,
    because it is there. Every other one waits until it gives up. So does a pod that looks at its
    own name or address: $(POD_IP) from status.podIP, $HOSTNAME, $(hostname -i), or at its node's
    address, from status.hostIP. Pods on the host's network may share a node, and are not checked.

    Pass: --nnodes 2 --node-rank $(POD_INDEX) --master-addr chat-0.chat in a StatefulSet chat.
    Fail: --nnodes 2 --node-rank 1 without --master-addr, with --master-addr localhost, or with
    $(POD_NAME).
    Level: mandatory; advisory for the node's address, by which a hostPort may lead to the first pod
    on one node.
    Source: vllm/config/parallel.py (master_addr, data_parallel_master_ip) and
        vllm/engine/arg_utils.py (data_parallel_address); sglang/srt/model_executor/model_runner.py
        (init_torch_distributed), later sglang/srt/distributed/bootstrap.py.
    """
    for engine in facts.engines:
        for pod, meeting in meetings(engine):
            if not pod.on_host and _is_own(meeting.address):
                yield _looks_at_itself(facts, engine, pod, _alone(meeting), meeting)
                break
        else:
            yield from _each_its_own(facts, engine)


def _is_own(address: object) -> bool:
    """Return whether an address leads to the pod that states it, or to its node.

    The address of the node leads to no pod that is not on its network, unless by a hostPort.
    """
    return is_itself(address) or isinstance(address, NodeAddress)


def _alone(meeting: Meeting) -> str:
    """Say why an address of several pods reaches only the pod itself, by what the address is."""
    if isinstance(meeting.address, NodeAddress):
        return (
            f"has {meeting.counted}, and {meeting.option} is the address of each pod's own node, "
            "but the first rank is in another pod, which is not on the node's network"
        )
    if meeting.option == RAY:
        shown = meeting.shown or "nothing"
        return (
            f"joins {meeting.counted} at {shown}, which is the pod itself, but the head is in "
            "another pod"
        )
    if isinstance(meeting.address, OwnAddress):
        return (
            f"has {meeting.counted}, and {meeting.option} is each pod's own name or address, but "
            "the first rank is in another pod"
        )
    stated = f"{meeting.option} {meeting.address}" if meeting.address else f"no {meeting.option}"
    default = "" if meeting.address else f", whose default is {DEFAULTS[meeting.option]}"
    return (
        f"has {meeting.counted} with {stated}{default}: each pod looks for the first rank in "
        "itself, but it is in another pod"
    )


def _each_its_own(facts: ServingFacts, engine: EngineFacts) -> Iterator[Finding]:
    """Report pods of a StatefulSet that each state a different address."""
    siblings = engine.siblings
    found = [meeting_of(command) for command in (siblings.commands if siblings else ())]
    meetings = [each for each in found if each is not None]
    addresses = [each.address for each in meetings]
    known = all(isinstance(each, str) and not isinstance(each, Unknown) for each in addresses)
    if len(found) < _TWO or len(meetings) < len(found) or not known:
        return
    if len(set(addresses)) == len(addresses):
        first, second = addresses[:2]
        seen = (
            f"has {meetings[0].counted}, and each pod states a different {meetings[0].option}: "
            f"{first}, {second}, …, so they never meet"
        )
        yield _looks_at_itself(facts, engine, engine.entry, seen, meetings[0])


def _looks_at_itself(
    facts: ServingFacts, engine: EngineFacts, pod: PodFacts, seen: str, meeting: Meeting
) -> Finding:
    """Write the finding of pods that look for the first rank in themselves."""
    address, option = address_of_first(facts, engine), meeting.option
    if address and option in WITH_PORT:
        address += f":{port_of(meeting.shown) or _default_port(meeting)}"
    said = f"write {option}{'=' if option == RAY else ' '}{address}, the address of the first pod"
    if not address:
        port = ", and its port" if option in WITH_PORT else ""
        said = f"write {option} with the address of the first pod, {_such_as(pod)}{port}"
    return Finding(
        path=pod.command_path,
        seen=f"{title(engine)} {seen}",
        remedy=said,
        level=Level.ADVISORY if isinstance(meeting.address, NodeAddress) else Level.MANDATORY,
    )


def _such_as(pod: PodFacts) -> str:
    """Say what the address of a first pod looks like, which may be a pod of another object."""
    if pod.command is not None and pod.command.headless is True:
        return "such as the name of a headless Service that selects only that pod"
    return "such as NAME-0.SERVICE of a StatefulSet"
