"""Arguments that tests share. Never change one: `changed` gives a copy of its own."""

import copy
import itertools
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

Args = dict[str, Any]
VLLM: Final = "vllm/vllm-openai:v0.33.0"
VLLM_WITH_RAY: Final = "vllm/vllm-openai:v0.11.0"
"""The last vLLM that takes Ray by itself for several pods, as Kthena's guide has it; its own image
contains Ray up to v0.17.1, and from v0.11.2 on Ray can mix up the stages of a pipeline."""
IMAGE_OF_KAITO: Final = "mcr.microsoft.com/aks/kaito/kaito-base:0.4.2"
SGLANG_IMAGE: Final = "lmsysorg/sglang:v0.5.2"
REMOVED: Final = object()
"""As a value in `changed`: take the field away."""


class Case(NamedTuple):
    """A change that turns something right into something wrong, and what is then said."""

    args: Args
    changes: Mapping[str, Any]
    message: str


_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)")


def changed(args: Mapping[str, Any], changes: Mapping[str, Any] | None = None) -> Args:
    """Give a copy with the fields at some paths set: `{"roles[0].worker_replicas": 2}`.

    Mappings on the way are made; an index one past a list's end appends.
    """
    result: Args = copy.deepcopy(dict(args))
    for path, value in (changes or {}).items():
        steps = [int(index) if index else key for index, key in _STEP.findall(path)]
        holder: Any = result
        for step, following in itertools.pairwise(steps):
            if isinstance(step, str) and holder.get(step) is None:
                holder[step] = [] if isinstance(following, int) else {}
            holder = holder[step]
        last = steps[-1]
        if value is REMOVED:
            del holder[last]
        elif isinstance(last, int) and last == len(holder):
            holder.append(copy.deepcopy(value))
        else:
            holder[last] = copy.deepcopy(value)
    return result


def template(name: str = "app", image: str = "nginx:1.29", **container: Any) -> Args:
    """Give a pod template of one container."""
    return {"spec": {"containers": [{"name": name, "image": image, **container}]}}


def image_of(command: str) -> str:
    """Give an image that holds what a command starts, in a release that has its options."""
    if "sglang" in command:
        return SGLANG_IMAGE
    newer = any(flag in command for flag in ("--nnodes", "--prefill-context"))
    return VLLM if newer else VLLM_WITH_RAY


def gpu_template(command: str, gpus: int = 8, **container: Any) -> Args:
    """Give a pod template whose one container starts a command on some GPUs."""
    devices = {"nvidia.com/gpu": str(gpus)}
    pod = template(
        "engine",
        image_of(command),
        command=["sh", "-c", command],
        resources={"limits": devices, "requests": devices},
        volumeMounts=[{"name": "dshm", "mountPath": "/dev/shm"}],  # noqa: S108 - NCCL's memory
        **container,
    )
    return changed(pod, {"spec.volumes[0]": {"name": "dshm", "emptyDir": {"medium": "Memory"}}})


def _guide_template(name: str, command: str, **more: Any) -> Args:
    secret = {"name": "hf-token", "key": "HUGGING_FACE_HUB_TOKEN"}
    container = {
        "name": name,
        "image": "vllm/vllm-openai:latest",
        "env": [{"name": "HUGGING_FACE_HUB_TOKEN", "valueFrom": {"secretKeyRef": secret}}],
        "command": ["sh", "-c", command],
        "resources": {
            "limits": {"nvidia.com/gpu": "8", "memory": "1124Gi", "ephemeral-storage": "800Gi"},
            "requests": {"ephemeral-storage": "800Gi", "cpu": 125},
        },
        "volumeMounts": [{"mountPath": "/dev/shm", "name": "dshm"}],  # noqa: S108 - as in the guide
        **more,
    }
    volume = {"name": "dshm", "emptyDir": {"medium": "Memory", "sizeLimit": "15Gi"}}
    return {"spec": {"containers": [container], "volumes": [volume]}}


_SCRIPT = "bash /vllm-workspace/examples/online_serving/multi-node-serving.sh"
GUIDE_ENTRY = (
    f"{_SCRIPT} leader --ray_cluster_size=2; python3 -m vllm.entrypoints.openai.api_server "
    "--port 8080 --model meta-llama/Llama-3.1-405B-Instruct "
    "--tensor-parallel-size 8 --pipeline-parallel-size 2"
)

