"""Updates that need more accelerators than a stack has."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kthena_components.core.findings import Finding, Level, count_of, not_checked
from kthena_components.core.objects.object import GroupKind, Object, PodSet
from kthena_components.core.objects.stack import Stack
from kthena_components.core.values.arithmetic import total
from kthena_components.core.values.display import display
from kthena_components.core.values.read import count, first_unknown, mapping, unknown_in
from kthena_components.core.values.unknown import MaybeInt, Unknown
from kthena_components.systems.kubernetes.stack_gpus import gpus_asked, gpus_of_pods
from kthena_components.systems.lws.pods import DISAGGREGATED, LWS
from kthena_components.systems.lws.view import is_budget, read_sets, scaled
from kthena_components.systems.matrixinfer.facts import MODEL_INFERS

_DEPLOYMENT: GroupKind = ("apps", "Deployment")
_INFERENCE_SERVICE: GroupKind = ("serving.kserve.io", "InferenceService")
_QUARTER = "25%"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rollout:
    """How one set of equal replicas is updated."""

    entry: Object
    path: str
    """Where its pods stand: their paths begin with it."""
    at: str
    """Where its strategy stands."""
    strategy: Mapping[str, Any]
    replicas: MaybeInt | None
    usual: tuple[object, object]
    """maxUnavailable and maxSurge where they are not stated."""


def surge_needs_spare_gpus(stack: Stack, budget: int) -> Iterator[Finding]:
    """The replicas that an update adds at first have GPUs within the budget.

    With maxSurge above 0 new replicas start before old ones stop. Where maxUnavailable is 0, none
    stops until a new one is ready, and an update that finds no room never ends. A Deployment that
    states nothing has maxSurge 25%, rounded up, and maxUnavailable 25%, rounded down.

    Pass: a budget of 24, two replicas of 8 GPUs, maxSurge 1.
    Fail: a budget of 16, two replicas of 8 GPUs, maxSurge 1.
    Level: mandatory where maxUnavailable is 0, else advisory. It holds only where a budget is
    given, and the stack is within it.
    Source: kubernetes pkg/controller/deployment/util (ResolveFenceposts); kubernetes-sigs/lws
    pull request 779; kserve pkg/controller/v1beta1 (multi-node: 0% and 100%).
    """
    used, _ = gpus_asked(stack)
    if used > budget:
        return
    pods: dict[tuple[int, str], list[PodSet]] = {}
    for item in stack.pods:
        group, inside, _ = item.path.partition(".leaderWorkerTemplate.")
        for path in {"", f"{group}." if inside else ""}:
            pods.setdefault((item.entry.index, path), []).append(item)
    for rollout in _rollouts(stack):
        mine = pods.get((rollout.entry.index, rollout.path), [])
        yield from _judge(rollout, mine, used, budget)
    yield from _multi_node(stack, used, budget)


def _rollouts(stack: Stack) -> Iterator[_Rollout]:
    for entry in stack.of(_DEPLOYMENT):
        strategy = mapping(entry.spec.get("strategy"))
        if strategy.get("type") != "Recreate":
            yield _Rollout(
                entry=entry,
                path="",
                at="spec.strategy.rollingUpdate",
                strategy=mapping(strategy.get("rollingUpdate")),
                replicas=count(entry.spec.get("replicas"), 1),
                usual=(_QUARTER, _QUARTER),
            )
    rolling = "rolloutStrategy.rollingUpdateConfiguration"
    for kind in (LWS, DISAGGREGATED):
        for entry in stack.of(kind):
            for group in read_sets(entry.manifest).groups:
                yield _Rollout(
                    entry=entry,
                    path=f"{group.path}.",
                    at=f"{group.path}.{rolling}",
                    strategy=_rolling(group.spec),
                    replicas=group.replicas,
                    usual=(1, 0),
                )
    for kind in MODEL_INFERS:
        for entry in stack.of(kind):
            yield _Rollout(
                entry=entry,
                path="",
                at=f"spec.{rolling}",
                strategy=_rolling(entry.spec),
                replicas=count(entry.spec.get("replicas"), 1),
                usual=(1, 0),
            )


def _rolling(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping(mapping(spec.get("rolloutStrategy")).get("rollingUpdateConfiguration"))


def _judge(rollout: _Rollout, pods: list[PodSet], used: int, budget: int) -> Iterator[Finding]:
    at, rule = rollout.entry.at(f"{rollout.at}.maxSurge"), "surge-needs-spare-gpus"
    gpus, replicas = total([gpus_of_pods(item) for item in pods]), rollout.replicas
    if gpus == 0 or not replicas or (isinstance(replicas, int) and replicas < 0):
        return
    stated = rollout.strategy.get("maxUnavailable"), rollout.strategy.get("maxSurge")
    if gap := first_unknown(gpus, replicas, *stated) or unknown_in(
        rollout.entry.spec.get("strategy")
    ):
        yield not_checked(at, gap, rule)
        return
    down, up = (u if s is None else s for s, u in zip(stated, rollout.usual, strict=True))
    if isinstance(gpus, int) and isinstance(replicas, int) and is_budget(down) and is_budget(up):
        more, fewer = scaled(up, replicas, 0, up=True), scaled(down, replicas, 0, up=False)
        needed = gpus // replicas * more
        if more and used + needed > budget:
            surge = "is not stated, which is 25%" if stated[1] is None else f"is {display(up)}"
            extra = f"{surge}, and adds {count_of(more, 'replica')} of {gpus // replicas} GPUs"
            yield _short(at, extra, used + needed, budget, stuck=fewer == 0)


def _multi_node(stack: Stack, used: int, budget: int) -> Iterator[Finding]:
    """KServe replaces all pods of a multi-node InferenceService at once, the new ones first."""
    for entry, held in stack.held:
        worker = mapping(entry.spec.get("predictor")).get("workerSpec")
        if (entry.group, entry.kind) != _INFERENCE_SERVICE or worker is None or held.gpus == 0:
            continue
        at = entry.at("spec.predictor.workerSpec")
        if isinstance(held.gpus, Unknown):
            yield not_checked(at, held.gpus, "surge-needs-spare-gpus")
        elif used + held.gpus > budget:
            extra = f"is updated by KServe with maxSurge 100%, and adds {held.gpus} GPUs"
            yield _short(at, extra, used + held.gpus, budget, stuck=True)


def _short(at: str, extra: str, needed: int, budget: int, *, stuck: bool) -> Finding:
    end = "; no old replica stops before, so the update never ends" if stuck else ""
    free = "maxSurge: 0 and maxUnavailable: 1"
    return Finding(
        path=at,
        seen=f"{extra} during an update: {needed} in all, but the budget of this stack is "
        f"{budget}{end}",
        remedy=f"write {free} where the system takes it, or keep {needed - budget} more free",
        rule="surge-needs-spare-gpus",
        level=Level.MANDATORY if stuck else Level.ADVISORY,
    )
