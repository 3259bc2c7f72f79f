"""Rules of who asks the port of an engine in its pod: probes, their key, and the sidecar."""

from collections.abc import Iterator
from dataclasses import replace

from kthena_components.core.engines.options import TITLES
from kthena_components.core.facts.listening import (
    ON_A_PORT,
    ON_ALL_ADDRESSES,
    Listening,
    listening,
    listening_by_number,
)
from kthena_components.core.facts.network import OWN_PORT
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.ports import BY_KNATIVE, BY_KSERVE, ProbeFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding, Level, count_of, part_of_rule
from kthena_components.core.remedies import set_option, write
from kthena_components.core.rules.support.messages import title
from kthena_components.core.values.display import display
from kthena_components.core.values.read import require_known
from kthena_components.core.values.unknown import MaybeInt, known

_EFFECTS = {
    "startupProbe": "so the container is restarted again and again",
    "readinessProbe": "so its pod never becomes ready",
    "livenessProbe": "so the container is restarted again and again",
}
_HEALTH = ("/health", "/health_generate", "/ping", "/metrics")
"""The paths that SGLang's server for probes has; the last two not in all releases."""
_WITHOUT_KEY = ("/health", "/metrics", "/ready")
"""How the paths begin that SGLang answers without a key; the last in newer releases only."""
_OF_OTHERS = frozenset(
    {f"/{name}" for name in ("healthz", "livez", "readyz", "live", "ready", "healthcheck")}
    | {f"{at}/health/{name}" for at in ("", "/v1", "/v2") for name in ("live", "ready")}
)
"""Paths of Kubernetes, Triton, NIM and other servers, which these answer with 404."""


def probe_port(facts: ServingFacts) -> Iterator[Finding]:
    """The probes of an engine's container ask a port on which it listens, in its protocol.

    An engine listens on its --port; vLLM and trtllm-serve without one on 8000, SGLang on 30000. It
    listens on its --host; without one, SGLang and trtllm-serve only on the loopback address, which
    the kubelet does not reach. vLLM with --headless and a worker of Ray answer no requests, and
    vLLM with --uds answers on a Unix socket. SGLang's pods without the first rank have a server for
    probes only, with /health, at their --host and --port. With --ssl-keyfile and --ssl-certfile, a
    server answers HTTPS only. All have /health, not /healthz or /ready. The frontend of Dynamo
    listens on --http-port, else DYN_HTTP_PORT, else 8000, and its workers on DYN_SYSTEM_PORT, if
    that is stated: both are checked in Kubernetes' own kinds. KServe asks the first port of the
    container kserve-container, or else 8080, if it states no readinessProbe, and so does
    Knative. These servers speak HTTP, and gRPC only with an option or a variable for it. A command
    that asks localhost, such as curl, nc or Python's urlopen, fails where nothing listens. Not
    checked are containers in which something else may listen: other containers in the pod than a
    routing sidecar of llm-d and those that state their ports and mount no files, programs that a
    script starts in the background, numbers elsewhere in the command line.

    Pass: --port 8080 and a readinessProbe on 8080, or on a port http with containerPort 8080.
    Fail: vllm serve without --port and a readinessProbe on 8080; a probe on 8000 of a worker, or of
    vllm serve with --uds; a livenessProbe on 8000 in the only template of 2 pods, of which one has
    --headless; scheme HTTP with --ssl-certfile; path /healthz; a gRPC probe; curl localhost:8080.
    Level: mandatory; advisory for another path than the server has.
    Source: vLLM vllm/entrypoints/openai/cli_args.py, vllm/entrypoints/serve/instrumentator and
    issue 1245, in which /livez and /readyz were asked for; SGLang sglang/srt/server_args.py and
    sglang/srt/utils launch_dummy_health_check_server; uvicorn/config.py; TensorRT-LLM
    tensorrt_llm/commands/serve.py and serve/openai_server.py register_routes; SGLang
    sglang/srt/entrypoints/http_server.py; Kubernetes documentation, Liveness, Readiness and Startup
    Probes; kubernetes pkg/probe/util.go and pkg/probe/grpc/grpc.go; curl's manual, exit status 7;
    knative/serving pkg/reconciler/revision/resources/deploy.go getUserPort.
    """
    for engine in facts.engines:
        for pod in filter(None, (engine.entry, engine.worker)):
            first = None if engine.worker is None else pod is engine.entry
            found = listening(pod, first=first)
            if pod.own is None or found is None:
                continue
            for probe in pod.own.ports.probes:
                yield from _at_meeting(probe, found, pod)
                yield from _check(probe, found)
        yield from _of_headless(engine)
        yield from _of_ranks(engine)
    for server in facts.servers:
        for probe in server.probes:
            yield from _check(probe, server.listening)


