"""The default backend: StatefulSets, Services and a Volcano PodGroup, without a controller.

Names, labels, annotations and env are Kthena's (core/naming.py), so a template for Kthena runs
unchanged. docs/backends/native.md lists what a controller would do better.
"""

import re
from collections.abc import Iterator
from typing import Any

from kthena_components.core import naming
from kthena_components.core.facts.serving import NameFacts, ServingFacts
from kthena_components.core.findings import Finding, advise, join_path
from kthena_components.core.plan.facts import facts_from_plan
from kthena_components.core.plan.limits import UPDATE, Limit, above_zero
from kthena_components.core.plan.lws_variables import with_lws_names
from kthena_components.core.plan.manifest import (
    BUDGETS,
    ENDPOINTS,
    PODS,
    SERVICES,
    STATEFUL_SETS,
    WAIT_FOR,
    Manifest,
)
from kthena_components.core.plan.serving_plan import (
    RolePlan,
    ServingPlan,
    placed_plan,
    targets_of_groups,
)
from kthena_components.core.plan.templates import with_env
from kthena_components.core.spec.enums import RecoveryPolicy, RolloutType
from kthena_components.core.templates import Template
from kthena_components.core.values.dataclass import dataclass
from kthena_components.systems.emitter import EMPTY_ROLES, FOR_ALL, IDLE_WORKERS, Emitter
from kthena_components.systems.kubernetes.backends import (
    ENGINES_WITH_METRICS,
    WITHOUT_VOLCANO,
    emit_front,
    emit_instance,
)
from kthena_components.systems.native.convert import CONVERTER
from kthena_components.systems.native.facts import read_group
from kthena_components.systems.volcano import emit as volcano

# What StatefulSets and a PodGroup do not support: an error, never dropped.


LIMITS = (
    WITHOUT_VOLCANO,
    ENGINES_WITH_METRICS,
    Limit(
        "recovery_policy",
        "is {}, but a StatefulSet recreates only the pod that failed",
        takes="only `None`",
        when=lambda one: one.value is not RecoveryPolicy.NONE,
    ),
    Limit(
        "autoscaled",
        "is true, but each group has StatefulSets of its own, which nothing scales together",
    ),
    Limit(
        "restart_grace_period_seconds",
        "is {}, but a StatefulSet recreates a pod at once",
        when=above_zero,
    ),
    Limit(
        f"{UPDATE}.max_surge",
        "is {}, but a StatefulSet is replaced under its own name, so nothing can surge",
        remedy="remove it; max_unavailable is the only budget",
    ),
    Limit(
        "roles[].max_unavailable",
        "is {}, but the engines of a group wait for one gang, so they cannot be replaced a few at "
        "a time",
    ),
)


def refuse(plan: ServingPlan) -> Iterator[Finding]:
    """Report Services of one name, and a gang of no pods."""
    yield from _same_services(plan)
    yield from _refuse_gang(plan)


def _refuse_gang(plan: ServingPlan) -> Iterator[Finding]:
    """Report what `check` reports about the PodGroups, where the user can change it."""
    if not plan.gang or plan.pod_group is not None or not plan.pods:
        return
    if plan.min_member == 0:
        yield advise(
            "gang_policy.min_role_replicas",
            "adds up to 0 pods, so nothing starts together: each pod starts as soon as it fits",
            "write the number of engines of a role that must start together, or remove the field",
            "gang-minimum-stated",
        )


def _same_services(plan: ServingPlan) -> Iterator[Finding]:
    """Reject role names whose Services would collide: `a-1` and the second replica of `a`."""
    replicas = {role.name: role.replicas for role in plan.roles}
    for role in plan.roles:
        stem, _, number = role.name.rpartition("-")
        ordinal = int(number) if re.fullmatch("0|[1-9][0-9]*", number) else replicas.get(stem, 0)
        if role.replicas and ordinal < replicas.get(stem, 0):
            yield Finding(
                path=f"{role.path}.name",
                seen=f"is '{role.name}', which is also the name of a replica of role '{stem}', "
                "so two Services would have one name",
                remedy="rename one of the two roles",
                rule="name-unique",
            )


def names(plan: ServingPlan) -> Iterator[NameFacts]:
    """Return the longest name of each kind that this plan generates."""
    last = max(plan.group_numbers(), default=0)
    for role in plan.roles:
        at = join_path(role.path, "name")
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


AWAITED_AT_ONCE = 4
"""Maximum number of StatefulSets that `up` awaits in parallel. The engine runs four steps per
processor at a time, so four is safe everywhere. A gang starts when all its pods exist: if awaited
StatefulSets used every slot, the last ones would never be created and the wait would never end.
"""

SIZES = (naming.GROUP_SIZE, naming.LWS_GROUP_SIZE)


