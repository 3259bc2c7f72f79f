"""The rule inference-pool-fields: the two groups of InferencePools have different fields."""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.findings import Finding, each_of, refuse
from kthena_components.core.objects.cluster_objects import ClusterObjects
from kthena_components.core.objects.object import GroupKind, Object
from kthena_components.core.remedies import Change, Remedy, remove, write
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import (
    is_map,
    mapping,
    require_known,
    sequence,
    unknown_in,
    whole,
)
from kthena_components.core.values.unknown import known

POOL: GroupKind = ("inference.networking.k8s.io", "InferencePool")
OLD_POOL: GroupKind = ("inference.networking.x-k8s.io", "InferencePool")
PICKER_PORT = 9002
"""The default of the picker's --grpc-port, and of v1alpha2's portNumber."""
_MOST_PORTS = 8
_SERVICE = "Service"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair:
    """A field of one group, and the field that states the same in the other one."""

    own: str
    other: str


_FIELDS = (
    _Pair(own="targetPorts", other="targetPortNumber"),
    _Pair(own="endpointPickerRef", other="extensionRef"),
)
"""The fields of v1, each with its like in v1alpha2."""


def pools(cluster: ClusterObjects) -> Iterator[tuple[Object]]:
    """Return the InferencePools of both groups."""
    yield from ((found,) for group in (POOL, OLD_POOL) for found in cluster.of(group))


@each_of(pools)
def inference_pool_fields(pool: Object) -> Iterator[Finding]:
    """An InferencePool has the fields of its API group.

    In inference.networking.k8s.io it has targetPorts, endpointPickerRef and selector.matchLabels.
    Up to eight ports differ from each other. A picker that is a Service has a port. In the older
    inference.networking.x-k8s.io it has targetPortNumber, extensionRef, and labels as selector.

    Pass: v1 with targetPorts and endpointPickerRef.port; v1alpha2 with targetPortNumber.
    Fail: v1 with targetPortNumber; endpointPickerRef without port; the same port twice.
    Level: mandatory. The API server rejects the object, or kubectl and server-side apply do.
    Source: kubernetes-sigs/gateway-api-inference-extension v1.5.0 api/v1/inferencepool_types.go and
    shared_types.go, v1.3.1 apix/v1alpha2/inferencepool_types.go.
    """
    is_new = pool.group_kind == POOL
    for pair in _FIELDS:
        has, lacks = (pair.own, pair.other) if is_new else (pair.other, pair.own)
        yield from _field(pool, has, lacks)
    yield from _selector(pool, is_new=is_new)
    if is_new:
        yield from _ports(pool)
        yield from _picker(pool)


def _field(pool: Object, has: str, lacks: str) -> Iterator[Finding]:
    """Check one field of a pool's group, and the one that only the other group has."""
    path, wrong = pool.at(f"spec.{has}"), pool.at(f"spec.{lacks}")
    require_known(path, pool.spec.get(has), pool.spec.get(lacks))
    if pool.spec.get(lacks) is not None:
        seen = f"is no field of InferencePool in {pool.group}, which has {has}"
        stated = None if pool.spec.get(has) is not None else _moved(has, pool.spec[lacks])
        remedy: str = remove()
        if stated is not None:
            changes = (Change(value=stated, path=path), Change(path=wrong))
            remedy = Remedy(f"write {has}: {_shown(stated)}", [changes])
        elif pool.spec.get(has) is None:
            remedy = f"write {has}"
        yield refuse(wrong, seen, remedy)
    elif pool.spec.get(has) is None:
        yield refuse(path, f"is missing, but {pool.group} requires it", f"add {has}")


def _moved(field: str, stated: Any) -> Any:
    """Return the value of a field, from what the other group's field states; None if unclear."""
    fields = mapping(stated)
    if field == "targetPorts":
        return [{"number": stated}] if isinstance(whole(stated), int) else None
    if field == "targetPortNumber":
        listed = sequence(stated)
        number = whole(mapping(listed[0]).get("number")) if len(listed) == 1 else None
        return number if isinstance(number, int) else None
    if not isinstance(fields.get("name"), str):
        return None
    kept = {key: fields[key] for key in ("group", "kind", "name", "failureMode") if key in fields}
    if field == "endpointPickerRef":
        return {**kept, "port": {"number": fields.get("portNumber", PICKER_PORT)}}
    port = mapping(fields.get("port")).get("number")
    return kept if port is None else {**kept, "portNumber": port}


def _shown(value: Any) -> str:
    """Write a value as YAML in one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_shown(item)}" for key, item in value.items()) + "}"
    return f"[{', '.join(map(_shown, value))}]" if isinstance(value, list) else f"{value}"


def _selector(pool: Object, *, is_new: bool) -> Iterator[Finding]:
    path, selector = pool.at("spec.selector"), pool.spec.get("selector")
    require_known(path, selector)
    labels = mapping(selector).get("matchLabels")
    if is_new and not mapping(labels) and unknown_in(labels) is None:
        flat = mapping(selector)
        stated = bool(flat) and all(isinstance(value, str) for value in flat.values())
        seen = f"has no matchLabels, which {pool.group} requires"
        remedy = write({"matchLabels": dict(flat)}, "write the labels below matchLabels")
        yield refuse(path, seen, remedy if stated else "add matchLabels with the pods' labels")
    elif not is_new and is_map(labels):
        seen = f"has matchLabels, but in {pool.group} the labels stand in selector itself"
        yield refuse(path, seen, write(dict(labels), "write the labels in selector"))


def _ports(pool: Object) -> Iterator[Finding]:
    path, listed = pool.at("spec.targetPorts"), pool.spec.get("targetPorts")
    if not isinstance(listed, list):
        return
    numbers = [known(whole(mapping(each).get("number")), path) for each in listed]
    once = [*dict.fromkeys(number for number in numbers if number is not None)]
    if len(once) < len(numbers) - numbers.count(None):
        twice = next(number for number in numbers if numbers.count(number) > 1)
        seen = f"has {twice} twice, but each port must be unique"
        yield refuse(path, seen, write([{"number": n} for n in once], "write each port once"))
    elif not listed or len(listed) > _MOST_PORTS:
        seen = f"has {len(listed)} ports, but 1 to {_MOST_PORTS} are allowed"
        yield refuse(path, seen, "write the ports of the pods")


def _picker(pool: Object) -> Iterator[Finding]:
    picker, path = pool.spec.get("endpointPickerRef"), pool.at("spec.endpointPickerRef.port")
    if not is_map(picker):
        return
    require_known(path, picker.get("kind"), picker.get("port"))
    if picker.get("kind", _SERVICE) == _SERVICE and picker.get("port") is None:
        seen = "is missing, but a picker that is a Service needs it"
        text = f"write port: {{number: {PICKER_PORT}}}, or the port of that Service"
        yield refuse(path, seen, write({"number": PICKER_PORT}, text))
