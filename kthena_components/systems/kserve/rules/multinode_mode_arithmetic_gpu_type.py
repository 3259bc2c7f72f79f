"""Checks what KServe makes of a workerSpec and of GPU requests that its webhooks accept.

Source: kserve v0.19.0 and v0.20.0 pkg/controller/v1beta1/inferenceservice, as its manager does it.
"""

from collections.abc import Iterator

from kthena_components.core.findings import Finding, advise, count_of, not_checked, refuse
from kthena_components.core.remedies import either, write
from kthena_components.core.values.display import display
from kthena_components.core.values.quantity import parse_quantity
from kthena_components.core.values.read import is_map, mapping, require_known
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems.kserve.nodes import RayNodes, Shortage
from kthena_components.systems.kserve.view import (
    GPU_TYPES,
    PLAIN,
    Container,
    MultiNode,
    Service,
    known_gpus,
    resource_keys,
)

_ANNOTATION = "serving.kserve.io/deploymentMode"
_WITHOUT_WORKERS = {
    "Serverless": "creates a Knative Service of the head alone",
    "Knative": "creates a Knative Service of the head alone",
    "ModelMesh": "creates nothing",
}
_DEFAULT = "nvidia.com/gpu"
"""The GPUs that KServe requests for a container that names none (addGPUResourceToDeployment)."""
_VENDORS = frozenset(kind.partition("/")[0] for kind in GPU_TYPES)


def kserve_multinode_mode(view: Service) -> Iterator[Finding]:
    """An engine of several pods has the deployment mode Standard, in which KServe creates workers.

    The webhooks accept the others. With Knative, which earlier releases call Serverless, KServe
    creates the head alone, tells it the number of all pods, and Ray waits for them. Without Knative
    in the cluster, and with ModelMesh, it creates nothing. Without the annotation, the cluster's
    own default applies, and nothing is checked.

    Pass: deploymentMode Standard, or RawDeployment, its earlier name.
    Fail: deploymentMode Serverless beside a workerSpec.
    Level: mandatory. The engine never starts.
    Source: kserve v0.20.0 pkg/controller/v1beta1/inferenceservice/components/predictor.go
    Reconcile, reconcileKnativeDeployment; controller.go Reconcile.
    """
    given, at = view.annotations.get(_ANNOTATION), f"metadata.annotations.{_ANNOTATION}"
    if view.many is None or not view.is_service:
        return
    require_known(at, given)
    if isinstance(given, str) and given in _WITHOUT_WORKERS:
        nodes = view.many.nodes
        pods = (
            f" of {count_of(nodes.pods, 'pod')}"
            if isinstance(nodes, RayNodes) and nodes.pods > 1
            else ""
        )
        yield Finding(
            path=at,
            seen=f"is {display(given)}, in which KServe {_WITHOUT_WORKERS[given]}, and no workers "
            f"for the engine{pods}",
            remedy=either(
                write("Standard", "write Standard"), "RawDeployment for KServe before 0.16"
            ),
        )


def kserve_one_gpu_type(view: Service) -> Iterator[Finding]:
    """The head and the workers of an engine have GPUs of one vendor.

    KServe creates both as stated. For a container that names no GPUs it requests nvidia.com/gpu,
    whatever the other one has. vLLM runs one engine on one platform: its ranks join through NCCL or
    RCCL, and all pods need the same environment.

    Pass: 8 amd.com/gpu in the head and in the worker.
    Fail: 8 nvidia.com/gpu in the head, 8 amd.com/gpu in the worker; 8 amd.com/gpu in the worker and
    none in the head.
    Level: mandatory. The webhooks accept it, and the engine does not start.
    Source: kserve v0.20.0 pkg/controller/v1beta1/inferenceservice/reconcilers/deployment/
    deployment_reconciler.go addGPUResourceToDeployment; vLLM, Parallelism and Scaling, Multi-node
    deployment; vllm/platforms.
    """
    many = view.many
    if many is None or not isinstance(many.nodes, RayNodes) or many.nodes.pods < _SEVERAL:
        return
    head, worker = (_gpu_resource(view, one) for one in (many.head, many.worker))
    if isinstance(head, Unknown) or isinstance(worker, Unknown):
        return  # kserve-node-arithmetic reports it: the requests are unknown, too.
    if head and worker and {_vendor(head), _vendor(worker)} <= _VENDORS:
        if _vendor(head) != _vendor(worker):
            yield refuse(
                f"{many.worker.path}.resources",
                f"requests {worker}, but the head requests {head}: KServe creates both, and an "
                "engine runs on GPUs of one vendor",
                f"write {head} in both, or {worker}",
            )
    elif view.is_service and not (head and worker):
        yield from _filled(many, many.nodes, head, worker)


