"""Shows what KServe's controller makes of a workerSpec that its webhooks accept.

Our rules kserve-multinode-mode and kserve-one-gpu-type say what becomes of it, and the rule
rwx-for-shared-model counts the pods that mount the claim of a pvc:// URI.
"""

import time
from functools import partial
from typing import Any

from conformance.report import Part
from conformance.support.waiting import wait
from kthena_components.checker.manifest import check_manifest
from kthena_components.cluster.client import Cluster
from kthena_components.core.objects.object import read_object
from kthena_components.core.values.read import mapping, sequence
from kthena_components.systems.kserve.nodes import RayNodes
from kthena_components.systems.kserve.pods import pods
from kthena_components.systems.kserve.view import GPU_TYPES, OWN_RUNTIME, read_service
from sandbox.cluster import Sandbox, create

Body = dict[str, Any]
_SPACE, _CLAIM = "serving", "weights"
_MODE = "serving.kserve.io/deploymentMode"
_ACCEPTED = "serving.kserve.io/gpu-resource-types"
_KNATIVE = ("serving.knative.dev/v1", "Service")
_PATIENCE, _SETTLED = 120, 5
"""Seconds until something is there, and in which nothing more appears."""
_AMD, _INTEL, _NVIDIA = "amd.com/gpu", "intel.com/gpu", "nvidia.com/gpu"
_MIG = "nvidia.com/mig-1g.5gb"
_TYPES = [
    (_NVIDIA, _NVIDIA), (_NVIDIA, _AMD), (_AMD, _NVIDIA), (_AMD, _AMD), (None, _AMD),
    (None, _NVIDIA), (None, _INTEL), (_INTEL, _INTEL), (_AMD, _INTEL),
    (_NVIDIA, _MIG), (None, _MIG), (_AMD, _MIG),
]  # fmt: skip
"""GPUs that the head and the worker name."""
_DEFINITION: Body = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "services.serving.knative.dev"},
    "spec": {
        "group": "serving.knative.dev",
        "names": {"kind": "Service", "plural": "services"},
        "scope": "Namespaced",
        "versions": [{
            "name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": True,
            }},
        }],
    },
}  # fmt: skip
"""Knative's kind without Knative: KServe asks for no more before it writes one."""


def define_knative(sandbox: Sandbox) -> None:
    """Define Knative's Service, before KServe's manager starts, and the settings that it reads."""
    sandbox.define([_DEFINITION])
    name = "knative-serving"
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "data": {},
                "metadata": {"name": "config-autoscaler", "namespace": name}}  # fmt: skip
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    create(sandbox.api, [space, settings])


def compare_modes(part: Part, api: Cluster) -> None:
    """Create an engine of several pods in each mode: only Standard makes workers."""
    for mode in ("Knative", "Serverless", "ModelMesh"):
        body = _service(mode.lower(), _NVIDIA, _NVIDIA, {_MODE: mode})
        said = [f for f in check_manifest(body) if f.rule == "kserve-multinode-mode"]
        part.check("a mode without workers is reported", holds=len(said) == 1, seen=mode)
        api.create(body)
        if mode == "ModelMesh":
            known = wait(partial(_status, api, body), _PATIENCE)
            part.check("KServe has seen it", holds=known, seen=mode)
        else:
            made = wait(partial(_knative, api, body), _PATIENCE)
            part.check("there is a Knative Service", holds=made, seen=mode)
            env = [mapping(e) for head in _knative(api, body) for e in sequence(head.get("env"))]
            nodes = [e.get("value") for e in env if e.get("name") == "RAY_NODE_COUNT"]
            part.check("its head waits for two nodes", holds=nodes == ["2"], seen=str(nodes))
        time.sleep(_SETTLED)
        part.check("there are no workers", holds=not _deployments(api, body), seen=mode)
        api.delete(body)
        part.count("modes without workers")


