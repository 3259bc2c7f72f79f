"""Whether a Ray cluster holds the replicas of the models that Ray Serve starts on it.

Source: ray-project/ray python/ray/llm/_internal/serve (LLMConfig, build_openai_app); a replica
reserves one GPU for each rank in a placement group.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kthena_components.core.engines import CommandFacts, read_command
from kthena_components.core.findings import Finding, Level, count_of, not_checked
from kthena_components.core.values.display import text_of
from kthena_components.core.values.read import as_count, as_list, as_map, first_unknown
from kthena_components.core.values.unknown import (
    OUTPUT_CLOSE,
    OUTPUT_OPEN,
    MaybeInt,
    Unknown,
    is_unresolved,
)
from kthena_components.systems.ray.view import Cluster, pods_text

_RULE = "ray-serve-gpus"
_BUILDERS = "ray.serve.llm"
_ANY_REPLICAS = 100
"""Replicas that `num_replicas: auto` may reach."""
_LATE = f"{OUTPUT_OPEN}0{OUTPUT_CLOSE}"
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
"""Of engine_kwargs, what is a flag of vLLM that counts here."""
_OWN_PLACE = ("placement_group_config", "resources_per_bundle")


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """One model that Ray Serve runs, in one or more replicas."""

    name: str
    command: CommandFacts
    low: MaybeInt
    high: MaybeInt
    gap: Unknown | None = None
    """Why it is not known what a replica reserves."""

    @property
    def ranks(self) -> MaybeInt:
        """GPUs that a replica reserves."""
        return self.gap or self.command.world


def read_served(config: object) -> list[Served]:
    """Read the models of a Serve config that one of Ray's own builders starts."""
    found: list[Served] = []
    for application in map(as_map, as_list(as_map(config).get("applications"))):
        builder = application.get("import_path")
        if isinstance(builder, str) and builder.startswith(_BUILDERS):
            found += [_served(as_map(item)) for item in _configs(application.get("args"))]
    return found


def _configs(args: object) -> Iterator[object]:
    held = as_map(args)
    yield from as_list(held.get("llm_configs"))
    for key in ("llm_config", "prefill_config", "decode_config"):
        if held.get(key) is not None:
            yield held[key]


def _served(config: Mapping[str, Any]) -> Served:
    model = as_map(config.get("model_loading_config"))
    names = [v for v in (model.get("model_id"), model.get("model_source")) if isinstance(v, str)]
    deployment = as_map(config.get("deployment_config"))
    low, high = _replicas(deployment)
    own = next((key for key in _OWN_PLACE if config.get(key) is not None), None)
    gap = Unknown(f"{own} says what a replica reserves") if own else None
    if not config:
        gap = Unknown("the model's config is in another file")
    command = read_command(_argv(config.get("engine_kwargs"), names[-1:]), {})
    return Served(
        name=names[0] if names and not is_unresolved(names[0]) else "?",
        command=command or CommandFacts(engine="vllm"),
        low=low,
        high=high,
        gap=gap,
    )


def _argv(arguments: object, model: list[str]) -> list[str]:
    given = {"distributed_executor_backend": "ray", **as_map(arguments)}
    words = ["vllm", "serve", *([text_of(model[0])] if model else [])]
    for key in _ARGUMENTS:
        value = given.get(key)
        if value is True:
            words.append(f"--{key.replace('_', '-')}")
        elif isinstance(value, str | int | float) and value is not False:
            words += [f"--{key.replace('_', '-')}", text_of(value)]
    return [*words, _LATE, _LATE] if is_unresolved(arguments) else words


def _replicas(deployment: Mapping[str, Any]) -> tuple[MaybeInt, MaybeInt]:
    number, scaling = deployment.get("num_replicas"), deployment.get("autoscaling_config")
    if number == "auto":
        number, scaling = None, {"max_replicas": _ANY_REPLICAS, **as_map(scaling)}
    if isinstance(scaling, Mapping):
        low = as_count(scaling.get("min_replicas"), "min_replicas", 1)
        high = as_count(scaling.get("max_replicas"), "max_replicas", 1)
        return low, high
    count = as_count(number, "num_replicas", 1)
    return count, count


def ray_serve_gpus(cluster: Cluster, served: list[Served], path: str) -> Iterator[Finding]:
    """The GPUs of a RayService's cluster hold all replicas of its models: replicas × TP × PP.

    Replicas that find no GPUs wait for ever, and the service never becomes healthy. Where neither
    side scales by itself, GPUs beyond the replicas stay idle. Models that a program of one's own
    starts are not judged.

    Pass: 1 replica of tensor 8 × pipeline 2 on 2 workers of 8 GPUs; 1 to 4 replicas of tensor 1
    on 4 GPUs.
    Fail: tensor 8 × pipeline 3 on 2 workers of 8 GPUs; 2 replicas of tensor 4 on 16 GPUs, of
    which 8 stay idle (advisory).
    Level: mandatory; advisory where GPUs stay idle.
    Source: ray-project/ray python/ray/llm/_internal/serve; ray-project/kuberay
    ray-operator/config/samples/ray-service.deepseek.yaml; kserve/kserve#4946.
    """
    least, most = cluster.total(most=False), cluster.total(most=True)
    values = [value for one in served for value in (one.ranks, one.low, one.high)]
    if gap := first_unknown(*values, least, most):
        yield not_checked(path, gap, _RULE)
        return
    if not (isinstance(least, int) and isinstance(most, int)):
        return
    low = sum(_times(one.ranks, one.low) for one in served)
    high = sum(_times(one.ranks, one.high) for one in served)
    if most == 0 and all(one.ranks == 1 for one in served):
        return  # Engines on CPUs.
    if low > most:
        yield _too_few(cluster, served, path, low, most)
    elif high < least:
        yield Finding(
            path=path,
            seen=f"starts {_shown(served)} = {count_of(high, 'rank')}, but the cluster holds "
            f"{count_of(least, 'GPU')} at least, and {least - high} of them stay idle",
            remedy=f"add replicas, or give the worker groups {high} GPUs",
            rule=_RULE,
            level=Level.ADVISORY,
        )


def _too_few(cluster: Cluster, served: list[Served], path: str, low: int, most: int) -> Finding:
    held = ", ".join(pods_text(group) for group in cluster.with_gpus)
    has = f"{count_of(most, 'GPU')}{f' ({held})' if held else ''}"
    return Finding(
        path=path,
        seen=f"starts {_shown(served)} = {count_of(low, 'rank')}, but the cluster holds at "
        f"most {has}, and Ray waits for the others for ever",
        remedy=f"lower the parallelism or the replicas to {most} ranks, or give the worker "
        f"groups {low} GPUs",
        rule=_RULE,
    )


def _times(ranks: MaybeInt, replicas: MaybeInt) -> int:
    return ranks * replicas if isinstance(ranks, int) and isinstance(replicas, int) else 0


def _shown(served: list[Served]) -> str:
    return " + ".join(_one(one) for one in served)


def _one(one: Served) -> str:
    command = one.command
    data = f" × data {command.data}" if command.data != 1 else ""
    sizes = f"tensor {command.tensor} × pipeline {command.pipeline}{data}"
    return f"{count_of(one.low, 'replica')} of {sizes}"
