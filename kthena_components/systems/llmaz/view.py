"""Reads llmaz's Service as the LeaderWorkerSet that it creates, and its Playground as flags.

Source: InftyAI/llmaz v0.1.4 api/inference/v1alpha1/{service,playground,config}_types.go.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from kthena_components.core.objects.object import Object
from kthena_components.core.values.read import inside, mapping
from kthena_components.systems.lws.view import LEADER_WORKER_SET, Sets, read_sets

GROUP = "inference.llmaz.io"
TEMPLATE = "workloadTemplate"
"""Field of a Service's spec that becomes the leaderWorkerTemplate of a LeaderWorkerSet."""
_LWS_TEMPLATE = "leaderWorkerTemplate"


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmazService:
    """A Service."""

    object: Object
    sets: Sets
    """The LeaderWorkerSet that llmaz creates of it, with the paths that it has there."""


def read_service(found: Object) -> LlmazService:
    """Read a Service, whatever the object contains."""
    spec = found.body.get("spec")
    fields = {**mapping(spec), _LWS_TEMPLATE: inside(spec, TEMPLATE)}
    group, kind = LEADER_WORKER_SET
    made = replace(found, group=group, kind=kind, body={**found.body, "spec": fields})
    return LlmazService(object=found, sets=read_sets(made))


def in_service(path: str) -> str:
    """Return the path in a Service for a path in its LeaderWorkerSet."""
    return path.replace(f"spec.{_LWS_TEMPLATE}", f"spec.{TEMPLATE}", 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Playground:
    """A Playground."""

    object: Object
    config: Mapping[str, Any]
    """Its backendRuntimeConfig."""


def read_playground(found: Object) -> Playground:
    """Read a Playground, whatever the object contains."""
    config = inside(found.body.get("spec"), "backendRuntimeConfig")
    return Playground(object=found, config=mapping(config))
