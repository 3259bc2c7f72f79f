"""Random LLMInferenceServices that KServe 0.20 accepts, and wrong changes."""

import random
from typing import Any

from conformance.support.random_servings import coin
from conformance.validation import random_damage

Body = dict[str, Any]
VERSION = "serving.kserve.io/v1alpha2"
_HALF = 0.5
_DRA = "serving.kserve.io/exp-dra-"
_SIZES = (0, -1, 1, 2, 3, 5, 8, 16, "2", 1.5, None)


def llm_service(draw: random.Random) -> Body:
    """Generate a valid LLMInferenceService."""
    model: Body = {"uri": draw.choice(("hf://org/m", "pvc://c/m", "s3://b/m", "oci://r/m:1"))}
    if coin(draw):
        model["name"] = "llama"
    if coin(draw, 0.3):
        adapters = [{"name": name, "uri": "hf://org/lora"} for name in ("sql", "code")]
        model["lora"] = {"adapters": adapters}
    spec: Body = {"model": model, **_workload(draw)}
    if coin(draw, 0.4):
        spec["prefill"] = _workload(draw)
    if coin(draw, 0.4):
        spec["router"] = _router(draw)
    metadata = {"name": draw.choice(("chat", "a", "a-1")), "namespace": "serving"}
    return {
        "apiVersion": VERSION,
        "kind": "LLMInferenceService",
        "metadata": metadata,
        "spec": spec,
    }


def _workload(draw: random.Random) -> Body:
    """Generate single pods, a pipeline, or copies of the model over several pods."""
    workload: Body = {}
    if coin(draw):
        workload["replicas"] = draw.choice((0, 1, 3))
    parallelism: Body = {}
    if coin(draw):
        parallelism["tensor"] = draw.choice((1, 2, 8))
    match draw.randrange(4):
        case 0:
            parallelism["pipeline"] = draw.choice((1, 2, 3))
            workload["worker"] = _pod(draw)
        case 1:
            local = draw.choice((1, 2, 8))
            parallelism |= {"data": local * draw.choice((1, 2, 3)), "dataLocal": local}
            workload["worker"] = _pod(draw)
        case 2:
            parallelism["expert"] = True
        case _:
            pass
    if parallelism:
        workload["parallelism"] = parallelism
    if coin(draw):
        workload["template"] = _pod(draw)
    return workload


def _pod(draw: random.Random) -> Body:
    container: Body = {"name": "main", "image": "vllm/vllm-openai:v0.11.1"}
    if coin(draw):
        container["resources"] = {"limits": {"nvidia.com/gpu": draw.choice(("1", "8"))}}
    return {"containers": [container]}


def _router(draw: random.Random) -> Body:
    router: Body = {"route": {}, "gateway": {}}
    if coin(draw):
        router["scheduler"] = draw.choice(({}, {"replicas": 1}, {"config": {"ref": {"name": "c"}}}))
    return router


def _any_workload(draw: random.Random, body: Body) -> Body:
    spec = body["spec"]
    found: Body = draw.choice((spec, spec.setdefault("prefill", {}))) if coin(draw) else spec
    return found


def _sizes(draw: random.Random, body: Body) -> None:
    parallelism = _any_workload(draw, body).setdefault("parallelism", {})
    for name in ("tensor", "pipeline", "data", "dataLocal", "dataRPCPort"):
        if coin(draw, 0.4):
            parallelism[name] = draw.choice(_SIZES)
        if coin(draw, 0.2):
            parallelism.pop(name, None)


def _workers(draw: random.Random, body: Body) -> None:
    workload = _any_workload(draw, body)
    if "worker" in workload:
        del workload["worker"]
    else:
        workload["worker"] = draw.choice((_pod(draw), {}))


def _adapters(draw: random.Random, body: Body) -> None:
    names = ("sql", "chat", "", ".", "..", "llama", body["metadata"]["name"], "a/b", None)
    adapters = []
    for _ in range(draw.choice((1, 2, 3))):
        adapter: Body = {"uri": "hf://org/lora", "name": draw.choice(names)}
        if adapter["name"] is None:
            del adapter["name"]
        adapters.append(adapter)
    body["spec"]["model"]["lora"] = {"adapters": adapters}


