"""Compares our node arithmetic with the pods that KServe 0.19 creates for a workerSpec.

KServe 0.20.0 accepts a workerSpec, but deletes its workers again and again (kserve issue 6113), so
the manager of 0.19 shows what becomes of one. Its InferenceServices do not become ready, so the
Deployments are compared.
"""

import random
from collections.abc import Mapping
from typing import Any

from conformance.__main__ import Context
from conformance.kserve.cluster import start
from conformance.kserve.merged_runtimes import compare_merged
from conformance.kserve.worker_spec_effects import compare_gpu_types
from conformance.support.waiting import wait
from kthena_components.cluster.client import Cluster, ClusterError
from kthena_components.core.objects.object import read_object
from kthena_components.core.values.quantity import parse_quantity
from kthena_components.core.values.read import mapping
from kthena_components.systems.kserve.nodes import RayNodes, Shortage, compute_mp_nodes
from kthena_components.systems.kserve.view import EXECUTOR, OWN_RUNTIME, read_service

SERVICES = 120
PAIRS = 40
_AT_ONCE = 20
_PATIENCE = 120
_SPACE = "serving"
_VERSION = "serving.kserve.io/v1beta1"
_RUNTIMES = "serving.kserve.io/v1alpha1"
_MP = "without-ray"
_GPU = "nvidia.com/gpu"
_NODES, _GPUS = "RAY_NODE_COUNT", "REQUEST_GPU_COUNT"
Body = dict[str, Any]


def run(context: Context) -> None:
    """Create InferenceServices, and compare what KServe makes of each."""
    rng = random.Random(f"workerspec {context.seed}")  # noqa: S311 - to repeat, not to hide
    services = [_service(rng, number) for number in range(context.many(SERVICES))]
    sandbox = context.sandbox()
    try:
        start(sandbox, "workerspec")
        api = sandbox.api
        _refuses(context, api)
        runtime = api.get({"apiVersion": _RUNTIMES, "kind": "ClusterServingRuntime",
                           "metadata": {"name": OWN_RUNTIME}})  # fmt: skip
        api.create(_without_ray(runtime))
        for first in range(0, len(services), _AT_ONCE):
            some = services[first : first + _AT_ONCE]
            for body in some:
                api.create(body)
            for body in some:
                _compare(context, api, body)
                api.delete(body)
        compare_gpu_types(context.part, api)
        compare_merged(context.part, api, rng, context.many(PAIRS))
        sandbox.processes.check()
    finally:
        sandbox.processes.stop_all()


def _without_ray(runtime: Mapping[str, Any]) -> Body:
    """Copy KServe's runtime, with the executor that needs no Ray."""
    formats = [{"name": "huggingface", "version": "1"}]
    spec = {**runtime["spec"], "annotations": {EXECUTOR: "mp"}, "supportedModelFormats": formats}
    return {"apiVersion": _RUNTIMES, "kind": "ClusterServingRuntime",
            "metadata": {"name": _MP}, "spec": spec}  # fmt: skip


def _service(draw: random.Random, number: int) -> Body:
    """Generate one with any sizes, whether they fit or not."""
    model: Body = {"modelFormat": {"name": "huggingface"}, "storageUri": "pvc://models/m",
                   "runtime": draw.choice((OWN_RUNTIME, OWN_RUNTIME, _MP))}  # fmt: skip
    worker: Body = {}
    for field in ("tensorParallelSize", "pipelineParallelSize"):
        # Only of its own runtime do we know what is left out.
        if model["runtime"] == _MP or draw.random() < 0.9:
            worker[field] = draw.choice((1, 2, 3, 4, 6, 8))
    if amounts := _resources(draw):
        model["resources"] = amounts
    if draw.random() < 0.7:
        container: Body = {"name": "worker-container"}
        if amounts := _resources(draw):
            container["resources"] = amounts
        worker["containers"] = [container]
    metadata = {"name": f"chat-{number}", "namespace": _SPACE,
                "annotations": {"serving.kserve.io/autoscalerClass": "none"}}  # fmt: skip
    return {"apiVersion": _VERSION, "kind": "InferenceService", "metadata": metadata,
            "spec": {"predictor": {"model": model, "workerSpec": worker}}}  # fmt: skip


def _resources(draw: random.Random) -> Body:
    gpus = draw.choice((None, None, 1, 2, 3, 4, 8, 16))
    if gpus is None:
        return {}
    amounts = {_GPU: str(gpus)}
    return {"limits": amounts, "requests": amounts}


def _refuses(context: Context, api: Cluster) -> None:
    """Begin with an object that the webhook must reject: else it is not asked."""
    body = _service(random.Random(0), 0)  # noqa: S311
    body["spec"]["predictor"]["model"]["storageUri"] = "hf://org/m"
    try:
        api.create(body, dry_run=True)
        said = ""
    except ClusterError as error:
        said = str(error)
    context.part.check("a wrong one is rejected", holds="denied" in said, seen=said)


def _planned(body: Body) -> RayNodes | Shortage:
    """Return what we say of one."""
    many = read_service(read_object(body)).many
    if many is None or not isinstance(many.tensor, int) or not isinstance(many.pipeline, int):
        raise ValueError(f"its sizes are not read: {body}")
    if body["spec"]["predictor"]["model"]["runtime"] == _MP:
        return compute_mp_nodes(many.tensor, many.pipeline)
    nodes = many.nodes
    if not isinstance(nodes, RayNodes | Shortage):
        raise TypeError(f"{nodes}: {body}")
    return nodes


def _compare(context: Context, api: Cluster, body: Body) -> None:
    part, planned, name = context.part, _planned(body), body["metadata"]["name"]
    about = f"{body['spec']['predictor']}"
    if isinstance(planned, Shortage):
        said = wait(lambda: "GPU" in _conditions(api, body), _PATIENCE)
        part.check("a shortage is told", holds=said, seen=f"{_conditions(api, body)}: {about}")
        part.check("a shortage deploys nothing", holds=not _deployed(api, name), seen=about)
        part.count("shortages")
        return
    number = 2
    there = wait(lambda: len(_deployed(api, name)) == number, _PATIENCE)
    part.check("there are a head and workers", holds=there, seen=f"{_deployed(api, name)}: {about}")
    made = {"worker" in found["metadata"]["name"]: _shape(found) for found in _deployed(api, name)}
    head = (1, planned.pods, planned.head_gpus, planned.head_gpus)
    workers = (planned.pods - 1, planned.pods, planned.worker_gpus, planned.worker_gpus)
    wanted = {False: head, True: workers}
    part.check("the pods and GPUs are those of our arithmetic",
               holds=made == wanted, seen=f"{made}, not {wanted}: {about}")  # fmt: skip
    part.count("engines compared")


def _deployed(api: Cluster, name: str) -> list[Body]:
    found = api.list("apps/v1", "Deployment", _SPACE)
    return [body for body in found if body["metadata"]["name"].startswith(f"{name}-predictor")]


def _shape(body: Body) -> tuple[int, ...]:
    """Return the replicas, the stated number of nodes, and the GPUs: stated and requested."""
    container = body["spec"]["template"]["spec"]["containers"][0]
    env = {each["name"]: each.get("value") for each in container["env"]}
    amount = mapping(container["resources"].get("requests")).get(_GPU, "0")
    return (
        body["spec"]["replicas"],
        int(env[_NODES] or 0),
        int(env[_GPUS] or 0),
        int(parse_quantity(amount) or 0),
    )


def _conditions(api: Cluster, body: Body) -> str:
    return str(mapping(api.get(body).get("status")))
