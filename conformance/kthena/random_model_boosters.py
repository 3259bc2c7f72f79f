"""Random ModelBoosters, and changes that break one rule."""

import random
from typing import Any

from conformance.kthena.random_autoscaling import Change, object_of
from conformance.kubernetes import random_pod_templates
from conformance.support.random_servings import coin
from conformance.validation.random_damage import if_there
from conformance.validation.random_patterns import pattern_of

Body = dict[str, Any]
_SERVING = "workload.serving.volcano.sh/v1alpha1"
_PLAIN, _SPLIT = "vLLM", "vLLMDisaggregated"
_IMAGES = ("vllm/vllm-openai:v0.33.0", "busybox", "registry:5000/a/b@sha256:00", "")
_ODD_IMAGES = (
    " ",
    "vllm/vllm-openai :v0.33.0",
    "busybox ",
    "\t",
    "a\tb",
    "\u00a0",
    "a\u00a0b",
    "\n",
)
_MODELS = ("hf://Qwen/Qwen3-8B", "s3://bucket/m", "pvc://claim/m", "ms://Qwen/Qwen3-8B")
_ODD_MODELS = ("hf://", "HF://a", "a/b", "obs://a", " hf://a", "hf://a\nb", "", "hf:///")
_CACHES = ("hostpath:///data", "pvc://claim")
_ODD_CACHES = ("hf://a", "hostpath://", "/data", "", "hostPath:///data")
_NAMES = ("main", "a", "a-b", "0", "x" * 64)
_ODD_NAMES = ("", "-a", "a-", "A", "a_b", "a.b", "x" * 65, "a\n")
_KINDS = (_PLAIN, _SPLIT, "SGLang", "MindIE", "MindIEDisaggregated", "vllm", "")
_TYPES = ("server", "prefill", "decode", "controller", "coordinator", "Server", "")
_COUNTS = (0, 1, 2, 1_000_000)
_ODD_COUNTS = (-1, 1_000_001, 2**31, "1", 1.5, None)
_CONFIG: Body = {
    "served-model-name": "chat", "tensor-parallel-size": 8, "max_model_len": "4096",
    "enable-prefix-caching": "", "gpu-memory-utilization": 0.9, "trust-remote-code": True,
    "kv-transfer-config": {"kv_connector": "NixlConnector", "kv_role": "kv_both"},
    "a": None, "b": [1, "c"], "max-num-batched-tokens": 1_048_576,
}  # fmt: skip


def model_booster(draw: random.Random) -> Body:
    """Generate a ModelBooster that Kthena 1.0 accepts."""
    spec: Body = {"backend": _backend(draw)}
    if coin(draw):
        spec["name"] = draw.choice(_NAMES)
    if coin(draw):
        spec["owner"] = draw.choice(("team-a", "", "Team A"))
    if coin(draw):
        headers = {"a": {"regex": "^a$"}}
        spec["modelMatch"] = {"headers": headers, "uri": {"prefix": "/"}, "body": {"model": "m"}}
    return object_of(_SERVING, "ModelBooster", spec)


def _backend(draw: random.Random) -> Body:
    kind = draw.choice((_PLAIN, _SPLIT))
    backend: Body = {
        "name": draw.choice(_NAMES),
        "type": kind,
        "modelURI": draw.choice(_MODELS),
        "replicas": draw.choice(_COUNTS),
        "workers": _workers(draw, kind),
    }
    optional = {
        "cacheURI": draw.choice(_CACHES),
        "schedulerName": draw.choice(("volcano", "", "default scheduler")),
        "runtimeClassName": draw.choice(("nvidia", "")),
        "env": [{"name": "A", "value": "b"}, {"name": "B", **_from(draw)}],
        "envFrom": random_pod_templates.value(draw, "[]EnvFromSource", 3),
    }
    return backend | {key: value for key, value in optional.items() if coin(draw)}


def _from(draw: random.Random) -> Body:
    source = random_pod_templates.value(draw, "EnvVarSource", 3)
    return draw.choice(({}, {"value": ""}, {"valueFrom": source}))


