"""Kubernetes' own workloads, the objects that they reference, and rules over all of them."""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core import naming
from kthena_components.core.objects.object import Object, fields_of_kind
from kthena_components.core.objects.retained_fields import kept_name, kept_pods, kept_spec, only
from kthena_components.core.plan.manifest import CLAIM_TEMPLATES, SECRETS
from kthena_components.core.values.read import mapping
from kthena_components.systems.kubernetes.facts import (
    facts_of_copies,
    facts_of_cron_job,
    facts_of_job,
    facts_of_pod,
    facts_of_template,
    pods_of_copies,
    pods_of_cron_job,
    pods_of_daemons,
    pods_of_job,
    pods_of_pod,
    tells_of_job,
    tells_of_set,
)
from kthena_components.systems.kubernetes.rules.autoscalers_and_coscheduling_pods import (
    COSCHEDULING,
    LIMIT_RANGE,
    autoscaler_range,
    autoscaler_replicas,
    autoscaler_requests,
    coscheduling_pods,
)
from kthena_components.systems.kubernetes.rules.engines_apart_object_twice_listeners_grant import (
    GATEWAY,
    GRANT,
    engines_apart,
    listener_certificate,
    listener_tls,
    object_twice,
    route_reference_grant,
)
from kthena_components.systems.kubernetes.rules.first_pod import (
    first_pod_named,
    first_pod_published,
    first_pod_selected,
    service_asked,
)
from kthena_components.systems.kubernetes.rules.gpu_budget_and_type_rwx import rwx_for_shared_model
from kthena_components.systems.kubernetes.rules.inference_pools import (
    MODELS,
    ROUTES,
    inference_model_served,
    inference_pool_fields,
    picker_of_inference_pool,
    route_to_inference_pool,
)
from kthena_components.systems.kubernetes.rules.object_values import object_values
from kthena_components.systems.kubernetes.rules.port_of_service_router_and_pool import (
    INGRESS,
    inference_pool_picker_port,
    route_service_port,
    router_backend_port,
)
from kthena_components.systems.kubernetes.rules.resource_claims_and_compute_domains import (
    compute_domain_nodes,
    resource_claim_exists,
    resource_claim_request,
    resource_claim_used,
)
from kthena_components.systems.kubernetes.rules.secret_keys_and_references import (
    SERVICE_ACCOUNT,
    SOURCES,
    reference_exists,
    secret_key_exists,
)
from kthena_components.systems.kubernetes.rules.selected_pods_answer import selected_pods_answer
from kthena_components.systems.kubernetes.rules.service_ports_workload_selector_rollout import (
    rollout_strategy,
    selector_matches_template,
    service_ports,
)
from kthena_components.systems.kubernetes.rules.service_selects_pods_one_model_headless import (
    headless_service,
    router_selects_pods,
    service_named_vllm,
    service_one_model,
    service_selects_pods,
)
from kthena_components.systems.kubernetes.rules.wait_ends import wait_ends
from kthena_components.systems.system import (
    PRODUCTION,
    Body,
    Kind,
    Restart,
    Rollout,
    System,
    as_it_is,
)

_A_FEW = Restart(paths=r"spec\.template\b", how="pods restart a few at a time")
_ONE_BY_ONE = Restart(paths=r"spec\.template\b", how="pods restart one after another")
_QUARTER = "25%"
_ALWAYS, _ONCE = ("Always",), ("OnFailure", "Never")
"""The restartPolicy of the pods of each kind: pkg/apis/apps/validation/validation.go,
ValidatePodTemplateSpecForReplicaSet, and pkg/apis/batch/validation/validation.go."""
_KEPT = {"restarts": "pods that run keep their template"}
_POOLS = ("inference.networking.k8s.io", "inference.networking.x-k8s.io")
_ENDS = "its pods end by themselves"
_NO_SCALE = "has no scale subresource"
_IMMUTABLE = {"restarts": "the template of a Job is immutable", PRODUCTION: _ENDS}


def added_fields(found: Object) -> tuple[str, ...]:
    """Return the labels and annotations that the controller of a workload adds to its pods."""
    spec = mapping(mapping(found.spec.get("jobTemplate")).get("spec")) or found.spec
    mode = spec.get("completionMode")
    return fields_of_kind(found.kind, indexed=mode not in (None, "NonIndexed"))


def _workload(name: str, group: str = "apps", **known: Any) -> Kind[Object]:
    """Return a kind with one pod template; `known` replaces or adds fields of the `Kind`."""
    usual: dict[str, Any] = {
        "facts": facts_of_copies,
        "pods": pods_of_copies,
        "templates": ("spec.template",),
        "kept": kept_pods,
        "added_fields": added_fields,
    }
    return Kind(group=group, name=name, view=as_it_is, **(usual | known))


def _beside(name: str, group: str = "", **known: Any) -> Kind[Object]:
    """Return a kind that is not checked by itself."""
    return Kind(group=group, name=name, view=as_it_is, **({"kept": None} | known))


def rollouts(found: Object) -> Iterator[Rollout]:
    """Return how a Deployment is updated.

    Source: kubernetes pkg/apis/apps/v1/defaults.go SetDefaults_Deployment.
    """
    strategy = mapping(found.spec.get("strategy"))
    if strategy.get("type") != "Recreate":
        yield Rollout.of(strategy, found.spec.get("replicas"), usual=(_QUARTER, _QUARTER))


def keeps_number(found: Object) -> str:
    """Explain why a StatefulSet must not be scaled."""
    labels = mapping(found.metadata.get("labels"))
    if not isinstance(labels.get(naming.GROUP_NAME), str):
        return ""
    return "is part of an engine whose command line states the number of pods"


