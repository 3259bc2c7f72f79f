"""KubeAI: a Model, which is an engine, its flags, and a multiple of a resource profile.

Each replica is one pod with one engine.
Source: substratusai/kubeai v0.21 api/k8s/v1/model_types.go, charts/kubeai/values*.yaml, and of
internal/modelcontroller: model_controller.go (getModelConfig), engine_vllm.go, model_source.go.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.pod import DeviceFacts, PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.facts.workload import MOUNTED, SHARED_MEMORY, is_serving, read_single
from kthena_components.core.findings import Finding, refuse
from kthena_components.core.hardware import Gpu, GpuFacts, find_gpu
from kthena_components.core.objects.engine_containers import Sketch
from kthena_components.core.objects.object import Object, pod_set
from kthena_components.core.remedies import or_more
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display
from kthena_components.core.values.read import (
    count,
    count_or_unknown,
    name_of,
    pairs,
    sequence,
    unknown_in,
)
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import (
    UNKNOWN_WORD,
    MaybeInt,
    Unknown,
    is_unresolved,
    known,
)
from kthena_components.systems.kubernetes.rules.autoscalers_and_coscheduling_pods import in_order
from kthena_components.systems.system import Kind, System

VLLM = "VLLM"
_NVIDIA = """
    nvidia-gpu-a100-40gb nvidia-gpu-a100-80gb nvidia-gpu-a16 nvidia-gpu-gh200 nvidia-gpu-h100
    nvidia-gpu-l4 nvidia-gpu-l40s nvidia-gpu-rtx4070-8gb nvidia-gpu-rtx4090-24gb nvidia-gpu-t4
"""
_TPU = "google-tpu-v5e-1x1 google-tpu-v5e-2x2 google-tpu-v5e-2x4"
PROFILES: Mapping[str, str | None] = {
    "cpu": None,
    "amd-gpu-mi300x": "amd.com/gpu",
    **dict.fromkeys(_NVIDIA.split(), "nvidia.com/gpu"),
    **dict.fromkeys(_TPU.split(), "google.com/tpu"),
}
"""Resource of the one device of each profile of the chart. Other profiles are the cluster's own."""
_OTHER_NAMES = {"rtx4090-24gb": "rtx4090"}
_VENDOR = regex(r"^(?:nvidia-gpu|amd-gpu|google-tpu)-|-\d+x\d+$")
"""What a profile's name has beside its GPU, on whose nodes the chart's values place its pods."""
_COUNT_DIGITS = 4
"""Most digits of a multiple that are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A KubeAI Model."""

    object: Object
    fields: Mapping[str, Any]
    resource: str | None
    """The resource of its devices. None: it has none, or they are unknown."""
    devices: MaybeInt
    """Devices of one pod."""
    replicas: MaybeInt


def read_model(found: Object) -> Model:
    """Read a Model, whatever the object contains."""
    fields = found.spec
    resource, devices = _devices(fields.get("resourceProfile"))
    return Model(
        object=found, fields=fields, resource=resource, devices=devices, replicas=_replicas(fields)
    )


def _devices(profile: object) -> tuple[str | None, MaybeInt]:
    """Read `<profile>:<count>` as a resource and its number; KubeAI's default profiles only."""
    if gap := unknown_in(profile):
        return None, gap
    name, _, times = profile.partition(":") if isinstance(profile, str) else ("", "", "")
    if not (times.isdecimal() and times.isascii() and len(times) <= _COUNT_DIGITS):
        return None, Unknown(f"resourceProfile is {display(profile)}, and not <name>:<count>")
    if name not in PROFILES:
        return None, Unknown(f"the configuration of KubeAI says what profile {display(name)} has")
    return PROFILES[name], 0 if PROFILES[name] is None else int(times)


def _replicas(fields: Mapping[str, Any]) -> MaybeInt:
    """Return the number of pods of a Model if it is fixed."""
    if fields.get("autoscalingDisabled") is True:
        return count_or_unknown(fields.get("replicas"), "replicas", 0)
    least = count_or_unknown(fields.get("minReplicas"), "minReplicas", 0)
    most = fields.get("maxReplicas")
    return least if most is not None and most == least else Unknown("KubeAI scales the Model")


_PLACES = {
    "command": "spec.args",
    "resources": "spec.resourceProfile",
    "image": "spec.image",
    "": "spec",
}
_SERVER = ("python3", "-m", "vllm.entrypoints.openai.api_server")
_LOCAL = {"pvc": "/model", "s3": "/model", "gs": "/model", "oss": "/model"}
"""Schemes whose models have another name in the pod."""


def facts(view: Model) -> ServingFacts:
    """Return the facts of a Model."""
    found, pod = view.object, _pod(view)
    engine = EngineFacts(
        path=found.at("spec"),
        name=name_of(found.body),
        pods=1,
        replicas=view.replicas,
        entry=pod,
        worker=None,
    )
    engines = (engine,) if is_serving(pod) or isinstance(view.devices, Unknown) else ()
    return ServingFacts(path=found.at("spec"), name=name_of(found.body), engines=engines)


