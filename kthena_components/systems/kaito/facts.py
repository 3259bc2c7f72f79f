"""What KAITO starts: facts and pods of its objects, and the engine of a preset."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kthena_components.core.engines import CommandFacts, Mount, read_command
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, GpuDemand, ServingFacts
from kthena_components.core.facts.workload import read_template
from kthena_components.core.hardware import GpuFacts, Instance, gpu_of, stated_gpu
from kthena_components.core.models import ModelShape
from kthena_components.core.objects.object import Object, PodSet, pod_set
from kthena_components.core.objects.retained_fields import kept_pods
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display
from kthena_components.core.values.read import first_unknown, inside, mapping, name_of, unknown_in
from kthena_components.core.values.unknown import MaybeInt, Unknown, product, total
from kthena_components.systems.kaito.estimator import (
    NO_INSTANCE,
    Deployment,
    Sized,
    node_of,
    size_of,
)
from kthena_components.systems.kaito.view import (
    CONFIG_KEY,
    GROUP,
    TRANSFORMERS,
    WORKSPACE,
    Model,
    View,
)

# The engine that KAITO starts for a preset, in the form that the rules over any serving read.
#
# Source: kaito-project/kaito pkg/model/interface.go buildVLLMInferenceCommand and
# presets/workspace/inference/vllm/inference_api.py parse_args, which appends a ConfigMap's flags to
# KAITO's own, so they take precedence.


_PROGRAM, _FOLDER = "/workspace/vllm/inference_api.py", "/mnt/config"
_SHARE, _SHARE_OF = 0.84, {"NVIDIA A10": 0.82}
"""gpu-memory-utilization of KAITO's command, by default and on some GPUs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """The launched engine."""

    deployment: Deployment
    """KAITO's nodes, and the parallelism of the command."""
    facts: ServingFacts
    command: CommandFacts
    configured: bool
    """Whether the ConfigMap states the parallelism."""


def start_of(sized: Sized, deployment: Deployment) -> Start | Unknown:
    """Read KAITO's command, with the flags of an available ConfigMap.

    Args:
        sized: The model and its nodes.
        deployment: What KAITO derives from them.
    """
    command = _command(sized, deployment)
    sizes = command.tensor, command.pipeline, command.data
    tensor, pipeline, data = sizes
    if not (isinstance(tensor, int) and isinstance(pipeline, int) and isinstance(data, int)):
        return first_unknown(*sizes) or Unknown("its parallelism is not known")
    stated = replace(deployment, tensor=tensor, pipeline=pipeline, data=data)
    return Start(
        deployment=stated,
        facts=_facts(sized, command, deployment.nodes),
        command=command,
        configured=stated != deployment,
    )


def _command(sized: Sized, deployment: Deployment) -> CommandFacts:
    text = sized.model.config_text
    # Unreadable flags are reported as unknown: KAITO's own command applies then.
    if not isinstance(text, str) or not isinstance(sized.tokens, int):
        return command_of(sized.shape, sized.instance, deployment)
    files = (Mount(_FOLDER, ((CONFIG_KEY, text),)),)
    words = (f"--kaito-config-file={_FOLDER}/{CONFIG_KEY}",)
    return command_of(sized.shape, sized.instance, deployment, words=words, files=files)


def command_of(
    shape: ModelShape,
    instance: Instance,
    deployment: Deployment,
    *,
    words: Sequence[str] = (),
    files: tuple[Mount, ...] = (),
) -> CommandFacts:
    """Read KAITO's command line.

    Args:
        shape: The model.
        instance: A node.
        deployment: The nodes and the parallelism.
        words: Further flags, which take precedence.
        files: Files that they name.
    """
    own = [
        f"--model={shape.name}",
        f"--tensor-parallel-size={deployment.tensor}",
        f"--pipeline-parallel-size={deployment.pipeline}",
        f"--data-parallel-size={deployment.data}",
        f"--gpu-memory-utilization={share_of(instance)}",
    ]
    stated = {word.partition("=")[0] for word in words}
    kept = (flag for flag in own if flag.partition("=")[0] not in stated)
    argv = ["python3", _PROGRAM, *kept, *words]
    return read_command(argv, {}, files=files) or CommandFacts()


def share_of(instance: Instance) -> float:
    """Return the gpu-memory-utilization of KAITO's command on a node."""
    return _SHARE_OF.get(instance.gpu, _SHARE)


def _facts(sized: Sized, command: CommandFacts, nodes: int) -> ServingFacts:
    at = sized.model.node_path
    engine = engine_of(at, sized.instance, sized.shape, command, nodes)
    named = replace(engine, name=str(sized.model.preset))
    return ServingFacts(path="", name="", engines=(named,))


def engine_of(
    at: str, instance: Instance, shape: ModelShape, command: CommandFacts, nodes: int
) -> EngineFacts:
    """Return an engine on the GPUs of its nodes.

    KAITO passes a share, and only its estimator uses the nominal size: vLLM's share is of the
    memory that the driver reports. Source: vllm/v1/worker/utils.py request_memory.
    """
    gpu = gpu_of(instance)
    memory = instance.memory_gib if gpu is None else gpu.memory_gib
    pod = PodFacts(
        devices=(),
        command=command,
        gpu=GpuFacts(name=instance.gpu, memory_gib=memory),
        shape=shape,
        gpus_path=at,
        command_path=at,
    )
    return EngineFacts(
        path=at, name="", pods=nodes, replicas=1, entry=pod, worker=None, ray_started=True
    )


