"""Checks that the pods of an engine look for its first rank in another pod."""

from collections.abc import Iterator

from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding
from kthena_components.core.rules.support.first_rank_address import (
    DEFAULTS,
    RAY,
    WITH_PORT,
    Meeting,
    first_pod,
    is_itself,
    meeting_of,
    meetings,
)
from kthena_components.core.rules.support.messages import title
from kthena_components.core.values.unknown import OwnAddress, Unknown

RULE = "master-address"
_TWO = 2


def master_address(facts: ServingFacts) -> Iterator[Finding]:
    """The pods of an engine look for its first rank at an address of that rank's pod.

    With --nnodes, all ranks meet at --master-addr (vLLM) or --dist-init-addr (SGLang), and copies
    without an HTTP server (--headless) at --data-parallel-address; workers of Ray join the head at
    `ray start --address`. Each is the pod itself,
    127.0.0.1, if it is not stated; newer SGLang takes --host instead. The first pod may use it,
    because it is there. Every other one waits until it gives up. So does a pod that looks at its
    own name or address: $(POD_IP) from status.podIP, $HOSTNAME, $(hostname -i). Pods on the host's
    network may share a node, and are not checked.

    Pass: --nnodes 2 --node-rank $(POD_INDEX) --master-addr chat-0.chat in a StatefulSet chat.
    Fail: --nnodes 2 --node-rank 1 without --master-addr, with --master-addr localhost, or with
    $(POD_NAME).
    Level: mandatory.
    Source: vllm/config/parallel.py (master_addr, data_parallel_master_ip) and
        vllm/engine/arg_utils.py (data_parallel_address); sglang/srt/model_executor/model_runner.py
        (init_torch_distributed), later sglang/srt/distributed/bootstrap.py.
    """
    for engine in facts.engines:
        for pod, meeting in meetings(engine):
            if not pod.on_host and is_itself(meeting.address):
                yield _finding(facts, engine, pod, _alone(meeting), meeting)
                break
        else:
            yield from _each_its_own(facts, engine)


def _alone(meeting: Meeting) -> str:
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
    """Report pods of a StatefulSet that each state another address."""
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
            f"has {meetings[0].counted}, and each pod states another {meetings[0].option}: "
            f"{first}, {second}, …, so they never meet"
        )
        yield _finding(facts, engine, engine.entry, seen, meetings[0])


def _finding(
    facts: ServingFacts, engine: EngineFacts, pod: PodFacts, seen: str, meeting: Meeting
) -> Finding:
    address = first_pod(facts.told) or "such as NAME-0.SERVICE of a StatefulSet"
    port = ", and its port" if meeting.option in WITH_PORT else ""
    return Finding(
        path=pod.command_path,
        seen=f"{title(engine)} {seen}",
        remedy=f"write {meeting.option} with the address of the first pod, {address}{port}",
    )
