"""KubeRay's rules about Ray Serve: its replicas' GPUs and placement, and the options of engines."""

from collections.abc import Iterator
from functools import cache, wraps

from kthena_components.core.engines.option_table import load, rows_of
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.facts.workload import fill_requests
from kthena_components.core.findings import (
    Finding,
    Level,
    count_of,
    nearest,
    not_checked,
    part_of_rule,
)
from kthena_components.core.rules.gpu_requests_vendor_visible import gpu_requests_equal_limits
from kthena_components.core.values.display import display
from kthena_components.core.values.images import Version, parse_version, read_image
from kthena_components.core.values.read import mapping, require_known
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import (
    MaybeInt,
    Unknown,
    is_unresolved,
    known,
    known_product,
)
from kthena_components.systems.ray.facts import facts
from kthena_components.systems.ray.rules.worker_groups_gpus_params_head import counted_in_pod
from kthena_components.systems.ray.serve_config import CONFIG, Reserved, Served, read_reserved
from kthena_components.systems.ray.view import Cluster, Group, RayView, pods_text

_AT = f"spec.{CONFIG}"
_PROGRAM = Unknown("a custom program starts the models, not ray.serve.llm")


def ray_serve_gpus(view: RayView) -> Iterator[Finding]:
    """A RayService's cluster has GPUs for all replicas of its models: replicas × TP × PP.

    Replicas without GPUs wait forever, and the service never becomes healthy. If neither side
    scales, additional GPUs stay idle. Models that a custom program starts are not checked.

    Pass: 1 replica of tensor 8 × pipeline 2 on 2 workers of 8 GPUs; 1 to 4 replicas of tensor 1
    on 4 GPUs.
    Fail: tensor 8 × pipeline 3 on 2 workers of 8 GPUs; 2 replicas of tensor 4 on 16 GPUs, of
    which 8 stay idle (advisory).
    Level: mandatory; advisory if GPUs stay idle.
    Source: ray-project/ray python/ray/llm/_internal/serve; ray-project/kuberay
    ray-operator/config/samples/ray-service.deepseek.yaml; kserve/kserve#4946.
    """
    cluster, served = view.cluster, view.served
    if cluster is None:
        return
    served = known(served, _AT)
    if served:
        yield from _fit(cluster, served)
    elif view.object.kind == "RayService" and cluster.with_gpus:
        yield not_checked(_AT, _PROGRAM)


@part_of_rule
def _fit(cluster: Cluster, served: tuple[Served, ...]) -> Iterator[Finding]:
    """Compare the ranks of Ray Serve's replicas with the GPUs of the cluster, at least and most."""
    least, most = cluster.total(most=False), cluster.total(most=True)
    values = [value for one in served for value in (one.ranks, one.low, one.high)]
    require_known(_AT, *values, least, most)
    if not (isinstance(least, int) and isinstance(most, int)):
        return
    low = sum(known_product(one.ranks, one.low) for one in served)
    high = sum(known_product(one.ranks, one.high) for one in served)
    if most == 0 and all(one.ranks == 1 for one in served):
        return  # Engines on CPUs.
    if low > most:
        yield _too_few(cluster, served, low, most)
    elif high < least:
        yield Finding(
            path=_AT,
            seen=f"starts {_shown(served)} = {count_of(high, 'rank')}, but the cluster has at "
            f"least {count_of(least, 'GPU')}, and {least - high} of them stay idle",
            remedy=f"add replicas, or give the worker groups {count_of(high, 'GPU')}",
            level=Level.ADVISORY,
        )


def _too_few(cluster: Cluster, served: tuple[Served, ...], low: int, most: int) -> Finding:
    """Write the finding of replicas that need more GPUs than the cluster may have."""
    held = ", ".join(pods_text(group) for group in cluster.with_gpus)
    has = f"{count_of(most, 'GPU')}{f' ({held})' if held else ''}"
    return Finding(
        path=_AT,
        seen=f"starts {_shown(served)} = {count_of(low, 'rank')}, but the cluster has at most "
        f"{has}, and Ray waits for the others forever",
        remedy=f"lower the parallelism or the replicas to {count_of(most, 'rank')}, or "
        "give the worker "
        f"groups {count_of(low, 'GPU')}",
    )


