"""Remedies that rules about engines share, and the fields that their options belong to.

A rule names an option. Where the command line has no words, as for a component, the option is a
field: `placed` finds it.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

from kthena_components.core.engines import CommandFacts
from kthena_components.core.engines.facts import OPTIONS_BY_FIELD, set_size
from kthena_components.core.facts.pod import DeviceFacts, PodFacts
from kthena_components.core.facts.serving import EngineFacts, starts_later_copies
from kthena_components.core.findings import Finding, count_of
from kthena_components.core.memory.engine import EngineOnGpu, engine_on_gpu
from kthena_components.core.memory.sharding import Sharding, fits, is_whole, model_shape
from kthena_components.core.models.config import ModelShape
from kthena_components.core.remedies import Change, Remedy, either, mapped, remove, together, write
from kthena_components.core.rules.fp8_blocks_and_quantization_groups import breaks_blocks
from kthena_components.core.values.regex import regex

_WORDS = (".args", ".command", ".extra_args")
"""Ends of the paths of command lines."""
_COUNTED = "gpus_per_pod"
_CONTAINER = regex(r"containers\[\d+\]\.resources$")
_FIELDS = frozenset({"tensor", "pipeline", "data"})
_SIZES: Mapping[str, str] = {
    option: field
    for options in OPTIONS_BY_FIELD.values()
    for field, option in options.items()
    if field in _FIELDS
}
"""The fields of `parallelism` by the options that state the same."""


def give_gpus(engine: EngineFacts, number: int, text: str) -> Remedy:
    """Give each pod of an engine a number of GPUs, if each pod has GPUs of one kind."""
    pods = [engine.entry, *([engine.worker] if engine.worker is not None else [])]
    return together(*(gpus_of_pod(pod, number) for pod in pods), text=text)


def gpus_of_pod(pod: PodFacts, number: int, text: str = "") -> Remedy:
    """Give one pod a number of GPUs. Without a fix if it is not clear which field that is."""
    if pod.gpus_path.endswith(_COUNTED):
        return write(number, text, at=pod.gpus_path)
    if len(pod.devices) != 1:
        return Remedy(text)
    return devices(pod.devices[0], number, text)


def devices(device: DeviceFacts, number: int, text: str = "") -> Remedy:
    """Write a number into the limits and the requests of the container that has a device."""
    if not _CONTAINER.search(device.path) or "/" not in device.resource:
        return Remedy(text)
    parts = (f"{device.path}.{part}.{device.resource}" for part in ("limits", "requests"))
    return together(*(write(str(number), at=path) for path in parts), text=text)


def is_of_component(engine: EngineFacts) -> bool:
    """Return whether an engine is written as the arguments of a component."""
    return engine.entry.gpus_path.endswith(_COUNTED)


def give_pods(engine: EngineFacts, number: int) -> Remedy:
    """Give an engine a number of pods. Without a fix if no field of a component states it."""
    text = f"give the engine {count_of(number, 'pod')}"
    if not is_of_component(engine):
        return Remedy(text)
    field, workers = "worker_replicas", number - 1
    at = f"{engine.path}.{field}" if engine.path else field
    return write(workers, f"{text} ({field}: {workers})", at=at)


def placed(finding: Finding) -> Finding:
    """Return a finding whose fixes change fields where there is no command line."""
    if not any(change.option for fix in finding.fixes for change in fix):
        return finding
    return replace(finding, remedy=mapped(finding.remedy, lambda each: _at(each, finding.path)))


def _at(change: Change, usual: str) -> Change | None:
    """Place a change where the user wrote the option: command, extra_args, size or config key.

    None if the field cannot hold the change.
    """
    path = usual if change.path is None else change.path
    if not change.option or path.endswith(_WORDS):
        return change
    holder, _, last = path.rpartition(".")
    field = _SIZES.get(change.option)
    if last == "parallelism":
        if field is not None and not change.name:
            return Change(path=f"{path}.{field}", value=change.value)
        own = holder.endswith("engine")
        return replace(change, path=f"{holder}.extra_args") if own and field is None else None
    if last == "config" and not change.name:
        value = "" if change.value is True else change.value
        return Change(path=f"{path}.{change.option.removeprefix('--')}", value=value)
    return None


# What makes the ranks of an engine equal its GPUs.


def gpu_remedy(engine: EngineFacts, command: CommandFacts, ranks: int, held: int) -> Remedy:
    """Return the smallest changes that make both sides equal and that no other rule reports."""
    sizes, gpus, pods = dict(sizes_of(command)), engine.entry.gpus, engine.pods
    if not (isinstance(gpus, int) and isinstance(pods, int)) or ranks < 1 or pods < 1:
        return Remedy(_ANY_WAY)
    ways: list[str] = []
    apart: list[str] = []
    # If pods that nothing connects share a copy already, executor-stated reports that.
    torn = _is_torn(engine, command, sizes, gpus)
    # Within a pod prefer tensor, between pods pipeline: the usual way to split an engine.
    for word, size in sizes.items() if pods == 1 else reversed(sizes.items()):
        wanted, rest = divmod(held, ranks // size)
        changed = {**sizes, word: wanted}
        if word == "pipeline" and engine.one_stage:
            continue
        local = command.data_local  # the pods follow from the copies in each
        if word == "data" and local and not (isinstance(local, int) and wanted == pods * local):
            continue
        fits_model = _suits(engine, command, changed)
        if wanted and not rest and fits_model and _fits(command, changed, gpus, pods):
            spans = not torn and _is_torn(engine, command, changed, gpus)
            (apart if spans else ways).append(
                set_size(command, _FIELD.get(word, word), wanted, f"set {word} to {wanted}")
            )
    alike = 0 < held == gpus * pods and command.data_mode == "internal"
    alike = alike and not starts_later_copies(command)
    alike = alike and command.engine != _ONE_POD
    # With sizes that another rule refuses, other GPUs do not help.
    if not ways or _suits(engine, command, sizes):
        ways += _other_gpus(engine, command, ranks, alike=alike, torn=torn)
    if not ways and alike and set(sizes) == {"tensor", "pipeline"}:
        spans = not torn and _is_torn(engine, command, {"tensor": gpus, "pipeline": pods}, gpus)
        (apart if spans else ways).append(_whole_nodes(engine, command, gpus, pods))
    if apart:
        joined = f"connect the pods with {_connecting(command, pods)}, and {' or '.join(apart)}"
        return either(either(*ways), joined, word="; or ")
    return either(*ways) if ways else Remedy(_ANY_WAY)


def _whole_nodes(engine: EngineFacts, command: CommandFacts, gpus: int, pods: int) -> Remedy:
    """Set both sizes: the largest tensor size that fills pods and suits the model."""
    tried = (gpus, *range(min(gpus - 1, _MOST_TENSOR), 0, -1))
    whole = (size for size in tried if gpus % size == 0)
    pairs = ({"tensor": size, "pipeline": gpus // size * pods} for size in whole)
    suited = (pair for pair in pairs if _suits(engine, command, pair))
    wanted = next(suited, {"tensor": gpus, "pipeline": pods})
    text = " and ".join(f"{size} to {number}" for size, number in wanted.items())
    both = (set_size(command, size, number) for size, number in wanted.items())
    return together(*both, text=f"set {text}")


def _other_gpus(
    engine: EngineFacts, command: CommandFacts, ranks: int, *, alike: bool, torn: bool
) -> Iterator[str]:
    """Return the changes of pods and GPUs that make both sides equal, with the same sizes."""
    sizes, gpus, pods = dict(sizes_of(command)), engine.entry.gpus, engine.pods
    if not (isinstance(gpus, int) and isinstance(pods, int)):
        return
    each, more = ranks // pods, None
    if alike and ranks % gpus == 0 and _fits(command, sizes, gpus, ranks // gpus):
        more = _more_pods(engine, command, ranks // gpus, torn=torn)
    if more is not None:
        yield more
        if each > _MOST_A_NODE:
            return
    spans = not torn and _is_torn(engine, command, sizes, each)
    if ranks % pods == 0 and _fits(command, sizes, each, pods) and not spans:
        yield give_gpus(engine, each, f"give each pod {count_of(each, 'GPU')}")


def _more_pods(
    engine: EngineFacts, command: CommandFacts, wanted: int, *, torn: bool
) -> Remedy | None:
    """Give an engine more pods. None if nothing connects them, and a node may have enough GPUs."""
    gpus, at = engine.entry.gpus, engine.counted_by
    if at and wanted > 1:
        return write(wanted, f"write {at}.nodeCount: {wanted}", at=f"{at}.nodeCount")
    if at:
        return remove(f"remove {at}", at=at)
    more, made = give_pods(engine, wanted), replace(engine, pods=wanted)
    if not isinstance(gpus, int):
        return None
    alone = not torn and _is_torn(made, command, dict(sizes_of(command)), gpus)
    if not alone or more.fixes:  # components connect the pods themselves
        return more
    if gpus * wanted <= _MOST_A_NODE:
        return None
    return Remedy(f"{more} and connect them with {_connecting(command, wanted)}")


def _suits(engine: EngineFacts, command: CommandFacts, sizes: Mapping[str, int]) -> bool:
    """Return whether the model can be split into these sizes, if its shape is known.

    If the GPU is known as well, its weights fit into it.
    """
    shape = model_shape(command, engine.entry.shape)
    if not isinstance(shape, ModelShape):
        return True
    made = replace(
        command,
        tensor=sizes.get("tensor", command.tensor),
        pipeline=sizes.get("pipeline", command.pipeline),
        data=sizes.get("data", command.data),
    )
    split = Sharding(engine, made, shape)
    placed = engine_on_gpu(replace(engine, entry=replace(engine.entry, command=made)))
    if isinstance(placed, EngineOnGpu) and placed.weights > placed.budget:
        return False
    return fits(split) and sizes.get("pipeline", 1) <= shape.layers and not breaks_blocks(split)


def _is_torn(
    engine: EngineFacts, command: CommandFacts, sizes: Mapping[str, int], gpus: int
) -> bool:
    """Return whether a copy of these sizes spans pods that nothing in the command connects."""
    if engine.pods == 1 or engine.counted_by or command.hidden is not None:
        return False
    if command.engine not in _CONNECTED_BY:
        return False
    alone = command.nnodes in {None, 1} and command.executor is None and command.ray_role is None
    copy = math.prod(size for word, size in sizes.items() if word != "data")
    return alone and command.data_backend != "ray" and copy > gpus


def _connecting(command: CommandFacts, pods: int) -> str:
    return f"--nnodes {pods}, --node-rank and {_CONNECTED_BY[str(command.engine)]}"


_CONNECTED_BY = {"vllm": "--master-addr", "sglang": "--dist-init-addr"}
"""Engines that connect their pods by options, and the option with the first pod's address."""
_ONE_POD = "tgi"
"""The engine that cannot be spread over pods (text-generation-inference launcher/src/main.rs)."""
_ONE_STAGE = frozenset({_ONE_POD, "lmdeploy"})
"""Engines that have no pipelines."""
_FIELD = {"context": "prefill_context"}
"""Fields of CommandFacts with another name in messages."""
_ANY_WAY = "change the parallelism or the GPUs"
_MOST_A_NODE = 8
"""GPUs of most nodes: pods that need more are better split."""
_MOST_TENSOR = 64
"""Larger sizes are not tried: a manifest may request any number of GPUs."""


def _fits(command: CommandFacts, sizes: Mapping[str, int], gpus: int, pods: int) -> bool:
    """Return whether an engine of these sizes fits on pods with so many GPUs.

    vLLM distributes copies of a model evenly over pods, each within one; SGLang keeps them all in
    one pod.
    """
    data = sizes.get("data", 1)
    even = command.engine != "sglang" and data % pods == 0
    spread = data == 1 or pods == 1 or even
    return spread and gpus > 0 and is_whole(sizes["tensor"], gpus, pods)


def sizes_of(command: CommandFacts) -> list[tuple[str, int]]:
    """Return the sizes whose product is the number of ranks, with their names in messages."""
    sizes = [("tensor", command.tensor), ("pipeline", command.pipeline)]
    if command.data_mode == "internal" and not starts_later_copies(command):
        sizes.append(("data", command.data))
    sizes.append(("context", command.prefill_context))
    return [
        (word, size)
        for word, size in sizes
        if isinstance(size, int) and (size != 1 or word in _always(command))
    ]


def _always(command: CommandFacts) -> frozenset[str]:
    """Return the sizes that a message names even if they are 1: those that the engine has."""
    return frozenset({"tensor"} if command.engine in _ONE_STAGE else {"tensor", "pipeline"})