@dataclass(frozen=True, slots=True)
class _Engine:
    """One role instance of one group: two StatefulSets that are created and deleted together."""

    plan: ServingPlan
    group: int
    role: RolePlan
    instance: int

    @property
    def name(self) -> str:
        return naming.instance_name(self.plan.name, self.group, self.role.name, self.instance)

    @property
    def address(self) -> str:
        """Host name of the entry pod."""
        plan, role = self.plan, self.role.name
        return naming.entry_address(plan.name, self.group, role, self.instance, plan.namespace)

    @property
    def key(self) -> str:
        """Key of the entry StatefulSet."""
        return f"StatefulSet/{self.name}"

    @property
    def workers_name(self) -> str:
        return naming.worker_set_name(self.plan.name, self.group, self.role.name, self.instance)

    @property
    def workers_key(self) -> str:
        """Key of the worker StatefulSet."""
        return f"StatefulSet/{self.workers_name}"

    @property
    def labels(self) -> dict[str, str]:
        return naming.instance_labels(self.plan.name, self.group, self.role.name, self.instance)


def emit(plan: ServingPlan) -> tuple[Manifest, ...]:
    """Write a serving: each group's PodGroup, then its Services, workers and entries."""
    plan = placed_plan(plan, {naming.NAME: plan.name}, naming.GROUP_NAME)
    front = emit_front(plan)
    groups = [manifest for group in plan.group_numbers() for manifest in _group(plan, group)]
    return (*groups, *([front] if front else []))


def _group(plan: ServingPlan, group: int) -> Iterator[Manifest]:
    """Emit one group: Services, PodGroup, workers, entries; each waits for those before it."""
    engines = _engines(plan, group)
    before = tuple(e.key for earlier in plan.batch_before(group) for e in _engines(plan, earlier))
    named = [
        manifest
        for engine in engines
        for manifest in emit_instance(plan, group, engine.role.name, engine.instance, before)
    ]
    yield from named
    made = [manifest.key for manifest in named]
    if plan.gang and plan.pod_group is None and engines:
        # After the Services: another stack's update then fails at those, which are never forced.
        pod_group = volcano.emit_pod_group(plan, group, tuple(made) or before)
        yield pod_group
        made.append(pod_group.key)
    gate = tuple(made)
    for engine in engines:
        if engine.role.worker_replicas:
            workers = _workers(engine, gate)
            yield workers
            made.append(workers.key)
    side_by_side = _side_by_side(plan, len(engines))
    for engine in engines:
        yield _entry(engine, tuple(made), wait=side_by_side or engine is engines[-1])
        if not side_by_side:
            made.append(engine.key)


def _engines(plan: ServingPlan, group: int) -> list[_Engine]:
    return [_Engine(plan, group, r, i) for r in plan.roles for i in range(r.replicas)]


def _side_by_side(plan: ServingPlan, engines: int) -> bool:
    """Return whether every entry is awaited, or only the last one of each group."""
    groups = min(plan.rollout.max_unavailable, max(plan.groups, 1))
    return engines * groups <= AWAITED_AT_ONCE


def _entry(engine: _Engine, after: tuple[str, ...], *, wait: bool) -> Manifest:
    """Write the StatefulSet of an engine's first pod, whose readiness Pulumi may wait for."""
    own = {naming.ENTRY: "true"}
    index = {"name": naming.WORKER_INDEX, "value": "0"}
    template = _template(engine, engine.role.entry, own, index)
    body = _stateful_set(engine, engine.name, own, template)
    if not wait:
        body["metadata"]["annotations"] = _until_made(1)
    timeout = engine.plan.ready_timeout_seconds if wait else None
    return _manifest(
        engine,
        body,
        after,
        timeout_seconds=timeout,
        # Pulumi then deletes the entry before the workers: new ranks never join an old entry.
        replace_with=(engine.workers_key,) if engine.role.worker_replicas else (),
    )


def _workers(engine: _Engine, after: tuple[str, ...]) -> Manifest:
    """Write the StatefulSet of an engine's workers, whose ordinals start at 1."""
    own = {naming.WORKER: "true"}
    # All workers share one template, so the index comes from a label (Kubernetes 1.28 and later).
    index = {
        "name": naming.WORKER_INDEX,
        "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{naming.POD_INDEX}']"}},
    }
    role = engine.role
    template = _template(engine, role.worker or {}, own, index)
    body = _stateful_set(engine, engine.workers_name, own, template)
    body["metadata"]["annotations"] = _until_made(role.worker_replicas)
    body["spec"] |= {"replicas": role.worker_replicas, "ordinals": {"start": 1}}
    return _manifest(engine, body, after)


def _until_made(pods: int) -> dict[str, str]:
    """Wait only until the pods exist, ready or not.

    skipAwait would not wait for deletions either, and a replacement under the same name would fail.
    """
    return {WAIT_FOR: f"jsonpath={{.status.replicas}}={pods}"}


