"""What an engine loads of a checkpoint, and its size. In GiB."""

from kthena_components.core.engines import CommandFacts
from kthena_components.core.memory.copies import without_draft
from kthena_components.core.memory.indexers import with_loaded_indexers
from kthena_components.core.memory.sharding import VLLM
from kthena_components.core.memory.sizes import part_left
from kthena_components.core.models import ModelShape
from kthena_components.core.values.images import Version
from kthena_components.core.values.read import first_unknown
from kthena_components.core.values.unknown import Unknown

_SPECULATIVE = ("speculative", "spec-", "spec_")
"""How the options of speculative decoding begin."""


def loaded_part(command: CommandFacts, shape: ModelShape, release: Version | None) -> ModelShape:
    """Return the shape of the part of a model that an engine loads.

    Args:
        command: The engine's command line.
        shape: The model.
        release: The release of vLLM. None: the newest, or another engine.
    """
    if not has_drafts(command):
        shape = without_draft(shape)
    return with_loaded_indexers(shape, command.engine in VLLM, release)


def has_drafts(command: CommandFacts) -> bool:
    """Return whether an engine loads layers that draft tokens."""
    return any(name.lstrip("-").startswith(_SPECULATIVE) for name in command.options)


def weights_of(
    command: CommandFacts, shape: ModelShape, release: Version | None
) -> float | Unknown:
    """Return the size of the weights in the format that the engine loads."""
    if shape.weights_gib is None:
        return Unknown(f"the table of models has no size of the weights of {shape.name}")
    offloaded, fetched = command.cpu_offload_gib, command.host_offload
    method = command.quantization
    unknown = first_unknown(offloaded, fetched, method)
    if unknown is not None:
        return unknown
    if offloaded or fetched:
        return Unknown("a part of its weights stays in the memory of the host")
    if not isinstance(method, str):
        return shape.weights_gib
    part = part_left(method, shape, release)
    return part if isinstance(part, Unknown) else shape.weights_gib * part
