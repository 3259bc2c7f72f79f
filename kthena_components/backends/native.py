"""The default backend: StatefulSets, Services and a Volcano PodGroup, without a controller.

Names, labels, annotations and env are Kthena's (core/naming.py), so a template written for Kthena
runs unchanged. What a controller would do better is in docs/backends.md.
"""

from collections.abc import Iterator
from typing import Any

from kthena_components.backends import services, volcano
from kthena_components.backends.base import SKIP_AWAIT, Manifest
from kthena_components.core import naming
from kthena_components.core.facts import NameFacts
from kthena_components.core.findings import Finding
from kthena_components.core.plan import RolePlan, ServingPlan
from kthena_components.core.pods import with_env
from kthena_components.core.spec import RecoveryPolicy, RolloutType, Template

AWAITED_AT_ONCE = 4
"""Most StatefulSets that `up` waits for side by side.

The engine runs four steps per processor at a time, so four is safe everywhere. A gang starts when
all its pods exist: if the StatefulSets that are waited for filled every slot, the last ones would
never be made and the wait would never end.
"""


def emit(plan: ServingPlan) -> tuple[Manifest, ...]:
    """Write a serving: each group's PodGroup, then its Services, workers and entries."""
    front = services.emit_front(plan)
    groups = [manifest for group in plan.group_numbers() for manifest in _group(plan, group)]
    return (*groups, *([front] if front else []))


def _group(plan: ServingPlan, group: int) -> Iterator[Manifest]:
    engines = [(role, instance) for role in plan.roles for instance in range(role.replicas)]
    before = tuple(
        _set_key(naming.instance_name(plan.name, earlier, role.name, instance))
        for earlier in plan.batch_before(group)
        for role, instance in engines
    )
    first: list[Manifest] = []
    if plan.gang and plan.pod_group is None:
        first.append(volcano.emit_pod_group(plan, group, before))
    gate = tuple(m.key for m in first) or before
    for role, instance in engines:
        first.extend(services.emit_instance(plan, group, role.name, instance, gate))
    yield from first
    there = tuple(manifest.key for manifest in first)
    workers = [_workers(plan, group, r, i, there) for r, i in engines if r.worker_replicas]
    yield from workers
    made = (*there, *(manifest.key for manifest in workers))
    waited = _waited_for(plan, len(engines))
    for number, (role, instance) in enumerate(engines, 1):
        last = number == len(engines)
        yield _entry(plan, group, role, instance, made, wait=waited or last)
        if not waited:
            made = (*made, _set_key(naming.instance_name(plan.name, group, role.name, instance)))


def _waited_for(plan: ServingPlan, engines: int) -> bool:
    """Tell whether every entry is waited for, or only the last one of each group."""
    at_once = min(plan.rollout.max_unavailable, max(plan.groups, 1))
    return engines * at_once <= AWAITED_AT_ONCE


def _set_key(name: str) -> str:
    return f"StatefulSet/{name}"


def _entry(  # noqa: PLR0913 - what an entry is, and whether it is waited for
    plan: ServingPlan, group: int, role: RolePlan, instance: int, after: tuple[str, ...], *,
    wait: bool,
) -> Manifest:  # fmt: skip
    name = naming.instance_name(plan.name, group, role.name, instance)
    own = {naming.ENTRY: "true"}
    index = {"name": naming.WORKER_INDEX, "value": "0"}
    template = _template(plan, group, role, instance, role.entry, own, index)
    return _stateful_set(plan, group, role, instance, name, own, template, after, wait=wait)


def _workers(
    plan: ServingPlan, group: int, role: RolePlan, instance: int, after: tuple[str, ...]
) -> Manifest:
    name = naming.worker_set_name(plan.name, group, role.name, instance)
    own = {naming.WORKER: "true"}
    # One template serves all workers, so the index comes from a label (Kubernetes 1.28 and later).
    index = {
        "name": naming.WORKER_INDEX,
        "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{naming.POD_INDEX}']"}},
    }
    template = _template(plan, group, role, instance, role.worker or {}, own, index)
    manifest = _stateful_set(plan, group, role, instance, name, own, template, after, wait=False)
    spec = dict(manifest.body["spec"])
    spec["replicas"], spec["ordinals"] = role.worker_replicas, {"start": 1}
    return Manifest(
        body={**manifest.body, "spec": spec},
        **{k: getattr(manifest, k) for k in Manifest.__dataclass_fields__ if k != "body"},
    )


