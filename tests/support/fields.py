"""Values of each argument of a ModelServing that ask for different things."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, get_args

from kthena_components.core.spec.fields import Spec
from tests.support.specs import VLLM, Args, template

UPDATE: Final = "rollout_strategy.rolling_update_configuration"
ROLE: Final = "roles[0]"
_ENGINE, _OVERLAY, _CACHE = f"{ROLE}.engine", f"{ROLE}.overlay", f"{ROLE}.cache"
_NETWORK = f"{ROLE}.network"
_TRANSFER, _TOKEN = f"{_ENGINE}.kv_transfer", f"{ROLE}.hugging_face_token"
_FLAT = {"group_policy": {"mode": "hard", "highest_tier_allowed": 1}}
_GANG: Args = {"gang_policy": {"min_role_replicas": {}}}
_TWO = {"replicas": 1, f"{ROLE}.replicas": 2}
_LIMITED = {
    "spec": {
        "containers": [{"name": "engine", "resources": {"limits": {"ephemeral-storage": "9Gi"}}}]
    }
}
_LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
}


def _each(path: str, *values: object, **beside: Any) -> list[Args]:
    """Give one change for each value of a field."""
    return [{**beside, path: value} for value in values]


def _topology(level: str) -> dict[str, list[Args]]:
    at = f"network_topology.{level}"
    capped = ({"mode": mode, "highest_tier_allowed": 1} for mode in ("hard", "soft"))
    return {
        f"{at}.mode": _each(at, *capped),
        f"{at}.highest_tier_allowed": _each(
            at, *({"mode": "hard", "highest_tier_allowed": tier} for tier in (1, 2))
        ),
        f"{at}.highest_tier_name": _each(
            at, *({"mode": "hard", "highest_tier_name": name} for name in ("rack", "row"))
        ),
    }


def _changes() -> dict[str, list[Args]]:
    """Give the changes by field. Any two changes of one field ask for different things."""
    serving = {
        "name": _each("name", "chat", "talk"),
        "namespace": _each("namespace", "a", "b"),
        "replicas": _each("replicas", 1, 2, 3),
        "autoscaled": _each("autoscaled", False, True),
        "kthena_version": _each("kthena_version", "0.1", "1.0", network_topology=_FLAT, **_GANG),
        "scheduler_name": _each("scheduler_name", "volcano", "default-scheduler", "other"),
        "queue": _each("queue", "a", "b"),
        "priority_class": _each("priority_class", "gold", "silver"),
        "spread_over": _each("spread_over", "example.com/rack", "example.com/row"),
        "gang_policy.min_role_replicas": _each(
            "gang_policy", *({"min_role_replicas": {"ROLE": number}} for number in (1, 2)), **_TWO
        ),
        **_topology("group_policy"),
        **_topology("role_policy"),
        "labels": _each("labels", {"a": "b"}, {"a": "c"}),
        "ready_timeout_seconds": _each("ready_timeout_seconds", 60, 70),
        "rollout_strategy.type": [
            {**_TWO, "rollout_strategy": {"type": f"{unit}RollingUpdate"}}
            for unit in ("ServingGroup", "Role")
        ],
        f"{UPDATE}.max_unavailable": _each(
            UPDATE, *({"max_unavailable": number} for number in (1, 2, "100%")), replicas=3
        ),
        f"{UPDATE}.max_surge": _each(
            UPDATE, *({"max_unavailable": 1, "max_surge": n} for n in (0, 1, 2)), replicas=3
        ),
        f"{UPDATE}.partition": _each(
            UPDATE, *({"max_unavailable": 1, "partition": n} for n in (0, 1, 2)), replicas=3
        ),
        "recovery_policy": [
            {**_TWO, "recovery_policy": word}
            for word in ("None", "RoleRecreate", "ServingGroupRecreate")
        ],
        "restart_grace_period_seconds": _each("restart_grace_period_seconds", 0, 60, 61),
        "expose.port": _each("expose", *({"port": n, "role": "ROLE"} for n in (80, 81))),
        "expose.target_port": _each(
            "expose", *({"target_port": n, "role": "ROLE"} for n in (8080, 8081, 5000))
        ),
        "pod_disruption_budget": _each("pod_disruption_budget", False, True),
        "monitoring": _each("monitoring", False, True),
        "fill_requests": _each("fill_requests", False, True, **{_OVERLAY: _LIMITED}),
        "waivers": _each("waivers", {}, {"expert-parallel": "2099-01-01 a test"}),
    }
    return serving | _of_roles() | _of_engines()


def _of_roles() -> dict[str, list[Args]]:
    roles: dict[str, list[Args]] = {
        "name": _each("name", "x", "y"),
        "replicas": _each("replicas", 1, 2, 3),
        "worker_replicas": [
            {"worker_replicas": pods - 1, "engine.parallelism": {"tensor": 8, "pipeline": pods}}
            for pods in (2, 4)
        ],
        "entry_template": _each("entry_template", template("app"), template("other")),
        "worker_template": _each(
            "worker_template", template("app"), template("other"), worker_replicas=1
        ),
        "startup_seconds": _each("startup_seconds", 6000, 7000),
        "drain_seconds": _each("drain_seconds", 0, 60),
        "max_unavailable": [{"max_unavailable": number, "replicas": 3} for number in (1, 2)],
    }
    beside = {"rollout_strategy": {"type": "RoleRollingUpdate"}, "replicas": 1}
    named = {
        f"roles[].{field}": [{f"{ROLE}.{k}": v for k, v in one.items()} for one in changes]
        for field, changes in roles.items()
    }
    named["roles[].max_unavailable"] = [
        {**beside, **one} for one in named["roles[].max_unavailable"]
    ]
    resources = {
        "gpu_resource": ("nvidia.com/gpu", "example.com/gpu"),
        "gpu": ("h100", "h200"),
        "cpu": ("30", "31"),
        "memory": ("64Gi", "65Gi"),
        "ephemeral_storage": ("64Gi", "65Gi"),
        "shm": ("4Gi", "5Gi"),
    }
    named["roles[].resources.gpus_per_pod"] = [
        {**_engine(parallelism={"tensor": gpus}), f"{ROLE}.resources.gpus_per_pod": gpus}
        for gpus in (4, 8)
    ]
    for field, claims in _claims().items():
        named[f"roles[].resources.claims[].{field}"] = [
            {**_engine(), f"{ROLE}.resources.claims": [claim]} for claim in claims
        ]
    for field, values in resources.items():
        named[f"roles[].resources.{field}"] = _each(f"{ROLE}.resources.{field}", *values)
    return named


def _claims() -> dict[str, list[Args]]:
    made, other = {"name": "a", "device_class": "gpu.nvidia.com"}, {"name": "a", "template": "x"}
    nics = {"name": "a", "device_class": "nics", "gpus": False}
    return {
        "name": [made, {**made, "name": "b"}],
        "template": [other, {**other, "template": "y"}],
        "device_class": [made, {**made, "device_class": "own"}],
        "selectors": [{**made, "selectors": [text]} for text in ("true", "false")],
        "gpus": [other, {**other, "gpus": False}],
        "count": [{**nics, "count": number} for number in (1, 2)],
    }


def _engine(**fields: Any) -> Args:
    """Give an engine of one pod."""
    engine = {"kind": "vllm", "image": VLLM, "model": "org/m", "port": 8000, **fields}
    return {
        f"{ROLE}.engine": {"parallelism": {"tensor": 8}, **engine},
        f"{ROLE}.worker_replicas": 0,
        f"{ROLE}.resources": {"gpus_per_pod": 8, "cpu": "8", "memory": "64Gi"},
    }


def _of_engines() -> dict[str, list[Args]]:
    half = {"role": "both", "connector": "nixl"}
    splits = ({"tensor": 8}, {"tensor": 4, "pipeline": 2}, {"tensor": 4, "data": 2})
    fields = {
        "kind": [_engine(kind=kind, image="org/own:v1") for kind in ("vllm", "sglang", "trtllm")],
        "image": _each(f"{_ENGINE}.image", "org/vllm-openai:v0.17.0", "org/vllm-openai:v0.17.1"),
        "model": _each(f"{_ENGINE}.model", "org/a", "org/b"),
        "launcher": _each(f"{_ENGINE}.launcher", "native", "ray"),
        "parallelism.tensor": [
            {**_engine(parallelism={"tensor": 4}), f"{ROLE}.resources.gpus_per_pod": 4},
            _engine(),
        ],
        "parallelism.pipeline": [_engine(parallelism=split) for split in splits[:2]],
        "parallelism.data": [_engine(parallelism=split) for split in splits[::2]],
        "parallelism.expert": [
            _engine(parallelism={"tensor": 8, "expert": given}) for given in (False, True)
        ],
        "port": _each(f"{_ENGINE}.port", 8001, 8002, 5000),
        "extra_args": _each(f"{_ENGINE}.extra_args", ["--max-model-len=8"], ["--seed=9"]),
        "kv_transfer.role": _each(_TRANSFER, half, {**half, "role": "prefill"}),
        "kv_transfer.connector": _each(_TRANSFER, half, {**half, "connector": "lmcache"}),
        "kv_transfer.port": _each(_TRANSFER, {**half, "port": 7000}, {**half, "port": 7001}),
        "hf_config": [_engine(hf_config=given) for given in (None, _LLAMA)],
    }
    return {f"roles[].engine.{key}": changes for key, changes in fields.items()} | _of_pods()


def _of_pods() -> dict[str, list[Args]]:
    rdma, fetched = {"resource": "rdma/a", "count": 1}, {"download": True}
    cache = {"claim": "a", "mount_path": "/m", **fetched}
    return {
        "roles[].hugging_face_token.name": _each(_TOKEN, {"name": "a"}, {"name": "b"}),
        "roles[].hugging_face_token.key": _each(
            _TOKEN, *({"name": "a", "key": key} for key in ("HF_TOKEN", "TOKEN"))
        ),
        "roles[].cache.claim": _each(_CACHE, *({"claim": name, **fetched} for name in "ab")),
        "roles[].cache.host_path": _each(
            _CACHE, *({"host_path": path, **fetched} for path in ("/a", "/b"))
        ),
        "roles[].cache.size": _each(_CACHE, {"size": "900Gi"}, {"size": "901Gi"}),
        "roles[].cache.mount_path": _each(_CACHE, cache, {**cache, "mount_path": "/n"}),
        "roles[].cache.download": _each(
            _CACHE, *({"claim": "a", "download": given} for given in (False, True))
        ),
        "roles[].network.interface": _each(_NETWORK, {"interface": "a"}, {"interface": "b"}),
        "roles[].network.hca": _each(_NETWORK, {"hca": "a"}, {"hca": "b"}),
        "roles[].network.rdma.resource": _each(
            _NETWORK, {"rdma": rdma}, {"rdma": {**rdma, "resource": "rdma/b"}}
        ),
        "roles[].network.rdma.count": _each(
            _NETWORK, {"rdma": rdma}, {"rdma": {**rdma, "count": 2}}
        ),
        "roles[].overlay": _each(
            _OVERLAY,
            {"metadata": {"labels": {"a": "b"}}},
            {"metadata": {"annotations": {"a": "b"}}},
            {"spec": {"nodeSelector": {"a": "b"}}},
            {"spec": {"tolerations": [{"key": "a", "operator": "Exists"}]}},
            {"spec": {"containers": [{"name": "engine", "tty": True}]}},
            {"spec": {"containers": [{"name": "side", "image": "busybox:1.37"}]}},
        ),
    }


CHANGES: Final[Mapping[str, list[Args]]] = _changes()
ELSEWHERE: Final = {
    "backend": "is what the tests vary",
    "backend_options": "has a model of its own in each backend",
    "expose.role": "needs two roles that serve",
    "roles[].resources.gpu_label": "is refused with resources.gpu, which it belongs to",
}
"""Fields without changes, and why."""


def fields_of(model: type[Spec], path: str = "") -> Iterator[str]:
    """Yield the path of each field of a model that has no fields of its own."""
    for name, field in model.model_fields.items():
        at = f"{path}.{name}" if path else name
        inner = _model_in(field.annotation)
        if inner is None:
            yield at
        else:
            listed = "[]" if "list" in str(field.annotation) else ""
            yield from fields_of(inner, f"{at}{listed}")


def _model_in(annotation: Any) -> type[Spec] | None:
    if isinstance(annotation, type) and issubclass(annotation, Spec):
        return annotation
    return next((found for each in get_args(annotation) if (found := _model_in(each))), None)