def _scaling(draw: random.Random, body: Body) -> None:
    workload = _any_workload(draw, body)
    scaling: Body = {"maxReplicas": draw.choice((1, 5))}
    if coin(draw):
        scaling["minReplicas"] = draw.choice((0, 1, 10))
    if coin(draw, 0.8):
        keda: Body = {}
        if coin(draw, 0.3):
            keda["idleReplicaCount"] = draw.choice((0, 1, 9))
        wva: Body = draw.choice(({"hpa": {}}, {"keda": keda}, {"hpa": {}, "keda": keda}, {}))
        scaling["wva"] = wva
    workload["scaling"] = scaling
    if coin(draw, 0.7):
        workload.pop("replicas", None)


def _scheduler(draw: random.Random, body: Body) -> None:
    inline, ref = {"apiVersion": "v1", "kind": "C"}, {"name": "c"}
    configs: tuple[Body, ...] = (
        *({}, {"inline": inline}, {"inline": {}}, {"ref": ref}, {"ref": {}}),
        *({"inline": inline, "ref": ref}, {"ref": {"name": ""}}),
    )
    scheduler: Body = {}
    if coin(draw):
        scheduler["replicas"] = draw.choice((0, 1, -1, 2))
    if coin(draw):
        scheduler["config"] = draw.choice(configs)
    body["spec"].setdefault("router", {})["scheduler"] = scheduler


def _route(draw: random.Random, body: Body) -> None:
    refs, spec = [{"name": "r"}], {"hostnames": ["a.example"]}
    routes: tuple[Body, ...] = (
        *(
            {"http": {"refs": refs}},
            {"http": {"spec": spec}},
            {"http": {"refs": refs, "spec": spec}},
        ),
        *({"http": {}}, {"group": "g"}, {"weight": 10}, {"group": "g", "weight": 10}),
        {"group": "g", "weight": 10, "http": {"refs": refs}},
    )
    gateways: tuple[Any, ...] = ({}, {"refs": [{"name": "g", "namespace": "n"}]}, None)
    router: Body = {"route": draw.choice(routes)}
    gateway = draw.choice(gateways)
    if gateway is not None:
        router["gateway"] = gateway
    if coin(draw, 0.2):
        router["ingress"] = {}
    body["spec"]["router"] = router


def _cache(draw: random.Random, body: Body) -> None:
    claim: tuple[Body, ...] = ({}, {"ref": {"name": "c"}}, {"spec": {}},
                               {"ref": {"name": "c"}, "spec": {}})  # fmt: skip
    system: Body = {}
    if coin(draw):
        system["emptyDir"] = draw.choice(({}, {"size": "1Gi"}))
    if coin(draw):
        system["pvc"] = draw.choice(claim)
    cache: Body = {"cpu": draw.choice(("0", "10Gi", 0, "0Gi"))}
    if coin(draw, 0.8):
        cache["secondary"] = [{"fileSystem": system}]
    _any_workload(draw, body)["kvCacheOffloading"] = cache


def _confidential(draw: random.Random, body: Body) -> None:
    keys = ("kbs:///models/key/1", "kbs://models/key", "key-1", "", "kbs:///a/b/c/d")
    stated = {"enabled": coin(draw, 0.8), "resourceId": draw.choice(keys)}
    body["spec"]["model"]["confidential"] = stated


def _devices(draw: random.Random, body: Body) -> None:
    words = {
        "device-class": ("gpu.nvidia.com", "GPU", "", " gpu.nvidia.com ", "a_b"),
        "device-count": ("1", "0", "-1", "x", "", "01", "2 "),
        "cel-selector": ("device.x", "", " "),
        "container-name": ("main", "VLLM", "", "a.b", "a" * 64),
    }
    annotations = body["metadata"].setdefault("annotations", {})
    for name, values in words.items():
        if coin(draw):
            annotations[f"{_DRA}{name}"] = draw.choice(values)


def _names(draw: random.Random, body: Body) -> None:
    odd = ("405b", "A", "a.b", "-a", "a-", "a" * 63, "a" * 64, "a" * 254)
    body["metadata"]["name"] = draw.choice(odd)


@random_damage.if_there
def damage_workload(draw: random.Random, body: Body) -> None:
    """Change a field of a pod at random."""
    workload = _any_workload(draw, body)
    random_damage.damage_spec(
        draw, workload.setdefault(draw.choice(("template", "worker")), _pod(draw))
    )


CHANGES: tuple[random_damage.Change, ...] = tuple(
    map(
        random_damage.if_there,
        (
            *(_sizes, _sizes, _workers, _adapters, _scaling, _scaling, _scheduler, _route, _cache),
            *(_confidential, _devices, _names),
        ),
    )
)