def _shown(served: tuple[Served, ...]) -> str:
    return " + ".join(_one(one) for one in served)


def _one(one: Served) -> str:
    command = one.command
    data = f" × data {command.data}" if command.data != 1 else ""
    sizes = f"tensor {command.tensor} × pipeline {command.pipeline}{data}"
    return f"{count_of(one.low, 'replica')} of {sizes}"


@wraps(gpu_requests_equal_limits)
def gpu_requests_of_groups(view: RayView) -> Iterator[Finding]:  # noqa: D103 - it is the same rule
    apart = tuple(map(_as_engine, _apart(view)))
    yield from gpu_requests_equal_limits(ServingFacts(path="", name="", engines=apart))


def _apart(view: RayView) -> Iterator[Group]:
    """Return the groups whose pods are in no engine."""
    pods = [pod for e in facts(view).engines for pod in (e.entry, e.worker) if pod]
    shown = {(device.path, device.resource) for pod in pods for device in pod.devices}
    for group in view.cluster.groups if view.cluster is not None else ():
        devices = {(view.object.at(d.path), d.resource) for d in group.pod.devices}
        if not devices <= shown:
            yield group


def _as_engine(group: Group) -> EngineFacts:
    """Treat a group as an engine of one pod, for rules about its GPU requests."""
    return EngineFacts(
        path=group.path,
        name=group.name,
        pods=1,
        replicas=1,
        entry=fill_requests(group.pod),
        worker=None,
    )


_SPREADS = (2, 51, 0)
"""The first Ray whose Serve LLM places the ranks of one pipeline stage in several pods."""
_RAY = regex(r"(?:^|/)rayproject/ray(?:-llm|-ml)?$")
_NUMBER = regex(r"([0-9]+\.[0-9]+\.[0-9]+)(?:-|$)")
_WAITS = "so Ray waits for them forever"


def ray_serve_placement(view: RayView) -> Iterator[Finding]:
    """What Ray Serve places together fits into one pod of the cluster.

    An actor and a bundle of a placement group are in one pod, and so are all bundles with the
    strategy STRICT_PACK. Ray Serve LLM up to 2.50 packs the ranks of an engine with one pipeline
    stage in this way, unless placement_group_config or resources_per_bundle decides what it
    reserves. Not checked are clusters whose pods may get GPUs in another way than by limits.

    Pass: ray_actor_options.num_gpus 2 on workers of 8 GPUs; tensor 16 on workers of 8 GPUs in Ray
    2.51; tensor 8 and pipeline 2.
    Fail: ray_actor_options.num_gpus 2 on workers of 1 GPU; tensor 16 on workers of 8 GPUs in Ray
    2.46.
    Level: mandatory; advisory for Ray Serve LLM if only rayVersion states the release.
    Source: ray python/ray/llm/_internal/serve/deployments/llm/vllm/vllm_models.py
    placement_strategy (ray-project/ray#56980); python/ray/serve/schema.py DeploymentSchema;
    src/ray/raylet/scheduling/policy/bundle_scheduling_policy.cc; ray-project/kuberay#2354.
    """
    most = _largest(view)
    if most is None:
        return
    for one in read_reserved(view.object.spec.get(CONFIG)):
        yield from _deployment(one, most)
    for model in view.served if isinstance(view.served, tuple) else ():
        yield from _packed(view, model, most)


def _largest(view: RayView) -> int | None:
    """Return the GPUs of the largest pod; None if it is not known, or if no pod has one."""
    groups = [group for group in view.groups if group.high != 0]
    counts: list[MaybeInt] = [counted_in_pod(group) for group in groups]
    known = [count for count in counts if isinstance(count, int)]
    late = view.cluster is None or len(view.cluster.workers) != len(view.workers)
    if late or len(known) != len(counts) or any(map(_may_have_more, groups)):
        return None
    return max(known, default=0) or None


