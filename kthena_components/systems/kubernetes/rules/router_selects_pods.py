"""The rule router-selects-pods."""

from collections.abc import Iterator, Mapping

from kthena_components.core.findings import Finding, advise, not_checked, refuse
from kthena_components.core.objects.cluster_objects import ClusterObjects, PodIndex
from kthena_components.core.values.display import display
from kthena_components.core.values.read import unknown_in
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems.kubernetes.rules.services import has_engine, may_make_pods
from kthena_components.systems.kubernetes.selectors import POOLS, Selector, selectors


def router_selects_pods(cluster: ClusterObjects) -> Iterator[Finding]:
    """The labels by which a router or an InferencePool looks for pods are those of some pods.

    Routers are SGLang's (--selector, --prefill-selector, --decode-selector), that of vLLM's
    production stack (--k8s-label-selector), and an endpoint picker with --endpoint-selector.
    Nothing is reported if an object of an unknown kind may create pods.

    Pass: --selector app=chat, and a Deployment whose pods have the label app chat.
    Fail: --k8s-label-selector release=test, and pods with the label release prod.
    Level: mandatory; advice if these are not all objects of the cluster.
    Source: sgl-project/sglang sgl-router/src/service_discovery.rs; vllm-project/production-stack
    src/vllm_router/service_discovery.py; kubernetes-sigs/gateway-api-inference-extension v1.5.0
    api/v1/inferencepool_types.go and pkg/epp/server/options.go.
    """
    asking = [one for one in selectors(cluster) if one.option or one.owner.group_kind in POOLS]
    makers = (may_make_pods(entry, cluster) for entry in cluster.objects)
    if not asking or cluster.demands or any(makers):
        return
    carried: dict[object, PodIndex] = {}
    engines = {pods.owner.namespace for pods in cluster.pods if has_engine(pods)}
    for pods in cluster.pods:
        carried.setdefault(pods.owner.namespace, PodIndex()).add(pods)
    places: dict[tuple[int, str, str], list[Selector]] = {}
    for each in asking:  # a router that looks everywhere has one for each namespace
        places.setdefault((each.owner.index, each.path, each.option), []).append(each)
    for each, *others in places.values():
        where = {one.place for one in (each, *others)}
        if cluster.complete or not engines.isdisjoint(where):
            yield from _selects(cluster, each, [carried.get(one, PodIndex()) for one in where])


def _selects(cluster: ClusterObjects, each: Selector, pods: list[PodIndex]) -> Iterator[Finding]:
    path = each.owner.at(each.path)
    if gap := each.gap or unknown_in(each.place):
        yield not_checked(path, gap)
        return
    wanted = {str(key): value for key, value in each.labels.items() if isinstance(value, str)}
    if not wanted or len(wanted) < len(each.labels):
        return
    results = [index.matches(wanted) for index in pods]
    if any(result is True for result in results):
        return
    late = next((result for result in results if isinstance(result, Unknown)), None)
    if gap := late or cluster.hidden_pods:
        yield not_checked(path, gap)
    else:
        shown = _shown(wanted)
        seen = f"has {each.option} {shown}" if each.option else f"is {shown}"
        where = f"in namespace {display(each.place)} " if len(pods) == 1 else ""
        report = refuse if cluster.complete else advise
        seen = f"{seen}, but no pod {where}has these labels"
        yield report(path, seen, "write the labels of the engine's pods")


def _shown(wanted: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={display(value)}" for name, value in [*wanted.items()][:5])