GUIDE: Final[Args] = {
    "name": "llama-multinode",
    "namespace": "default",
    "replicas": 1,
    "scheduler_name": "volcano",
    "gang_policy": {"min_role_replicas": {"llama-405b": 1}},
    "roles": [
        {
            "name": "llama-405b",
            "replicas": 2,
            "entry_template": _guide_template(
                "leader",
                GUIDE_ENTRY,
                ports=[{"containerPort": 8080}],
                readinessProbe={
                    "tcpSocket": {"port": 8080},
                    "initialDelaySeconds": 15,
                    "periodSeconds": 10,
                },
            ),
            "worker_replicas": 1,
            "worker_template": _guide_template(
                "worker", f"{_SCRIPT} worker --ray_address=$(ENTRY_ADDRESS)"
            ),
        }
    ],
}
"""Kthena's multi-node guide, template for template. It names the role 405b, which Kthena refuses
since 0.3; its own example has said llama-405b since then.
Source: Kthena examples/model-serving/multi-node.yaml."""

_VLLM = {
    "kind": "vllm",
    "image": VLLM_WITH_RAY,
    "model": "meta-llama/Llama-3.1-405B-Instruct",
    "launcher": "ray",
    "parallelism": {"tensor": 8, "pipeline": 2},
}

ENGINE_RAY: Final[Args] = {
    "name": "chat",
    "namespace": "serving",
    "replicas": 2,
    "roles": [
        {
            "name": "decode",
            "worker_replicas": 1,
            "engine": _VLLM,
            "resources": {"gpus_per_pod": 8, "cpu": "125", "memory": "1124Gi", "shm": "15Gi"},
            "hugging_face_token": {"name": "hf-token", "key": "HUGGING_FACE_HUB_TOKEN"},
        }
    ],
    "network_topology": {"group_policy": {"mode": "hard", "highest_tier_allowed": 1}},
    "expose": {"port": 80, "target_port": 8080},
}
"""A 405B model over two pods of 8 GPUs, two groups of it."""

ENGINE_NATIVE: Final[Args] = changed(
    ENGINE_RAY, {"roles[0].engine.image": VLLM, "roles[0].engine.launcher": REMOVED}
)
"""The same model, joined by vLLM itself."""

NATIVE_8B: Final[Args] = {
    "name": "small",
    "roles": [
        {
            "name": "server",
            "engine": {"kind": "vllm", "image": VLLM, "model": "meta-llama/Llama-3.1-8B-Instruct"},
            "resources": {"gpus_per_pod": 1, "memory": "64Gi"},
        }
    ],
}
"""A model that one GPU holds."""

SGLANG: Final[Args] = {
    "name": "dense",
    "roles": [
        {
            "name": "server",
            "worker_replicas": 1,
            "engine": {
                "kind": "sglang",
                "image": SGLANG_IMAGE,
                "model": "Qwen/Qwen3-235B-A22B",
                "parallelism": {"tensor": 16, "expert": True},
                "port": 30000,
            },
            "resources": {"gpus_per_pod": 8},
        }
    ],
}
"""One tensor group over two pods, joined by SGLang itself."""

DATA_PARALLEL: Final[Args] = {
    "name": "wide",
    "roles": [
        {
            "name": "server",
            "worker_replicas": 1,
            "engine": {
                "kind": "vllm",
                "image": VLLM,
                "model": "deepseek-ai/DeepSeek-V3.1",
                "parallelism": {"tensor": 2, "data": 8, "expert": True},
            },
            "resources": {"gpus_per_pod": 8},
        }
    ],
}
"""Eight copies of the dense layers, experts spread over all 16 GPUs."""


_NIXL_HOST: Final = {
    "name": "VLLM_NIXL_SIDE_CHANNEL_HOST",
    "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}},
}


def _disaggregated(name: str, replicas: int, workers: int, kv_role: str) -> Args:
    transfer = f'{{"kv_connector":"LMCacheConnectorV1","kv_role":"{kv_role}"}}'
    return {
        "name": name,
        "replicas": replicas,
        "worker_replicas": workers,
        "engine": {
            **_VLLM,
            "model": "Qwen/Qwen3-235B-A22B",
            "parallelism": {"tensor": 8, "pipeline": 1 + workers},
            "extra_args": ["--kv-transfer-config", transfer],
        },
        "overlay": {"spec": {"containers": [{"name": "engine", "env": [_NIXL_HOST]}]}},
        "resources": {"gpus_per_pod": 8},
    }


