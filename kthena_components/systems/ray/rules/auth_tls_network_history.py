"""KubeRay's rules about tokens, network policies, TLS, and the collector for a history server."""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.findings import Finding, not_checked, refuse
from kthena_components.core.naming import DNS_1123_LABEL, DNS_LABEL
from kthena_components.core.remedies import either, remove
from kthena_components.core.values.display import display
from kthena_components.core.values.read import (
    inside,
    mapping,
    require_known,
    sequence,
    text,
    unknown_inside,
    unknown_within,
)
from kthena_components.systems.ray.rules.autoscaler_and_fault_tolerance import env_of, needs_ray
from kthena_components.systems.ray.view import RayView

_AUTH = "ray-auth"
_TOKENS, _OF_KUBERNETES = (2, 52), (2, 55)
"""First releases of Ray with tokens, and with tokens of Kubernetes."""
_OPEN = {"DenyAllEgress": "ingressRules", "DenyAllIngress": "egressRules"}
"""The rules that each mode makes pointless."""
_TLS_VARIABLES = ("RAY_USE_TLS", "RAY_TLS_SERVER_CERT", "RAY_TLS_SERVER_KEY", "RAY_TLS_CA_CERT")
_VOLUME, _MOUNT = "ray-tls", "/etc/ray/tls"


def ray_auth(view: RayView) -> Iterator[Finding]:
    """A Ray cluster with token authentication has a rayVersion that supports it.

    This is 2.52, or 2.55 for tokens of Kubernetes. Those need mode token and no secretName, and
    only a RayCluster may use them.

    Pass: authOptions.mode token, rayVersion 2.52.0.
    Fail: mode token without rayVersion; enableK8sTokenAuth in a RayJob.
    Level: mandatory. KubeRay creates no pods for it.
    Source: ray-project/kuberay v1.7.0 ray-operator/controllers/ray/utils/validation.go
    ValidateRayClusterSpec, ValidateRayJobSpec, ValidateRayServiceSpec.
    """
    stated, path = view.fields.get("authOptions"), f"{view.path}.authOptions"
    options = mapping(stated)
    require_known(path, unknown_inside(stated))
    by_cluster, is_token = options.get("enableK8sTokenAuth") is True, options.get("mode") == "token"
    if is_token and view.has_since("1.5"):
        least = _OF_KUBERNETES if by_cluster else _TOKENS
        yield from needs_ray(view, least, "authOptions", _AUTH)
    if not by_cluster or not view.has_since("1.6"):
        return
    place = f"{path}.enableK8sTokenAuth"
    if not is_token:
        yield refuse(place, "is true, but mode is not token", "write mode: token")
    elif options.get("secretName") not in (None, ""):
        yield refuse(f"{path}.secretName", "is given beside enableK8sTokenAuth", remove())
    if view.object.kind in ("RayJob", "RayService"):
        seen = f"is true, but a {view.object.kind} takes no tokens of Kubernetes"
        yield refuse(place, seen, remove())


def ray_network_policy(view: RayView) -> Iterator[Finding]:
    """A network policy has rules only for traffic that its mode denies, and for existing groups.

    The names of the groups must be DNS labels. KubeRay accepts networkPolicy since 1.7, if the
    feature gate RayClusterNetworkPolicy is on, which `check` does not know.

    Pass: mode DenyAllIngress with head.ingressRules; workerGroups gpus, as a group is called.
    Fail: mode DenyAllEgress with worker.ingressRules; a group that does not exist.
    Level: mandatory. KubeRay creates no pods for it.
    Source: ray-project/kuberay v1.7.0 ray-operator/controllers/ray/utils/validation.go
    validateNetworkPolicy.
    """
    stated, path = view.fields.get("networkPolicy"), f"{view.path}.networkPolicy"
    names = [text(group.fields.get("groupName"), "") for group in view.workers]
    if stated is None or not view.has_since("1.7"):
        return
    listed = inside(stated, "workerGroups")
    groups = (inside(item, "groupName") for item in sequence(listed))
    shown = (view.fields.get("workerGroupSpecs"), *names, *groups)
    require_known(path, unknown_inside(stated, listed), *shown)
    policy = mapping(stated)
    own_groups = list(enumerate(map(mapping, sequence(listed))))
    places: list[tuple[str, Mapping[str, Any]]] = [
        (f"{path}.{name}", mapping(policy.get(name))) for name in ("head", "worker")
    ]
    places += [(f"{path}.workerGroups[{index}]", own) for index, own in own_groups]
    idle = _OPEN.get(str(policy.get("mode")))
    for place, rules in places:
        if idle is not None and sequence(rules.get(idle)):
            seen = f"are given, but mode {policy['mode']} denies nothing that they allow"
            yield refuse(f"{place}.{idle}", seen, "remove them, or write mode: DenyAll")
    for group, name in zip(view.workers, names, strict=True):
        if len(str(name)) > DNS_LABEL or not DNS_1123_LABEL.fullmatch(str(name)):
            seen = f"is {display(name)}, but the name of a NetworkPolicy contains it, so it must "
            seen += "be a DNS label"
            remedy = "write lower-case letters, digits and dashes"
            yield refuse(f"{group.path}.groupName", seen, remedy)
    for index, own in own_groups:
        if own.get("groupName") not in names:
            seen = f"is {display(own.get('groupName'))}, and no worker group has this name"
            at = f"{path}.workerGroups[{index}].groupName"
            yield refuse(at, seen, "write the name of a group")


