"""Says once of all objects of a stack that memory was not checked, because nothing names the GPU.

Source: docs/decisions/0051-a-missing-gpu-is-said-by-check.md.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from kthena_components.checker.manifest import read_manifest
from kthena_components.core import naming
from kthena_components.core.facts.context import Context
from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Finding, Level, count_of
from kthena_components.core.hardware import GpuChoice
from kthena_components.core.rules.memory_weights_fraction_offload import memory_unchecked
from kthena_components.core.values.read import mapping

RULE = "memory-weights-fit"
_WAYS = (
    "Name it by resources.gpu of a role, by a node selector of the pods, by kthena-components:gpu "
    "of the stack (pulumi config set kthena-components:gpu h200), or in the policies' file of "
    'levels ("gpu": "h200" in the entries serving-rules and serving-groups)'
)


def memory_unchecked_in(
    bodies: Iterable[Mapping[str, Any]],
    gpus: GpuChoice,
    known: Mapping[int, bool] = MappingProxyType({}),
) -> Iterator[Finding]:
    """Report once that engines were not compared with the memory of their GPUs.

    Args:
        bodies: The objects of a stack.
        gpus: The GPUs of pods whose manifests name none.
        known: What `is_memory_unchecked` returned for some of the objects, by index.
    """
    found: set[str] = set()
    for index, body in enumerate(bodies):
        owner = _owner(body)
        if owner in found:
            continue
        unchecked = known.get(index)
        if unchecked is None:
            unchecked = is_memory_unchecked(read_manifest(body, context=Context(gpus=gpus)))
        if unchecked:
            found.add(owner)
    if found:
        # The engine hands over resources in the order in which they come.
        first, others = min(found), len(found) - 1
        more = f" and {count_of(others, 'other')}" if others else ""
        seen = f"memory of {first}{more} was not checked, because nothing names the GPU"
        yield Finding(path="", seen=seen, remedy=_WAYS, rule=RULE, level=Level.UNKNOWN)


def is_memory_unchecked(facts: ServingFacts | None) -> bool:
    """Return whether an engine was not compared with memory, because nothing names its GPU."""
    return facts is not None and any(memory_unchecked(replace(facts, gpu_option=RULE)))


def _owner(body: Mapping[str, Any]) -> str:
    """Return the serving of an object, or the object."""
    metadata = mapping(body.get("metadata"))
    serving = mapping(metadata.get("labels")).get(naming.NAME)
    name = f"{metadata.get('namespace') or 'default'}/{serving or metadata.get('name')}"
    return f"serving {name}" if serving else f"{body.get('kind')} {name}"
