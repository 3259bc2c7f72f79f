"""llmaz: its Service, read as the LeaderWorkerSet that it creates, and its Playground, as flags.

Source: InftyAI/llmaz v0.1.4 api/inference/v1alpha1/{service,playground,config}_types.go,
pkg/controller_helper/modelsource.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.pod import DeviceFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.facts.workload import MOUNTED, SHARED_MEMORY, read_single, relocated
from kthena_components.core.objects.engine_containers import Sketch
from kthena_components.core.objects.object import Object, PodSet, pod_set
from kthena_components.core.objects.retained_fields import kept_pods
from kthena_components.core.plan.controller_variables import LWS_POD_VARIABLES
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import count_or_unknown, inside, mapping, name_of
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems.lws.system import added_fields
from kthena_components.systems.lws.view import LEADER_WORKER_SET, Sets, pods_of_groups, read_sets
from kthena_components.systems.lws.view import facts as facts_of_sets
from kthena_components.systems.system import Kind, Restart, System

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


def pods(view: LlmazService) -> Iterator[PodSet]:
    """Yield the leaders and the workers."""
    for one in pods_of_groups(view.sets):
        yield replace(one, owner=view.object, path=in_service(one.path))


_SERVERS: Mapping[str, tuple[str, ...]] = {
    "vllm": ("python3", "-m", "vllm.entrypoints.openai.api_server"),
    "sglang": ("python3", "-m", "sglang.launch_server"),
    "tgi": ("text-generation-launcher",),
}
"""What the backends of llmaz's chart start. Their own flags are in a BackendRuntime."""
_FLAVORS = Unknown("the flavors of its OpenModel say which GPUs its pods get")
_RUNTIME = Unknown("further flags are in the BackendRuntime, which is another object")
_OPEN = ("tensor", "pipeline", "data", "model", "max_model_len")
"""Fields of a command that such flags may set."""
_AT = "spec.backendRuntimeConfig"
_PLACES = {"args": f"{_AT}.args", "resources": f"{_AT}.resources", "env": f"{_AT}.envs", "": _AT}


def facts(view: LlmazService) -> ServingFacts:
    """Return the facts of a Service."""
    found = facts_of_sets(view.sets)
    engines = tuple(
        replace(
            engine,
            entry=relocated(engine.entry, in_service),
            worker=engine.worker and relocated(engine.worker, in_service),
        )
        for engine in found.engines
    )
    return replace(found, engines=engines)


def facts_of_playground(view: Playground) -> ServingFacts:
    """Return the facts of a Playground that states flags or GPUs."""
    found, config = view.object, view.config
    resources = mapping(config.get("resources"))
    server = _SERVERS.get(str(config.get("backendName", "vllm")))
    engines: tuple[EngineFacts, ...] = ()
    if server is not None and (config.get("args") or resources):
        container = {
            "name": "model-runner",
            "command": list(server),
            "args": config.get("args"),
            "env": config.get("envs"),
            "resources": config.get("resources"),
            "volumeMounts": [MOUNTED],
        }
        pod = read_single(
            container, _PLACES, found.at, volumes=[SHARED_MEMORY], context=found.context
        )
        if pod.command is not None:
            pod = replace(pod, command=_with_runtime(pod.command))
        if not pod.devices:
            flavors = DeviceFacts(
                path=found.at("spec.modelClaim"),
                container="model-runner",
                resource="accelerators",
                limit=_FLAVORS,
                request=_FLAVORS,
            )
            pod = replace(pod, devices=(flavors,))
        engine = EngineFacts(
            path=found.at("spec"),
            name=name_of(found.body),
            pods=1,
            replicas=count_or_unknown(found.spec.get("replicas"), "replicas", 1),
            entry=pod,
            worker=None,
        )
        engines = (engine,)
    return ServingFacts(path=found.at("spec"), name=name_of(found.body), engines=engines)


def _with_runtime(command: CommandFacts) -> CommandFacts:
    """Return a command that also has the flags of a BackendRuntime, which is another object."""
    unknown: dict[str, Any] = {name: _RUNTIME for name in _OPEN if name not in command.where}
    return replace(command, **unknown)


_IMAGE_ELSEWHERE = "the BackendRuntime chooses it, which is another object"
_BESIDE = "llmaz makes it; --set expose.port=80 writes one"


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
        unsaid={"spec": {"engine.image": _IMAGE_ELSEWHERE}},
        beside={f"Service/{name_of(found.body)}-lb": _BESIDE},
    )


_MADE = "llmaz makes a Service of it and of other objects"


SYSTEM = System(
    name="llmaz",
    title="llmaz",
    kinds=(
        Kind(
            group=GROUP,
            name="Service",
            view=read_service,
            facts=facts,
            pods=pods,
            pod_variables=lambda _: LWS_POD_VARIABLES,
            added_fields=lambda view: added_fields(view.sets),
            sketch=sketch,
            templates=tuple(f"spec.{TEMPLATE}.{part}Template" for part in ("leader", "worker")),
            # The loader of the model: pkg/controller_helper/modelsource/modelsource.go.
            adds_volumes=("model-volume",),
            brings_model=True,
            kept=kept_pods,
            restarts=Restart(paths=rf"spec\.{TEMPLATE}\b", how="group after group restarts"),
        ),
        Kind(
            group=GROUP,
            name="Playground",
            view=read_playground,
            facts=facts_of_playground,
            sketch=sketch_of_playground,
            without={"pods": _MADE, "templates": _MADE, "restarts": _MADE},
        ),
    ),
)
