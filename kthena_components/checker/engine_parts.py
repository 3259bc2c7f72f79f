"""Reads the parts of engines whose head and workers are objects of their own."""

from collections.abc import Mapping
from typing import Any

from kthena_components.core.facts.context import NO_CONTEXT, Context
from kthena_components.core.facts.split_engines import EnginePart, Made, read_engine_part
from kthena_components.core.objects.object import POD_GROUP, read_object
from kthena_components.core.values.read import group_kind
from kthena_components.core.values.unknown import total
from kthena_components.systems import find_kind

_OTHERS = frozenset({("leaderworkerset.x-k8s.io", "LeaderWorkerSet"), ("argoproj.io", "Rollout")})
"""Kinds of other systems whose pods may all have one template."""

_GANG, PORTS = "gang-covers-engine", "leader-ports-agree"
COMPARED = frozenset(
    {
        PORTS,
        "leader-worker-same-gpus",
        "leader-worker-same-parallelism",
        "nnodes-equals-group",
        "one-gpu-vendor",
        "pods-joined",
        "ray-cluster-size-equals-group",
        "world-size-equals-gpus",
    }
)
"""The rules that compare the pods of an engine. The others were run for each object."""
HALVES = frozenset({"kv-halves-alike", "kv-halves-parallel"})
"""The rules that compare a prefill and a decode engine."""


def rules_over_parts(body: Mapping[str, Any]) -> frozenset[str]:
    """Return the rules over one object that also check it as a part of an engine, or its gang."""
    if group_kind(body) == POD_GROUP:
        return frozenset({_GANG})
    return COMPARED | HALVES | {_GANG, "pod-ranks"} if read_engine_part_of(body) else frozenset()


def read_engine_part_of(
    body: Mapping[str, Any], path: str = "", context: Context = NO_CONTEXT
) -> EnginePart | None:
    """Read an object with a part of an engine; None for anything else."""
    made = _only_template(body) if group_kind(body) in _OTHERS else None
    return read_engine_part(body, path, context, made)


def _only_template(body: Mapping[str, Any]) -> Made | None:
    kind = find_kind(group_kind(body))
    if kind is None or kind.pods is None:
        return None
    sets = [*kind.pods(kind.view(read_object(body)))]
    if not sets or len({pods.path for pods in sets}) > 1:
        return None
    first = sets[0]
    metadata = {"labels": first.labels, "annotations": first.annotations}
    number = total([pods.count for pods in sets])
    return Made({"metadata": metadata, "spec": first.spec}, first.path, number)
