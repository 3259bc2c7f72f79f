"""Kinds of NVIDIA's NIM operator."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.facts.workload import MOUNTED, SHARED_MEMORY, read_single
from kthena_components.core.findings import Finding, each_of, refuse
from kthena_components.core.objects.object import Object
from kthena_components.core.remedies import remove, write
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import (
    count,
    count_or_unknown,
    is_name,
    mapping,
    name_of,
    require_known,
    sequence,
    unknown_in,
)
from kthena_components.core.values.unknown import MaybeInt, Unknown, is_unresolved, known
from kthena_components.systems.kubernetes.rules.autoscalers_and_coscheduling_pods import in_order
from kthena_components.systems.system import Kind, Restart, System

# NVIDIA's NIM operator: NIMService, and the NIMServices of a NIMPipeline.
#
# A NIM is on one pod, or has a stage on each of several. Its sizes are from the object, its
# variables, or its profile.
# Source: NVIDIA/k8s-nim-operator v3.1 api/apps/v1alpha1/nimservice_types.go (GetLWSSize) and
# nimpipeline_types.go, internal/controller/platform/standalone/nimservice.go (addGPUResources).


GROUP, SERVICE, PIPELINE = "apps.nvidia.com", "NIMService", "NIMPipeline"
GPU = "nvidia.com/gpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Nim:
    """One NIM."""

    path: str
    """Path of its spec, in the object."""
    name: str
    fields: Mapping[str, Any]
    tensor: MaybeInt | None
    """Tensor size of a NIM on several nodes. None: it is on one, and the NIM chooses."""
    stages: MaybeInt
    """Pods of one replica; each runs a pipeline stage."""

    @property
    def replicas(self) -> MaybeInt:
        """Return its replicas; with autoscaling, the least."""
        hpa = mapping(mapping(self.fields.get("scale")).get("hpa"))
        stated = hpa.get("minReplicas") if hpa else self.fields.get("replicas")
        return count_or_unknown(stated, "replicas", 1)

    @property
    def gpus(self) -> object:
        """Return the GPUs of a pod as stated, or else as the operator adds them.

        None: as many as the tensor size of the NIM's profile.
        """
        resources = mapping(self.fields.get("resources"))
        for key in ("limits", "requests"):
            stated = mapping(resources.get(key)).get(GPU)
            if stated is not None:
                return stated
        if sequence(self.fields.get("draResources")):
            return Unknown("its pods get devices by draResources")
        return self.tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Nims:
    """A NIMService, or the NIMServices of a NIMPipeline."""

    object: Object
    services: tuple[Nim, ...]


def read_nims(found: Object) -> Nims:
    """Read the NIMs, whatever the object contains."""
    if found.kind != PIPELINE:
        return Nims(object=found, services=(_nim("spec", found.spec, name_of(found.body)),))
    listed = [mapping(item) for item in sequence(found.spec.get("services"))]
    return Nims(
        object=found,
        services=tuple(
            _nim(f"spec.services[{index}].spec", mapping(item.get("spec")), item.get("name"))
            for index, item in enumerate(listed)
            if item.get("enabled") is not False
        ),
    )


_NO_SIZES = Unknown("multiNode states no parallelism, which the operator needs since v3.0")


def _nim(path: str, fields: Mapping[str, Any], name: object) -> Nim:
    """Read a NIM: without multiNode it has one pod, and its image decides the parallelism."""
    nodes = fields.get("multiNode")
    sizes = mapping(mapping(nodes).get("parallelism"))
    gap = unknown_in(nodes)
    if gap is None and mapping(nodes).get("parallelism") is None:
        gap = _NO_SIZES
    stages: MaybeInt = gap or count_or_unknown(sizes.get("pipeline"), "pipeline", 1) or 1
    tensor: MaybeInt = gap or count_or_unknown(sizes.get("tensor"), "tensor", 1) or 1
    several = nodes is not None
    return Nim(
        path=path,
        name=name if is_name(name) else "?",
        fields=fields,
        tensor=tensor if several else None,
        stages=stages if several else 1,
    )


_TENSOR, _PIPELINE = "NIM_TENSOR_PARALLEL_SIZE", "NIM_PIPELINE_PARALLEL_SIZE"
_PROFILE = Unknown("the NIM chooses its profile by the GPUs that it finds")
_FIELDS = ("args", "command", "env", "resources")
_DIGITS = 4


def facts(view: Nims) -> ServingFacts:
    """Return the facts of all NIMs."""
    found = view.object
    return ServingFacts(
        path=found.at("spec"),
        name=name_of(found.body),
        engines=tuple(_engine(found, nim) for nim in view.services),
        # The operator makes a LeaderWorkerSet of it, and says nothing of gangs.
        gang_expected=any(nim.fields.get("schedulerName") == "volcano" for nim in view.services),
    )


def _engine(found: Object, nim: Nim) -> EngineFacts:
    """Describe the engine of a NIM: one pod for each pipeline stage."""
    pod = _pod(found, nim)
    return EngineFacts(
        path=found.at(nim.path),
        name=nim.name,
        pods=nim.stages,
        replicas=nim.replicas,
        entry=pod,
        worker=None,
    )


def _pod(found: Object, nim: Nim) -> PodFacts:
    """Return the pod that the NIM operator creates."""
    image = mapping(nim.fields.get("image"))
    parts = [image.get(key) for key in ("repository", "tag")]
    stated = mapping(mapping(nim.fields.get("resources")).get("requests")).get(GPU)
    requests = {} if stated is None else {"requests": {GPU: stated}}
    gpus = {} if nim.gpus is None else {"limits": {GPU: nim.gpus}, **requests}
    container: dict[str, Any] = {
        **{key: nim.fields[key] for key in _FIELDS if key in nim.fields},
        "name": "nim",
        "resources": gpus,
        "volumeMounts": [MOUNTED],
        **({"image": ":".join(map(str, parts))} if all(parts) else {}),
    }
    pod = read_single(
        container, _places(nim), found.at, volumes=[SHARED_MEMORY], context=found.context
    )
    command = _command(nim, pod)
    if command is None or (pod.command is not None and pod.command.engine is not None):
        return replace(pod, gap=None)
    return replace(
        pod, command=command, command_path=found.at(_where(nim)), container="nim", gap=None
    )


def _places(nim: Nim) -> Mapping[str, str]:
    own = {field: f"{nim.path}.{field}" for field in _FIELDS}
    return {**own, "image": f"{nim.path}.image.tag", "": nim.path}


def _where(nim: Nim) -> str:
    return nim.path if nim.tensor is None else f"{nim.path}.multiNode.parallelism"


def _command(nim: Nim, pod: PodFacts) -> CommandFacts | None:
    """Return the sizes of a NIM; None if they follow from its profile, like its GPUs.

    Its own variables take precedence over those of the operator.
    """
    env = [mapping(item) for item in sequence(nim.fields.get("env"))]
    tensor = _size(_TENSOR, env)
    pipeline = _size(_PIPELINE, env)
    if is_unresolved(nim.fields.get("env")):
        tensor = Unknown("its variables are not known yet")
    if tensor is None and nim.tensor is None:
        if nim.gpus is None:
            return None
        tensor = 1 if pod.gpus == 1 else _PROFILE
    return CommandFacts(
        engine="nim",
        tensor=nim.tensor or 1 if tensor is None else tensor,
        pipeline=nim.stages if pipeline is None else pipeline,
    )


def _size(name: str, env: Sequence[Mapping[str, Any]]) -> MaybeInt | None:
    """Return the size in a variable; None if there is none."""
    for item in env:
        value = item.get("value")
        if item.get("name") == name:
            if isinstance(value, str) and value.isdecimal() and 0 < len(value) <= _DIGITS:
                return int(value)
            return Unknown(f"the value of {name} is not a number")
    return None


def _scaled(view: Nims) -> Iterator[tuple[Nim]]:
    """Yield the NIMs whose number an autoscaler changes."""
    for nim in view.services:
        enabled = mapping(nim.fields.get("scale")).get("enabled")
        if enabled is True or unknown_in(enabled):
            yield (nim,)


@each_of(_scaled)
def nim_scale(nim: Nim) -> Iterator[Finding]:
    """With scale.enabled, the range of scale.hpa is not empty, and nothing else states replicas.

    The operator makes a HorizontalPodAutoscaler of scale.hpa. A NIM with multiNode has no
    autoscaler.

    Pass: scale.enabled true, minReplicas 1, maxReplicas 4; minReplicas 5, maxReplicas 2 with
    enabled false.
    Fail: scale.enabled true, minReplicas 5, maxReplicas 2; scale.enabled true and replicas 1.
    Level: mandatory. The API server rejects the NIMService, with replicas since v3.0.2, or the
    autoscaler that the operator makes.
    Source: NVIDIA/k8s-nim-operator v3.1.2 api/apps/v1alpha1/nimservice_types.go (XValidation of
    NIMServiceSpec, GetHPAParams) and common_types.go HorizontalPodAutoscalerSpec; kubernetes
    pkg/apis/autoscaling/validation/validation.go validateHorizontalPodAutoscalerSpec.
    """
    at, scale = f"{nim.path}.scale", mapping(nim.fields.get("scale"))
    require_known(f"{at}.enabled", scale.get("enabled"))
    if nim.fields.get("multiNode") is not None:
        seen = "is true, but the operator scales no NIM with multiNode"
        yield refuse(f"{at}.enabled", seen, write(False))
        return
    if nim.fields.get("replicas") is not None:
        seen = "stands beside scale.enabled: true, whose autoscaler sets the number of pods, "
        seen += "and the API server rejects both"
        yield refuse(f"{nim.path}.replicas", seen, remove())
    hpa, low, high = mapping(scale.get("hpa")), f"{at}.hpa.minReplicas", f"{at}.hpa.maxReplicas"
    least, most = (
        known(count(hpa.get("minReplicas"), 1), low),
        known(count(hpa.get("maxReplicas")), high),
    )
    if least is not None and most is not None:
        yield from in_order(low, least, high, most)


_MADE = "the operator writes the pods of a NIM"

SYSTEM = System(
    name="nim",
    title="NIM operator",
    kinds=tuple(
        Kind(
            group=GROUP,
            name=name,
            view=read_nims,
            facts=facts,
            rules=(nim_scale,),
            unscalable="has no scale subresource",
            number_in="scale or replicas",
            not_whole="its image starts a program of NVIDIA's own, for which the package writes no "
            "command line",
            restarts=Restart(
                paths=r"spec\b.*\b(?:args|command|env|image|resources)\b",
                how="the operator changes the Deployment or LeaderWorkerSet, and pods restart",
            ),
            without={"pods": _MADE, "templates": _MADE},
        )
        for name in (SERVICE, PIPELINE)
    ),
)