def _workers(draw: random.Random, kind: str) -> list[Body]:
    if kind == _SPLIT:
        return [_worker(draw, side) for side in ("prefill", "decode")[:: draw.choice((1, -1))]]
    return [_worker(draw, draw.choice(("server", None)))]


def _worker(draw: random.Random, kind: str | None) -> Body:
    worker: Body = {} if kind is None else {"type": kind}
    optional = {
        "image": draw.choice(_IMAGES),
        "replicas": draw.choice(_COUNTS),
        "pods": draw.choice(_COUNTS),
        "resources": random_pod_templates.value(draw, "ResourceRequirements", 3),
        "affinity": random_pod_templates.value(draw, "Affinity", 6),
        "tolerations": random_pod_templates.value(draw, "[]Toleration", 3),
        "config": _config(draw),
    }
    return worker | {key: value for key, value in optional.items() if coin(draw)}


def _config(draw: random.Random) -> Any:
    chosen = draw.sample(list(_CONFIG), draw.randint(0, 4))
    return {key: _CONFIG[key] for key in chosen}


def _break_image(draw: random.Random, body: Body) -> None:
    """Write an image with spaces, or with what only looks like one."""
    draw.choice(body["spec"]["backend"]["workers"])["image"] = draw.choice(_ODD_IMAGES)


def _break_type(draw: random.Random, body: Body) -> None:
    """Give a worker a type that its backend may not have."""
    backend = body["spec"]["backend"]
    match draw.randrange(3):
        case 0:
            backend["type"] = draw.choice(_KINDS)
        case 1:
            draw.choice(backend["workers"])["type"] = draw.choice(_TYPES)
        case _:
            draw.choice(backend["workers"]).pop("type", None)


def _break_workers(draw: random.Random, body: Body) -> None:
    """Change the number of workers."""
    backend = body["spec"]["backend"]
    more = [_worker(draw, draw.choice(_TYPES[:3])) for _ in range(draw.randint(1, 2))]
    match draw.randrange(4):
        case 0:
            backend["workers"] = []
        case 1:
            backend["workers"] += more
        case 2:
            backend["workers"] = more
        case _:
            backend["workers"] = backend["workers"][:1]


def _break_counts(draw: random.Random, body: Body) -> None:
    """Set a number near its limits."""
    backend = body["spec"]["backend"]
    if coin(draw):
        backend["replicas"] = draw.choice(_ODD_COUNTS)
    else:
        worker = draw.choice(backend["workers"])
        worker[draw.choice(("replicas", "pods"))] = draw.choice(_ODD_COUNTS)


def _break_text(draw: random.Random, body: Body) -> None:
    """Write an address or a name that its pattern may not take."""
    spec = body["spec"]
    match draw.randrange(4):
        case 0:
            spec["backend"]["modelURI"] = draw.choice(_ODD_MODELS)
        case 1:
            spec["backend"]["cacheURI"] = draw.choice(_ODD_CACHES)
        case 2:
            spec["backend"]["name"] = draw.choice(_ODD_NAMES)
        case _:
            spec["name"] = draw.choice(_ODD_NAMES)


def _break_match(draw: random.Random, body: Body) -> None:
    """Set a regular expression that Go may not read; nothing compiles it here."""
    pattern = {"regex": pattern_of(draw)}
    body["spec"]["modelMatch"] = draw.choice(({"uri": pattern}, {"headers": {"a": pattern}}))


def _break_config(draw: random.Random, body: Body) -> None:
    """Write a config that is not a map, or values of every type."""
    worker = draw.choice(body["spec"]["backend"]["workers"])
    worker["config"] = draw.choice((None, [], "a", 5, {"": 1}, {"a": {}}, {"a": 10**40}, True))


BOOSTER_CHANGES: tuple[Change, ...] = tuple(
    if_there(change)
    for change in (
        _break_image,
        _break_type,
        _break_type,
        _break_workers,
        _break_counts,
        _break_text,
        _break_match,
        _break_config,
    )
)
