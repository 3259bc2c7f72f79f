"""Kubernetes' own workloads, what they refer to, and the rules over all objects about them."""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core import naming
from kthena_components.core.objects.object import Object
from kthena_components.core.objects.reduction import kept_pods, kept_spec, only
from kthena_components.core.values.read import count, mapping
from kthena_components.systems.contract import Body, Kind, Restart, Rollout, System, legacy
from kthena_components.systems.kubernetes.facts import read
from kthena_components.systems.kubernetes.pods import (
    pods_of_copies,
    pods_of_cron_job,
    pods_of_daemons,
    pods_of_job,
    pods_of_pod,
)
from kthena_components.systems.kubernetes.resources import SECRETS
from kthena_components.systems.kubernetes.stack_objects import (
    headless_service,
    object_twice,
    service_selects_pods,
)
from kthena_components.systems.kubernetes.stack_secrets import secret_key_exists
from kthena_components.systems.kubernetes.stack_volumes import rwx_for_shared_model

_A_FEW = Restart(paths=r"spec\.template\b", how="pods restart a few at a time")
_ONE_BY_ONE = Restart(paths=r"spec\.template\b", how="pods restart one after another")
_QUARTER = "25%"


def _workload(group: str, name: str, **known: Any) -> Kind[Object]:
    fields: dict[str, Any] = {"templates": ("spec.template",), "kept": kept_pods} | known
    return legacy((group, name), read, **fields)


def _beside(group: str, name: str, **known: Any) -> Kind[Object]:
    """Give a kind that is not judged by itself."""
    return legacy((group, name), None, **({"kept": None} | known))


def rollouts(found: Object) -> Iterator[Rollout]:
    """Give how a Deployment is updated.

    Source: kubernetes pkg/apis/apps/v1/defaults.go SetDefaults_Deployment.
    """
    strategy = mapping(found.spec.get("strategy"))
    rolling = mapping(strategy.get("rollingUpdate"))
    if strategy.get("type") != "Recreate":
        yield Rollout(
            at="spec.strategy.rollingUpdate",
            replicas=count(found.spec.get("replicas"), 1),
            max_unavailable=rolling.get("maxUnavailable"),
            max_surge=rolling.get("maxSurge"),
            usual=(_QUARTER, _QUARTER),
        )


def keeps_number(found: Object) -> str:
    """Say why a StatefulSet must not be scaled."""
    labels = mapping(found.metadata.get("labels"))
    if not isinstance(labels.get(naming.GROUP_NAME), str):
        return ""
    return "is a part of one engine, whose number of pods its command line states"


def _kept_service(body: Body) -> Body:
    return {"spec": only(body.get("spec"), frozenset({"type", "selector", "clusterIP"}))}


def _kept_secret(body: Body) -> Body:
    kept: dict[str, Any] = {"type": body["type"]} if "type" in body else {}
    for field in ("data", "stringData"):
        held = body.get(field)
        kept[field] = dict.fromkeys(held) if isinstance(held, Mapping) else held
    return kept


def _kept_node(body: Body) -> Body:
    amounts = only(body.get("status"), frozenset({"allocatable", "capacity"}))
    return {**kept_spec(body), "status": amounts}


SYSTEM = System(
    name="kubernetes",
    title="any serving",
    kinds=(
        _workload("", "Pod", templates=("",), pods=pods_of_pod),
        _workload("apps", "Deployment", pods=pods_of_copies, rollouts=rollouts, restarts=_A_FEW),
        _workload(
            "apps",
            "StatefulSet",
            pods=pods_of_copies,
            restarts=_ONE_BY_ONE,
            keeps_number=keeps_number,
        ),
        _workload("apps", "ReplicaSet", pods=pods_of_copies),
        _workload("apps", "DaemonSet", pods=pods_of_daemons, restarts=_A_FEW),
        _workload("batch", "Job", pods=pods_of_job),
        _workload(
            "batch",
            "CronJob",
            pods=pods_of_cron_job,
            templates=("spec.jobTemplate.spec.template",),
        ),
        _beside("", "Service", kept=_kept_service),
        _beside("", "Secret", kept=_kept_secret),
        _beside("", "PersistentVolumeClaim", kept=kept_spec),
        _beside("", "Node", kept=_kept_node, cluster_wide=True),
        _beside("autoscaling", "HorizontalPodAutoscaler", kept=kept_spec),
        _beside("keda.sh", "ScaledObject", kept=kept_spec),
        _beside("", "Namespace", cluster_wide=True),
        _beside("", "PersistentVolume", cluster_wide=True),
        _beside("apiextensions.k8s.io", "CustomResourceDefinition", cluster_wide=True),
        _beside("rbac.authorization.k8s.io", "ClusterRole", cluster_wide=True),
        _beside("rbac.authorization.k8s.io", "ClusterRoleBinding", cluster_wide=True),
        _beside("scheduling.k8s.io", "PriorityClass", cluster_wide=True),
        _beside("storage.k8s.io", "StorageClass", cluster_wide=True),
    ),
    stack_rules=(
        object_twice,
        headless_service,
        secret_key_exists,
        rwx_for_shared_model,
        service_selects_pods,
    ),
    extras={"secrets": SECRETS},
)