def _may_have_more(group: Group) -> bool:
    pod = group.pod
    if any(is_unresolved(group.fields.get(field)) for field in ("rayStartParams", "resources")):
        return True
    return pod.claimed is not None or pod.gap is not None or pod.sliced is not None


def _gpus(amount: float) -> str:
    """Write an amount of GPUs, which may be a fraction."""
    return count_of(1 if amount == 1 else f"{amount:g}", "GPU")


def _deployment(one: Reserved, most: int) -> Iterator[Finding]:
    """Compare what one replica reserves, or a bundle of it, with the GPUs of the largest pod."""
    if one.actor is not None and one.actor > most:
        seen = f"gives each replica of {display(one.name)} {_gpus(one.actor)}"
        remedy = f"write num_gpus {most} or less, or give the pods {_gpus(one.actor)}"
    elif one.bundles and (sum(one.bundles) if one.together else max(one.bundles)) > most:
        amount = sum(one.bundles) if one.together else max(one.bundles)
        what = "the bundles of a replica, which are STRICT_PACK," if one.together else "a bundle"
        seen = f"gives {what} of {display(one.name)} {_gpus(amount)}"
        remedy = f"make them smaller, or give the pods {_gpus(amount)}"
    else:
        return
    yield Finding(
        path=_AT, seen=f"{seen}, but no pod has more than {most}, {_WAITS}", remedy=remedy
    )


def _packed(view: RayView, model: Served, most: int) -> Iterator[Finding]:
    """Report a tensor size above a pod's GPUs, which Ray before 2.51 keeps in one pod."""
    command, (release, sure) = model.command, _release(view)
    ranks = command.tensor
    packs = model.gap is None and command.pipeline == 1
    if release is None or release >= _SPREADS or not packs or not isinstance(ranks, int):
        return
    if ranks <= most:
        return
    seen = (
        f"starts {display(model.name)} with tensor {ranks}, and Ray Serve LLM before 2.51 places "
        "the ranks of one stage in one pod (STRICT_PACK), but no pod has more than "
        f"{count_of(most, 'GPU')}"
    )
    smaller = (
        f"set tensor to {most} and pipeline to {ranks // most}, or " if not ranks % most else ""
    )
    yield Finding(
        path=_AT,
        seen=f"{seen}, {_WAITS}",
        remedy=f"{smaller}use Ray 2.51 or later",
        level=Level.MANDATORY if sure else Level.ADVISORY,
    )


def _release(view: RayView) -> tuple[Version | None, bool]:
    """Return the release of Ray, and whether the head's image states it."""
    image = read_image(str(view.head.container.get("image") or ""))
    if _RAY.search(image.repository) and (found := _NUMBER.match(image.tag or "")):
        return parse_version(found[1]), True
    stated = mapping(view.fields).get("rayVersion")
    return (parse_version(stated) if isinstance(stated, str) else None), False


_SETS: Version = (2, 48)
"""The first Ray whose Serve refuses what it sets itself (vllm_models.py
get_initialization_kwargs)."""
_WITHOUT_OPTION = frozenset({"enable_mm_processor_stats", "mamba_config", "model_weights"})
"""Arguments of vLLM's engine that no option of its command line sets."""
_ONLY_OPTIONS = frozenset({"api_server_count", "config", "grpc", "headless", "help"})
"""Options of `vllm serve` that no argument of its engine or server has, in no release."""
_LAST_ARGUMENT = {"disable_log_requests": "0.10.0"}
"""The last release with an argument whose option newer releases have, too."""


