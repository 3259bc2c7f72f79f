"""The rule routing-sidecar-port."""

from collections.abc import Iterator

from kthena_components.core.facts.listening import listening
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding, part_of_rule
from kthena_components.core.remedies import set_option
from kthena_components.core.rules.support.messages import title
from kthena_components.core.values.display import display
from kthena_components.core.values.read import require_known
from kthena_components.core.values.unknown import known


def routing_sidecar_port(facts: ServingFacts) -> Iterator[Finding]:
    """The routing sidecar of llm-d passes requests to the port of the engine in its pod.

    It passes them to --vllm-port, 8001 by default, of its own pod. The engine listens on its
    --port. With --connector=sglang, SGLANG_BOOTSTRAP_PORT, 8998 by default, is the
    --disaggregation-bootstrap-port of the prefill engines: compared with those of the same model in
    the namespace, if all state the same port.

    Pass: --port=8000 and --vllm-port=8200 of the sidecar, and vllm serve --port 8200.
    Fail: --vllm-port=8200, and vllm serve without --port; --vllm-port=8000 and --port=8000;
    --connector=sglang alone, and --disaggregation-bootstrap-port 9000 of the prefill engine.
    Level: mandatory; advisory for a prefill engine that nothing joins with the sidecar's.
    Source: llm-d-inference-scheduler cmd/pd-sidecar/main.go (the URL of the decoder),
    pkg/sidecar/proxy/options.go, connector_sglang.go; vLLM vllm/entrypoints/openai/cli_args.py.
    """
    for engine in facts.engines:
        yield from _passed(engine)


@part_of_rule
def _passed(engine: EngineFacts) -> Iterator[Finding]:
    """Check that a routing sidecar passes requests to the port on which the engine answers."""
    pod, sidecar = engine.entry, engine.entry.sidecar
    if sidecar is None or pod.command is None:
        return
    require_known(sidecar.path, pod.gap, pod.command.hidden)
    found = listening(pod, first=True, on_host=True)
    if found is None or found.answers is None:
        return
    port = known(found.answers, sidecar.path)
    itself = sidecar.target == sidecar.port
    # Both on one port is the concern of ports-distinct.
    if port == sidecar.port or (found.may_listen(sidecar.target) and not itself):
        return
    seen = f"passes requests to port {sidecar.target}, "
    seen += "which is its own" if itself else f"but {found.title} in {title(engine)}"
    yield Finding(
        path=sidecar.path,
        seen=f"container {display(sidecar.name)} {seen}, so no request is answered",
        remedy=set_option("--vllm-port", port),
    )