def probe_key(facts: ServingFacts) -> Iterator[Finding]:
    """The probes of an engine with a key ask a path that needs none, or have the key.

    With --api-key, or the variable VLLM_API_KEY, vLLM answers requests of paths that begin with /v1
    with 401 if they have no key. With --api-key, SGLang does so for all but /health, /metrics and
    /ready. /health needs a key in neither. A probe with the header Authorization or x-api-key is
    not checked.

    Pass: --api-key and path /health; path /v1/models without a key of the engine.
    Fail: --api-key $(KEY) and a readinessProbe with path /v1/models; path /v1/models and a variable
    VLLM_API_KEY from a Secret; SGLang with --api-key and path /get_model_info.
    Level: mandatory.
    Source: vLLM vllm/entrypoints/openai/api_server.py, later serve/utils/server_utils.py and
    serve/middleware/authenticate.py, of 0.6.0 to 0.33.0 (since 0.22.0 also for paths that begin
    with /v2 and /inference, which are not checked); SGLang sglang/srt/utils
    add_api_key_middleware, later utils/auth.py decide_request_auth; kubernetes
    pkg/probe/http/http.go DoHTTPProbe (codes from 200 to 399).
    """
    for engine in facts.engines:
        for pod in (engine.entry, engine.worker):
            first = None if engine.worker is None else pod is engine.entry
            found = None if pod is None else listening(pod, first=first)
            for probe in pod.own.ports.probes if pod and pod.own and found else ():
                if found and probe.port == found.answers:
                    yield from _without_key(probe, found)


@part_of_rule
def _without_key(probe: ProbeFacts, found: Listening) -> Iterator[Finding]:
    """Report an HTTP probe of a path that answers 401 because the engine has an API key."""
    target = probe.target.partition("?")[0].rstrip("/")
    path = f"/{target.lstrip('/')}"
    free = path.startswith(_WITHOUT_KEY) or (found.engine == "vllm" and not path.startswith("/v1"))
    if not probe.target or probe.has_key or free or path in _OF_OTHERS or found.guarded is False:
        return
    at = probe.path.removesuffix(".port")
    require_known(f"{at}.path", found.guarded)
    title = TITLES[str(found.engine)]
    seen = f"is {display(probe.target)}, which {title} answers with 401 without its API key"
    yield _beside_port(probe, "path", f"{seen}, {_EFFECTS[probe.kind]}", _HEALTH[0])


def _has_one_template(engine: EngineFacts) -> bool:
    """Return whether all pods have one template, and only the number of each tells what it is."""
    worker = engine.worker
    same = worker is not None and worker.command_path == engine.entry.command_path
    # Two templates of a component may have one path, which is its overlay.
    same = same and _probes(worker) == _probes(engine.entry)
    return worker is None or (same and listening(worker, first=False) is None)


def _probes(pod: PodFacts | None) -> tuple[ProbeFacts, ...]:
    return pod.own.ports.probes if pod is not None and pod.own is not None else ()


def _of_ranks(engine: EngineFacts) -> Iterator[Finding]:
    """Report probes of a template on a port on which none of its pods listens."""
    pod, siblings = engine.entry, engine.siblings
    if siblings is None or pod.own is None or not _has_one_template(engine):
        return
    found = [listening(replace(pod, command=each), first=True) for each in siblings.commands]
    answers = next((one.answers for one in found if one and isinstance(one.answers, int)), None)
    if not found or None in found or answers is None or listening(pod) is not None:
        return
    for probe in pod.own.ports.probes:
        port = probe.port
        if (
            probe.action == "grpc"
            or not isinstance(port, int)
            or any(one is None or one.may_listen(port) or port == one.health for one in found)
        ):
            continue
        many = count_of(len(found), "pod")
        seen = f"{_asks(probe)}, on which none of the {many} of this template listens: "
        seen += f"{TITLES[str(pod.command and pod.command.engine)]} answers on {answers}, "
        some = any(one is not None and one.answers is None and one.health is None for one in found)
        remedy = _on_one(probe) if some and probe.kind != "readinessProbe" else _ask(probe, answers)
        yield Finding(path=probe.path, seen=f"{seen}{_EFFECTS[probe.kind]}", remedy=remedy)


