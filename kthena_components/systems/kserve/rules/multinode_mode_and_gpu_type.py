"""Checks what KServe's controller makes of a workerSpec that its webhooks accept.

Source: kserve v0.19.0 and v0.20.0 pkg/controller/v1beta1/inferenceservice, as its manager does it.
"""

from collections.abc import Iterator

from kthena_components.core.findings import Finding
from kthena_components.core.remedies import either, write
from kthena_components.core.values.display import display
from kthena_components.core.values.quantity import parse_quantity
from kthena_components.core.values.read import is_map, mapping, require_known
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems.kserve.nodes import RayNodes
from kthena_components.systems.kserve.view import (
    GPU_TYPES,
    Container,
    MultiNode,
    Service,
    known_gpus,
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
        pods = f" of {nodes.pods} pods" if isinstance(nodes, RayNodes) and nodes.pods > 1 else ""
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
    head, worker = (_named(view, one) for one in (many.head, many.worker))
    if isinstance(head, Unknown) or isinstance(worker, Unknown):
        return  # kserve-node-arithmetic reports it: the requests are unknown, too.
    if head and worker and {_vendor(head), _vendor(worker)} <= _VENDORS:
        if _vendor(head) != _vendor(worker):
            yield _finding(
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
    yield _finding(
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


def _named(view: Service, container: Container) -> str | Unknown:
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


def _finding(path: str, seen: str, remedy: str) -> Finding:
    return Finding(path=path, seen=seen, remedy=remedy)