def _stateful_set(
    engine: _Engine, name: str, own: dict[str, str], template: Template
) -> dict[str, Any]:
    """Write a StatefulSet of one replica that creates its pods in parallel; `own` selects them."""
    spec = {
        "replicas": 1,
        "serviceName": engine.name,
        # OrderedReady would create pod 1 only when pod 0 is ready; a gang is never ready in parts.
        "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": {**engine.labels, **own}},
        "template": template,
    }
    metadata = {"name": name, "namespace": engine.plan.namespace, "labels": engine.labels}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": spec}


def _manifest(
    engine: _Engine, body: dict[str, Any], after: tuple[str, ...], **more: Any
) -> Manifest:
    """Return a StatefulSet's manifest: replaced with its template, or kept below the partition."""
    plan = engine.plan
    kept = engine.group - plan.first_group < plan.rollout.partition
    return Manifest(
        body=body,
        group=engine.group,
        role=engine.role.name,
        after=after,
        replace_on=() if kept else ("spec.template",),
        ignore=("spec",) if kept else (),
        delete_first=True,
        **more,
    )


def _template(
    engine: _Engine, template: Template, own: dict[str, str], index: dict[str, Any]
) -> Template:
    """Add what Kthena adds to a template: labels, annotations, variables and the scheduler."""
    plan, role = engine.plan, engine.role
    metadata = template.get("metadata") or {}
    hashes = {naming.ROLE_TEMPLATE_HASH: role.template_hash}
    if plan.rollout.type is RolloutType.SERVING_GROUP:
        hashes[naming.REVISION] = plan.revision
    labels = {**(metadata.get("labels") or {}), **engine.labels, **own, **hashes}
    annotations = {**(metadata.get("annotations") or {}), **_gang(engine)}
    env = [
        {"name": naming.GROUP_SIZE, "value": str(role.pods)},
        {"name": naming.ENTRY_ADDRESS, "value": engine.address},
        index,
    ]
    spec = with_env(with_lws_names(template, env), env)["spec"]
    return {
        "metadata": {"labels": labels, **({"annotations": annotations} if annotations else {})},
        "spec": {**spec, "schedulerName": plan.scheduler},
    }


def _gang(engine: _Engine) -> dict[str, str]:
    """Add a pod's gang and its task, for Volcano."""
    plan = engine.plan
    own = naming.group_name(plan.name, engine.group)
    gang = own if plan.pod_group is None else plan.pod_group
    if not plan.gang or not gang:
        return {}
    task = naming.role_id(engine.role.name, engine.instance)
    return {naming.POD_GROUP: gang, naming.TASK_SPEC: task}


def _planned(plan: ServingPlan) -> list[ServingFacts]:
    """Return the facts of each group that has pods."""
    return [facts_from_plan(plan, SIZES)] * (plan.groups if plan.pods_per_group else 0)


def _addresses(plan: ServingPlan) -> list[str]:
    return [engine.address for g in plan.group_numbers() for engine in _engines(plan, g)]


# What each argument becomes in the native backend, for docs/backends.md.


WRITTEN = {
    "replicas": "a PodGroup and StatefulSets per group",
    "roles[].replicas": "StatefulSets per engine",
    "roles[].worker_replicas": "`replicas` of the worker StatefulSet",
    "gang_policy": "`minMember`, `minResources` and `minSubGroups` of the PodGroup",
    "network_topology.group_policy": "`PodGroup.spec.networkTopology`",
    "network_topology.role_policy": "`subGroupPolicy[].networkTopology`",
    "queue": "`PodGroup.spec.queue`",
    "priority_class": "`priorityClassName` of the pods and the PodGroup",
    "spread_over": "a soft `podAntiAffinity` of the pods",
    "scheduler_name": "`schedulerName`",
    "rollout_strategy.type": "which StatefulSets a change replaces",
    "rollout_strategy…max_unavailable": "dependencies between groups",
    "rollout_strategy…partition": "ignored changes of the first groups",
    "recovery_policy": "nothing: a StatefulSet recreates only the failed pod",
    "ready_timeout_seconds": "how long `up` waits for the entries",
    **FOR_ALL,
}
PROVEN = (
    "Pods, Services and gangs equal the plan and those of Kthena. Update, scaling, faults, and the "
    "rights that are needed."
)


EMITTER = Emitter(
    emit=emit,
    limits=LIMITS,
    refuse=refuse,
    names=names,
    resources=(STATEFUL_SETS, volcano.POD_GROUPS, SERVICES, BUDGETS, ENDPOINTS, PODS),
    read_back=read_group,
    targets=targets_of_groups,
    sizes=SIZES,
    drops=(EMPTY_ROLES, IDLE_WORKERS),
    converter=CONVERTER,
    planned=_planned,
    addresses=_addresses,
    written=WRITTEN,
    proven=PROVEN,
)
