"""Random InferenceServices that KServe 0.20 accepts, and wrong changes."""

import random
from typing import Any

from conformance.support.random_servings import coin
from conformance.validation import random_damage

Body = dict[str, Any]
VERSION = "serving.kserve.io/v1beta1"
_HALF = 0.5
_GPUS = ("nvidia.com/gpu", "amd.com/gpu", "intel.com/gpu", "habana.ai/gaudi")
_CLASS, _MODE = "serving.kserve.io/autoscalerClass", "serving.kserve.io/deploymentMode"
_TYPES = "serving.kserve.io/gpu-resource-types"
_NUMBERS = (0, -1, 1, 2, 3, 101, "2", 1.5, None, 2**31)


def inference_service(draw: random.Random) -> Body:
    """Generate a valid InferenceService: of single pods, or of one engine of several."""
    predictor = _several(draw) if coin(draw) else _single(draw)
    many = "workerSpec" in predictor
    annotations: Body = {}
    if many:
        annotations[_CLASS] = "none"
    elif coin(draw):
        annotations[_CLASS] = draw.choice(("none", "external", "hpa", "keda"))
    if annotations.get(_CLASS) in ("none", "external") and coin(draw):
        annotations[_MODE] = draw.choice(("Standard", "RawDeployment"))
    if coin(draw, 0.2):
        annotations[_TYPES] = '["nvidia.com/mig-1g.5gb"]'
    metadata: Body = {"name": draw.choice(("chat", "a", "a-1")), "namespace": "serving"}
    if annotations:
        metadata["annotations"] = annotations
    spec: Body = {"predictor": predictor}
    if not many and coin(draw, 0.2):
        spec["transformer"] = {"containers": [{"name": "t", "image": "busybox"}]}
    return {"apiVersion": VERSION, "kind": "InferenceService", "metadata": metadata, "spec": spec}


def _single(draw: random.Random) -> Body:
    predictor: Body = {}
    if coin(draw):
        predictor["model"] = _model(draw, draw.choice(("pvc://c/m", "hf://org/m", "s3://b/m")))
    else:
        predictor["containers"] = [
            {"name": "kserve-container", "image": "vllm/vllm-openai:v0.11.1"}
        ]
        if coin(draw):
            predictor["containers"].append({"name": "log", "image": "busybox"})
    if coin(draw):
        least = draw.choice((0, 1, 2))
        predictor |= {"minReplicas": least, "maxReplicas": draw.choice((0, 2, 5))}
    if coin(draw, 0.2):
        predictor["containerConcurrency"] = draw.choice((0, 1, 8))
    return predictor


def _model(draw: random.Random, uri: str) -> Body:
    model: Body = {"modelFormat": {"name": "huggingface"}, "storageUri": uri}
    if coin(draw):
        model["env"] = [{"name": "A", "value": "b"}]
    if coin(draw):
        model["resources"] = _resources(draw)
    if coin(draw):
        model["args"] = ["--model_name=llama"]
    return model


def _resources(draw: random.Random) -> Body:
    gpu = {draw.choice(_GPUS[:2]): draw.choice(("1", "2", "8"))}
    return {"limits": {**gpu, "memory": "8Gi"}, "requests": {**gpu, "cpu": "4"}}


def _several(draw: random.Random) -> Body:
    """Generate a predictor with a workerSpec."""
    worker: Body = {}
    for field in ("tensorParallelSize", "pipelineParallelSize"):
        if coin(draw, 0.8):
            worker[field] = draw.choice((1, 2, 3, 8))
    if coin(draw):
        container = {"name": "worker-container"}
        worker["containers"] = [container]
        if coin(draw, 0.8):
            container["resources"] = _resources(draw)  # type: ignore[assignment]
    predictor: Body = {"workerSpec": worker}
    predictor["model"] = _model(draw, draw.choice(("pvc://c/m", "oci://registry.local/m:1")))
    if coin(draw, 0.3):
        predictor |= {"minReplicas": 1, "maxReplicas": 1}
    return predictor


def _predictor(body: Body) -> Body:
    found: Body = body["spec"]["predictor"]
    return found