PREFILL_DECODE: Final[Args] = {
    "name": "split",
    "namespace": "serving",
    "roles": [
        _disaggregated("prefill", 2, 3, "kv_producer"),
        _disaggregated("decode", 1, 2, "kv_consumer"),
    ],
    "gang_policy": {"min_role_replicas": {"prefill": 1, "decode": 1}},
    "network_topology": {
        "group_policy": {"mode": "hard", "highest_tier_allowed": 2},
        "role_policy": {"mode": "hard", "highest_tier_allowed": 1},
    },
    "expose": {"role": "decode"},
}
"""Prefill 2 × (1 + 3) and decode 1 × (1 + 2): the sizes of Kthena's TestCalculateRequirements."""


def _half(role: str) -> Args:
    transfer = {"role": role, "connector": "nixl"}
    sizes = {"tensor": 16}
    engine = {**_VLLM, "image": VLLM, "launcher": "native", "parallelism": sizes}
    resources = {"gpus_per_pod": 8, "shm": "64Gi"}
    return {
        "name": role,
        "worker_replicas": 1,
        "engine": {**engine, "kv_transfer": transfer},
        "resources": resources,
    }


PAIR: Final[Args] = {
    "name": "pair",
    "roles": [
        _half("prefill"),
        _half("decode"),
        {"name": "router", "entry_template": template("router", image="example.com/proxy:1.0")},
    ],
    "expose": {"role": "router"},
}
"""Prefill and decode of 2 pods each, which share their KV cache, and a router without GPUs."""

TEMPLATES_PLAIN: Final[Args] = {
    "name": "sample",
    "roles": [
        {
            "name": name,
            "worker_replicas": 3,
            "entry_template": template("leader"),
            "worker_template": template("worker"),
        }
        for name in ("prefill", "decode")
    ],
}
"""Two roles of 1 × (1 + 3) pods that serve no model.
Source: Kthena examples/model-serving/sample.yaml."""

GANG: Final[Args] = {
    "name": "sample",
    "roles": [
        {
            "name": name,
            "replicas": 2,
            "worker_replicas": 1,
            "entry_template": template("leader", resources={"requests": {"cpu": "100m"}}),
            "worker_template": template("worker", resources={"requests": {"cpu": "100m"}}),
        }
        for name in ("prefill", "decode")
    ],
    "gang_policy": {"min_role_replicas": {"prefill": 2, "decode": 1}},
}
"""Source: Kthena examples/model-serving/gangPolicy.yaml."""

ALL: Final[Mapping[str, Args]] = {
    "guide": GUIDE,
    "engine-ray": ENGINE_RAY,
    "engine-native": ENGINE_NATIVE,
    "native-8b": NATIVE_8B,
    "sglang": SGLANG,
    "data-parallel": DATA_PARALLEL,
    "prefill-decode": PREFILL_DECODE,
    "templates-plain": TEMPLATES_PLAIN,
    "gang": GANG,
}


KSERVE_ENGINE: Final = {"storage_uri": "pvc://llama/hf", "keeps_workers": True}
"""Options without which KServe runs no engine of several pods."""


def example_for(backend: str, example: str) -> Args:
    """Give an example without the fields that the backend refuses, and with each kind it has."""
    args = changed(ALL[example], {"backend": backend})
    if backend == "kaito":
        return _for_kaito(args)
    if backend == "booster":
        return _for_booster(args)
    if backend == "lws":
        args.pop("network_topology", None)
        if len(args["roles"]) > 1:
            args.pop("gang_policy", None)
    if backend == "matrixinfer":
        args.get("network_topology", {}).pop("role_policy", None)
        if len(args["roles"]) > 1:
            args["backend_options"] = {"api_group": "workload.volcano.sh"}
    return _for_kserve(args) if backend == "kserve" else args


