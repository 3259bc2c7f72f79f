"""The variables, probes, hooks, ports and resources that Kubernetes accepts in containers and pods.

Source: kubernetes pkg/apis/core/validation/validation.go validateResourceRequirements,
validateContainerResourceName, validateContainerResourceFieldSelector, validatePodResourceName and
validatePodResourceConsistency.
"""

import re
from collections.abc import Container, Iterator, Mapping
from decimal import Decimal
from math import ceil
from typing import Any

from kthena_components.core.findings import Finding, join_path, suggest_name
from kthena_components.core.naming import NAME_LIMIT, is_dns_name
from kthena_components.core.remedies import either, or_more, remove
from kthena_components.core.schema.metadata import check_domain, is_qualified, known, say
from kthena_components.core.templates import HOOKS, PROBES
from kthena_components.core.values.blanks import TO_REPLACE
from kthena_components.core.values.display import display, key_text
from kthena_components.core.values.quantity import is_accelerator, parse_quantity, render_quantity
from kthena_components.core.values.read import (
    MAX_PORT,
    is_map,
    mapping,
    pairs,
    sequence,
    unknown_in,
    unknown_inside,
)
from kthena_components.core.values.regex import regex

_STANDARD = ("cpu", "memory", "ephemeral-storage")
_PAGES = "hugepages-"
FIELDS = tuple(f"{kind}.{name}" for kind in ("limits", "requests") for name in _STANDARD)
"""What a resourceFieldRef may name, beside huge pages."""
_PARTS = frozenset({Decimal(1), Decimal("0.001")})
_UNITS = frozenset(
    Decimal(base) ** power for base in (1000, 1024) for power in range(7)
)  # 1, 1k to 1E, 1Ki to 1Ei


def check_amounts(resources: object, path: str) -> Iterator[Finding]:
    """Report amounts of a container that no pod may have. Unknown ones are left out."""
    limits, requests = (_amounts(mapping(resources).get(key)) for key in ("limits", "requests"))
    if not limits and not requests:
        return
    for kind, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            yield from _amount(name, amount, amounts, join_path(path, f"{kind}.{key_text(name)}"))
    if unknown_in(resources) or unknown_in(mapping(resources).get("limits")):
        return
    stated = mapping(mapping(resources).get("limits"))
    for name, amount in requests.items():
        at = join_path(path, f"requests.{key_text(name)}")
        if name in limits:
            yield from _compared(name, amount, limits[name], at, _as_stated(stated[name]))
        elif name not in stated and not _is_shared(name) and not is_accelerator(name):
            seen = f"is {render_quantity(amount)}, but there is no limit, and {_WHOLE}"
            yield say(at, seen, f"add the limit {render_quantity(amount)}")
    if any(n.startswith(_PAGES) for n in (*limits, *requests)):
        named = {*limits, *requests, *stated}
        if named.isdisjoint(_STANDARD[:2]) and not unknown_in(mapping(resources).get("requests")):
            yield say(path, "has huge pages, but neither cpu nor memory", "add cpu or memory")


def check_pod_amounts(pod: Mapping[str, Any], path: str) -> Iterator[Finding]:
    """Report amounts for all containers of a pod together: only CPU, memory and huge pages."""
    resources, at = mapping(pod.get("resources")), join_path(path, "resources")
    for kind in ("limits", "requests"):
        for name in _amounts(resources.get(kind)):
            if not _is_of_pods(name):
                seen = "is for the whole pod, which only cpu, memory and huge pages may be"
                where = join_path(at, f"{kind}.{key_text(name)}")
                yield say(where, seen, "move it to resources of a container")
    if resources.get("claims") and not unknown_in(resources["claims"]):
        seen = "is for the whole pod, which no claim may be"
        yield say(f"{at}.claims", seen, "move it to resources of a container")
    kept = {
        kind: {name: amount for name, amount in pairs(resources.get(kind)) if _is_of_pods(name)}
        for kind in ("limits", "requests")
    }
    yield from check_amounts(kept, at)
    yield from _beside_pod(pod, resources, path)


