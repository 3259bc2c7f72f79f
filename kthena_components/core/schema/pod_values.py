"""The values of fields that Kubernetes accepts in a pod template; pod.py has their types.

Source: kubernetes v1.34 pkg/apis/core/validation/validation.go ValidatePodTemplateSpec.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kthena_components.core.findings import Finding, join_path, suggest
from kthena_components.core.naming import DNS_1123_LABEL, DNS_LABEL
from kthena_components.core.remedies import remove
from kthena_components.core.schema.metadata import is_label_value, is_qualified
from kthena_components.core.schema.pod_amounts import RULE, judge_amounts, judge_resource_field
from kthena_components.core.schema.pod_probes import is_port_name, judge_hooks, judge_port
from kthena_components.core.values.display import display, key_text
from kthena_components.core.values.read import (
    first_unknown,
    is_map,
    mapping,
    pairs,
    sequence,
    unknown_in,
)

_POD_WORDS = {
    "restartPolicy": ("Always", "OnFailure", "Never"),
    "dnsPolicy": ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"),
    "preemptionPolicy": ("PreemptLowerPriority", "Never"),
}
_CONTAINER_WORDS = {
    "imagePullPolicy": ("Always", "IfNotPresent", "Never"),
    "terminationMessagePolicy": ("File", "FallbackToLogsOnError"),
}
_PROTOCOLS = {"protocol": ("TCP", "UDP", "SCTP")}
_TOLERATION_WORDS = {
    "operator": ("Exists", "Equal"),
    "effect": ("NoSchedule", "PreferNoSchedule", "NoExecute"),
}
_FIELD_PATHS = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
]
_SUBSCRIPT = re.compile(r"metadata\.(?:labels|annotations)\['(.*)'\]")
_VARIABLE = re.compile(r"[ -<>-~]+")
"""The name of a variable: printable ASCII except `=`."""
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_DNS = "which is not a DNS-1123 label: at most 63 lower-case letters, digits and dashes"


def judge_values(template: object, path: str, claims: Iterable[str] = ()) -> Iterator[Finding]:
    """Report values that Kubernetes rejects in any pod. Unknown values are left out.

    Args:
        template: The pod template, with the types of pod.py; others are left out.
        path: Its path.
        claims: Names of the volumes that its controller adds.
    """
    metadata, spec = mapping(mapping(template).get("metadata")), mapping(template).get("spec")
    yield from _labels(metadata.get("labels"), join_path(path, "metadata.labels"))
    pod, at = mapping(spec), join_path(path, "spec")
    yield from _words(pod, _POD_WORDS, at)
    yield from _labels(pod.get("nodeSelector"), join_path(at, "nodeSelector"))
    for index, item in enumerate(sequence(pod.get("tolerations"))):
        yield from _toleration(mapping(item), f"{at}.tolerations[{index}]")
    yield from _volumes(pod, at)
    volumes = _names(pod.get("volumes"))
    given = None if volumes is None else {*volumes, *claims}
    first: dict[str, str] = {}
    for field in ("initContainers", "containers"):
        for index, item in enumerate(sequence(pod.get(field))):
            own = f"{at}.{field}[{index}]"
            yield from _name(item, own, first)
            yield from _container(mapping(item), own, given)
            yield from judge_hooks(mapping(item), own, pod, is_init=field == "initContainers")


def _say(path: str, seen: str, remedy: str) -> Finding:
    return Finding(path=path, seen=seen, remedy=remedy, rule=RULE)


def _words(
    fields: Mapping[str, Any], words: Mapping[str, tuple[str, ...]], path: str
) -> Iterator[Finding]:
    for field, known in words.items():
        value = fields.get(field)
        if value == "" and field != "preemptionPolicy":
            continue  # the API server fills in its default
        if isinstance(value, str) and value not in known and not unknown_in(value):
            seen = f"is {display(value)}, but must be one of {', '.join(known)}"
            yield _say(join_path(path, field), seen, suggest(value, known))


def _labels(labels: object, path: str) -> Iterator[Finding]:
    for key, value in pairs(labels):
        if isinstance(key, str) and not unknown_in(key) and not is_qualified(key):
            yield _say(path, f"has the key {display(key)}, which no label may have", "rename it")
        if isinstance(value, str) and not unknown_in(value) and not is_label_value(value):
            seen = f"is {display(value)}, but a label's value has at most 63 letters, digits, '-', "
            seen += "'_' and '.', with a letter or digit at both ends"
            yield _say(join_path(path, key_text(key)), seen, "write for example 'chat'")


def _toleration(fields: Mapping[str, Any], path: str) -> Iterator[Finding]:
    yield from _words(fields, _TOLERATION_WORDS, path)
    key, operator, value = (fields.get(name) for name in ("key", "operator", "value"))
    if first_unknown(key, operator, value, fields.get("effect")):
        return
    if not key and operator != "Exists":
        yield _say(path, "has no key, but its operator is not Exists", "write operator: Exists")
    elif isinstance(key, str) and key and not is_qualified(key):
        yield _say(f"{path}.key", f"is {display(key)}, which no taint has", "write a taint's key")
    if operator == "Exists" and value:
        seen = f"is {display(value)}, but operator Exists matches any value"
        yield _say(f"{path}.value", seen, remove())
    elif isinstance(value, str) and not is_label_value(value):
        yield _say(
            f"{path}.value", f"is {display(value)}, which no taint has", "write a taint's value"
        )
    if fields.get("tolerationSeconds") is not None and fields.get("effect") != "NoExecute":
        seen = "is given, but only a toleration of effect NoExecute ends"
        yield _say(f"{path}.tolerationSeconds", seen, "write effect: NoExecute, or remove it")


def _name(item: object, path: str, first: dict[str, str]) -> Iterator[Finding]:
    """Report a name that is no DNS label, or that another item has."""
    name = mapping(item).get("name")
    # The schema of a kind tells whether a name may be left out, or empty.
    if not isinstance(name, str) or not name or unknown_in(name):
        return
    if len(name) > DNS_LABEL or not DNS_1123_LABEL.fullmatch(name):
        meant = re.sub("[^a-z0-9-]+", "-", name.lower()).strip("-")[:DNS_LABEL].strip("-")
        yield _say(f"{path}.name", f"is {display(name)}, {_DNS}", f"write '{meant or 'engine'}'")
    elif first.setdefault(name, path) != path:
        other = first[name].rpartition("spec.")[2]
        seen = f"is {display(name)}, like {other}, and names must be unique"
        yield _say(f"{path}.name", seen, "rename it or remove it")


def _names(items: object) -> set[str] | None:
    """List the names of items; None if one is not known yet."""
    if unknown_in(items):
        return None
    names = [item if unknown_in(item) else mapping(item).get("name") for item in sequence(items)]
    return None if any(map(unknown_in, names)) else {n for n in names if isinstance(n, str)}


def _volumes(pod: Mapping[str, Any], path: str) -> Iterator[Finding]:
    first: dict[str, str] = {}
    for index, item in enumerate(sequence(pod.get("volumes"))):
        at = f"{path}.volumes[{index}]"
        yield from _name(item, at, first)
        sources = [k for k, v in mapping(item).items() if k != "name" and v is not None]
        if len(sources) > 1:
            seen = f"has {' and '.join(map(key_text, sources))}, and a volume has one source"
            yield _say(at, seen, "remove all but one")
        yield from _files(mapping(item).get("downwardAPI"), f"{at}.downwardAPI")
        projected = mapping(mapping(item).get("projected")).get("sources")
        for number, source in enumerate(sequence(projected)):
            where = f"{at}.projected.sources[{number}].downwardAPI"
            yield from _files(mapping(source).get("downwardAPI"), where)


def _files(source: object, path: str) -> Iterator[Finding]:
    for index, file in enumerate(sequence(mapping(source).get("items"))):
        field = mapping(file).get("resourceFieldRef")
        at = f"{path}.items[{index}].resourceFieldRef"
        yield from judge_resource_field(field, at, in_volume=True)


def _container(item: Mapping[str, Any], path: str, volumes: set[str] | None) -> Iterator[Finding]:
    yield from _words(item, _CONTAINER_WORDS, path)
    image = item.get("image")
    if isinstance(image, str) and not unknown_in(image) and image != image.strip():
        yield _say(
            f"{path}.image", f"is {display(image)}, with blanks around it", "remove the blanks"
        )
    yield from judge_amounts(item.get("resources"), join_path(path, "resources"))
    for index, each in enumerate(sequence(item.get("env"))):
        yield from _variable(mapping(each), f"{path}.env[{index}]")
    yield from _ports(item.get("ports"), path)
    yield from _mounts(item, path, volumes)


def _variable(item: Mapping[str, Any], path: str) -> Iterator[Finding]:
    name, value, source = (item.get(key) for key in ("name", "value", "valueFrom"))
    if isinstance(name, str) and not unknown_in(name) and not _VARIABLE.fullmatch(name):
        seen = f"is {display(name)}, but the name of a variable is printable ASCII without '='"
        yield _say(f"{path}.name", seen, "rename it")
    if not is_map(source):
        return
    stated = [key for key in _SOURCES if source.get(key) is not None]
    if value and not unknown_in(value):
        yield _say(path, "has value and valueFrom, and a variable has one source", "remove one")
    if len(stated) != 1:
        has = " and ".join(stated) or "no source"
        seen = f"has {has}, and a variable has one source"
        yield _say(f"{path}.valueFrom", seen, f"write one of {', '.join(_SOURCES[:4])}")
    field = mapping(source.get("fieldRef")).get("fieldPath")
    if isinstance(field, str) and not unknown_in(field) and field not in _FIELD_PATHS:
        key = _SUBSCRIPT.fullmatch(field)
        if key is None or not is_qualified(key[1].lower()):
            seen = f"is {display(field)}, which no variable can read"
            at = f"{path}.valueFrom.fieldRef.fieldPath"
            yield _say(
                at, seen, f"write one of {', '.join(_FIELD_PATHS)}, or metadata.labels['key']"
            )
    asked = source.get("resourceFieldRef")
    yield from judge_resource_field(asked, f"{path}.valueFrom.resourceFieldRef")


def _ports(ports: object, path: str) -> Iterator[Finding]:
    first: dict[str, int] = {}
    for index, each in enumerate(sequence(ports)):
        item, at = mapping(each), f"{path}.ports[{index}]"
        yield from _words(item, _PROTOCOLS, at)
        yield from judge_port(item.get("containerPort"), f"{at}.containerPort")
        yield from judge_port(item.get("hostPort") or None, f"{at}.hostPort")
        name = item.get("name")
        if not isinstance(name, str) or not name or unknown_in(name):
            continue
        if not is_port_name(name):
            seen = (
                f"is {display(name)}, but a port's name has at most 15 lower-case letters, digits "
            )
            seen += "and single dashes, and at least one letter"
            yield _say(f"{at}.name", seen, "write for example 'http'")
        elif first.setdefault(name, index) != index:
            seen = f"is {display(name)}, like ports[{first[name]}], and names must be unique"
            yield _say(f"{at}.name", seen, "rename it or remove it")


def _mounts(item: Mapping[str, Any], path: str, volumes: set[str] | None) -> Iterator[Finding]:
    first: dict[str, int] = {}
    for index, each in enumerate(sequence(item.get("volumeMounts"))):
        mount, at = mapping(each), f"{path}.volumeMounts[{index}]"
        name, place = mount.get("name"), mount.get("mountPath")
        known = isinstance(name, str) and not unknown_in(name)
        if known and volumes is not None and name not in volumes:
            remedy = suggest(str(name), volumes) if volumes else "add the volume to the pod"
            yield _say(f"{at}.name", f"is {display(name)}, but the pod has no such volume", remedy)
        if place == "":
            yield _say(f"{at}.mountPath", "is empty", "write the path to mount the volume at")
        elif isinstance(place, str) and not unknown_in(place):
            yield from _mounted_once(place, index, first, at)
        both = (mount.get("subPath"), mount.get("subPathExpr"))
        if all(both) and not first_unknown(*both):
            yield _say(at, "has subPath and subPathExpr", "remove one")


def _mounted_once(place: str, index: int, first: dict[str, int], path: str) -> Iterator[Finding]:
    before = first.setdefault(place, index)
    if before != index:
        seen = f"is {display(place)}, like volumeMounts[{before}], and each path is mounted once"
        yield _say(f"{path}.mountPath", seen, "write another path, or remove the mount")