def _annotations(body: Body) -> Body:
    found: Body = body["metadata"].setdefault("annotations", {})
    return found


def _main(body: Body) -> Body:
    """Return the container that serves."""
    predictor = _predictor(body)
    found: Body = predictor["model"] if "model" in predictor else predictor["containers"][0]
    return found


def _storage(draw: random.Random, body: Body) -> None:
    model = _main(body)
    uri = draw.choice(("hf://org/m", "s3://b/m", "pvc:/c", "PVC://c", "", "http://x", None))
    model["storageUri"] = uri
    if uri is None:
        del model["storageUri"]


def _scaler(draw: random.Random, body: Body) -> None:
    word = draw.choice(("none", "external", "hpa", "keda", "test", "", "None"))
    _annotations(body)[_CLASS] = word
    if coin(draw):
        _annotations(body).pop(_CLASS)


def _metrics(draw: random.Random, body: Body) -> None:
    """State how the predictor is scaled, rightly or wrongly."""
    notes, predictor = _annotations(body), _predictor(body)
    notes[_CLASS] = draw.choice(("hpa", "hpa", "keda", "keda", "external"))
    notes[_MODE] = draw.choice(("Standard", "RawDeployment", "Knative", "Serverless"))
    if coin(draw):
        predictor["scaleMetric"] = draw.choice(("cpu", "memory", "concurrency", "rps", "gpu"))
    if coin(draw):
        predictor["scaleTarget"] = draw.choice((0, 1, 80, 100, 101, -1))
    if coin(draw):
        predictor["autoScaling"] = {"metrics": [_metric(draw)]}
    if coin(draw, 0.2):
        predictor["deploymentStrategy"] = {"type": "Recreate"}


def _metric(draw: random.Random) -> Body:
    target: Body = {"type": draw.choice(("Utilization", "AverageValue", "Value"))}
    if coin(draw, 0.7):
        target["averageUtilization"] = draw.choice((0, 1, 80, 101))
    if coin(draw, 0.6):
        target["averageValue"] = draw.choice(("2Gi", "1Mi", "5", "1000000"))
    if coin(draw, 0.6):
        target["value"] = draw.choice(("5", "0.5"))
    kind = draw.choice(("Resource", "Resource", "External", "PodMetric", "Pods"))
    metric: Body = {"type": kind}
    if kind == "Resource":
        metric["resource"] = {"name": draw.choice(("cpu", "memory", "gpu")), "target": target}
    elif kind == "External":
        asked = {"backend": "prometheus", "serverAddress": "http://p", "query": "sum(x)"}
        metric["external"] = {"metric": asked, "target": target}
    elif kind == "PodMetric":
        asked = {"backend": "opentelemetry", "query": draw.choice(("sum(x)", ""))}
        metric["podmetric"] = {"metric": asked, "target": target}
    if coin(draw, 0.15):
        metric = {"type": kind}
    return metric


def _sizes(draw: random.Random, body: Body) -> None:
    worker = _predictor(body).setdefault("workerSpec", {})
    worker[draw.choice(("tensorParallelSize", "pipelineParallelSize"))] = draw.choice(_NUMBERS)


def _environment(draw: random.Random, body: Body) -> None:
    name = draw.choice(("TENSOR_PARALLEL_SIZE", "PIPELINE_PARALLEL_SIZE", "PYTHONPATH", "X"))
    holder = draw.choice((_main(body), _worker(body)))
    holder["env"] = [{"name": "A", "value": "1"}, {"name": name, "value": "8"}]


def _worker(body: Body) -> Body:
    worker = _predictor(body).setdefault("workerSpec", {})
    found: Body = worker.setdefault("containers", [{"name": "worker-container"}])[0]
    return found


def _devices(draw: random.Random, body: Body) -> None:
    holder = draw.choice((_main(body), _worker(body)))
    device = draw.choice(("example.com/gpu", "nvidia.com/mig-1g.5gb", "hugepages-2Mi", *_GPUS))
    fields = draw.sample(("limits", "requests"), draw.choice((1, 2)))
    holder["resources"] = {field: {device: "2"} for field in fields}
    if coin(draw, 0.3):
        words = ('["example.com/gpu"]', "[]", "example.com/gpu", '{"a": 1}', "", '["x", 1]')
        _annotations(body)[_TYPES] = draw.choice(words)


