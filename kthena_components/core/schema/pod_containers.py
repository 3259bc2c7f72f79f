"""The variables, probes, hooks and ports of containers that Kubernetes accepts."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.findings import Finding, join_path
from kthena_components.core.naming import NAME_LIMIT, is_dns_name
from kthena_components.core.remedies import either, or_more, remove
from kthena_components.core.schema.metadata import check_domain, is_qualified, known, say
from kthena_components.core.schema.pod_amounts import check_resource_field
from kthena_components.core.values.display import display
from kthena_components.core.values.read import is_map, mapping, sequence, unknown_in, unknown_inside
from kthena_components.core.values.regex import regex

# The variables of containers that Kubernetes accepts.
#
# Source: kubernetes v1.34 pkg/apis/core/validation/validation.go ValidateEnv, ValidateEnvFrom.


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
_SUBSCRIPT = regex(r"metadata\.(labels|annotations)\['(.*)'\]")
_VARIABLE = regex(r"[ -<>-~]+")
"""The name of a variable: printable ASCII except `=`."""
_NAMES = "but the name of a variable is printable ASCII without '='"
_KEY = regex(r"[-._a-zA-Z0-9]+")
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_FROM = ("configMapRef", "secretRef")


def check_variables(item: Mapping[str, Any], path: str) -> Iterator[Finding]:
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
            yield from check_resource_field(fields, at)
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
    yield from check_domain(fields.get("name"), f"{path}.name", empty=True)
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
            yield from check_domain(name, f"{path}.{kind}.name")


# The probes, hooks and ports of containers that Kubernetes accepts.
#
# Source: kubernetes v1.34 pkg/apis/core/validation/validation.go validateProbe,
# validateLifecycle, validateHandler; k8s.io/apimachinery pkg/util/validation/validation.go
# IsValidPortName.


PROBES = ("startupProbe", "livenessProbe", "readinessProbe")
_HOOKED = (*PROBES, "lifecycle")
_HOOKS = ("postStart", "preStop")
_OF_PROBES = ("exec", "httpGet", "tcpSocket", "grpc")
_OF_HOOKS = ("exec", "httpGet", "tcpSocket", "sleep")
_COUNTS = (
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
)
_PORTS = 65_535
_LONGEST = 15
_GRACE = 30
"""Default of terminationGracePeriodSeconds."""


def check_hooks(
    item: Mapping[str, Any], path: str, pod: Mapping[str, Any], *, is_init: bool
) -> Iterator[Finding]:
    """Report probes and hooks of a container that Kubernetes rejects."""
    stated = [name for name in _HOOKED if item.get(name) is not None]
    if is_init and stated and item.get("restartPolicy") is None:
        for name in stated:
            seen = "is given, but an init container that ends has none"
            yield say(f"{path}.{name}", seen, either(remove(), "write restartPolicy: Always"))
        return
    for name in stated:
        probe, at = item[name], f"{path}.{name}"
        if name != "lifecycle" and is_map(probe) and not unknown_inside(probe):
            yield from _probe(probe, at, is_readiness=name == "readinessProbe")
    for name in _HOOKS if "lifecycle" in stated else ():
        hook = mapping(item["lifecycle"]).get(name)
        if is_map(hook) and not unknown_inside(hook):
            at = f"{path}.lifecycle.{name}"
            yield from _handler(hook, at, _OF_HOOKS)
            yield from _sleep(mapping(hook.get("sleep")).get("seconds"), at, pod)


def _probe(probe: Mapping[str, Any], path: str, *, is_readiness: bool) -> Iterator[Finding]:
    yield from _handler(probe, path, _OF_PROBES)
    for field in _COUNTS:
        number = probe.get(field)
        if isinstance(number, int) and number < 0:
            yield say(f"{path}.{field}", f"is {number}, but must be at least 0", or_more(0))
    successes = probe.get("successThreshold")
    if not is_readiness and isinstance(successes, int) and successes > 1:
        seen = f"is {successes}, but only a readiness probe needs several successes"
        yield say(f"{path}.successThreshold", seen, remove())
    grace = probe.get("terminationGracePeriodSeconds")
    if isinstance(grace, int) and (grace < 1 or is_readiness):
        what = "a readiness probe ends no container" if is_readiness else "must be at least 1"
        yield say(f"{path}.terminationGracePeriodSeconds", f"is {grace}, but {what}", remove())


def _handler(fields: Mapping[str, Any], path: str, known: tuple[str, ...]) -> Iterator[Finding]:
    stated = [name for name in known if fields.get(name) is not None]
    if len(stated) != 1:
        has = " and ".join(stated) or "no action"
        yield say(path, f"has {has}, but must have one of {', '.join(known)}", "write exactly one")
    command = fields.get("exec")
    if is_map(command) and not command.get("command"):
        yield say(f"{path}.exec.command", "is missing or empty", "write a command")
    for name in ("httpGet", "tcpSocket", "grpc"):
        action = fields.get(name)
        if is_map(action) and action.get("port") is not None:
            at = join_path(path, f"{name}.port")
            yield from check_port(action["port"], at, named=name != "grpc")
    scheme = mapping(fields.get("httpGet")).get("scheme")
    if isinstance(scheme, str) and scheme not in {"", "HTTP", "HTTPS"} and not unknown_in(scheme):
        seen = f"is {display(scheme)}, but must be HTTP or HTTPS"
        yield say(f"{path}.httpGet.scheme", seen, "write HTTP or HTTPS")


def _sleep(seconds: object, path: str, pod: Mapping[str, Any]) -> Iterator[Finding]:
    grace = pod.get("terminationGracePeriodSeconds")
    grace = _GRACE if grace is None else grace
    if isinstance(seconds, int) and isinstance(grace, int) and not 0 <= seconds <= grace:
        seen = f"is {seconds}, but the pod has {grace} s to end"
        yield say(f"{path}.sleep.seconds", seen, f"write 0 to {grace}")


def check_port(port: object, path: str, *, named: bool = False) -> Iterator[Finding]:
    """Report what is no port: 1 to 65535, or where it may be named, the name of one."""
    if isinstance(port, bool) or unknown_in(port):
        return
    if isinstance(port, int) and not 1 <= port <= _PORTS:
        yield say(path, f"is {port}, but a port is from 1 to {_PORTS}", "write for example 8000")
    elif named and isinstance(port, str) and not is_port_name(port):
        seen = f"is {display(port)}, which is neither a number from 1 to {_PORTS} nor a port's name"
        yield say(path, seen, "write for example 8000, without quotes")


def is_port_name(name: str) -> bool:
    """Return whether a text may be the name of a port."""
    fits = re.fullmatch("[a-z0-9](?:[-a-z0-9]*[a-z0-9])?", name) and len(name) <= _LONGEST
    return bool(fits) and "--" not in name and re.search("[a-z]", name) is not None