def _of_headless(engine: EngineFacts) -> Iterator[Finding]:
    """Report probes that restart the pods of a template in which only one pod answers requests.

    A readinessProbe keeps the others out of Services, and may be meant so.
    """
    pod, siblings = engine.entry, engine.siblings
    if siblings is None or pod.own is None or not _has_one_template(engine):
        return
    found = listening_by_number(pod, siblings.commands)
    if found is None or found.engine != "vllm":
        return
    for probe in pod.own.ports.probes:
        if probe.kind != "readinessProbe" and probe.port == found.answers:
            seen = (
                f"{_asks(probe)}, on which only one of the "
                f"{count_of(siblings.count, 'pod')} of this "
            )
            seen += "template listens: each other one answers no requests, "
            yield Finding(
                path=probe.path, seen=f"{seen}{_EFFECTS[probe.kind]}", remedy=_on_one(probe)
            )


def _on_one(probe: ProbeFacts) -> str:
    return f"remove the {probe.kind}, or give the pods with --headless a template without it"


def _at_meeting(probe: ProbeFacts, found: Listening, pod: PodFacts) -> Iterator[Finding]:
    """Report an HTTP request to VLLM_PORT, where vLLM's own processes meet."""
    stated = pod.variables.get(OWN_PORT)
    port, is_http = probe.port, probe.action == "httpGet" and found.engine == "vllm"
    if stated is None or not is_http or not isinstance(port, int) or str(port) != stated.value:
        return
    if isinstance(found.answers, int) and port != found.answers and found.may_listen(port):
        yield Finding(
            path=probe.path,
            seen=f"{_asks(probe)}, which {OWN_PORT} states, where vLLM's processes only meet each "
            f"other: {found.title}, {_EFFECTS[probe.kind]}",
            remedy=_remedy(probe, found),
        )


@part_of_rule
def _check(probe: ProbeFacts, found: Listening) -> Iterator[Finding]:
    """Compare one probe with the ports at which its container answers."""
    if found.answers is None and found.engine == "sglang":
        yield from _of_other_rank(probe, found)
        return
    require_known(probe.path, probe.port, found.answers)
    if probe.port is None:
        yield Finding(
            path=probe.path,
            seen=f"is {display(probe.name)}, and no port of the container has this name, "
            f"{_EFFECTS[probe.kind]}",
            remedy="give a port of the container this name, or write its number",
        )
    elif probe.action == "grpc":
        yield from _of_grpc(probe, found)
    elif isinstance(probe.port, int) and not found.may_listen(probe.port):
        yield Finding(
            path=probe.path,
            seen=f"{_asks(probe)}, but {found.title}, {_EFFECTS[probe.kind]}",
            remedy=_reached(_remedy(probe, found), probe, found),
        )
    elif probe.action == "exec":  # It is in the pod, and so reaches the loopback address.
        return
    elif isinstance(probe.port, int) and probe.port == found.answers and found.hidden_title:
        yield _hidden(probe, found)
    elif isinstance(probe.port, int) and probe.port == found.answers:
        yield from _without_tls(probe, found)
        yield from _of_another_server(probe, found)


def _of_grpc(probe: ProbeFacts, found: Listening) -> Iterator[Finding]:
    """Report a gRPC probe of a server that only speaks HTTP, or of a port without a server."""
    port = probe.port
    if not isinstance(port, int) or (port != found.answers and found.may_listen(port)):
        return
    where = "there and " if port == found.answers else f"on {found.answers} and "
    name = found.program or TITLES.get(str(found.engine), "")
    seen = f"asks port {port} for gRPC, but {found.title}"
    remedy = _remedy(probe, found)
    if found.answers is not None:
        seen = f"asks port {port} for gRPC, but {name} listens {where}speaks HTTP"
        remedy = f"replace it by httpGet with path {_HEALTH[0]} and port {found.answers}"
    path = probe.path.removesuffix(".port")
    remedy = _reached(remedy, probe, found)
    yield Finding(path=path, seen=f"{seen}, {_EFFECTS[probe.kind]}", remedy=remedy)


def _of_another_server(probe: ProbeFacts, found: Listening) -> Iterator[Finding]:
    """Report a path that other servers have and the engine's own has not."""
    path = (probe.target or "").partition("?")[0].rstrip("/")
    if path in _OF_OTHERS and not found.program:
        seen = f"is {display(probe.target)}, which {TITLES[str(found.engine)]} does not have and "
        seen += f"answers with 404, {_EFFECTS[probe.kind]}"
        yield _beside_port(probe, "path", seen, _HEALTH[0], Level.ADVISORY)