_SEVERAL = 2


def _filled(many: MultiNode, nodes: RayNodes, head: str, worker: str) -> Iterator[Finding]:
    """Report the NVIDIA GPUs that KServe requests beside those of another vendor."""
    named, empty, gpus = (
        (head, many.worker, nodes.worker_gpus) if head else (worker, many.head, nodes.head_gpus)
    )
    if not named or _vendor(named) == _vendor(_DEFAULT) or _is_damaged(empty):
        return
    own, other = ("head", "worker") if empty is many.head else ("worker", "head")
    yield refuse(
        f"{empty.path}.resources",
        f"names no GPUs, so KServe requests {gpus} {_DEFAULT} for each {own} pod, but the {other} "
        f"has {named}, and an engine runs on GPUs of one vendor",
        f"request {named} in the {own}, too",
    )


def _is_damaged(container: Container) -> bool:
    """Return whether resources are no map, or their amounts are none: crd-schema reports it."""
    resources = container.fields.get("resources")
    amounts = (mapping(resources).get(key) for key in ("limits", "requests"))
    return not all(each is None or is_map(each) for each in (resources, *amounts))


def _gpu_resource(view: Service, container: Container) -> str | Unknown:
    """Return the GPUs that a container names, as KServe looks for them; empty if it names none."""
    if isinstance(container.request, Unknown) or isinstance(container.limit, Unknown):
        return Unknown("its GPUs are not known")
    resources = mapping(container.fields.get("resources"))
    for kind in known_gpus(view.annotations):
        amounts = [mapping(resources.get(key)).get(kind) for key in ("limits", "requests")]
        if any(parse_quantity(amount) for amount in amounts if amount is not None):
            return kind
    return ""


def _vendor(kind: str) -> str:
    return kind.partition("/")[0]


def kserve_node_arithmetic(view: Service) -> Iterator[Finding]:
    """KServe creates the intended pods, with as many GPUs as ranks.

    It calculates pods from GPU requests, never from limits: tensor × pipeline divided by the
    worker's request. If only the head requests GPUs, each worker gets one; KServe does not reject
    remainders or excess GPUs. It counts its own four types, and none of the annotation
    gpu-resource-types, such as a MIG device.

    Pass: tensor 8, pipeline 2, head and worker request 8 each: 2 pods of 8 GPUs.
    Fail: only the head requests 8: 9 pods. Head 8 and worker 4: 20 GPUs reserved for 16.
    Level: mandatory; advisory if all GPUs are used, but unevenly, or no worker is created.
    Source: kserve pkg/controller/v1beta1/inferenceservice/components/predictor.go
    computeRayNodeAndGPUs, computeMpNodeAndGPUs.
    """
    many = view.many
    if many is None:
        return
    nodes = many.nodes
    if isinstance(nodes, Unknown):
        yield not_checked(many.path, nodes)
    elif isinstance(nodes, Shortage):
        yield _short(many, nodes.nodes)
    elif many.executor_mp:
        yield from _replaced(many, nodes)
    else:
        limits = list(_limits(many, nodes))
        yield from limits or _misplaced(many, nodes)


def _short(many: MultiNode, nodes: RayNodes) -> Finding:
    """Write the finding of head and workers that have fewer GPUs than ranks."""
    workers = f"{count_of(nodes.pods - 1, 'worker')} × {nodes.worker_gpus}"
    return refuse(
        f"{many.head.path}.resources",
        f"{_ranks(many)}, but a head with {count_of(nodes.head_gpus, 'GPU')} and {workers} have "
        f"{nodes.held}, and KServe deploys nothing",
        f"request {count_of(_share(many, nodes.worker_gpus), 'GPU')} in the head and in "
        "the worker container",
    )


def _limits(many: MultiNode, nodes: RayNodes) -> Iterator[Finding]:
    """Find limits without requests that would give different pods."""
    wanted = [one.limit if one.request is None else one.request for one in (many.worker, many.head)]
    if many.nodes_for(*wanted) == nodes:
        return
    for container in (many.head, many.worker):
        if container.request is None and isinstance(container.limit, int):
            yield refuse(
                f"{container.path}.resources",
                f"has a limit of {count_of(container.limit, 'GPU')} and no request; KServe only "
                f"reads requests, so for {_product(many)} it creates {_pods(nodes)}",
                f"write {container.limit} in requests, too",
            )


