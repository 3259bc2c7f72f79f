"""Checks that the probes of an engine's container ask a port on which something listens."""

from collections.abc import Iterator

from kthena_components.core.facts.listening import (
    ON_A_PORT,
    ON_ALL_ADDRESSES,
    Listening,
    listening,
)
from kthena_components.core.facts.ports import ProbeFacts
from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Finding, part_of_rule
from kthena_components.core.remedies import write
from kthena_components.core.values.display import display
from kthena_components.core.values.read import require_known

_EFFECTS = {
    "startupProbe": "so it is restarted again and again",
    "readinessProbe": "so its pod never becomes ready",
    "livenessProbe": "so it is restarted again and again",
}


def probe_port(facts: ServingFacts) -> Iterator[Finding]:
    """The HTTP and TCP probes of an engine's container ask a port on which it listens.

    An engine listens on its --port; vLLM and trtllm-serve without one on 8000, SGLang on 30000. It
    listens on its --host; without one, SGLang and trtllm-serve only on the loopback address, which
    the kubelet does not reach. vLLM with --headless and a worker of Ray answer no requests, and
    vLLM with --uds answers on a Unix socket. Not checked are containers in which something else may
    listen: other containers in the pod, programs that a script starts in the background, numbers
    elsewhere in the command line.

    Pass: --port 8080 and a readinessProbe on 8080, or on a port http with containerPort 8080.
    Fail: vllm serve without --port and a readinessProbe on 8080; a probe on 8000 of a worker, or of
    vllm serve with --uds /run/vllm.sock.
    Level: mandatory.
    Source: vLLM vllm/entrypoints/openai/cli_args.py; SGLang sglang/srt/server_args.py; TensorRT-LLM
    tensorrt_llm/commands/serve.py; Kubernetes documentation, Liveness, Readiness and Startup
    Probes; kubernetes pkg/probe/util.go.
    """
    for engine in facts.engines:
        for pod in (engine.entry, engine.worker):
            first = None if engine.worker is None else pod is engine.entry
            found = None if pod is None else listening(pod, first=first)
            if pod is None or pod.own is None or found is None:
                continue
            for probe in pod.own.ports.probes:
                yield from _check(probe, found)


@part_of_rule
def _check(probe: ProbeFacts, found: Listening) -> Iterator[Finding]:
    if found.answers is None and found.engine == "sglang":
        return  # its other pods have a server for probes only
    require_known(probe.path, probe.port, found.answers)
    if probe.port is None:
        yield Finding(
            path=probe.path,
            seen=f"is {display(probe.name)}, which no port of the container is named, "
            f"{_EFFECTS[probe.kind]}",
            remedy="name a port of the container so, or write its number",
        )
    elif isinstance(probe.port, int) and not found.may_listen(probe.port):
        name = f"{display(probe.name)} ({probe.port})" if probe.name else str(probe.port)
        yield Finding(
            path=probe.path,
            seen=f"is {name}, but {found.title}, {_EFFECTS[probe.kind]}",
            remedy=_remedy(found),
        )
    elif isinstance(probe.port, int) and probe.port == found.answers and found.hidden_title:
        yield Finding(
            path=probe.path,
            seen=f"is {probe.port}, but {found.hidden_title}, and the kubelet asks the address of "
            f"the pod, {_EFFECTS[probe.kind]}",
            remedy=ON_ALL_ADDRESSES,
        )


def _remedy(found: Listening) -> str:
    if found.socket:
        return ON_A_PORT
    return "remove the probe" if found.answers is None else write(found.answers)