def _of_other_rank(probe: ProbeFacts, found: Listening) -> Iterator[Finding]:
    """Check a probe of a pod of SGLang that does not have the first rank.

    It has a server for probes only, at the --host and --port of its command line.
    """
    port = found.health
    if probe.action == "grpc" or not isinstance(port, int) or not isinstance(probe.port, int):
        return
    where = f"{_asks(probe)}, but a pod of SGLang without the first rank answers"
    if probe.port != port and not found.may_listen(probe.port):
        yield Finding(
            path=probe.path,
            seen=f"{where} probes on {port}, {_EFFECTS[probe.kind]}",
            remedy=_reached(_ask(probe, port), probe, found),
        )
    elif probe.port == port and found.hidden_title and probe.action != "exec":
        yield _hidden(probe, found)
    elif probe.port == port and probe.target and probe.target.partition("?")[0] not in _HEALTH:
        seen = f"is {display(probe.target)}, but a pod of SGLang without the first rank answers "
        seen += f"only {' and '.join(_HEALTH[:2])}, {_EFFECTS[probe.kind]}"
        yield _beside_port(probe, "path", seen, _HEALTH[0], Level.ADVISORY)


def _hidden(probe: ProbeFacts, found: Listening) -> Finding:
    """Report a port on which the container listens, at an address that the kubelet cannot reach."""
    return Finding(
        path=probe.path,
        seen=f"is {probe.port}, but {found.hidden_title}, and the kubelet asks the address of the "
        f"pod, {_EFFECTS[probe.kind]}",
        remedy=ON_ALL_ADDRESSES,
    )


def _without_tls(probe: ProbeFacts, found: Listening) -> Iterator[Finding]:
    """Report an HTTP request to a server with TLS, or HTTPS to one without."""
    if not probe.scheme or found.tls is None or (probe.scheme == "HTTPS") is found.tls:
        return
    has = "has --ssl-keyfile or --ssl-certfile" if found.tls else "has no --ssl-certfile"
    seen = f"is {probe.scheme}, but the engine {has}, {_EFFECTS[probe.kind]}"
    yield _beside_port(probe, "scheme", seen, "HTTPS" if found.tls else "HTTP")


def _beside_port(
    probe: ProbeFacts, field: str, seen: str, value: str, level: Level = Level.MANDATORY
) -> Finding:
    """Report a field beside the port; at the probe itself if that has no field for the port."""
    at = probe.path.removesuffix(".port")
    if at == probe.path:
        return Finding(path=at, seen=seen, remedy=f"write {field}: {value}", level=level)
    return Finding(path=f"{at}.{field}", seen=seen, remedy=write(value), level=level)


def _asks(probe: ProbeFacts) -> str:
    """Return the port that a probe asks, as a clause about its field."""
    if probe.action == "exec":
        return f"asks port {probe.port} of its own pod"
    if probe.action == BY_KSERVE:
        return f"gets a readinessProbe and requests at {probe.port}, KServe's default"
    if probe.action == BY_KNATIVE:
        return f"gets requests at {probe.port} from Knative"
    return f"is {display(probe.name)} ({probe.port})" if probe.name else f"is {probe.port}"


def _ask(probe: ProbeFacts, port: MaybeInt) -> str:
    if probe.action == BY_KSERVE:
        return f"add containerPort {port} as the first of its ports"
    if probe.action == BY_KNATIVE:
        return f"write containerPort {port} as its only port"
    return f"ask port {port} instead" if probe.action == "exec" else write(port)


def _reached(remedy: str, probe: ProbeFacts, found: Listening) -> str:
    """Add the host to a remedy about the port, if the server is on its loopback address, too."""
    is_hidden = found.hidden_title and probe.action != "exec"
    return f"{remedy}, and {ON_ALL_ADDRESSES}" if is_hidden else remedy


def _remedy(probe: ProbeFacts, found: Listening) -> str:
    if found.socket:
        return ON_A_PORT
    return "remove the probe" if found.answers is None else _ask(probe, found.answers)


# The port that the routing sidecar of llm-d asks.


def routing_sidecar_port(facts: ServingFacts) -> Iterator[Finding]:
    """The routing sidecar of llm-d passes requests to the port of the engine in its pod.

    It passes requests to --vllm-port of its own pod, 8001 by default. The engine listens on its
    --port. With --connector=sglang, SGLANG_BOOTSTRAP_PORT, 8998 by default, is the
    --disaggregation-bootstrap-port of the prefill engines. It is compared with prefill engines of
    the same model in the namespace, if all state the same port.

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