def _workers(draw: random.Random, body: Body) -> None:
    _worker(body)
    containers = _predictor(body)["workerSpec"]["containers"]
    containers.append({"name": draw.choice(("log", "worker-container")), "image": "busybox"})
    if coin(draw, 0.3):
        containers.clear()


def _replicas(draw: random.Random, body: Body) -> None:
    for field in ("minReplicas", "maxReplicas", "containerConcurrency"):
        if coin(draw):
            _predictor(body)[field] = draw.choice((0, 1, 2, 5, -1, None))


def _traffic(draw: random.Random, body: Body) -> None:
    _predictor(body)["canaryTrafficPercent"] = draw.choice((0, 10, 100, -1, 101))


def _names(draw: random.Random, body: Body) -> None:
    odd = ("405b", "A", "a.b", "-a", "a-", "a_b", "a" * 63, "a" * 64, "a" * 254)
    body["metadata"]["name"] = draw.choice(odd)


def _implementations(draw: random.Random, body: Body) -> None:
    """Give the predictor two of them, none, or one of another framework."""
    predictor = _predictor(body)
    match draw.randrange(6):
        case 0:
            for key in ("model", "containers"):
                predictor.pop(key, None)
        case 1:
            predictor["containers"] = [{"name": "kserve-container", "image": "a:1"}]
        case 2:
            predictor["containers"] = [{"name": "main", "image": "a:1"}]
        case 3:
            predictor[draw.choice(("sklearn", "huggingface", "triton"))] = {"storageUri": "pvc://c"}
        case 4:
            _main(body)["name"] = draw.choice(("", "main", "kserve-container"))
        case _:
            part = draw.choice(("transformer", "explainer"))
            body["spec"][part] = draw.choice(({}, {"minReplicas": -1}, {"containers": []}))


def _confidential(draw: random.Random, body: Body) -> None:
    keys = ("kbs:///models/key/1", "kbs://models/key", "key-1", "", "kbs:///a/b/c/d")
    _main(body)["confidential"] = {"enabled": coin(draw, 0.8), "resourceId": draw.choice(keys)}
    if coin(draw, 0.3):
        _main(body).pop("storageUri", None)


def _canary(draw: random.Random, body: Body) -> None:
    if coin(draw, 0.8):
        _annotations(body)[_MODE] = draw.choice(("Standard", "RawDeployment"))
    listed = []
    for index in range(draw.choice((1, 1, 2))):
        predictor: Body = {"name": draw.choice(("v2", "v3", "", f"v{index + 4}"))}
        predictor["model"] = _model(draw, "pvc://c/m")
        if coin(draw):
            predictor["minReplicas"] = draw.choice((0, 1, 5, -1))
        if coin(draw, 0.2):
            field = draw.choice(("maxReplicas", "scaleTarget"))
            predictor[field] = draw.choice((0, 3))
        if coin(draw, 0.1):
            predictor["workerSpec"] = {"pipelineParallelSize": 2}
        listed.append({"trafficPercent": draw.choice((0, 10, 60, 100, 101, -1)),
                       "predictor": predictor})  # fmt: skip
    body["spec"]["canary"] = listed


@random_damage.if_there
def damage_service(draw: random.Random, body: Body) -> None:
    """Change a field of a container or of the predictor at random."""
    spec = draw.choice((_predictor(body), {"containers": [_main(body)]}))
    if spec.get("containers"):
        random_damage.damage_spec(draw, spec)


CHANGES: tuple[random_damage.Change, ...] = tuple(
    map(
        random_damage.if_there,
        (
            *(_storage, _scaler, _metrics, _metrics, _sizes, _environment, _devices, _workers),
            *(_replicas, _traffic, _names, _implementations, _confidential, _canary, _canary),
        ),
    )
)
