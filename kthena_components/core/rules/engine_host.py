"""Checks that an engine listens where its probes ask: on the pod's address."""

from collections.abc import Iterator

from kthena_components.core.engines import CommandFacts
from kthena_components.core.engines.releases import TITLES
from kthena_components.core.facts.listening import loopback_of
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding
from kthena_components.core.remedies import set_option
from kthena_components.core.rules.support.messages import title

RULE = "engine-host"


def engine_host(facts: ServingFacts) -> Iterator[Finding]:
    """An engine with probes of its HTTP port listens on the address of its pod.

    The kubelet sends probes to the pod's address, as Services do. SGLang listens on 127.0.0.1 and
    TensorRT-LLM on localhost unless --host states another address.

    Pass: --host 0.0.0.0 and a readinessProbe; no --host and a probe that runs a command.
    Fail: SGLang without --host and a readinessProbe with httpGet; vllm serve --host 127.0.0.1.
    Level: mandatory.
    Source: sglang/srt/server_args.py (host), of 0.4.6 to the newest; tensorrt_llm/commands/serve.py
    (--host, default localhost); Kubernetes documentation, Probes, HTTP probes (host: pod IP).
    """
    for engine in facts.engines:
        pod, command = engine.entry, engine.entry.command
        if command is None or command.engine not in TITLES or not _is_probed(pod):
            continue
        if host := loopback_of(command):
            yield _finding(engine, command, host)


def _is_probed(pod: PodFacts) -> bool:
    """Return whether a probe asks at the pod's address, and nothing else in the pod answers it."""
    return pod.own is not None and pod.own.ports.alone and bool(pod.own.ports.probes)


def _finding(engine: EngineFacts, command: CommandFacts, host: str) -> Finding:
    stated = "states --host" if "--host" in command.options else "listens by default on"
    return Finding(
        path=engine.entry.command_path,
        seen=f"{title(engine)} {stated} {host}, and its probes ask at the pod's address, where "
        "nothing answers",
        remedy=set_option("--host", "0.0.0.0"),  # noqa: S104 - all addresses of the pod
        rule=RULE,
    )
