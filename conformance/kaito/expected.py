"""What KAITO should make of each preset on each sort of nodes, by our own calculation."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from conformance.kaito.cluster import NODES_EACH, SORTS, Sort
from kthena_components.compiler.compile import Compiled, compile_serving
from kthena_components.core.facts.context import Context, gather
from kthena_components.core.findings import SpecError
from kthena_components.core.models import ModelShape
from kthena_components.core.objects.object import read_object
from kthena_components.systems.kaito.estimator import (
    SHORT_NAMES,
    Deployment,
    Sized,
    find_preset,
    size_of,
)
from kthena_components.systems.kaito.inference_config import PORT, config_map
from kthena_components.systems.kaito.limits_preset import IMAGE
from kthena_components.systems.kaito.view import WORKSPACE, read_view

SPACE = "kaito"
TYPES = (
    "Standard_NC24ads_A100_v4",
    "Standard_NC48ads_A100_v4",
    "Standard_ND96isr_H100_v5",
    "Standard_NV36ads_A10_v5",
)
"""Instance types of Azure."""
_MOST_NODES = 3
"""KAITO 0.11 starts no more: pkg/workspace/controllers/workspace_controller.go."""
_LONG = ("deepseek-r1-0528", "llama-3.3-70b-instruct", "llama-3.1-8b-instruct", "phi-4")
"""Presets that are also tried with their longest requests, which may need more nodes."""
_SEVERAL = ("llama-3.3-70b-instruct", "phi-4")
"""Presets of which an InferenceSet of two is tried, too."""
_TEMPLATE = {"spec": {"containers": [{
    "name": "engine", "image": "vllm/vllm-openai:v0.11.0", "command": ["vllm", "serve", "m"],
    "ports": [{"containerPort": 8000}], "resources": {"limits": {"nvidia.com/gpu": "1"}},
}]}}  # fmt: skip
Body = Mapping[str, Any]


class Outcome(StrEnum):
    """What becomes of a Workspace."""

    REJECTED = "rejected: all existing nodes together are too small"
    NOTHING = "no nodes: a GPU has no memory left for weights"
    TOO_MANY = "nodes are calculated, but nothing starts on so many"
    STARTS = "starts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One Workspace or InferenceSet, with what we calculate."""

    name: str
    about: str
    bodies: tuple[Body, ...]
    """What is created: by the backend where it accepts the serving."""
    outcome: Outcome
    gpus: int
    """GPUs of a node."""
    deployment: Deployment | None = None
    """The split of a preset that starts or would start."""
    engines: int = 1
    serving: Compiled | None = None
    """The serving, if the backend wrote the objects."""


def existing() -> Iterator[list[Case]]:
    """Return every short name of a preset, and some variants, on each sort of existing nodes."""
    for number, sort in enumerate(SORTS):
        yield list(_on_sort(sort, f"s{number}"))
    yield [_template(engines) for engines in (1, 2)]


def _on_sort(sort: Sort, prefix: str) -> Iterator[Case]:
    for index, preset in enumerate(SHORT_NAMES):
        name = f"{prefix}-{index}"
        yield _on(sort, preset, name)
        if preset in _LONG:
            yield _on(sort, preset, f"{name}-long", tokens=_longest(preset))
        if preset in _SEVERAL:
            case = _on(sort, preset, f"{name}-two", engines=2)
            if case.serving:
                yield case


def created() -> Iterator[Case]:
    """Return every short name of a preset on nodes that KAITO creates."""
    for number, kind in enumerate(TYPES):
        for index, preset in enumerate(SHORT_NAMES):
            labels = {"apps": f"c{number}-{index}"}
            body = _workspace(f"c{number}-{index}", preset, labels, kind)
            sized = _sized(body)
            yield _raw(body, sized, f"{preset} on {kind}", nodes=None)