def _stateful_set(  # noqa: PLR0913 - both StatefulSets of an engine differ in these alone
    plan: ServingPlan, group: int, role: RolePlan, instance: int, name: str,
    own: dict[str, str], template: Template, after: tuple[str, ...], *, wait: bool,
) -> Manifest:  # fmt: skip
    labels = naming.instance_labels(plan.name, group, role.name, instance)
    metadata: dict[str, Any] = {"name": name, "namespace": plan.namespace, "labels": labels}
    if not wait:
        metadata["annotations"] = dict(SKIP_AWAIT)
    spec = {
        "replicas": 1,
        "serviceName": naming.instance_name(plan.name, group, role.name, instance),
        # OrderedReady would make pod 1 only when pod 0 is ready, and a gang is never ready in parts.
        "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": {**labels, **own}},
        "template": template,
    }
    kept = group - plan.first_group < plan.rollout.partition
    return Manifest(
        body={"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": spec},
        group=group, role=role.name, after=after,
        replace_on=() if kept else ("spec.template",),
        ignore=("spec",) if kept else (),
        delete_first=True,
        timeout_seconds=plan.ready_timeout_seconds if wait else None,
    )  # fmt: skip


def _template(  # noqa: PLR0913 - entry and worker templates differ in these alone
    plan: ServingPlan, group: int, role: RolePlan, instance: int, template: Template,
    own: dict[str, str], index: dict[str, Any],
) -> Template:  # fmt: skip
    metadata = template.get("metadata") or {}
    labels = {
        **(metadata.get("labels") or {}),
        **naming.instance_labels(plan.name, group, role.name, instance),
        **own,
        naming.ROLE_TEMPLATE_HASH: role.template_hash,
    }
    if plan.rollout.type is RolloutType.SERVING_GROUP:
        labels[naming.REVISION] = plan.revision
    annotations = dict(metadata.get("annotations") or {})
    joined = plan.pod_group or (naming.group_name(plan.name, group) if plan.gang else None)
    if plan.gang and joined:
        annotations |= {
            naming.POD_GROUP: joined,
            naming.TASK_SPEC: naming.role_id(role.name, instance),
        }
    address = naming.entry_address(plan.name, group, role.name, instance, plan.namespace)
    env = [
        {"name": naming.GROUP_SIZE, "value": str(role.pods)},
        {"name": naming.ENTRY_ADDRESS, "value": address},
        index,
    ]
    filled = with_env(template, env)
    return {
        "metadata": {"labels": labels, **({"annotations": annotations} if annotations else {})},
        "spec": {**filled["spec"], "schedulerName": plan.scheduler},
    }


def refuse(plan: ServingPlan) -> Iterator[Finding]:
    """Say what only a controller can do, instead of dropping it."""
    if plan.recovery in {RecoveryPolicy.ROLE_RECREATE, RecoveryPolicy.SERVING_GROUP_RECREATE}:
        yield _needs_controller(
            "recovery_policy",
            f"is {plan.recovery}, but a StatefulSet recreates only the pod that failed",
        )
    if plan.restart_grace_seconds:
        yield _needs_controller(
            "restart_grace_period_seconds",
            f"is {plan.restart_grace_seconds}, but a StatefulSet knows no grace before it recreates",
        )
    if plan.rollout.stated and plan.rollout.stated.max_surge is not None:
        yield _needs_controller(
            "rollout_strategy.rolling_update_configuration.max_surge",
            f"is {plan.rollout.stated.max_surge}, but StatefulSets keep their names, so nothing can surge",
        )
    for role in plan.roles:
        if role.max_unavailable is not None:
            yield _needs_controller(
                f"{role.path}.max_unavailable",
                f"is {role.max_unavailable}, but the engines of a group wait for one gang, "
                "so they cannot be replaced a few at a time",
            )


def _needs_controller(path: str, seen: str) -> Finding:
    return Finding(
        path=path, seen=seen, remedy="remove it, or write backend: kthena", rule="backend-loss"
    )


def names(plan: ServingPlan) -> Iterator[NameFacts]:
    """Give the longest name of each kind that this plan makes."""
    last = max(plan.group_numbers(), default=0)
    for role in plan.roles:
        at = f"{role.path}.name" if role.path else "name"
        serving, instance = plan.name, max(role.replicas - 1, 0)
        entry = naming.instance_name(serving, last, role.name, instance)
        made = [("StatefulSet", entry, naming.STATEFUL_SET_NAME)]
        if role.worker_replicas:
            workers = naming.worker_set_name(serving, last, role.name, instance)
            made = [("StatefulSet", workers, naming.STATEFUL_SET_NAME)]
            made.append(("worker pod", f"{workers}-{role.worker_replicas}", naming.DNS_LABEL))
        made.append(("entry pod", f"{entry}-0", naming.DNS_LABEL))
        for what, name, limit in made:
            yield NameFacts(path=at, name=name, limit=limit, what=what)
