"""The engines of llmaz's Service and Playground for `convert`.

Source: InftyAI/llmaz v0.1.4 api/inference/v1alpha1, pkg/controller_helper/modelsource.
"""

from collections.abc import Iterator
from dataclasses import replace

from kthena_components.core.objects.engine_sketch import Sketch
from kthena_components.core.objects.object import PodSet, pod_set
from kthena_components.core.values.read import count_or_unknown, name_of
from kthena_components.systems.llmaz.view import LlmazService, Playground, in_service
from kthena_components.systems.lws.pods import pods_of_groups

_RUNTIME = "the BackendRuntime chooses it, which is another object"
_BESIDE = "llmaz makes it; --set expose.port=80 writes one"


def pods(view: LlmazService) -> Iterator[PodSet]:
    """Yield the leaders and the workers."""
    for one in pods_of_groups(view.sets):
        yield replace(one, owner=view.object, path=in_service(one.path))


def sketch(view: LlmazService) -> Sketch:
    """Return the engine of a Service, without the containers that load models."""
    name = name_of(view.object.body)
    return Sketch(sets=tuple(pods(view)), beside={f"Service/{name}-lb": _BESIDE})


def sketch_of_playground(view: Playground) -> Sketch:
    """Return the engine of a Playground, whose image and model are in other objects."""
    found, config = view.object, view.config
    fields = {"env": config.get("envs"), "resources": config.get("resources")}
    made = {key: item for key, item in fields.items() if item is not None}
    template = {"spec": {"containers": [{"name": "model-runner", **made}]}}
    number = count_or_unknown(found.spec.get("replicas"), "replicas", 1)
    return Sketch(
        sets=(pod_set(found, "spec", template, number),),
        unsaid={"spec": {"engine.image": _RUNTIME}},
        beside={f"Service/{name_of(found.body)}-lb": _BESIDE},
    )
