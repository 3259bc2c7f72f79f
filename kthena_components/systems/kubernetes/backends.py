"""What the backends share: Services, budgets and claims that they write, limits, and names.

Source of the entry Service: Kthena v1.0.0 pkg/model-serving-controller/utils/utils.go.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core import naming
from kthena_components.core.facts.serving import NameFacts
from kthena_components.core.findings import Finding
from kthena_components.core.plan.limits import UPDATE, Limit
from kthena_components.core.plan.manifest import SKIP_AWAIT, Manifest
from kthena_components.core.plan.serving_plan import ServingPlan
from kthena_components.core.remedies import elsewhere
from kthena_components.core.spec.rules.rollout import scale_budget
from kthena_components.core.values.unknown import MaybeInt

WITHOUT_VOLCANO = Limit(
    "scheduler_name", takes="schedulers other than Volcano have no gang, topology or queue"
)
ENGINES_WITH_METRICS = Limit("monitoring", takes="engines with metrics")
"""Reported by systems/prometheus/scrapes_and_panels.py."""
_SERVICE = "use a Service that selects the entries by their labels"


def refuse_hosts(plan: ServingPlan, system: str, remedy: str = _SERVICE) -> Iterator[Finding]:
    """Reject templates with the host name of an entry: only Kthena and native have such a name.

    Args:
        system: What runs the pods, in a user's words.
        remedy: What to write instead.
    """
    roles = "|".join(re.escape(role.name) for role in plan.roles)
    host = re.compile(rf"(?<![-.a-z0-9]){re.escape(plan.name)}-\d+-(?:{roles})-\d+-0(?![-a-z0-9])")
    for role in plan.roles:
        found = host.search(json.dumps([role.entry, role.worker], default=str))
        if found is not None:
            yield Finding(
                path=role.path,
                seen=f"contains the host name '{found[0]}', but {system} gives entry pods other "
                "names",
                remedy=elsewhere(remedy),
                rule="backend-loss",
            )


def no_spread(system: str) -> Limit:
    """Return the limit of a system whose labels of pods do not name the engine."""
    return Limit("spread_over", f"is {{}}, but {system}'s labels do not tell its engines apart")


def one_budget(system: str, takes: str) -> Limit:
    """Return the limit of a system with one budget for the engines of all groups.

    Args:
        system: What runs the pods, in a user's words.
        takes: What the backend takes of the budgets of roles.
    """
    return Limit(
        "roles[].max_unavailable",
        f"is {{}} of each group, but {system} has one budget for the engines of all "
        "{plan.groups} groups",
        takes=takes,
        when=lambda one: one.plan.groups > 1,
        remedy=f"remove it, and write {UPDATE}.max_unavailable with ServingGroupRollingUpdate",
    )


def refuse_surge(plan: ServingPlan) -> Iterator[Finding]:
    """Reject a surge that is none."""
    surge = plan.rollout.stated.max_surge if plan.rollout.stated else None
    if surge is not None and scale_budget(surge, plan.groups, up=True) is None:
        yield Finding(
            path=f"{UPDATE}.max_surge",
            seen=f"is {surge}, but must be a count of at least 0 or a percentage from 0% to 100%",
            remedy="write, for example, 1 or 25%",
            rule="backend-loss",
        )


def emit_front(plan: ServingPlan, entries: Mapping[str, str] | None = None) -> Manifest | None:
    """Write the Service in front of the entry pods, if the serving is exposed.

    `entries` are the labels of the entry pods of the exposed role, if they are not Kthena's. It is
    not awaited: pulumi-kubernetes waits until a Service has a ready endpoint, so `up` would
    wait until the model is loaded.
    """
    if plan.expose is None:
        return None
    selector = dict(entries or {naming.NAME: plan.name, naming.ENTRY: "true"})
    if plan.expose.role is not None and entries is None:
        selector[naming.ROLE] = plan.expose.role
    port = {"name": "http", "port": plan.expose.port, "targetPort": plan.expose.target_port}
    body = service(
        plan.name, plan.namespace, {naming.NAME: plan.name},
        {"type": "ClusterIP", "selector": selector, "ports": [port]},
    )  # fmt: skip
    body["metadata"]["annotations"] = dict(SKIP_AWAIT)
    return Manifest(body=body)


def emit_instance(
    plan: ServingPlan, group: int, role: str, instance: int, after: tuple[str, ...]
) -> tuple[Manifest, Manifest]:
    """Write the Service that ENTRY_ADDRESS resolves to, and the headless Service of the pods.

    Both publish unready pods: the engine's pods must connect to become ready.
    """
    labels = naming.instance_labels(plan.name, group, role, instance)
    selector = {k: labels[k] for k in (naming.GROUP_NAME, naming.ROLE, naming.ROLE_ID)}
    entry = {**selector, naming.ENTRY: "true"}
    names = (
        (naming.entry_name(plan.name, group, role, instance), entry),
        (naming.instance_name(plan.name, group, role, instance), selector),
    )
    first, second = (
        Manifest(
            body=service(name, plan.namespace, labels, _headless(chosen)),
            group=group, role=role, after=after,
        )
        for name, chosen in names
    )  # fmt: skip
    return first, second


def _headless(selector: dict[str, str]) -> dict[str, Any]:
    return {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": selector}


def service(
    name: str, namespace: str, labels: dict[str, str], spec: dict[str, Any]
) -> dict[str, Any]:
    """Write a Service."""
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def emit_budget(plan: ServingPlan, pods: Mapping[str, str], *, is_counted: bool) -> Manifest | None:
    """Write a budget that allows the eviction of one pod at a time, if the serving has one.

    An engine stops with any of its pods, so two drained nodes could stop two engines.

    Args:
        pods: Labels of all its pods; empty if the plan has another number of pods.
        is_counted: Whether Kubernetes learns the number of pods from their controllers. Otherwise
            the budget states a minimum, and there is none for a number that an autoscaler changes.
    """
    moves = plan.autoscaled and not is_counted
    if not plan.has_disruption_budget or not plan.pods or not pods or moves:
        return None
    limit = {"maxUnavailable": 1} if is_counted else {"minAvailable": plan.pods - 1}
    body: dict[str, Any] = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {
            "name": plan.name,
            "namespace": plan.namespace,
            "labels": {naming.NAME: plan.name},
        },
        "spec": {**limit, "selector": {"matchLabels": dict(pods)}},
    }
    # A serving that is scaled down to one engine has no budget, so the update deletes it.
    return Manifest(body=body, renewed=True)


def emit_claims(plan: ServingPlan) -> Iterator[Manifest]:
    """Write the template of each device request of each role."""
    for role in plan.roles:
        for body in role.claim_templates:
            metadata = {**body["metadata"], "labels": {naming.NAME: plan.name}}
            # Its name changes with its content, so each change replaces it.
            yield Manifest(body={**body, "metadata": metadata}, renewed=True)


# The names that come from a set of groups of a leader and its workers.
#
# The leaders are pods of a StatefulSet, numbered from 0, and the workers of a group are a
# StatefulSet with the name of its leader. Source: kubernetes-sigs/lws
# pkg/controllers/pod_controller.go.


def leader_names(
    path: str, name: str, groups: MaybeInt, workers: MaybeInt, *, made: bool = True
) -> Iterator[NameFacts]:
    """Return the longest names of a set; those of its first group if the number is unknown.

    Args:
        path: Path of the name that they come from.
        name: The name of the set.
        groups: Its groups.
        workers: Workers of a group.
        made: Whether the name is derived from others.
    """
    sets, last = naming.STATEFUL_SET_NAME, max(groups - 1, 0) if isinstance(groups, int) else 0
    leader = f"{name}-{last}"
    if workers == 0:
        yield NameFacts(path=path, name=name, limit=sets, what="StatefulSet", made=made)
    elif isinstance(workers, int):
        yield NameFacts(path=path, name=leader, limit=sets, what="StatefulSet", made=made)
        pod, limit = f"{leader}-{workers}", naming.DNS_LABEL
        yield NameFacts(path=path, name=pod, limit=limit, what="worker pod", made=made)
