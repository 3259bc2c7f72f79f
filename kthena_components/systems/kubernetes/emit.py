"""Services, disruption budgets and ResourceClaimTemplates, which the backends share.

Source of the entry Service: Kthena v1.0.0 pkg/model-serving-controller/utils/utils.go.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core import naming
from kthena_components.core.plan.manifest import SKIP_AWAIT, Manifest
from kthena_components.core.plan.serving_plan import ServingPlan


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
        plan: The serving.
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
    # A serving of one engine has none.
    return Manifest(body=body, renewed=True)


def emit_claims(plan: ServingPlan) -> Iterator[Manifest]:
    """Write the template of each device request of each role."""
    for role in plan.roles:
        for body in role.claim_templates:
            metadata = {**body["metadata"], "labels": {naming.NAME: plan.name}}
            # Its name changes with its content, so each change replaces it.
            yield Manifest(body={**body, "metadata": metadata}, renewed=True)
