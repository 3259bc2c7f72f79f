"""The values of fields that Kubernetes accepts in a pod template; pod.py has their types.

Source: kubernetes v1.34 pkg/apis/core/validation/validation.go ValidatePodTemplateSpec.
"""

import marshal
from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.findings import Finding, Level, join_path
from kthena_components.core.schema.metadata import (
    check_domain,
    check_label_name,
    check_labels,
    check_words,
    is_label,
    is_qualified,
    known,
    say,
)
from kthena_components.core.schema.pod import check_limits
from kthena_components.core.schema.pod_containers import (
    check_amounts,
    check_hooks,
    check_pod_amounts,
    check_variables,
)
from kthena_components.core.schema.pod_host_and_placement import (
    check_host,
    check_names,
    check_placement,
    check_ports,
    check_profiles,
    check_security,
    check_sysctls,
)
from kthena_components.core.schema.pod_volumes import (
    NONE_ADDED,
    Added,
    check_mounts,
    check_volumes,
    volumes_of,
)
from kthena_components.core.values.display import display
from kthena_components.core.values.read import first_unknown, mapping, sequence, unknown_in

_POD_WORDS = {
    "restartPolicy": ("Always", "OnFailure", "Never"),
    "dnsPolicy": ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"),
    "preemptionPolicy": ("PreemptLowerPriority", "Never"),
}
_CONTAINER_WORDS = {
    "imagePullPolicy": ("Always", "IfNotPresent", "Never"),
    "terminationMessagePolicy": ("File", "FallbackToLogsOnError"),
}
_NAMES = ("nodeName", "priorityClassName", "serviceAccountName")
_HOST_NAMES = ("hostname", "subdomain")
_GATES = {"readinessGates": "conditionType", "schedulingGates": "name"}
_RARE = frozenset(
    {*_NAMES, *_HOST_NAMES, *_GATES, "runtimeClassName", "securityContext", "resourceClaims"}
    | {"nodeSelector", "tolerations", "affinity", "topologySpreadConstraints"}
    | {"dnsConfig", "dnsPolicy", "hostAliases"}
)
_RARE_IN_CONTAINERS = frozenset({"securityContext", "resizePolicy", "restartPolicy"})
_MOVED = "write it in the pod's spec, unless the cluster runs Kubernetes 1.35 or newer"
_CLAIMS = ("resourceClaimName", "resourceClaimTemplateName")
_ITS_OWN = frozenset({"name", "command", "args", "env"})
"""Fields of containers that differ between servings, and are checked each time or not here."""
_OF_OTHERS = frozenset({"affinity", "containers", "initContainers"})
"""Fields of a pod that decide nothing about one of its containers."""
_WITHOUT_REFERENCES = 2
"""A format of marshal in which equal values are equal strings."""
_REMEMBERED = 1000
_FAULTLESS: set[tuple[object, ...]] = set()
"""Containers in which nothing was found, by `_key_of`."""


def check_values(template: object, path: str, added: Added = NONE_ADDED) -> Iterator[Finding]:
    """Report values that Kubernetes rejects in any pod. Unknown values are left out.

    Args:
        template: The pod template, with the types of pod.py; others are left out.
        added: The volumes that are added to it.
    """
    metadata, spec = mapping(mapping(template).get("metadata")), mapping(template).get("spec")
    yield from check_labels(metadata.get("labels"), join_path(path, "metadata.labels"))
    pod, at = mapping(spec), join_path(path, "spec")
    yield from _annotations(metadata.get("annotations"), join_path(path, "metadata.annotations"))
    yield from check_limits(pod, at)
    yield from check_words(pod, _POD_WORDS, at)
    if not _RARE.isdisjoint(pod):  # most pods have none of them
        yield from _rare(pod, at)
        yield from check_placement(pod, at, mapping(metadata.get("labels")))
        yield from check_names(pod, at)
    if "resources" in pod:
        yield from check_pod_amounts(pod, at)
    yield from check_host(pod, at)
    yield from check_volumes(pod, at)
    volumes = volumes_of(pod)
    first: dict[str, str] = {}
    for field in ("initContainers", "containers"):
        for index, item in enumerate(sequence(pod.get(field))):
            own, container = f"{at}.{field}[{index}]", mapping(item)
            yield from _name(container, own, first)
            key = _key_of(container, pod, field, added)
            if key in _FAULTLESS:
                yield from check_variables(container, own)
                continue
            found = list(_of_container(container, own, pod, volumes, added))
            yield from found
            if not found and key is not None:
                if len(_FAULTLESS) >= _REMEMBERED:
                    _FAULTLESS.clear()
                _FAULTLESS.add(key)


