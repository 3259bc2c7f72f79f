"""Servings that the components refuse, emitted all the same: what the pack would see of them."""

from collections.abc import Mapping

from kthena_components.core.plan.build import build_plan
from kthena_components.core.spec.parse import parse_spec
from kthena_components.core.spec.serving_spec import ModelServingSpec
from kthena_components.systems import find_emitter
from tests.policies.objects import Args
from tests.support.specs import ENGINE_RAY, changed


def emitted(args: Mapping[str, object], backend: str = "native") -> list[Args]:
    """Emit a serving without asking whether it is right."""
    plan = build_plan(parse_spec(ModelServingSpec, {**args, "backend": backend}))
    emitter = find_emitter(backend)
    assert emitter is not None
    return [dict(manifest.body) for manifest in emitter.emit(plan)]


def native(**changes: object) -> dict[str, Args]:
    """Emit a serving of one group: PodGroup, entry and workers of a Ray engine, by short names."""
    args = changed(ENGINE_RAY, {"replicas": 1, **changes})
    parts = {"chat-0": "gang", "chat-0-decode-0": "entry", "chat-0-decode-0-w": "workers"}
    return {
        parts[body["metadata"]["name"]]: body
        for body in emitted(args)
        if body["kind"] in {"PodGroup", "StatefulSet"}
    }
