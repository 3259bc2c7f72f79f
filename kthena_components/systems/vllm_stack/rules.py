"""Checks the values of the Helm chart vllm-stack.

world-size-equals-gpus compares ranks with GPUs; these rules are specific to the chart. Source:
vllm-project/production-stack helm/templates/ray-cluster.yaml, deployment-vllm-multi.yaml.
"""

from collections.abc import Iterator

from kthena_components.core.findings import Finding, advise, count_of, not_checked, part_of_rule
from kthena_components.core.remedies import remove, together, write
from kthena_components.core.values.display import display
from kthena_components.core.values.read import require_known, whole
from kthena_components.core.values.unknown import MaybeInt, Unknown, known
from kthena_components.systems.vllm_stack.view import Model, Releases

# Checks the values of the Helm chart vllm-stack.
#
# world-size-equals-gpus compares ranks with GPUs; these rules are specific to the chart. Source:
# vllm-project/production-stack helm/templates/ray-cluster.yaml, deployment-vllm-multi.yaml.


_RAY, _IGNORED = "vllm-stack-ray", "vllm-stack-ignored"
_MISPLACED = ("tensorParallelSize", "pipelineParallelSize", "maxModelLen", "extraArgs")
"""Fields of vllmConfig that users often write one level too high."""


def vllm_stack_ray(view: Releases) -> Iterator[Finding]:
    """A model on Ray has one stage per node, with its tensor group in that node: TP = requestGPU.

    There are replicaCount + 1 nodes: replicaCount counts the Ray workers, not the model's copies.
    TP equals requestGPU of the workers and of the head, PP the nodes. With the same number of ranks
    but other sizes vLLM starts, but tensor groups exchange data between nodes.
    world-size-equals-gpus reports a wrong number of ranks.

    Pass: tensorParallelSize 2, pipelineParallelSize 2, replicaCount 1, requestGPU 2 twice.
    Fail: tensorParallelSize 4, pipelineParallelSize 1 on the same 2 nodes of 2 GPUs.
    Level: advisory.
    Source: vllm-project/production-stack tutorials/15-basic-pipeline-parallel.md.
    """
    for release in view.releases:
        if isinstance(release.models, Unknown):
            yield not_checked(release.path, release.models)
    for model in _models(view):
        yield from _nodes(model)


@part_of_rule
def _nodes(model: Model) -> Iterator[Finding]:
    """Report a tensor group that spans nodes, although smaller ones would fill them."""
    if known(model.ray, f"{model.path}.raySpec") is not True:
        return
    tensor, stages = (
        _size_of(model.config.get(key, 1)) for key in ("tensorParallelSize", "pipelineParallelSize")
    )
    gpus, head = _size_of(model.fields.get("requestGPU")), _size_of(model.head.get("requestGPU"))
    workers = _size_of(model.fields.get("replicaCount", 0))
    require_known(f"{model.path}.vllmConfig", tensor, stages, gpus, head, workers)
    if not (isinstance(tensor, int) and isinstance(stages, int) and isinstance(workers, int)):
        return
    nodes = workers + 1
    same = isinstance(gpus, int) and gpus == head and tensor * stages == nodes * gpus
    if same and tensor != gpus:
        seen = f"is tensorParallelSize {tensor} × pipelineParallelSize {stages} on replicaCount "
        seen += f"{workers} + 1 = {count_of(nodes, 'node')} of {count_of(gpus, 'GPU')}, "
        seen += "so tensor groups span nodes"
        at, said = f"{model.path}.vllmConfig", "write tensorParallelSize: "
        sizes = {"tensorParallelSize": gpus, "pipelineParallelSize": nodes}
        remedy = together(
            *(write(size, at=f"{at}.{name}") for name, size in sizes.items()),
            text=f"{said}{gpus} and pipelineParallelSize: {nodes}",
        )
        yield advise(f"{model.path}.vllmConfig", seen, remedy, _RAY)


def vllm_stack_ignored(view: Releases) -> Iterator[Finding]:
    """Sizes are where the chart reads them: in vllmConfig, and pipelines only with raySpec.

    Without raySpec.enabled (before 0.1.11 of the chart: without raySpec) a model is a Deployment,
    whose command gets no pipelineParallelSize. Sizes next to vllmConfig are not read.

    Pass: pipelineParallelSize 2 with raySpec.enabled; tensorParallelSize 4 in vllmConfig.
    Fail: pipelineParallelSize 2 without raySpec; tensorParallelSize 4 next to vllmConfig.
    Level: advisory.
    Source: vllm-project/production-stack helm/templates/deployment-vllm-multi.yaml.
    """
    for model in _models(view):
        yield from _misplaced(model)


@part_of_rule
def _misplaced(model: Model) -> Iterator[Finding]:
    """Report sizes that the chart does not read at their place."""
    for key in _MISPLACED:
        if key in model.fields and model.fields[key] is not None:
            at = f"{model.path}.{key}"
            seen = "is next to vllmConfig, where the chart does not read it"
            moved = write(model.fields[key], at=f"{model.path}.vllmConfig.{key}")
            remedy: str = together(moved, remove(), text=f"move it to vllmConfig.{key}")
            yield advise(at, seen, remedy, _IGNORED)
    at, given = (
        f"{model.path}.vllmConfig.pipelineParallelSize",
        model.config.get("pipelineParallelSize"),
    )
    stages, ray = _size_of(given), model.ray
    if given is None or stages == 1 or ray is True:
        return
    enabled = model.fields.get("enabled")
    require_known(at, stages, ray, enabled, model.fields.get("vllmConfig"))
    seen = f"is {display(given)}, but without {model.switch} the model is a Deployment, and the "
    remedy = f"set {model.switch} with a headNode, or remove it"
    yield advise(
        at, f"{seen}chart does not pass it to vLLM: the engine has 1 stage", remedy, _IGNORED
    )


def _models(view: Releases) -> Iterator[Model]:
    for release in view.releases:
        yield from release.models if isinstance(release.models, tuple) else ()


def _size_of(value: object) -> MaybeInt | None:
    """Read a size, which may be a number or a string of digits."""
    return whole(number_of(value))


def number_of(value: object) -> object:
    """Return the number in a string of digits, which templates write without quotes."""
    if isinstance(value, str) and len(value) < len(str(2**63)) and value.strip().isdecimal():
        return int(value)
    return value
