"""KubeRay's rules about tokens, network policies and TLS. A rule's docstring documents it."""

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
)
from kthena_components.systems.ray.rules.autoscaler import env_of, needs_ray
from kthena_components.systems.ray.view import RayView

_AUTH = "ray-auth"
_TOKENS, _OF_KUBERNETES = (2, 52), (2, 55)
"""First releases of Ray with tokens, and with tokens of Kubernetes."""
_OPEN = {"DenyAllEgress": "ingressRules", "DenyAllIngress": "egressRules"}
"""The rules that each mode makes pointless."""
_OWN = ("RAY_USE_TLS", "RAY_TLS_SERVER_CERT", "RAY_TLS_SERVER_KEY", "RAY_TLS_CA_CERT")
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
            seen = f"are given, but mode {policy['mode']} denies nothing of the kind"
            yield refuse(f"{place}.{idle}", seen, "remove them, or write mode: DenyAll")
    for group, name in zip(view.workers, names, strict=True):
        if len(str(name)) > DNS_LABEL or not DNS_1123_LABEL.fullmatch(str(name)):
            seen = f"is {display(name)}, but part of a policy's name, and so a DNS label"
            remedy = "write lower-case letters, digits and dashes"
            yield refuse(f"{group.path}.groupName", seen, remedy)
    for index, own in own_groups:
        if own.get("groupName") not in names:
            seen = f"is {display(own.get('groupName'))}, and no group of workers is called so"
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
            if name in _OWN:
                seen = f"have {name}, which KubeRay sets itself"
                yield refuse(f"{path}.env", seen, remove())
        for index, mount in enumerate(map(mapping, sequence(container.get("volumeMounts")))):
            if mount.get("name") == _VOLUME or mount.get("mountPath") == _MOUNT:
                seen = f"is of {_VOLUME}, or at {_MOUNT}, which KubeRay mounts itself"
                remedy = either(remove(), "use another name and path")
                yield refuse(f"{path}.volumeMounts[{index}]", seen, remedy)
