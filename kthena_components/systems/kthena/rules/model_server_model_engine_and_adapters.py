"""Checks ModelServers against the engines of the pods that they select.

Source: volcano-sh/kthena v1.0.0 pkg/kthena-router/router/router.go, which writes spec.model into
each request that is for no LoRA adapter, and leaves the request as it is without spec.model.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from kthena_components.core.engines.options import TITLES
from kthena_components.core.facts.listening import Listening
from kthena_components.core.findings import Finding, Level, advise, each_of, refuse
from kthena_components.core.objects.cluster_objects import ClusterObjects, running_pods
from kthena_components.core.objects.object import MODEL_SERVER, Object, PodSet
from kthena_components.core.remedies import either, write
from kthena_components.core.values.display import display
from kthena_components.core.values.read import mapping, sequence, text, unknown_in
from kthena_components.core.values.unknown import Unknown, known
from kthena_components.systems.kthena.view import MODEL_ROUTE, Route
from kthena_components.systems.kubernetes.selectors_and_routers import owner_title, selectors

_ENGINES: Mapping[str, str] = {"vllm": "vLLM", "sglang": "SGLang"}
"""The values of inferenceEngine."""
_Answering = list[tuple[PodSet, Listening]]


def _served(cluster: ClusterObjects) -> Iterator[tuple[ClusterObjects, Object, _Answering]]:
    """Yield the cluster and each ModelServer with its selected pods that answer requests."""
    servers = {found.index: found for found in cluster.of(MODEL_SERVER)}
    indexes = running_pods(cluster) if servers else {}
    answering: dict[int, _Answering] = {}
    for each in selectors(cluster) if servers else ():
        wanted = {str(k): v for k, v in each.labels.items() if isinstance(v, str)}
        index = indexes.get(each.place)
        is_of_model_server = each.owner.index in servers and each.targets and not each.gap
        all_known = 0 < len(wanted) == len(each.labels)  # A selector with labels, all known.
        if index is None or not is_of_model_server or not all_known:
            continue
        listed = ((pods, cluster.listening(pods)) for pods in index.matching(wanted))
        answering.setdefault(each.owner.index, []).extend(
            (pods, ports) for pods, ports in listed if ports and ports.answers is not None
        )
    yield from ((cluster, servers[index], pods) for index, pods in answering.items())


def _weighed(cluster: ClusterObjects, found: Finding, server: Object, pods: PodSet) -> Finding:
    """Return a finding as advice if the pods are in another file, which may be an alternative."""
    same = cluster.source_of(server) == cluster.source_of(pods.owner)
    return found if same else replace(found, level=Level.ADVISORY)


@each_of(_served)
def model_server_model(
    cluster: ClusterObjects, server: Object, answering: _Answering
) -> Iterator[Finding]:
    """The model of a ModelServer is a name under which the engines of its pods serve theirs.

    Kthena's router writes spec.model into each request. Without it, requests have the modelName of
    the ModelRoute. vLLM has the names of --served-model-name, or the name of its model, and answers
    404 for any other name. SGLang takes any name, and engines with LoRA adapters have further
    names: neither is compared.

    Pass: model Qwen/Qwen3-8B, and vllm serve Qwen/Qwen3-8B.
    Fail: model Qwen/Qwen3-8B, and vllm serve Qwen/Qwen3-8B --served-model-name chat; without model,
    a ModelRoute with modelName qwen.
    Level: mandatory; advisory if the pods are in another file, which may be an alternative, unless
    `--whole` says that all are in one cluster.
    Source: volcano-sh/kthena v1.0.0 pkg/kthena-router/router/router.go doLoadbalance; vLLM
    vllm/entrypoints/openai/serving_engine.py _check_model.
    """
    stated = known(text(server.spec.get("model")), server.at("spec.model"))
    for pods, ports in answering:
        if ports.engine != "vllm" or not ports.models:
            continue
        serves = f"vLLM in the pods of {owner_title(pods)} serves {_shown(ports.models)}"
        if stated is not None and stated not in ports.models:
            seen = f"is {display(stated)}, which Kthena's router writes into requests, but {serves}"
            found = refuse(server.at("spec.model"), seen, either(*map(write, sorted(ports.models))))
            yield _weighed(cluster, found, server, pods)
            return
        wrong = [] if stated is not None else _routes(cluster, server, ports.models)
        for route, name in wrong:
            seen = (
                f"is {display(name)}, the model that requests name when they reach the pods, "
                f"because ModelServer {display(server.name)} has no spec.model, but {serves}"
            )
            first = min(ports.models)
            at = server.at("spec.model")
            remedy = write(first, f"write spec.model: {first} in the ModelServer", at=at)
            yield _weighed(cluster, refuse(route.at("spec.modelName"), seen, remedy), route, pods)
        if wrong:
            return


def _routes(
    cluster: ClusterObjects, server: Object, names: frozenset[str]
) -> list[tuple[Object, str]]:
    """Return the ModelRoutes to a ModelServer whose modelName is none of some names."""
    stated = [(route, text(route.spec.get("modelName"))) for route in _routes_to(cluster, server)]
    return [(route, n) for route, n in stated if isinstance(n, str) and n and n not in names]


@each_of(_served)
def model_route_adapters(
    cluster: ClusterObjects, server: Object, answering: _Answering
) -> Iterator[Finding]:
    """The engines of a ModelRoute's ModelServers load its loraAdapters.

    Kthena's router leaves the name of an adapter in the request as it is, and vLLM answers 404 for
    a name that is not its own. It has the names of --served-model-name, or the name of its model,
    and with --enable-lora the names in --lora-modules. Engines that may load adapters while they
    run, by VLLM_ALLOW_RUNTIME_LORA_UPDATING or a resolver, are not compared, nor is SGLang.

    Pass: loraAdapters [sql], and --enable-lora --lora-modules sql=/adapters/sql.
    Fail: loraAdapters [sql], and vllm serve without --enable-lora.
    Level: mandatory; advisory with --enable-lora, since another variable of the image may let it
    load more, and if the pods are in another file, unless `--whole` says that all are in one
    cluster.
    Source: volcano-sh/kthena v1.0.0 pkg/kthena-router/datastore/store.go MatchModelServer and
    router/router.go doLoadbalance; vLLM vllm/entrypoints/openai/serving_engine.py _check_model.
    """
    for route, index, name in _adapters(cluster, server):
        at = route.at(f"spec.loraAdapters[{index}]")
        stated = known(name, at)
        for pods, ports in answering:
            if ports.taken is None or stated in ports.taken:
                continue
            seen = (
                f"is {display(stated)}, the model that requests still name at ModelServer "
                f"{display(server.name)}, but vLLM in the pods of {owner_title(pods)} only serves "
                f"{_shown(ports.taken)}"
            )
            loads = f"load it with --lora-modules {stated}=PATH"
            loads = loads if ports.has_adapters else f"add --enable-lora, and {loads}"
            found = _weighed(cluster, refuse(at, seen, f"{loads}, or remove it"), route, pods)
            yield replace(found, level=Level.ADVISORY) if ports.has_adapters else found
            break


def _adapters(
    cluster: ClusterObjects, server: Object
) -> Iterator[tuple[Object, int, str | Unknown]]:
    """Yield the adapters of the ModelRoutes to a ModelServer that no route has as its model."""
    models = {text(route.spec.get("modelName")) for route in _routes_to(cluster, server)}
    gap = next((model for model in models if isinstance(model, Unknown)), None)
    for route in _routes_to(cluster, server):
        for index, item in enumerate(sequence(route.spec.get("loraAdapters"))):
            name = unknown_in(item) or item
            if isinstance(name, Unknown) or (isinstance(name, str) and name not in {"", *models}):
                yield route, index, gap or name


def _routes_to(cluster: ClusterObjects, server: Object) -> Iterator[Object]:
    for route in cluster.of(MODEL_ROUTE):
        view = cluster.views[route.index]
        if isinstance(view, Route) and route.namespace == server.namespace:
            targets = [target for rule in view.rules for target in rule.targets]
            if server.name in [target.get("modelServerName") for target in targets]:
                yield route


def _shown(names: frozenset[str]) -> str:
    return " and ".join(display(name) for name in sorted(names))


@each_of(_served)
def model_server_engine(
    cluster: ClusterObjects, server: Object, answering: _Answering
) -> Iterator[Finding]:
    """The inferenceEngine of a ModelServer is the engine of the pods that it selects.

    Kthena's router reads the metrics of the pods by the names of that engine, so it has none of
    another one, and its plugins see all pods as idle. Of pairs of prefill and decode without a
    kvConnector, it also decides how both get a request: only with SGLang they get the
    bootstrap_room that SGLang needs.

    Pass: inferenceEngine SGLang, and python3 -m sglang.launch_server.
    Fail: inferenceEngine vLLM, and python3 -m sglang.launch_server.
    Level: advisory; mandatory for a pdGroup without kvConnector.
    Source: volcano-sh/kthena v1.0.0 pkg/kthena-router/backend/backend.go engineRegistry and
    router/router.go getKVConnector; connectors/sglang.go.
    """
    path = server.at("spec.inferenceEngine")
    stated = known(text(server.spec.get("inferenceEngine")), path)
    selector = mapping(server.spec.get("workloadSelector"))
    paired = selector.get("pdGroup") is not None and server.spec.get("kvConnector") is None
    for pods, ports in answering:
        own = _ENGINES.get(str(ports.engine))
        if own is not None and stated in _ENGINES.values() and stated != own:
            runs = f"the pods of {owner_title(pods)} run {TITLES[str(ports.engine)]}"
            why = "so it reads none of their metrics"
            if paired:
                why = f"{why}, and sends prefill and decode requests that {own} does not pair"
            seen = f"is {stated}, by which Kthena's router asks the pods, but {runs}, {why}"
            found = (refuse if paired else advise)(path, seen, write(own))
            yield _weighed(cluster, found, server, pods) if paired else found
            return