def ray_engine_kwargs(view: RayView) -> Iterator[Finding]:
    """Each of the engine_kwargs of a model of Ray Serve is an argument of vLLM's engine or server.

    They are the options of `vllm serve`, with underscores in their names. Ray Serve refuses other
    names when it starts the model. The image of a cluster states no release of vLLM. Since 2.48 Ray
    Serve sets the model, its name and the executor itself, and refuses these of others.

    Pass: engine_kwargs {tensor_parallel_size: 8, max_num_seqs: 64}.
    Fail: engine_kwargs {tensor_parallel: 8}; {swap_space: 4}, which only vLLM up to 0.17 has;
    {distributed_executor_backend: mp}; {model: org/model}; {headless: true}, which is only an
    option of the command line, as is disable_log_requests since 0.10.1.
    Level: mandatory if no release has it; advisory if the newest has not, and for what Ray Serve
    sets, unless the head's image states a release of Ray.
    Source: ray-project/ray python/ray/llm/_internal/serve, VLLMEngineConfig.from_llm_config; the
    options of vLLM's releases (docs/engines.md), whose names its EngineArgs and FrontendArgs have.
    """
    release, sure = _release(view)
    for one in view.served if isinstance(view.served, tuple) else ():
        for key in one.keys:
            if (wrong := _own(one, key)) and (release is None or release >= _SETS):
                level = Level.MANDATORY if sure and release else Level.ADVISORY
                yield _finding(one.name, key, wrong[0], wrong[1], level)
                continue
            if key in _names() or key in _WITHOUT_OPTION:
                if key not in _WITHOUT_OPTION and (span := _gone(key)):
                    seen = f"vLLM has it up to {span}, and the release in the image may be newer"
                    remedy = "remove it if the image has a newer vLLM"
                    yield _finding(one.name, key, seen, remedy, Level.ADVISORY)
                continue
            seen, remedy = _no_argument(key)
            yield _finding(one.name, key, seen, remedy, Level.MANDATORY)


def _no_argument(key: str) -> tuple[str, str]:
    """Say why a name is not an argument of vLLM's engine or server, and what to write."""
    if key in _ONLY_OPTIONS:
        return "it is only an option of `vllm serve`, so the model does not start", "remove it"
    seen = "no release of vLLM has such an argument, so the model does not start"
    near = nearest(key, _names())
    said = f"write '{near}'" if near else "write the name of an option, with underscores"
    return seen, f"{said}, or remove it"


def _own(one: Served, key: str) -> tuple[str, str] | None:
    """Say what Ray Serve sets itself, and what to do; None if it takes the argument."""
    if key in {"model", "served_model_name"}:
        remedy = "write model_source and model_id in model_loading_config instead"
        return "Ray Serve LLM takes it from model_loading_config, and stops", remedy
    executor = one.command.executor
    if key != "distributed_executor_backend" or executor in {"ray", None}:
        return None
    if isinstance(executor, Unknown):
        return None
    return f"it is {display(executor)}, and Ray Serve LLM only takes ray", "write ray, or remove it"


def _finding(model: str, key: str, seen: str, remedy: str, level: Level) -> Finding:
    shown = f"states {display(key)} in engine_kwargs of {display(model)}, but {seen}"
    return Finding(path=f"spec.{CONFIG}", seen=shown, remedy=remedy, level=level)


@cache
def _names() -> frozenset[str]:
    """Return the names of all options of all releases, as arguments of Python."""
    rows = load("vllm").rows
    long = (name for row in rows for name in row.names if name.startswith("--"))
    return frozenset(name.removeprefix("--").replace("-", "_") for name in long) - _ONLY_OPTIONS


def _gone(key: str) -> str:
    """Return the last release with an argument; empty if the newest has it."""
    if key in _LAST_ARGUMENT:
        return _LAST_ARGUMENT[key]
    table, rows = load("vllm"), rows_of("vllm", f"--{key.replace('_', '-')}")
    last = max((row.until for row in rows), default=len(table.texts) - 1)
    return "" if last == len(table.texts) - 1 else table.texts[last]
