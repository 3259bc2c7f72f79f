"""The models that Ray Serve starts on a cluster, from a Serve config.

Source: ray-project/ray python/ray/llm/_internal/serve (LLMConfig, build_openai_app); a replica
reserves one GPU for each rank in a placement group.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, TypeGuard

from kthena_components.core.engines import CommandFacts, read_command
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import text_of
from kthena_components.core.values.read import count_or_unknown, mapping, sequence
from kthena_components.core.values.unknown import UNKNOWN_WORD, MaybeInt, Unknown, is_unresolved
from kthena_components.core.values.values_in_text import read_yaml_text

CONFIG = "serveConfigV2"
"""The field of the spec with the Serve config, as text."""
_BUILDERS = "ray.serve.llm"
_ANY_REPLICAS = 100
"""Maximum replicas of `num_replicas: auto`."""
_ARGUMENTS = (
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "data_parallel_size",
    "prefill_context_parallel_size",
    "decode_context_parallel_size",
    "enable_expert_parallel",
    "max_model_len",
    "gpu_memory_utilization",
    "distributed_executor_backend",
)
"""Keys of engine_kwargs that are read, with vLLM's flags."""
_OWN_PLACE = ("placement_group_config", "resources_per_bundle")


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """One model that Ray Serve runs, in one or more replicas."""

    name: str
    command: CommandFacts
    low: MaybeInt
    high: MaybeInt
    keys: tuple[str, ...] = ()
    """The names of its engine_kwargs, if vLLM is its engine."""
    gap: Unknown | None = None
    """Why the GPUs of a replica are unknown."""

    @property
    def ranks(self) -> MaybeInt:
        """GPUs that a replica reserves."""
        return self.gap or self.command.world


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserved:
    """What one replica of a deployment reserves, as the config itself states it."""

    name: str
    actor: float | None = None
    """GPUs of its actor, `ray_actor_options.num_gpus`. None: not stated."""
    bundles: tuple[float, ...] = ()
    """GPUs of each bundle of its placement group."""
    together: bool = False
    """Whether all bundles are on one node: STRICT_PACK."""


def read_reserved(text: object) -> tuple[Reserved, ...]:
    """Read what the deployments of a Serve config reserve, whatever program defines them.

    Source: ray python/ray/serve/schema.py DeploymentSchema; bundles take the place of the actor's
    own resources.
    """
    config = read_yaml_text(text, CONFIG)
    if isinstance(config, Unknown):
        return ()
    applications = map(mapping, sequence(mapping(config).get("applications")))
    stated = (item for one in applications for item in sequence(one.get("deployments")))
    return tuple(map(_reserved, filter(_starts, map(mapping, stated))))


def _starts(deployment: Mapping[str, Any]) -> bool:
    """Return whether a deployment surely has a replica at some time."""
    _, high = _replicas(deployment)
    return isinstance(high, int) and high > 0 and isinstance(deployment.get("name"), str)


def _reserved(deployment: Mapping[str, Any]) -> Reserved:
    """Read what a replica of a deployment reserves: GPUs of its actor, or of its bundles."""
    options = mapping(deployment.get("ray_actor_options"))
    bundles = [
        mapping(item).get("GPU") for item in sequence(deployment.get("placement_group_bundles"))
    ]
    amounts = [one for one in bundles if _is_amount(one)]
    actor = options.get("num_gpus")
    return Reserved(
        name=text_of(deployment.get("name")),
        actor=float(actor) if _is_amount(actor) and not bundles else None,
        bundles=tuple(map(float, amounts)),
        together=deployment.get("placement_group_strategy") == "STRICT_PACK",
    )


def _is_amount(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def read_served(text: object) -> tuple[Served, ...] | Unknown:
    """Read the models of a Serve config that uses one of Ray's own builders."""
    config = read_yaml_text(text, CONFIG)
    if isinstance(config, Unknown):
        return config
    found: list[Served] = []
    for application in map(mapping, sequence(mapping(config).get("applications"))):
        builder = application.get("import_path")
        if isinstance(builder, str) and builder.startswith(_BUILDERS):
            found += [_served(mapping(item)) for item in _configs(application.get("args"))]
    return tuple(found)


def _configs(args: object) -> Iterator[object]:
    held = mapping(args)
    yield from sequence(held.get("llm_configs"))
    for key in ("llm_config", "prefill_config", "decode_config"):
        if held.get(key) is not None:
            yield held[key]


def _served(config: Mapping[str, Any]) -> Served:
    """Read one model of Ray Serve LLM: its command, replicas, and what is not known."""
    model = mapping(config.get("model_loading_config"))
    names = [v for v in (model.get("model_id"), model.get("model_source")) if isinstance(v, str)]
    deployment = mapping(config.get("deployment_config"))
    low, high = _replicas(deployment)
    own = next((key for key in _OWN_PLACE if config.get(key) is not None), None)
    gap = Unknown(f"{own} decides what a replica reserves") if own else None
    if not config:
        gap = Unknown("the model's config is in another file")
    arguments = config.get("engine_kwargs")
    command = read_command(_argv(arguments, names[-1:]), {}) or CommandFacts(engine="vllm")
    unread = dict(_unread(arguments, names))
    return Served(
        name=names[0] if names and not is_unresolved(names[0]) else "?",
        command=replace(command, options=MappingProxyType({**command.options, **unread})),
        low=low,
        high=high,
        keys=tuple(_keys(config)),
        gap=gap,
    )


def _keys(config: Mapping[str, Any]) -> Iterator[str]:
    if config.get("llm_engine") in (None, "vLLM"):
        for key in mapping(config.get("engine_kwargs")):
            if key not in (None, "") and not is_unresolved(key):
                yield str(key)


def _unread(arguments: object, names: list[str]) -> Iterator[tuple[str, Any]]:
    """Yield the options that no rule reads, and the name that the model is served by."""
    for key, value in mapping(arguments).items():
        if key not in _ARGUMENTS and value is not None:
            yield f"--{str(key).replace('_', '-')}", value
    if len(names) > 1:
        yield "--served-model-name", (names[0],)


def _argv(arguments: object, model: list[str]) -> list[str]:
    """Write engine_kwargs as words of `vllm serve`, which the common reader takes."""
    given = {"distributed_executor_backend": "ray", **mapping(arguments)}
    words = ["vllm", "serve", *([text_of(model[0])] if model else [])]
    for key in _ARGUMENTS:
        value = given.get(key)
        if value is True:
            words.append(f"--{key.replace('_', '-')}")
        elif isinstance(value, str | int | float) and value is not False:
            words += [f"--{key.replace('_', '-')}", text_of(value)]
    return [*words, UNKNOWN_WORD, UNKNOWN_WORD] if is_unresolved(arguments) else words


def _replicas(deployment: Mapping[str, Any]) -> tuple[MaybeInt, MaybeInt]:
    """Read the least and the most replicas of a deployment."""
    number, scaling = deployment.get("num_replicas"), deployment.get("autoscaling_config")
    if number == "auto":
        number, scaling = None, {"max_replicas": _ANY_REPLICAS, **mapping(scaling)}
    if isinstance(scaling, Mapping):
        low = count_or_unknown(scaling.get("min_replicas"), "min_replicas", 1)
        high = count_or_unknown(scaling.get("max_replicas"), "max_replicas", 1)
        return low, high
    count = count_or_unknown(number, "num_replicas", 1)
    return count, count
