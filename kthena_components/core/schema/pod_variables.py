"""The variables of containers that Kubernetes accepts.

Source: kubernetes v1.34 pkg/apis/core/validation/validation.go ValidateEnv, ValidateEnvFrom.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.findings import Finding
from kthena_components.core.naming import NAME_LIMIT, is_dns_name
from kthena_components.core.schema.metadata import is_qualified
from kthena_components.core.schema.pod_amounts import judge_resource_field
from kthena_components.core.schema.pod_texts import judge_domain, known, say
from kthena_components.core.values.display import display
from kthena_components.core.values.read import is_map, mapping, sequence, unknown_in

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
_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['(.*)'\]")
_VARIABLE = re.compile(r"[ -<>-~]+")
"""The name of a variable: printable ASCII except `=`."""
_NAMES = "but the name of a variable is printable ASCII without '='"
_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_FROM = ("configMapRef", "secretRef")


def judge_variables(item: Mapping[str, Any], path: str) -> Iterator[Finding]:
    """Report variables of a container that Kubernetes rejects."""
    for index, each in enumerate(sequence(item.get("env"))):
        yield from _variable(mapping(each), f"{path}.env[{index}]")
    for index, each in enumerate(sequence(item.get("envFrom"))):
        if is_map(each):
            yield from _from(each, f"{path}.envFrom[{index}]")


def _variable(item: Mapping[str, Any], path: str) -> Iterator[Finding]:
    name, value, source = (item.get(key) for key in ("name", "value", "valueFrom"))
    if known(name) is not None and not _VARIABLE.fullmatch(str(name)):
        yield say(f"{path}.name", f"is {display(name)}, {_NAMES}", "rename it")
    if source is None or not is_map(source):
        return
    stated = [key for key in _SOURCES if source.get(key) is not None]
    if value and not unknown_in(value):
        yield say(path, "has value and valueFrom, and a variable has one source", "remove one")
    if len(stated) != 1:
        has = " and ".join(stated) or "no source"
        seen = f"has {has}, and a variable has one source"
        yield say(f"{path}.valueFrom", seen, f"write one of {', '.join(_SOURCES[:4])}")
    for kind in stated:
        fields, at = source[kind], f"{path}.valueFrom.{kind}"
        if kind == "fieldRef":
            yield from _field(mapping(fields), at)
        elif kind == "resourceFieldRef":
            yield from judge_resource_field(fields, at)
        elif kind in {"configMapKeyRef", "secretKeyRef"}:
            yield from _key(mapping(fields), at)


def _field(fields: Mapping[str, Any], path: str) -> Iterator[Finding]:
    place = known(fields.get("fieldPath"))
    if place is None or place in _FIELD_PATHS:
        return
    found = _SUBSCRIPT.fullmatch(place)
    key = found and (found[2].lower() if found[1] == "annotations" else found[2])
    if not key or not is_qualified(key):
        seen = f"is {display(place)}, which no variable can read"
        remedy = f"write one of {', '.join(_FIELD_PATHS)}, or metadata.labels['key']"
        yield say(f"{path}.fieldPath", seen, remedy)


def _key(fields: Mapping[str, Any], path: str) -> Iterator[Finding]:
    yield from judge_domain(fields.get("name"), f"{path}.name", empty=True)
    key = known(fields.get("key"))
    if not key:
        return
    fits = _KEY.fullmatch(key) and len(key) <= NAME_LIMIT
    if not fits or key == "." or key.startswith(".."):
        seen = f"is {display(key)}, but a key has letters, digits, '-', '_' and '.'"
        yield say(f"{path}.key", seen, "write a key of the object")


def _from(item: Mapping[str, Any], path: str) -> Iterator[Finding]:
    prefix = known(item.get("prefix"))
    if prefix and not _VARIABLE.fullmatch(prefix):
        yield say(f"{path}.prefix", f"is {display(prefix)}, {_NAMES}", "rename it")
    stated = [kind for kind in _FROM if item.get(kind) is not None]
    if len(stated) != 1:
        has = " and ".join(stated) or "no source"
        seen = f"has {has}, and each item has one source"
        yield say(path, seen, f"write one of {' and '.join(_FROM)}")
    for kind in stated:
        name = known(mapping(item[kind]).get("name"))
        # A trailing dash is accepted here.
        if name and not is_dns_name(f"{name[:-1]}a" if name.endswith("-") else name):
            yield from judge_domain(name, f"{path}.{kind}.name")
