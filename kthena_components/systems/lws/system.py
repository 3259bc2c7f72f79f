"""LeaderWorkerSet and DisaggregatedSet: groups of a leader and its workers."""

from collections.abc import Iterator
from typing import Any

from kthena_components.core import naming
from kthena_components.core.objects.object import GroupKind, fields_of_kind
from kthena_components.core.objects.retained_fields import kept_pods
from kthena_components.core.plan.controller_variables import LWS_POD_VARIABLES
from kthena_components.core.values.read import mapping
from kthena_components.systems.lws.rules.queue_and_forbidden_changes import (
    lws_lower_then_raise,
    lws_queue,
    lws_subgroups_fixed,
)
from kthena_components.systems.lws.rules.rollout_disaggregated import is_refused
from kthena_components.systems.lws.rules.shape_and_gang_startup import lws_gang_startup, lws_shape
from kthena_components.systems.lws.view import (
    DISAGGREGATED_SET,
    LEADER,
    LEADER_WORKER_SET,
    ROLLING,
    SUBGROUPS,
    WORKER,
    Sets,
    facts,
    gangs_of_groups,
    pods_of_groups,
    read_sets,
)
from kthena_components.systems.system import Kind, Restart, Rollout, System

_RESTART = "group after group restarts"
_TEMPLATES = tuple(f"leaderWorkerTemplate.{field}" for field in (LEADER, WORKER))


def _kind(group_kind: GroupKind, **known: Any) -> Kind[Sets]:
    """Return a kind, with what both have in common."""
    group, name = group_kind
    return Kind(
        group=group,
        name=name,
        view=read_sets,
        facts=facts,
        pods=pods_of_groups,
        gangs=gangs_of_groups,
        pod_variables=lambda _: LWS_POD_VARIABLES,
        rules=(lws_shape, lws_gang_startup, lws_queue),
        rollouts=rollouts,
        kept=kept_pods,
        **known,
    )


def rollouts(view: Sets) -> Iterator[Rollout]:
    """Return the rollout of each set of groups; none if the webhook would reject the numbers.

    Source: kubernetes-sigs/lws pkg/webhooks/leaderworkerset_webhook.go Default: maxUnavailable 1
    and maxSurge 0.
    """
    for group in view.groups:
        rolling = mapping(group.rolling)
        down, up = rolling.get("maxUnavailable"), rolling.get("maxSurge")
        if is_refused(down) or is_refused(up):
            continue
        yield Rollout(
            at=f"{group.path}.{ROLLING}",
            pods=f"{group.path}.",
            replicas=group.replicas,
            max_unavailable=down,
            max_surge=up,
            usual=(1, 0),
        )


_EXCLUSIVE = "exclusive-topology"


def added_fields(view: Sets) -> Iterator[str]:
    """Yield the paths of annotations and labels of pods that are not in `PodSet.added`.

    Source: kubernetes-sigs/lws v0.6.2 to v0.10.0 pkg/controllers/leaderworkerset_controller.go and
    pod_controller.go; pkg/utils/accelerators/tpu.go.
    """
    names = ["size", "leader-name", "subdomainPolicy", "leader-requests-tpus"]
    stated = mapping(view.object.metadata.get("annotations"))
    if any(group.template.get(SUBGROUPS) for group in view.groups):
        names += ["subgroup-size", "subgroup-policy-type"]
    copied = (_EXCLUSIVE, f"subgroup-{_EXCLUSIVE}")
    names += [name for name in copied if f"{naming.LWS_LABELS}{name}" in stated]
    yield from (naming.annotation_field(f"{naming.LWS_LABELS}{name}") for name in names)
    yield from fields_of_kind("StatefulSet")


SYSTEM = System(
    name="lws",
    title="LeaderWorkerSet and DisaggregatedSet",
    kinds=(
        _kind(
            LEADER_WORKER_SET,
            added_fields=added_fields,
            change_rules=(lws_lower_then_raise, lws_subgroups_fixed),
            templates=tuple(f"spec.{at}" for at in _TEMPLATES),
            restarts=Restart(paths=r"spec\.leaderWorkerTemplate\b", how=_RESTART),
        ),
        _kind(
            DISAGGREGATED_SET,
            templates=tuple(f"spec.roles[].{at}{t}" for at in ("spec.", "") for t in _TEMPLATES),
            restarts=Restart(paths=r"spec\.roles\b.*[tT]emplate\b", how=_RESTART),
            copies="slices",
        ),
    ),
)
