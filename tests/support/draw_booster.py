"""Servings for ModelBoosters, drawn at random."""

import random

from tests.support.specs import Args

_ALONE = ("vllm/vllm-openai:v0.33.0", "vllm/vllm-openai:v0.17.0", "example.com/vllm:v1")
_WITH_RAY = ("vllm/vllm-openai:v0.17.0", "example.com/vllm:v1")
_OPTIONS = (
    ["--num-gpu-blocks-override", "4194304"],
    ["--trust-remote-code"],
    ["--max-num-seqs=64"],
    ["--served-model-name", "chat"],
    ["--seed", "-1"],
)
_VARIABLES: tuple[Args, ...] = (
    {"name": "TZ", "value": "UTC"},
    {"name": "VLLM_LOGGING_LEVEL", "value": "DEBUG"},
    {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
)


def booster(rng: random.Random, *, claims: bool = True) -> Args:
    """Draw a serving that the booster backend takes.

    Args:
        rng: Draws it.
        claims: Whether a model may be in a PersistentVolumeClaim, which must exist then.
    """
    names = rng.choice((["leader"], ["prefill", "decode"]))
    shared = _shared(rng, claims=claims)
    args: Args = {
        "name": rng.choice(("m", "chat", "llama-70b")),
        "backend": "booster",
        "replicas": rng.randint(0, 3),
        "roles": [_role(rng, name, shared) for name in names],
    }
    optional: Args = {
        "namespace": "serving",
        "expose": {"role": rng.choice(names)},
        "scheduler_name": "default-scheduler",
        "ready_timeout_seconds": 60,
        "restart_grace_period_seconds": 60,
        "recovery_policy": "RoleRecreate",
    }
    return args | {key: value for key, value in optional.items() if rng.random() < 1 / 4}


def _shared(rng: random.Random, *, claims: bool) -> Args:
    """Draw what all roles have in common."""
    places = [{"host_path": "/data/models"}, *([{"claim": "models"}] if claims else [])]
    connector = rng.choice(("nixl", "lmcache"))
    shared: Args = {"cache": {**rng.choice(places), "download": True}, "connector": connector}
    if rng.random() < 1 / 3:
        engine = {"name": "engine", "env": rng.sample(_VARIABLES, rng.randint(1, 2))}
        shared["overlay"] = {"spec": {"containers": [engine]}}
    if rng.random() < 1 / 2:
        shared["hugging_face_token"] = {
            "name": "t",
            "key": rng.choice(("HF_TOKEN", "HF_AUTH_TOKEN")),
        }
    return shared


def _role(rng: random.Random, name: str, shared: Args) -> Args:
    shared = dict(shared)
    connector = shared.pop("connector")
    pods = rng.randint(1, 3) if name == "leader" else 1
    gpus = rng.choice((1, 2, 8))
    sizes = rng.choice(({"tensor": gpus, "pipeline": pods}, {"tensor": gpus * pods}))
    if pods == 1 and gpus > 1 and rng.random() < 1 / 3:
        sizes = {"tensor": gpus // 2, "data": 2}
    options = rng.sample(_OPTIONS, rng.randint(0, 2))
    engine: Args = {
        "kind": "vllm",
        "image": rng.choice(_WITH_RAY if pods > 1 else _ALONE),
        "model": "org/m",
        "port": 8000,
        "parallelism": sizes,
        "extra_args": [word for option in options for word in option],
    }
    if pods > 1:
        engine["launcher"] = "ray"
    if name != "leader":
        engine["image"] = _ALONE[0]
        engine["kv_transfer"] = {"role": name, "connector": connector}
    resources: Args = {"gpus_per_pod": gpus}
    if rng.random() < 1 / 2:
        resources |= {"cpu": "1500m", "memory": "8Gi"}
    return {
        "name": name,
        "replicas": rng.randint(0, 2),
        "worker_replicas": pods - 1,
        "engine": engine,
        "resources": resources,
        **shared,
    }
