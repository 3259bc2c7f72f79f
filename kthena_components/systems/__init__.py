"""The index of systems: the kinds of each, loaded on first use.

A new system is a module or a package here that defines SYSTEM, or a package whose module `system`
does, and its rows below.
tests/systems/test_laws.py checks that the rows equal what the systems declare.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kthena_components.core.plan.manifest import Resource
    from kthena_components.systems.emitter import Emitter
    from kthena_components.systems.system import Kind, System

_KINDS: Mapping[str, Mapping[str, str]] = {
    "volcano": {
        "batch.volcano.sh": "Job",
        "scheduling.volcano.sh": "PodGroup Queue",
        "topology.volcano.sh": "HyperNode",
    },
    "kubernetes": {
        "": "LimitRange Namespace Node PersistentVolume PersistentVolumeClaim Pod PodTemplate "
        "ReplicationController Secret Service ServiceAccount",
        "apiextensions.k8s.io": "CustomResourceDefinition",
        "gateway.networking.k8s.io": "GRPCRoute Gateway HTTPRoute ReferenceGrant",
        "inference.networking.k8s.io": "InferencePool",
        "inference.networking.x-k8s.io": "InferenceModel InferenceModelRewrite InferenceObjective "
        "InferencePool",
        "apps": "DaemonSet Deployment ReplicaSet StatefulSet",
        "autoscaling": "HorizontalPodAutoscaler",
        "autoscaling.k8s.io": "VerticalPodAutoscaler",
        "batch": "CronJob Job",
        "bitnami.com": "SealedSecret",
        "cert-manager.io": "Certificate",
        "external-secrets.io": "ExternalSecret",
        "keda.sh": "ScaledObject",
        "networking.k8s.io": "Ingress",
        "onepassword.com": "OnePasswordItem",
        "policy": "PodDisruptionBudget",
        "rbac.authorization.k8s.io": "ClusterRole ClusterRoleBinding",
        "resource.k8s.io": "DeviceClass ResourceClaim ResourceClaimTemplate",
        "resource.nvidia.com": "ComputeDomain",
        "scheduling.k8s.io": "PriorityClass",
        "scheduling.x-k8s.io": "PodGroup",
        "secrets-store.csi.x-k8s.io": "SecretProviderClass",
        "secrets.doppler.com": "DopplerSecret",
        "secrets.hashicorp.com": "VaultDynamicSecret VaultPKISecret VaultStaticSecret",
        "secrets.infisical.com": "InfisicalSecret",
        "storage.k8s.io": "StorageClass",
    },
    "prometheus": {"monitoring.coreos.com": "PodMonitor PrometheusRule"},
    "native": {},
    "kthena": {
        "networking.serving.volcano.sh": "ModelRoute ModelServer",
        "workload.serving.volcano.sh": "AutoscalingPolicy AutoscalingPolicyBinding ModelBooster "
        "ModelServing",
    },
    "lws": {
        "disaggregatedset.x-k8s.io": "DisaggregatedSet",
        "leaderworkerset.x-k8s.io": "LeaderWorkerSet",
    },
    "kserve": {
        "serving.kserve.io": "ClusterServingRuntime InferenceService LLMInferenceService "
        "ServingRuntime"
    },
    "kaito": {"kaito.sh": "InferenceSet MultiRoleInference Workspace"},
    "ray": {"ray.io": "RayCluster RayJob RayService"},
    "vllm_stack": {
        "argoproj.io": "Application",
        "helm.cattle.io": "HelmChart",
        "helm.sh": "Release",
        "helm.toolkit.fluxcd.io": "HelmRelease",
        "production-stack.vllm.ai": "VLLMRuntime",
    },
    "kueue": {"kueue.x-k8s.io": "ClusterQueue Cohort LocalQueue ResourceFlavor"},
    "kai": {"scheduling.run.ai": "Queue"},
    "jobset": {"jobset.x-k8s.io": "JobSet"},
    "kubeflow": {"kubeflow.org": "MPIJob"},
    "argo_rollouts": {"argoproj.io": "Rollout"},
    "kubeai": {"kubeai.org": "Model"},
    "knative": {"serving.knative.dev": "Configuration Service"},
    "nim": {"apps.nvidia.com": "NIMPipeline NIMService"},
    "ome": {"ome.io": "ClusterServingRuntime InferenceService ServingRuntime"},
    "rbg": {"workloads.x-k8s.io": "RoleBasedGroup RoleBasedGroupSet"},
    "grove": {"grove.io": "PodCliqueSet"},
    "dynamo": {"nvidia.com": "DynamoComponentDeployment DynamoGraphDeployment"},
    "llmaz": {"inference.llmaz.io": "Playground Service"},
    "aibrix": {
        "autoscaling.aibrix.ai": "PodAutoscaler",
        "orchestration.aibrix.ai": "RayClusterFleet RoleSet StormService",
    },
    "booster": {},
    "matrixinfer": {
        "workload.matrixinfer.ai": "ModelInfer",
        "workload.serving.volcano.sh": "ModelInfer",
        "workload.volcano.sh": "ModelInfer",
    },
}
"""Kinds of each API group, by system. The pages about rules have this order."""
INDEX: Mapping[tuple[str, str], str] = {
    (group, kind): name
    for name, groups in _KINDS.items()
    for group, kinds in groups.items()
    for kind in kinds.split()
}
"""The system of each API group and kind."""
CLAIMING = frozenset(
    ("resource.k8s.io", kind) for kind in ("DeviceClass", "ResourceClaim", "ResourceClaimTemplate")
)
"""Kinds of objects that give devices to pods."""
COMPLETING = CLAIMING | frozenset(
    ("serving.kserve.io", kind) for kind in ("ClusterServingRuntime", "ServingRuntime")
)
"""Kinds of objects that complete others (`Kind.completes`)."""
WITHOUT_NAMESPACE = frozenset(
    pair for pair in COMPLETING if pair[1] in {"ClusterServingRuntime", "DeviceClass"}
)
"""Those of them that serve all namespaces of a cluster."""
NAMED_BY: Mapping[tuple[str, str], Sequence[str]] = {
    ("serving.kserve.io", "InferenceService"): ("spec", "predictor", "model", "runtime"),
    ("resource.nvidia.com", "ComputeDomain"): ("spec", "channel", "resourceClaimTemplate", "name"),
}
"""Kinds of objects that refer to them, with the fields that lead to the name."""
LABEL_OWNERS: Mapping[str, str] = {
    "apps.kubernetes.io/": "a StatefulSet",
    "batch.kubernetes.io/": "an indexed Job",
    "jobset.sigs.k8s.io/": "a JobSet",
    "leaderworkerset.sigs.k8s.io/": "a LeaderWorkerSet",
    "rbg.workloads.x-k8s.io/": "a RoleBasedGroup",
    "statefulset.kubernetes.io/": "a StatefulSet",
    "stormservice.orchestration.aibrix.ai/": "AIBrix",
    **dict.fromkeys(("volcano.sh/job-", "volcano.sh/task-index"), "a Volcano Job"),
}
"""Domains of labels and annotations that only one controller adds to pods."""
LABELS_BY_FIELD: Mapping[str, str] = {
    "jobset.sigs.k8s.io/coordinator": "spec.coordinator",
    **{
        f"leaderworkerset.sigs.k8s.io/subgroup-{name}": "spec.leaderWorkerTemplate.subGroupPolicy"
        for name in ("size", "policy-type")
    },
    **{
        f"stormservice.orchestration.aibrix.ai/{name}": "podGroupSize above 1"
        for name in ("pod-group-index", "podset-name")
    },
    "rbg.workloads.x-k8s.io/component-index": "leaderWorkerPattern",
}
"""Labels and annotations that a controller adds only if the object has this field."""
SYSTEMS: tuple[str, ...] = tuple(_KINDS)
"""The names of all systems."""
COMPARING = ("volcano", "kubernetes", "kthena", "ray", "kueue", "kai")
"""Systems with rules over all objects of a cluster, in the order of the index."""
COMPARING_OWN = frozenset({"ray"})
"""Those of them whose rules report nothing without an object of the system."""
EMITTERS = ("native", "kthena", "booster", "lws", "matrixinfer", "kaito", "kserve")
"""Systems for which a plan can be written, the default first."""


def find_system(name: str) -> "System":
    """Load a system by its name: a module, a package, or the module `system` of a package."""
    found = import_module(f"{__name__}.{name}")
    if not hasattr(found, "SYSTEM"):
        found = import_module(f"{found.__name__}.system")
    system: System = found.SYSTEM
    return system


@cache
def find_kind(group_kind: tuple[str, str]) -> "Kind[Any] | None":
    """Find a kind by its API group and name; None if unknown."""
    name = INDEX.get(group_kind)
    kinds = find_system(name).kinds if name is not None else ()
    return next((kind for kind in kinds if kind.group_kind == group_kind), None)


def all_systems() -> "Iterator[System]":
    """Load every system, in the order of the index."""
    return map(find_system, SYSTEMS)


@cache
def find_emitter(name: str) -> "Emitter | None":
    """Load only the emitter of a system; None if it has none."""
    if name not in EMITTERS:
        return None
    emitter: Emitter = import_module(f"{__name__}.{name}.emit").EMITTER
    return emitter


def extras() -> "dict[str, tuple[Resource, ...]]":
    """List what a stack may define besides its servings."""
    return {name: made for system in all_systems() for name, made in system.extras.items()}


def resources_of(
    emitters: Iterable[str] | None = None, beside: Iterable[str] = ()
) -> "tuple[Resource, ...]":
    """List the resources of an update, for servings of some systems and other objects.

    Args:
        emitters: Names of systems for which servings are written; all if left out.
        beside: Names of `extras` that a stack defines.
    """
    emitters = EMITTERS if emitters is None else emitters
    found = [made for name in emitters if (e := find_emitter(name)) for made in e.resources]
    known = extras() if beside else {}
    return tuple(dict.fromkeys([*found, *(made for name in beside for made in known[name])]))