def _misplaced(many: MultiNode, nodes: RayNodes) -> Iterator[Finding]:
    """Report GPUs that KServe reserves and the engine does not use, or an uneven split."""
    total, head, worker = many.total, many.head.request, many.worker.request
    at = f"{many.worker.path}.resources"
    if not isinstance(total, int):
        return
    if nodes.held > total:
        reserved = f"{count_of(nodes.held, 'GPU')} reserved for {total}"
        remedy = (
            f"request {count_of(_share(many, nodes.worker_gpus), 'GPU')} in the head "
            "and in the worker "
        )
        if nodes.pods == 1:
            at, remedy = (
                f"{many.head.path}.resources",
                f"request {count_of(total, 'GPU')} in the head ",
            )
        seen = f"{_ranks(many)}, but KServe creates {_pods(nodes)}: {reserved}"
        yield refuse(at, seen, f"{remedy}container")
    elif nodes.pods == 1 and total > 1:
        seen = f"is given, but KServe creates only the head, with {count_of(total, 'GPU')}"
        unused = f"; the worker's request of {worker} is not used" if worker else ""
        remedy = "remove workerSpec, or request fewer GPUs"
        yield advise(many.path, f"{seen}{unused}", remedy)
    elif worker is None and isinstance(head, int) and head > 1:
        seen = f"{_unasked(many.worker)}, so each worker gets 1: KServe creates {_pods(nodes)}"
        yield refuse(
            at, seen, f"request {count_of(_share(many, head), 'GPU')} in the worker container"
        )
    elif worker is None and head is None and isinstance(many.tensor, int) and many.tensor > 1:
        seen = f"{_unasked(many.worker)}, nor has the head: for {_product(many)} KServe creates "
        remedy = f"request {count_of(many.tensor, 'GPU')} in the head and in the worker container"
        yield advise(at, f"{seen}{_pods(nodes)}", remedy)
    elif nodes.pods > 1 and nodes.head_gpus != nodes.worker_gpus:
        seen = f"for {_product(many)} KServe creates {_pods(nodes)}, which is uneven"
        remedy = f"request {count_of(_share(many, nodes.worker_gpus), 'GPU')} in each"
        yield advise(at, seen, remedy)


def _unasked(container: Container) -> str:
    """Explain why KServe counts no GPU of a container."""
    keys = (key for key, _ in resource_keys(container) if key not in PLAIN)
    other = next((key for key in keys if key not in GPU_TYPES), None)
    return "has no GPU request" if other is None else f"has {other}, which KServe does not count"


def _replaced(many: MultiNode, nodes: RayNodes) -> Iterator[Finding]:
    """Advise where KServe replaces the GPU request by the tensor size, without Ray."""
    for container in (many.head, many.worker):
        asked = container.request if container.request is not None else container.limit
        if isinstance(asked, int) and asked != nodes.head_gpus:
            yield advise(
                f"{container.path}.resources",
                f"requests {count_of(asked, 'GPU')}, but without Ray (executor-backend mp) KServe "
                f"gives each of {count_of(nodes.pods, 'pod')} the tensor size, {nodes.head_gpus}",
                f"write {nodes.head_gpus}, or set tensorParallelSize to {asked}",
            )


def _share(many: MultiNode, near: int) -> int:
    """Return the GPUs per pod that are closest to an even split."""
    total = many.total
    if not isinstance(total, int):
        return near
    tried = range(min(near, total, 4096), 0, -1)
    return next((number for number in tried if total % number == 0), 1)


def _product(many: MultiNode) -> str:
    return f"tensor {many.tensor} × pipeline {many.pipeline} = {many.total}"


def _ranks(many: MultiNode) -> str:
    return f"{count_of(_product(many), 'rank')}"


def _pods(nodes: RayNodes) -> str:
    head = f"a head with {count_of(nodes.head_gpus, 'GPU')}"
    if nodes.pods == 1:
        return f"1 pod, {head}"
    rest = f"{count_of(nodes.pods - 1, 'worker')} of {count_of(nodes.worker_gpus, 'GPU')}"
    return f"{count_of(nodes.pods, 'pod')}, {head} and {rest}"