def ray_tls(view: RayView) -> Iterator[Finding]:
    """With tlsOptions, no container has KubeRay's own variables, volume or path for TLS.

    KubeRay accepts tlsOptions since 1.7, if the feature gate RayClusterMTLS is on, which `check`
    does not know.

    Pass: tlsOptions.enabled true.
    Fail: tlsOptions.enabled true with the variable RAY_USE_TLS; a mount at /etc/ray/tls.
    Level: mandatory. KubeRay creates no pods for it.
    Source: ray-project/kuberay v1.7.0 ray-operator/controllers/ray/utils/validation.go
    validateTLSOptions.
    """
    stated = mapping(view.fields.get("tlsOptions")).get("enabled")
    require_known(f"{view.path}.tlsOptions", stated)
    if stated is not True or not view.has_since("1.7"):
        return
    scaler = mapping(view.fields.get("autoscalerOptions"))
    places = [
        (f"{group.path}.template.spec.containers[0]", group.container) for group in view.groups
    ]
    for path, container in [*places, (f"{view.path}.autoscalerOptions", scaler)]:
        if gap := unknown_inside(container.get("env"), container.get("volumeMounts")):
            yield not_checked(path, gap)
            continue
        for name in env_of(container):
            if name in _TLS_VARIABLES:
                seen = f"have {name}, which KubeRay sets itself"
                yield refuse(f"{path}.env", seen, remove())
        for index, mount in enumerate(map(mapping, sequence(container.get("volumeMounts")))):
            if mount.get("name") == _VOLUME or mount.get("mountPath") == _MOUNT:
                seen = f"is of {_VOLUME}, or at {_MOUNT}, which KubeRay mounts itself"
                remedy = either(remove(), "use another name and path")
                yield refuse(f"{path}.volumeMounts[{index}]", seen, remedy)


_CONTAINER = "ray-history-collector"
_COLLECTOR_VARIABLES = frozenset(
    {
        "POD_IP", "FQ_RAY_IP", "RAY_CLUSTER_NAME", "RAY_CLUSTER_NAMESPACE", "RAY_ROLE",
        "OWNER_KIND", "OWNER_NAME", "EVENTS_PORT",
    }
)  # fmt: skip
_BACKEND, _MODE = "STORAGE_BACKEND", "AZURE_STORAGE_AUTH_MODE"
_CONNECTION, _ACCOUNT = "AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_ACCOUNT_URL"
_NEEDS = {
    "GCS": ("GCS_BUCKET",),
    "S3": ("S3_REGION",),
    "ALIYUNOSS": ("OSS_BUCKET", "OSS_ENDPOINT", "OSS_REGION"),
}
_OF_AZURE = {
    "connection_string": (_CONNECTION,),
    "workload_identity": (_ACCOUNT,),
    "default": (_ACCOUNT,),
}


def ray_history_server(view: RayView) -> Iterator[Finding]:
    """The collector for a history server has an image and the variables of its storage.

    KubeRay sets the variables of the cluster and the container's name itself. It accepts
    historyServerOptions since 1.7, if the feature gate RayClusterHistoryServer is on, which
    `check` does not know.

    Pass: image collector:1.7, env STORAGE_BACKEND S3 and S3_REGION eu-central-1.
    Fail: no image; STORAGE_BACKEND GCS without GCS_BUCKET; a variable POD_IP.
    Level: mandatory. KubeRay creates no pods for it.
    Source: ray-project/kuberay v1.7.0 ray-operator/controllers/ray/utils/validation.go
    ValidateRayClusterSpec, validateCollectorOptions.
    """
    stated = view.fields.get("historyServerOptions")
    path = f"{view.path}.historyServerOptions.collectorOptions"
    if stated is None or not view.has_since("1.7"):
        return
    require_known(path, unknown_inside(stated))
    options = mapping(mapping(stated).get("collectorOptions"))
    if mapping(stated).get("collectorOptions") is None:
        yield refuse(path, "is missing", "add the collector's image and env")
        return
    if options.get("image") in (None, ""):
        yield refuse(f"{path}.image", "is missing", "write the collector's image")
    require_known(f"{path}.env", unknown_within(options.get("env")))
    listed = [mapping(item) for item in sequence(options.get("env"))]
    variables = {text(item.get("name")): item for item in listed}
    for index, item in enumerate(listed):
        name = text(item.get("name"))
        if name in _COLLECTOR_VARIABLES:
            seen = f"have {name}, which KubeRay sets itself"
            yield refuse(f"{path}.env", seen, remove(at=f"{path}.env[{index}]"))
    for name in _missing(variables):
        yield refuse(f"{path}.env", f"lack {name}", "add it")
    yield from _named_alike(view)


def _named_alike(view: RayView) -> Iterator[Finding]:
    for group in view.groups:
        for index, container in enumerate(map(mapping, sequence(group.pod_spec.get("containers")))):
            if container.get("name") == _CONTAINER:
                at = f"{group.path}.template.spec.containers[{index}].name"
                seen = f"is {_CONTAINER}, which is the name of the container that KubeRay adds"
                yield refuse(at, seen, "rename it")


def _missing(variables: Mapping[Any, Mapping[str, Any]]) -> list[str]:
    """List the variables that a storage backend of the history collector lacks."""
    backend = str(mapping(variables.get(_BACKEND)).get("value") or "").upper()
    if backend == "":
        return [f"{_BACKEND} with a value"]
    needed = _NEEDS.get(backend, ())
    if backend == "AZUREBLOB":
        mode = str(mapping(variables.get(_MODE)).get("value") or "").strip().lower()
        needed = _OF_AZURE.get(mode, ())
        if not needed and not any(_has(variables, name) for name in (_CONNECTION, _ACCOUNT)):
            return [f"{_CONNECTION} or {_ACCOUNT}"]
    return [name for name in needed if not _has(variables, name)]


def _has(variables: Mapping[Any, Mapping[str, Any]], name: str) -> bool:
    item = mapping(variables.get(name))
    return item.get("value") not in (None, "") or item.get("valueFrom") is not None