def _is_of_pods(name: object) -> bool:
    """Return whether an amount may be for a whole pod.

    Source: k8s.io/component-helpers v0.34 resource/helpers.go IsSupportedPodLevelResource.
    """
    return name in {"cpu", "memory"} or str(name).startswith(_PAGES)


def _beside_pod(pod: Mapping[str, Any], whole: Mapping[str, Any], path: str) -> Iterator[Finding]:
    """Compare the amounts of containers with those of their pod."""
    containers = [mapping(each) for each in sequence(pod.get("containers"))]
    most, least = _amounts(whole.get("limits")), _amounts(whole.get("requests"))
    asked: dict[str, Decimal] = {}
    for index, each in enumerate(containers):
        own = mapping(each.get("resources"))
        limits, requests = _amounts(own.get("limits")), _amounts(own.get("requests"))
        # A request that is not stated equals the limit; one that is not known counts as nothing.
        hidden = own.get("requests")
        known = limits if unknown_in(hidden) is None else {}
        usual = {name: known[name] for name in known if name not in mapping(hidden)}
        for name, amount in {**usual, **requests}.items():
            asked[name] = asked.get(name, Decimal(0)) + amount
        for name in limits:
            if name in most and limits[name] > most[name]:
                at = f"{path}.containers[{index}].resources.limits.{key_text(name)}"
                seen = f"is {render_quantity(limits[name])}, more than the pod's limit "
                seen += render_quantity(most[name])
                yield say(at, seen, f"write {render_quantity(most[name])} or less")
    for name, amount in least.items():
        if asked.get(name, amount) > amount:
            at = join_path(path, f"resources.requests.{key_text(name)}")
            seen = f"is {render_quantity(amount)}, but its containers request "
            seen += render_quantity(asked[name])
            yield say(at, seen, f"write {render_quantity(asked[name])}")


_WHOLE = "the limit and the request of a device or of huge pages are equal"


def _amounts(stated: object) -> dict[str, Decimal]:
    found = {name: parse_quantity(amount) for name, amount in pairs(stated)}
    return {n: a for n, a in found.items() if isinstance(n, str) and a is not None}


def _is_shared(name: str) -> bool:
    """Return whether a resource may be requested in part: Kubernetes' own, except huge pages."""
    return ("/" not in name or "kubernetes.io/" in name) and not name.startswith(_PAGES)


def _amount(name: str, amount: Decimal, stated: Container[str], path: str) -> Iterator[Finding]:
    standard = name in _STANDARD or TO_REPLACE.fullmatch(name) is not None
    if "/" not in name and not standard and not name.startswith(_PAGES):
        seen = f"{display(name)} is not a resource of a container"
        yield say(path, seen, suggest_name(name, _STANDARD, stated))
    elif not is_qualified(f"requests.{name}" if not _is_shared(name) else name):
        yield say(path, f"{display(name)} is not the name of a resource", "rename it")
    if amount < 0:
        yield say(path, f"is {render_quantity(amount)}, but must be at least 0", or_more(0))
    elif not _is_shared(name) and not name.startswith(_PAGES) and amount != int(amount):
        seen = f"is {render_quantity(amount)}, and an amount of devices is a whole number"
        yield say(path, seen, f"write {ceil(amount)}")
    elif name.startswith(_PAGES):
        size = parse_quantity(name.removeprefix(_PAGES))
        if size is not None and size > 0 and amount % size:
            seen = f"is {render_quantity(amount)}, which is not a multiple of the size of a page"
            yield say(path, seen, f"write {render_quantity(size * ceil(amount / size))}")