def shown(deployment: Deployment) -> str:
    """Write a parallelism for a message."""
    split = f"tensor {deployment.tensor} × pipeline {deployment.pipeline}"
    if deployment.data == 1:
        return split
    whole = deployment.tensor == deployment.pipeline == 1
    return f"data {deployment.data}{'' if whole else f' × {split}'}"


# Reads KAITO's Workspace, InferenceSet and MultiRoleInference, and the pods of KAITO.
#
# A preset has no command line: separate rules check what KAITO creates for it. A template is an
# ordinary pod template, on nodes of the instance type. Source: kaito-project/kaito api/v1beta1 and
# api/v1alpha1.


_INSTANCE_TYPE = "node.kubernetes.io/instance-type"


def facts(view: View) -> ServingFacts:
    """Read the engines that pod templates start."""
    found = view.object
    engines = tuple(engine for model in view.models for engine in _engines(found, model))
    return ServingFacts(path=found.path, name=name_of(found.body), engines=engines)


def node_labels(labels: Mapping[str, Any], kind: object) -> dict[str, Any]:
    """Return the labels of the nodes, with the one that states their instance type."""
    return {**labels, **({_INSTANCE_TYPE: kind} if kind else {})}


def _engines(found: Object, model: Model) -> Iterator[EngineFacts]:
    """Read the engines of a template; its GPU may follow from the instance type."""
    if model.template is None:
        return
    resource = inside(model.holder, "resource")
    gpu = stated_gpu({"nodeSelector": node_labels(model.labels, inside(resource, "instanceType"))})
    for engine in read_template(
        model.template,
        found.at(model.template_path),
        name_of(found.body),
        {"replicas": inside(resource, "count")},
        found.context,
    ):
        yield replace(engine, entry=replace(engine.entry, gpu=engine.entry.gpu or gpu))


# The pods and GPUs that KAITO creates.


_GPU = "nvidia.com/gpu"
"""Requests of KAITO's own pods, whatever GPUs the nodes have (GenerateInferencePodSpec)."""
_LATER = Unknown("KAITO sets this name when it creates the object")


def pods(view: View) -> Iterator[PodSet]:
    """Return the pods of templates: one on each node of each Workspace.

    The pods of a Workspace are intended for as many nodes; the nodes that KAITO creates of an
    instance type belong to one Workspace. Source: kaito-project/kaito
    pkg/workspace/manifests/manifests.go GenerateManifestWithPodTemplate and
    pkg/workspace/inference/preset_inferences.go ApplyProvisionerNodeSelector.
    """
    for model in view.models:
        if model.template is not None:
            apart = model.nodes != 1 or (model.copies != 1 and bool(model.instance))
            number = product(model.copies, model.nodes)
            at, template = model.template_path, model.template
            made = pod_set(view.object, at, template, number, spread=apart)
            yield replace(made, labels=_labelled(view, made.labels))


def _labelled(view: View, labels: Mapping[str, Any]) -> Mapping[str, Any]:
    """Add the labels that KAITO adds; unknown if the labels are unknown."""
    if unknown_in(labels.get("")):
        return labels
    name, own = view.object.name or _LATER, f"{GROUP}/workspace"
    if view.kind == WORKSPACE:
        return {**labels, own: name}
    return {**labels, own: _LATER, f"inferenceset.{GROUP}/created-by": name}


def demand(view: View) -> GpuDemand | None:
    """Count the GPUs of the nodes that KAITO creates for presets; None if there are none.

    Each of its pods uses all GPUs of its node.
    """
    made = [m for m in view.models if m.preset is not None and m.template is None]
    gpus = total([product(model.copies, _gpus(model)) for model in made])
    whole = all(model.resource.get("partition") is None for model in made)
    return GpuDemand(gpus=gpus, resources=frozenset({_GPU} if whole else ())) if made else None


def _gpus(model: Model) -> MaybeInt:
    """Count the GPUs of one Workspace."""
    instance, nodes = node_of(model.instance, model.labels), _nodes(model)
    return instance if isinstance(instance, Unknown) else product(nodes, instance.gpus)


def _nodes(model: Model) -> MaybeInt:
    """Count the nodes of one Workspace: with vLLM, KAITO calculates them.

    Source: kaito-project/kaito pkg/workspace/controllers/workspace_controller.go
    UpdateWorkspaceTargetNodeCount.
    """
    runtime = model.runtime
    if model.tuned:
        return 1
    if isinstance(runtime, Unknown) or runtime == TRANSFORMERS:
        return runtime if isinstance(runtime, Unknown) else model.nodes
    sized = size_of(model)
    if sized is None or isinstance(sized, Unknown):
        return sized or NO_INSTANCE
    if isinstance(sized.tokens, Unknown):
        return sized.tokens
    deployment = sized.deployment
    if deployment is None:
        shown = display(model.instance), display(model.preset)
        return Unknown(f"KAITO finds no room on {shown[0]} for {shown[1]}")
    return deployment.nodes


def kept(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Keep of a Workspace what defines its number of pods, and what the rules compare of them."""
    parts = {key: body[key] for key in ("resource", "inference", "tuning") if key in body}
    return mapping(kept_pods({"spec": parts}).get("spec"))