def _key_of(
    container: Mapping[str, Any], pod: Mapping[str, Any], field: str, added: Added
) -> tuple[object, ...] | None:
    """Return what decides whether a container is faultless, but its variables; None if unknown.

    The containers of many pods differ in their names, words and variables only, of which the first
    two decide nothing here.
    """
    own = [pair for pair in container.items() if pair[0] not in _ITS_OWN]
    beside = [pair for pair in pod.items() if pair[0] not in _OF_OTHERS]
    try:
        # Only plain values can be written so. Others are unknown, and rare.
        text = marshal.dumps((own, beside), _WITHOUT_REFERENCES)
    except ValueError:
        return None
    return field, frozenset(added.claims), added.names, text


def _of_container(
    container: Mapping[str, Any],
    path: str,
    pod: Mapping[str, Any],
    volumes: Mapping[str, Any] | None,
    added: Added,
) -> Iterator[Finding]:
    """Check one container; fields that few containers have are only then looked at."""
    is_init = path.rpartition(".")[2].startswith("initContainers")
    yield from _container(container, path, pod)
    yield from check_mounts(container, path, volumes, added)
    yield from check_hooks(container, path, pod, is_init=is_init)
    if not _RARE_IN_CONTAINERS.isdisjoint(container):
        yield from check_security(container, path, pod)
        yield from _resizes(container, path, pod)
        yield from _restarts(container, path, is_init=is_init)


def _annotations(annotations: object, path: str) -> Iterator[Finding]:
    for key in mapping(annotations):
        name = known(key)
        if name is not None and not is_qualified(name.lower()):
            seen = f"has the key {display(key)}, which no annotation may have"
            yield say(path, seen, "rename it")


def _rare(pod: Mapping[str, Any], path: str) -> Iterator[Finding]:
    """Check fields that few pods have: names, gates, security and resource claims."""
    for field in _NAMES:
        yield from check_domain(pod.get(field), f"{path}.{field}", empty=True)
    yield from check_domain(pod.get("runtimeClassName"), f"{path}.runtimeClassName")
    for field in _HOST_NAMES:
        yield from check_label_name(pod.get(field), f"{path}.{field}", "chat")
    for field, key in _GATES.items():
        for index, item in enumerate(sequence(pod.get(field))):
            name = known(mapping(item).get(key))
            if name is not None and not is_qualified(name):
                seen = f"is {display(name)}, which is not a name of a condition or gate"
                yield say(f"{path}.{field}[{index}].{key}", seen, "rename it")
    context = mapping(pod.get("securityContext"))
    if context:
        yield from check_profiles(context, f"{path}.securityContext")
        yield from check_sysctls(context, f"{path}.securityContext")
    yield from _resource_claims(pod, path)


def _resource_claims(pod: Mapping[str, Any], path: str) -> Iterator[Finding]:
    """Check resource claims of a pod: names that differ, and one source for each."""
    first: dict[str, int] = {}
    for index, item in enumerate(sequence(pod.get("resourceClaims"))):
        fields, at = mapping(item), f"{path}.resourceClaims[{index}]"
        name = known(fields.get("name"))
        yield from check_label_name(name, f"{at}.name", "gpus")
        if name and first.setdefault(name, index) != index:
            seen = f"is {display(name)}, like resourceClaims[{first[name]}]"
            yield say(f"{at}.name", f"{seen}, and names must be unique", "rename it or remove it")
        stated = [each for each in _CLAIMS if fields.get(each) is not None]
        if len(stated) != 1 and fields:
            has = " and ".join(stated) or "no source"
            yield say(at, f"has {has}, but must have one of {' and '.join(_CLAIMS)}", "write one")
        for each in stated:
            yield from check_domain(fields[each], f"{at}.{each}")


