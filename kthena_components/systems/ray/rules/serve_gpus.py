"""Checks the GPUs of a Ray cluster: for Ray Serve's replicas, and of pods in no engine."""

from collections.abc import Iterator
from functools import wraps

from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.facts.workload import fill_requests
from kthena_components.core.findings import Finding, Level, count_of, not_checked, part_of_rule
from kthena_components.core.rules.gpu_requests_equal_limits import gpu_requests_equal_limits
from kthena_components.core.values.read import require_known
from kthena_components.core.values.unknown import MaybeInt, Unknown, known
from kthena_components.systems.ray.facts import facts
from kthena_components.systems.ray.serve_config import CONFIG, Served
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
    least, most = cluster.total(most=False), cluster.total(most=True)
    values = [value for one in served for value in (one.ranks, one.low, one.high)]
    require_known(_AT, *values, least, most)
    if not (isinstance(least, int) and isinstance(most, int)):
        return
    low = sum(_times(one.ranks, one.low) for one in served)
    high = sum(_times(one.ranks, one.high) for one in served)
    if most == 0 and all(one.ranks == 1 for one in served):
        return  # Engines on CPUs.
    if low > most:
        yield _too_few(cluster, served, low, most)
    elif high < least:
        yield Finding(
            path=_AT,
            seen=f"starts {_shown(served)} = {count_of(high, 'rank')}, but the cluster has at "
            f"least {count_of(least, 'GPU')}, and {least - high} of them stay idle",
            remedy=f"add replicas, or give the worker groups {high} GPUs",
            level=Level.ADVISORY,
        )


def _too_few(cluster: Cluster, served: tuple[Served, ...], low: int, most: int) -> Finding:
    held = ", ".join(pods_text(group) for group in cluster.with_gpus)
    has = f"{count_of(most, 'GPU')}{f' ({held})' if held else ''}"
    return Finding(
        path=_AT,
        seen=f"starts {_shown(served)} = {count_of(low, 'rank')}, but the cluster has at most "
        f"{has}, and Ray waits for the others forever",
        remedy=f"lower the parallelism or the replicas to {most} ranks, or give the worker "
        f"groups {low} GPUs",
    )


def _times(ranks: MaybeInt, replicas: MaybeInt) -> int:
    return ranks * replicas if isinstance(ranks, int) and isinstance(replicas, int) else 0


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
    return EngineFacts(
        path=group.path,
        name=group.name,
        pods=1,
        replicas=1,
        entry=fill_requests(group.pod),
        worker=None,
    )