def _compared(
    name: str, amount: Decimal, limit: Decimal, path: str, most: str
) -> Iterator[Finding]:
    """Compare a request with its limit, which is written like `most`."""
    if amount > limit and not (is_accelerator(name) and limit >= 0):
        seen = f"is {render_quantity(amount)}, more than the limit {most}"
        yield say(path, seen, f"write {most} or less, or raise the limit")
    elif amount != limit and not _is_shared(name) and not is_accelerator(name):
        yield say(path, f"is {render_quantity(amount)}, but the limit is {most}, and {_WHOLE}",
                  f"write {most}")  # fmt: skip


def _as_stated(amount: object) -> str:
    """Write an amount as in the manifest: 64M is easier to find there than 62500Ki."""
    return amount if isinstance(amount, str) else display(amount)


def check_resource_field(field: object, path: str, *, in_volume: bool = False) -> Iterator[Finding]:
    """Report a resourceFieldRef that names what it cannot read."""
    asked: Mapping[str, Any] = mapping(field)
    name = asked.get("resource")
    if isinstance(name, str) and not unknown_in(name):
        kind, _, resource = name.partition(".")
        pages = kind in {"limits", "requests"} and resource.startswith(_PAGES)
        if name not in FIELDS and not pages:
            seen = f"is {display(name)}, but only CPU, memory and storage have such a field"
            yield say(f"{path}.resource", seen, f"write one of {', '.join(FIELDS)}")
    yield from _divisor(asked, path)
    if in_volume and field is not None and not unknown_in(field) and not asked.get("containerName"):
        yield say(path, "has no containerName, which a volume needs", "add containerName")


def _divisor(asked: Mapping[str, Any], path: str) -> Iterator[Finding]:
    """Check the divisor of a resourceFieldRef: units of CPU, or of bytes."""
    name, divisor = asked.get("resource"), parse_quantity(asked.get("divisor"))
    if not isinstance(name, str) or unknown_in(name) or not divisor:
        return
    is_cpu = name.endswith(".cpu")
    if divisor not in (_PARTS if is_cpu else _UNITS):
        units = "1 or 1m" if is_cpu else "1 or a unit, such as 1Mi or 1G"
        yield say(f"{path}.divisor", f"is {display(asked['divisor'])}, but must be {units}",
                  f"write {'1' if is_cpu else '1Mi'}")  # fmt: skip


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
    """Check one variable of a container: its name, and its value or source."""
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
    """Check the name and the key of a ConfigMap or Secret."""
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


_HOOKED = (*PROBES, "lifecycle")
_OF_PROBES = ("exec", "httpGet", "tcpSocket", "grpc")
_OF_HOOKS = ("exec", "httpGet", "tcpSocket", "sleep")
_COUNTS = (
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
)
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
    for name in HOOKS if "lifecycle" in stated else ():
        hook = mapping(item["lifecycle"]).get(name)
        if is_map(hook) and not unknown_inside(hook):
            at = f"{path}.lifecycle.{name}"
            yield from _handler(hook, at, _OF_HOOKS)
            yield from _sleep(mapping(hook.get("sleep")).get("seconds"), at, pod)


def _probe(probe: Mapping[str, Any], path: str, *, is_readiness: bool) -> Iterator[Finding]:
    """Check a probe: one action, numbers of at least 0, and what only some kinds may have."""
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
    """Report what is not a port: 1 to 65535, or where it may be named, the name of one."""
    if isinstance(port, bool) or unknown_in(port):
        return
    if isinstance(port, int) and not 1 <= port <= MAX_PORT:
        seen, remedy = f"is {port}, but a port is from 1 to {MAX_PORT}", "write, for example, 8000"
        yield say(path, seen, remedy)
    elif named and isinstance(port, str) and not is_port_name(port):
        seen = f"is {display(port)}, but must be from 1 to {MAX_PORT}, or a port's name"
        yield say(path, seen, "write, for example, 8000, without quotes")


def is_port_name(name: str) -> bool:
    """Return whether a string may be the name of a port."""
    fits = re.fullmatch("[a-z0-9](?:[-a-z0-9]*[a-z0-9])?", name) and len(name) <= _LONGEST
    return bool(fits) and "--" not in name and re.search("[a-z]", name) is not None