def _claims(pod: Mapping[str, Any]) -> set[str] | None:
    """Return the names of a pod's resource claims; None if one is not known yet."""
    items = pod.get("resourceClaims")
    names = [item if unknown_in(item) else mapping(item).get("name") for item in sequence(items)]
    if first_unknown(items, *names):
        return None
    return {name for name in names if isinstance(name, str)}


def _claimed(asked: object, path: str, claims: set[str] | None) -> Iterator[Finding]:
    """Check the claims that a container uses: they exist in the pod, and none is used twice."""
    first: dict[tuple[str, object], int] = {}
    for index, each in enumerate(sequence(asked)):
        at, request = f"{path}[{index}]", known(mapping(each).get("request")) or None
        name = known(mapping(each).get("name"))
        if not name or unknown_in(mapping(each).get("request")):
            continue
        if claims is not None and name not in claims:
            seen = f"is {display(name)}, but the pod has no such resourceClaim"
            yield say(f"{at}.name", seen, "add it to the pod's resourceClaims")
        both = {other for other, _ in first} == {name} and (
            request is None or (name, None) in first
        )
        if both or (name, request) in first:
            yield say(f"{at}.name", f"is {display(name)}, like another item", "remove one")
        first.setdefault((name, request), index)


def _name(item: Mapping[str, Any], path: str, first: dict[str, str]) -> Iterator[Finding]:
    """Report a container's name that is not a DNS label, or that another one has."""
    name = known(item.get("name"))
    yield from check_label_name(name, f"{path}.name", "engine")
    if name and is_label(name) and first.setdefault(name, path) != path:
        other = first[name].rpartition("spec.")[2]
        seen = f"is {display(name)}, like {other}, and names must be unique"
        yield say(f"{path}.name", seen, "rename it or remove it")


def _container(item: Mapping[str, Any], path: str, pod: Mapping[str, Any]) -> Iterator[Finding]:
    """Check what nearly every container has: image, resources, variables and ports."""
    yield from check_words(item, _CONTAINER_WORDS, path)
    image = known(item.get("image"))
    if image is not None and image != image.strip():
        yield say(
            f"{path}.image", f"is {display(image)}, with blanks around it", "remove the blanks"
        )
    if (resources := item.get("resources")) is not None:
        yield from check_amounts(resources, f"{path}.resources")
        if (claims := mapping(resources).get("claims")) is not None:
            yield from _claimed(claims, f"{path}.resources.claims", _claims(pod))
    yield from check_variables(item, path)
    yield from check_ports(item, path)


def _resizes(item: Mapping[str, Any], path: str, pod: Mapping[str, Any]) -> Iterator[Finding]:
    """Check resizePolicy: each resource once, and no restart in a pod that never restarts."""
    first: dict[str, int] = {}
    for index, each in enumerate(sequence(item.get("resizePolicy"))):
        at, fields = f"{path}.resizePolicy[{index}]", mapping(each)
        name = known(fields.get("resourceName"))
        if name and first.setdefault(name, index) != index:
            seen = f"is {display(name)}, like resizePolicy[{first[name]}]"
            yield say(f"{at}.resourceName", seen, "remove one")
        if (
            pod.get("restartPolicy") == "Never"
            and fields.get("restartPolicy") == "RestartContainer"
        ):
            seen = "is RestartContainer, but the pod's restartPolicy is Never"
            yield say(f"{at}.restartPolicy", seen, "write NotRequired")


def _restarts(item: Mapping[str, Any], path: str, *, is_init: bool) -> Iterator[Finding]:
    """Report a container's own restartPolicy, which is new in Kubernetes 1.35."""
    policy = known(item.get("restartPolicy"))
    if policy and not (is_init and policy == "Always"):
        seen = (
            f"is {display(policy)}, which Kubernetes before 1.35 drops: there, only initContainers "
        )
        seen += "have a restartPolicy of their own, Always"
        yield say(f"{path}.restartPolicy", seen, _MOVED, Level.ADVISORY)
