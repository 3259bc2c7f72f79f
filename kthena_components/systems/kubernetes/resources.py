"""Kubernetes' own resources that an update writes, or reads while it waits."""

from kthena_components.core.plan.rights import READ, Resource

STATEFUL_SETS = Resource(api_version="apps/v1", kind="StatefulSet", plural="statefulsets")
SERVICES = Resource(api_version="v1", kind="Service", plural="services")
CONFIG_MAPS = Resource(api_version="v1", kind="ConfigMap", plural="configmaps")
BUDGETS = Resource(
    api_version="policy/v1", kind="PodDisruptionBudget", plural="poddisruptionbudgets"
)
SECRETS = Resource(api_version="v1", kind="Secret", plural="secrets")
CLAIM_TEMPLATES = Resource(
    api_version="resource.k8s.io/v1",
    kind="ResourceClaimTemplate",
    plural="resourceclaimtemplates",
)
ENDPOINTS = Resource(api_version="v1", kind="Endpoints", plural="endpoints", verbs=READ)
PODS = Resource(api_version="v1", kind="Pod", plural="pods", verbs=READ)