def _on(sort: Sort, preset: str, name: str, tokens: int | None = None, engines: int = 1) -> Case:
    config = None if tokens is None else _config(name, tokens)
    body = _workspace(name, preset, sort.labels, config=config)
    sized = _sized(body, config)
    about = f"{preset} on nodes of {sort.gpus} × {sort.product}"
    about += "" if tokens is None else f", requests of {tokens} tokens"
    raw = _raw(body, sized, about, NODES_EACH, config)
    if raw.outcome is not Outcome.STARTS or raw.deployment is None:
        return raw
    args = _args(sort, preset, raw.deployment, tokens)
    try:
        made = compile_serving({**args, "name": name, "replicas": engines})
    except SpecError:
        return raw
    return Case(
        name=f"{name}-serve",
        about=f"{about}, from the backend{'' if engines == 1 else f', {engines} engines'}",
        bodies=tuple(manifest.body for manifest in made.manifests),
        outcome=Outcome.STARTS,
        gpus=sort.gpus,
        deployment=raw.deployment,
        engines=engines,
        serving=made,
    )


def _raw(
    body: Body, sized: Sized, about: str, nodes: int | None, config: Body | None = None
) -> Case:
    made, instance = sized.deployment, sized.instance
    if nodes is not None and sized.files > nodes * instance.total_gib:
        outcome = Outcome.REJECTED
    elif made is None:
        outcome = Outcome.NOTHING
    else:
        outcome = Outcome.TOO_MANY if made.nodes > _MOST_NODES else Outcome.STARTS
    return Case(
        name=body["metadata"]["name"],
        about=about,
        bodies=(body,) if config is None else (config, body),
        outcome=outcome,
        gpus=instance.gpus,
        deployment=made,
    )


def _template(engines: int) -> Case:
    args = {
        "name": f"template-{engines}",
        "namespace": SPACE,
        "backend": "kaito",
        "replicas": engines,
        "roles": [{"name": "serve", "entry_template": _TEMPLATE, "worker_replicas": 0}],
        "scheduler_name": "default-scheduler",
        "expose": {"port": 80, "target_port": 8000},
        "backend_options": {"label_selector": {"team": "chat"}},
    }
    made = compile_serving(args)
    return Case(
        name=f"template-{engines}-serve",
        about=f"a template, {engines} engines",
        bodies=tuple(manifest.body for manifest in made.manifests),
        outcome=Outcome.STARTS,
        gpus=1,
        engines=engines,
        serving=made,
    )


def _args(sort: Sort, preset: str, made: Deployment, tokens: int | None) -> dict[str, Any]:
    engine = {
        "kind": "vllm",
        "image": IMAGE,
        "model": SHORT_NAMES[preset],
        "port": PORT,
        "parallelism": {"tensor": made.tensor, "pipeline": made.pipeline, "data": made.data},
        "extra_args": [] if tokens is None else ["--max-model-len", str(tokens)],
    }
    role = {
        "name": "serve",
        "engine": engine,
        "worker_replicas": made.nodes - 1,
        "resources": {"gpus_per_pod": sort.gpus},
    }
    return {
        "namespace": SPACE,
        "backend": "kaito",
        "roles": [role],
        "scheduler_name": "default-scheduler",
        "expose": {"port": 80},
        "backend_options": {"preset": preset, "label_selector": sort.labels},
    }


def _workspace(
    name: str,
    preset: str,
    labels: Mapping[str, str],
    kind: str | None = None,
    config: Body | None = None,
) -> Body:
    resource: dict[str, Any] = {"labelSelector": {"matchLabels": dict(labels)}}
    if kind is not None:
        resource["instanceType"] = kind
    inference: dict[str, Any] = {"preset": {"name": preset}}
    if config is not None:
        inference["config"] = config["metadata"]["name"]
    return {
        "apiVersion": "kaito.sh/v1beta1",
        "kind": WORKSPACE,
        "metadata": {"name": name, "namespace": SPACE},
        "resource": resource,
        "inference": inference,
    }


def _config(name: str, tokens: int) -> Body:
    return config_map(f"{name}-config", SPACE, {}, f"vllm:\n  max-model-len: {tokens}\n")


def _sized(body: Body, config: Body | None = None) -> Sized:
    context = Context(config_maps=gather([] if config is None else [config]), namespace=SPACE)
    (model,) = read_view(read_object(body, context=context)).models
    found = size_of(model)
    if not isinstance(found, Sized):
        message = f"the size of {model.preset} is not known: {found}"
        raise TypeError(message)
    return found


def _longest(preset: str) -> int:
    shape = find_preset(preset)
    if not isinstance(shape, ModelShape) or shape.context is None:
        message = f"the context of {preset} is not known"
        raise TypeError(message)
    return shape.context
