"""The engine that KAITO starts for a preset, in the form that the rules over any serving read.

Source: kaito-project/kaito pkg/model/interface.go buildVLLMInferenceCommand and
presets/workspace/inference/vllm/inference_api.py parse_args, which appends a ConfigMap's flags to
KAITO's own, so they take precedence.
"""

from collections.abc import Sequence
from dataclasses import replace

from kthena_components.core.engines import CommandFacts, Mount, read_command
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.hardware import GpuFacts, Instance, gpu_of
from kthena_components.core.models import ModelShape
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import first_unknown
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems.kaito.estimator import Deployment, Sized
from kthena_components.systems.kaito.view import CONFIG_KEY

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
