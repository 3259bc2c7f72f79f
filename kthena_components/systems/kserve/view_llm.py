"""Reads LLMInferenceServices."""

from collections.abc import Mapping
from typing import Any

from kthena_components.core.objects.object import Object
from kthena_components.core.templates import HIDDEN
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import (
    count,
    count_or_unknown,
    first_unknown,
    mapping,
    sequence,
)
from kthena_components.core.values.unknown import MaybeInt, Unknown

_REMAINDER = Unknown("dataLocal does not divide data")


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmWorkload:
    """One workload of an LLMInferenceService: the main one, or prefill."""

    path: str
    fields: Mapping[str, Any]
    parallelism: Mapping[str, Any]
    many: bool
    """Whether it has a worker, and so is a LeaderWorkerSet."""

    def size(self, name: str) -> MaybeInt | None:
        """Return a size as stated; None if it is not stated or not a number."""
        return count(self.parallelism.get(name))

    def states(self, name: str) -> bool:
        """Return whether a size is stated."""
        return self.parallelism.get(name) is not None

    @property
    def is_prefill(self) -> bool:
        """Whether it is the prefill workload."""
        return self.path.endswith("prefill")

    @property
    def replicas(self) -> MaybeInt:
        """Number of engines."""
        return count_or_unknown(plain(self.fields.get("replicas")), "replicas", 1)

    @property
    def pods(self) -> MaybeInt:
        """Pods of one engine, as KServe counts them."""
        data, local = self.size("data"), self.size("dataLocal")
        gap = first_unknown(data, local, self.size("pipeline"))
        if not self.many:
            return 1
        if gap is not None:
            return gap
        if isinstance(data, int) and isinstance(local, int) and local > 0:
            # kserve-llm-parallelism reports a remainder, and which sizes have none.
            return max(data // local, 1) if data % local == 0 else _REMAINDER
        pipeline = self.size("pipeline")
        return pipeline if isinstance(pipeline, int) and pipeline > 0 else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmService:
    """An LLMInferenceService: a main workload, and an optional one for prefill."""

    object: Object
    workloads: tuple[LlmWorkload, ...]

    @property
    def is_based(self) -> bool:
        """Whether it uses bases, which may state missing fields."""
        return bool(sequence(self.object.spec.get("baseRefs")))


def read_llm_service(found: Object) -> LlmService:
    """Read the workloads of an LLMInferenceService."""
    workloads, prefill = [_workload("spec", found.spec)], found.spec.get("prefill")
    if prefill is not None:
        workloads.append(_workload("spec.prefill", mapping(prefill)))
    return LlmService(object=found, workloads=tuple(workloads))


def _workload(path: str, fields: Mapping[str, Any]) -> LlmWorkload:
    return LlmWorkload(
        path=path,
        fields=fields,
        parallelism=mapping(fields.get("parallelism")),
        many=fields.get("worker") is not None,
    )


def plain(value: object) -> object:
    """Replace unknown values by their text in manifests."""
    return HIDDEN if isinstance(value, Unknown) else value