def compare_gpu_types(part: Part, api: Cluster) -> None:
    """Create engines whose head and workers name different GPUs, or none."""
    for number, (head, worker) in enumerate(_TYPES):
        body = _service(f"types-{number}", head, worker, {_MODE: "Standard"})
        body["metadata"]["annotations"][_ACCEPTED] = f'["{_MIG}"]'
        said = [f for f in check_manifest(body) if f.rule == "kserve-one-gpu-type"]
        api.create(body)
        both = wait(partial(_has_both, api, body), _PATIENCE)
        found = {kind for each in _deployments(api, body) for kind in _vendors(each)}
        about = f"head {head}, worker {worker}: {sorted(found)}"
        part.check("KServe creates head and workers", holds=both, seen=about)
        part.check("GPUs of two types are reported", holds=bool(said) == (len(found) > 1),
                   seen=f"{about}: {said}")  # fmt: skip
        _compare_number(part, api, body)
        _compare_claims(part, api, body)
        api.delete(body)
        part.count("pairs of GPU types")


_BOTH = 2


def _compare_number(part: Part, api: Cluster, body: Body) -> None:
    """Compare the number of pods, in which only KServe's own types of GPUs count."""
    many = read_service(read_object(body)).many
    ours = many.nodes.pods if many and isinstance(many.nodes, RayNodes) else 0
    found = sum(each["spec"]["replicas"] for each in _deployments(api, body))
    part.check("there are so many pods", holds=ours == found, seen=f"{found}, not {ours}: {body}")


def _compare_claims(part: Part, api: Cluster, body: Body) -> None:
    """Compare the pods that mount the claim with those of our reader."""
    sets = list(pods(read_service(read_object(body))))
    ours = sum(one.count for one in sets if isinstance(one.count, int) and _mounts(one.spec))
    there = wait(lambda: len(_mounting(api, body)) == ours, _PATIENCE)
    part.check("so many pods mount the claim", holds=there and ours > 1,
               seen=f"{_mounting(api, body)}, not {ours}")  # fmt: skip


def _mounting(api: Cluster, body: Body) -> list[str]:
    start = f"{body['metadata']['name']}-predictor"
    found = [p for p in api.list("v1", "Pod", _SPACE) if p["metadata"]["name"].startswith(start)]
    return [pod["metadata"]["name"] for pod in found if _mounts(pod["spec"])]


def _mounts(spec: Any) -> bool:
    claims = [mapping(v).get("persistentVolumeClaim") for v in sequence(spec.get("volumes"))]
    return any(mapping(claim).get("claimName") == _CLAIM for claim in claims)


def _service(name: str, head: str | None, worker: str | None, annotations: Body) -> Body:
    model = {"modelFormat": {"name": "huggingface"}, "storageUri": f"pvc://{_CLAIM}/m",
             "runtime": OWN_RUNTIME, "resources": _resources(head)}  # fmt: skip
    container = {"name": "worker-container", "resources": _resources(worker)}
    several = {"tensorParallelSize": 8, "pipelineParallelSize": 2, "containers": [container]}
    annotations = {"serving.kserve.io/autoscalerClass": "none", **annotations}
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": name, "namespace": _SPACE, "annotations": annotations},
        "spec": {"predictor": {"model": model, "workerSpec": several}},
    }


def _resources(kind: str | None) -> Body:
    amounts = {kind or "cpu": "8"}
    return {"limits": amounts, "requests": amounts}


def _status(api: Cluster, body: Body) -> Any:
    return api.get(body).get("status")


def _has_both(api: Cluster, body: Body) -> bool:
    return len(_deployments(api, body)) == _BOTH


def _knative(api: Cluster, body: Body) -> list[Body]:
    """Return the first containers of the Knative Services of an InferenceService."""
    name = f"{body['metadata']['name']}-predictor"
    found = [s for s in api.list(*_KNATIVE, _SPACE) if s["metadata"]["name"] == name]
    return [each["spec"]["template"]["spec"]["containers"][0] for each in found]


def _deployments(api: Cluster, body: Body) -> list[Body]:
    start = f"{body['metadata']['name']}-predictor"
    found = api.list("apps/v1", "Deployment", _SPACE)
    return [each for each in found if each["metadata"]["name"].startswith(start)]


def _vendors(deployment: Body) -> set[str]:
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    names = mapping(container["resources"].get("requests"))
    return {name.partition("/")[0] for name in names if name in (*GPU_TYPES, _MIG)}