def _for_booster(args: Args) -> Args:
    """Give a prefill and a decode engine of one pod each, or the first role as a leader."""
    is_pair = {role["name"] for role in args["roles"]} == {"prefill", "decode"}
    roles = []
    for role in args["roles"] if is_pair else args["roles"][:1]:
        name, pods = (
            (role["name"], 1) if is_pair else ("leader", 1 + role.get("worker_replicas", 0))
        )
        engine = {
            "kind": "vllm",
            "image": VLLM if pods == 1 else "vllm/vllm-openai:v0.17.1",
            "model": role.get("engine", _VLLM)["model"],
            "port": 8000,
            "parallelism": {"tensor": 8, "pipeline": pods},
            **({"launcher": "ray"} if pods > 1 else {}),
            **({"kv_transfer": {"role": name, "connector": "nixl"}} if is_pair else {}),
        }
        made = {
            "name": name,
            "replicas": role.get("replicas", 1),
            "worker_replicas": pods - 1,
            "engine": engine,
            "resources": {"gpus_per_pod": 8},
            "cache": {"claim": "models", "download": True},
        }
        roles.append(made)
    kept: Args = {key: args[key] for key in ("name", "namespace", "replicas") if key in args}
    kept["backend"] = "booster"
    exposed: Args = {"expose": {"role": roles[-1]["name"]}} if "expose" in args else {}
    return {**kept, **exposed, "roles": roles}


def _for_kserve(args: Args) -> Args:
    """Give the first role: one engine of several pods, or single pods where those do not fit."""
    for field in ("network_topology", "gang_policy", "expose"):
        args.pop(field, None)
    role = {**args["roles"][0], "replicas": 1}
    engine = role.get("engine", {})
    if "data" in engine.get("parallelism", {}):
        role["engine"] = changed(engine, {"parallelism.data": 4})
    plain = not engine and "nvidia.com/gpu" not in str(role)
    if plain or "data" in engine.get("parallelism", {}):
        role.pop("worker_template", None)
        role["worker_replicas"] = 0
    if role.get("worker_replicas"):
        args |= {"replicas": 1, "backend_options": KSERVE_ENGINE}
    elif engine:
        role["resources"] = {**role["resources"], "cpu": "8", "memory": "64Gi"}
    else:
        limits = {"cpu": "1", "memory": "1Gi"}
        ports = [{"containerPort": 8080}]
        role["entry_template"] = template(
            "leader", resources={"limits": limits, "requests": limits}, ports=ports
        )
    return {**args, "roles": [role]}


def _for_kaito(args: Args) -> Args:
    """Give the first role as a pod template, or as the preset of Llama-3.1-405B on two nodes."""
    role = args["roles"][0]
    options: Args = {"instance_type": "Standard_ND96isr_H100_v5"}
    kept: Args = {key: args[key] for key in ("namespace", "replicas", "expose") if key in args}
    if example_of_one_pod(role):
        role = {**role, "worker_replicas": 0}
        role.pop("worker_template", None)
    else:
        options["preset"] = _VLLM["model"]
        sizes = {"parallelism": _VLLM["parallelism"], "image": IMAGE_OF_KAITO, "port": 5000}
        role = {
            "name": role["name"],
            "worker_replicas": 1,
            "engine": {"kind": "vllm", "model": _VLLM["model"], **sizes},
            "resources": {"gpus_per_pod": 8},
            "hugging_face_token": {"name": "hf-token"},
        }
        kept["scheduler_name"] = "default-scheduler"
    if "expose" in kept:
        kept["expose"] = {"port": 80}
    named = {"name": args["name"], "backend": "kaito", "roles": [role]}
    return {**named, **kept, "backend_options": options}


def example_of_one_pod(role: Args) -> bool:
    """Tell whether an engine is one pod, or pods that do not know each other."""
    containers = role.get("entry_template", {}).get("spec", {}).get("containers", [{}])
    return "worker_replicas" not in role or not ("engine" in role or "command" in containers[0])


GROUP: Final[Args] = {
    "name": "chat",
    "namespace": "serving",
    "group": 3,
    "roles": ENGINE_RAY["roles"],
}
"""A ServingGroup used by itself."""

ROLE: Final[Args] = {
    **ENGINE_RAY["roles"][0],
    "serving": "chat",
    "namespace": "serving",
    "pod_group": "shared",
}
"""A Role used by itself."""