def _kept_service(body: Body) -> Body:
    kept = {*("type", "selector", "clusterIP", "ports", "publishNotReadyAddresses"), "externalName"}
    return {"spec": only(body.get("spec"), frozenset(kept))}


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
        _workload(
            "Pod",
            "",
            unscalable=_NO_SCALE,
            facts=facts_of_pod,
            pods=pods_of_pod,
            templates=("",),
            without={"restarts": "a Pod is replaced and not restarted"},
        ),
        _workload(
            "Deployment",
            rollouts=rollouts,
            rules=(selector_matches_template, rollout_strategy),
            restarts=_A_FEW,
            restart_policies=_ALWAYS,
        ),
        _workload(
            "StatefulSet",
            restarts=_ONE_BY_ONE,
            keeps_number=keeps_number,
            pod_variables=tells_of_set,
            rules=(first_pod_named, selector_matches_template, rollout_strategy),
            kept_beside=service_asked,
            restart_policies=_ALWAYS,
        ),
        _workload(
            "ReplicaSet",
            rules=(selector_matches_template,),
            without=_KEPT,
            restart_policies=_ALWAYS,
        ),
        _workload("ReplicationController", "", without=_KEPT, restart_policies=_ALWAYS),
        _workload(
            "PodTemplate",
            "",
            facts=facts_of_template,
            pods=None,
            templates=("template",),
            kept=None,
            without=dict.fromkeys(("pods", "restarts"), "who refers to it makes the pods"),
        ),
        _workload(
            "DaemonSet",
            unscalable=_NO_SCALE,
            pods=pods_of_daemons,
            rules=(selector_matches_template, rollout_strategy),
            restart_policies=_ALWAYS,
            restarts=_A_FEW,
            not_whole="it has as many pods as there are nodes",
        ),
        _workload(
            "Job",
            "batch",
            facts=facts_of_job,
            unscalable=_NO_SCALE,
            number_in="parallelism",
            pods=pods_of_job,
            pod_variables=tells_of_job,
            without=_IMMUTABLE,
            restart_policies=_ONCE,
        ),
        _workload(
            "CronJob",
            "batch",
            unscalable=_NO_SCALE,
            number_in="parallelism",
            facts=facts_of_cron_job,
            pods=pods_of_cron_job,
            pod_variables=tells_of_job,
            templates=("spec.jobTemplate.spec.template",),
            restart_policies=_ONCE,
            without={"restarts": "running Jobs keep their template", PRODUCTION: _ENDS},
        ),
        _beside("Service", kept=_kept_service),
        *(_beside("InferencePool", group, kept=kept_spec) for group in _POOLS),
        *(
            _beside(name, group, kept=kept_spec)
            for group, name in (*ROUTES, GRANT, *MODELS, INGRESS, COSCHEDULING)
        ),
        _beside(GATEWAY[1], GATEWAY[0], kept=kept_spec, rules=(listener_tls,)),
        _beside(LIMIT_RANGE[1], kept=kept_spec),
        _beside("Secret", kept=_kept_secret),
        *(_beside(name, group, kept=kept_spec) for group, name in SOURCES),
        _beside("PersistentVolumeClaim", kept=kept_spec),
        _beside(SERVICE_ACCOUNT[1], kept=kept_name),
        _beside("Node", kept=_kept_node, cluster_wide=True),
        _beside("HorizontalPodAutoscaler", "autoscaling", kept=kept_spec),
        _beside("ScaledObject", "keda.sh", kept=kept_spec),
        _beside("VerticalPodAutoscaler", "autoscaling.k8s.io", kept=kept_spec),
        _beside("PodDisruptionBudget", "policy", kept=kept_spec),
        _beside("Namespace", cluster_wide=True),
        _beside("PersistentVolume", cluster_wide=True),
        _beside("CustomResourceDefinition", "apiextensions.k8s.io", cluster_wide=True),
        _beside("ClusterRole", "rbac.authorization.k8s.io", cluster_wide=True),
        _beside("ClusterRoleBinding", "rbac.authorization.k8s.io", cluster_wide=True),
        _beside("PriorityClass", "scheduling.k8s.io", cluster_wide=True),
        _beside("StorageClass", "storage.k8s.io", cluster_wide=True),
        _beside("ResourceClaim", "resource.k8s.io", kept=kept_spec, completes=True),
        _beside("ResourceClaimTemplate", "resource.k8s.io", kept=kept_spec, completes=True),
        _beside(
            "DeviceClass", "resource.k8s.io", kept=kept_spec, completes=True, cluster_wide=True
        ),
        _beside("ComputeDomain", "resource.nvidia.com", kept=kept_spec),
    ),
    cluster_rules=(
        object_twice,
        headless_service,
        first_pod_published,
        first_pod_selected,
        engines_apart,
        secret_key_exists,
        reference_exists,
        rwx_for_shared_model,
        service_ports,
        object_values,
        service_selects_pods,
        selected_pods_answer,
        service_named_vllm,
        service_one_model,
        wait_ends,
        inference_pool_fields,
        inference_pool_picker_port,
        picker_of_inference_pool,
        route_to_inference_pool,
        inference_model_served,
        route_service_port,
        route_reference_grant,
        listener_certificate,
        router_selects_pods,
        router_backend_port,
        resource_claim_exists,
        resource_claim_request,
        resource_claim_used,
        compute_domain_nodes,
        autoscaler_range,
        autoscaler_replicas,
        autoscaler_requests,
        coscheduling_pods,
    ),
    extras={"claims": (CLAIM_TEMPLATES,), "secrets": (SECRETS,)},
)