def _pod(view: Model) -> PodFacts:
    """Compose the pod of a Model, and read it; without an image, any release may run."""
    found, fields = view.object, view.fields
    container: dict[str, Any] = {
        "name": "server",
        "command": _command(view),
        "env": [{"name": str(key), "value": item} for key, item in pairs(fields.get("env"))],
        "envFrom": fields.get("envFrom"),
        "volumeMounts": [MOUNTED],
    }
    if fields.get("image"):
        container["image"] = fields["image"]
    pod = read_single(container, _PLACES, found.at, volumes=[SHARED_MEMORY], context=found.context)
    command = pod.command if fields.get("image") else _by_any_release(pod.command)
    gpu = _gpu_of(view) or pod.gpu
    return replace(pod, command=command, devices=tuple(_device_facts(view)), gpu=gpu)


def _gpu_of(view: Model) -> GpuFacts | Unknown | None:
    """Return the GPU that a profile of the chart is named after; None for other profiles."""
    name = str(view.fields.get("resourceProfile")).partition(":")[0]
    if view.resource is None or PROFILES.get(name) is None:
        return None
    named = _VENDOR.sub("", name)
    gpu = find_gpu(_OTHER_NAMES.get(named, named))
    return GpuFacts(name=gpu.name, memory_gib=gpu.memory_gib) if isinstance(gpu, Gpu) else gpu


def _device_facts(view: Model) -> list[DeviceFacts]:
    """State the accelerators of a profile as a device of the server's container."""
    unknown = isinstance(view.devices, Unknown)
    if view.resource is None and not unknown:
        return []
    return [
        DeviceFacts(
            path=view.object.at("spec.resourceProfile"),
            container="server",
            resource=view.resource or "accelerators",
            limit=view.devices,
            request=view.devices,
        )
    ]


def _command(view: Model) -> list[str]:
    """Return what KubeAI starts; only its name for an engine that is not read."""
    fields, model = view.fields, view.fields.get("url")
    engine, args = fields.get("engine"), fields.get("args")
    if is_unresolved(engine):
        return [UNKNOWN_WORD]
    if engine != VLLM:
        return [str(engine)]
    scheme, _, name = model.partition("://") if isinstance(model, str) else ("", "", "")
    served = UNKNOWN_WORD if is_unresolved(model) else _LOCAL.get(scheme, name.partition("?")[0])
    if is_unresolved(args):
        return [*_SERVER, f"--model={served}", UNKNOWN_WORD, UNKNOWN_WORD]
    return [*_SERVER, f"--model={served}", *(str(a) for a in sequence(args) if isinstance(a, str))]


def _by_any_release(command: CommandFacts | None) -> CommandFacts | None:
    """Return a command whose engine may be of any release: KubeAI's configuration has its image."""
    if command is None:
        return None
    doubted = (replace(p, hard=False) if p.option else p for p in command.problems)
    return replace(command, problems=tuple(doubted))


_NO_IMAGE = "KubeAI's configuration chooses it by the engine and the profile"
_HUB = "hf://"


def sketch(view: Model) -> Sketch:
    """Return the engine of a Model."""
    fields, url = view.fields, view.fields.get("url")
    container = {
        "name": "server",
        "image": fields.get("image"),
        "env": [{"name": str(key), "value": item} for key, item in pairs(fields.get("env"))],
        "envFrom": [*sequence(fields.get("envFrom"))],
    }
    made = {key: item for key, item in container.items() if item not in (None, [])}
    unsaid = {} if fields.get("image") else {"engine.image": _NO_IMAGE}
    if not (isinstance(url, str) and url.startswith(_HUB)):
        unsaid["engine.model"] = f"KubeAI loads {url} into the pod"
    name = name_of(view.object.body)
    return Sketch(
        sets=(pod_set(view.object, "spec", {"spec": {"containers": [made]}}, view.replicas),),
        unsaid={"spec": unsaid},
        beside={f"model/{name}": "KubeAI's proxy serves it; --set expose.port=80 writes a Service"},
    )


def kubeai_replicas(view: Model) -> Iterator[Finding]:
    """In a Model, minReplicas is from 0 to maxReplicas, which is at least 1 if it is stated.

    Pass: minReplicas 0, maxReplicas 3; minReplicas 2.
    Fail: minReplicas 5, maxReplicas 2; maxReplicas 0.
    Level: mandatory. The API server rejects it, by the rules in KubeAI's CRD.
    Source: substratusai/kubeai v0.21 api/k8s/v1/model_types.go ModelSpec.
    """
    low, high = "spec.minReplicas", "spec.maxReplicas"
    least = known(count(view.fields.get("minReplicas"), 0), low)
    most = known(count(view.fields.get("maxReplicas")), high)
    if least is not None and least < 0:
        yield refuse(low, f"is {least}, but must be at least 0", or_more(0))
    elif least is not None and most is not None:
        yield from in_order(low, least, high, most)


_MADE = "KubeAI makes pods of it"

SYSTEM = System(
    name="kubeai",
    title="KubeAI",
    kinds=(
        Kind(
            group="kubeai.org",
            name="Model",
            view=read_model,
            facts=facts,
            rules=(kubeai_replicas,),
            sketch=sketch,
            without={
                "pods": _MADE,
                "templates": _MADE,
                "restarts": "KubeAI adds a pod, and then replaces the old ones one by one",
            },
        ),
    ),
)
