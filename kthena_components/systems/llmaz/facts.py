"""The facts of llmaz's Service and Playground."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.pod import DeviceFacts
from kthena_components.core.facts.relocation import relocated
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.facts.single_container import MOUNTED, SHARED_MEMORY, read_single
from kthena_components.core.values.read import count_or_unknown, mapping, name_of
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems.llmaz.view import LlmazService, Playground, in_service
from kthena_components.systems.lws.facts import facts as facts_of_sets

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
_PLACES = {
    "args": f"{_AT}.args",
    "resources": f"{_AT}.resources",
    "env": f"{_AT}.envs",
    "": _AT,
}


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
