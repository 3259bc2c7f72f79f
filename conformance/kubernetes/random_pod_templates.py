"""Random pod templates from the fields that an API server publishes.

The table is the one of core/schema/pod.py, so every field of it is tried: with valid values here,
and with invalid ones in conformance/validation/random_damage.py.
"""

import json
import random
from functools import cache
from typing import Any

from kthena_components.core.schema.pod import TABLE

Body = dict[str, Any]
_DEPTH = 7
_GIVEN = ("containers", "name", "image")
_TEXTS = ("a", "fast", "TCP", "/data", "Always", "", "x y", "2026-01-01T00:00:00Z", "8")
_NUMBERS = (0, 1, 8080, -1, 2**31 - 1, 1.0)
_AMOUNTS = (8, "8", "500m", "1Ti", "1.5", "-1", "1e3", "+2", ".5Gi")
_SCALARS: dict[str, tuple[Any, ...]] = {
    "boolean": (True, False),
    "int32": _NUMBERS,
    "int64": _NUMBERS,
    "int-or-string": (8080, "http", "50%"),
    "object": ({}, {"f:spec": {}}),
    "quantity": _AMOUNTS,
    "string": _TEXTS,
}


@cache
def table() -> dict[str, Any]:
    """Read the fields of each type."""
    found: dict[str, Any] = json.loads(TABLE.read_text())
    return found


def template(draw: random.Random, richness: float = 0.35) -> Body:
    """Generate a pod template with one or two containers, and further fields at any depth."""
    names = ["engine", "sidecar"][: draw.choice((1, 1, 2))]
    containers: list[Body] = [{"name": name, "image": _image(draw)} for name in names]
    for container in containers:
        if draw.random() < 0.5:
            container["resources"] = {"limits": {"nvidia.com/gpu": draw.choice((1, "8"))}}
        if draw.random() < richness:
            container["env"] = [{"name": "A", "value": "b"}, {"name": "B", "value": "8"}]
            container["ports"] = [{"containerPort": 8000}, {"containerPort": 8001, "name": "b"}]
    found: Body = {"spec": {"containers": containers}}
    if draw.random() < richness:
        found["metadata"] = {"labels": {"team": "chat"}, "annotations": {"a": "b c"}}
    while draw.random() < richness:
        grow(draw, found["spec"])
    return found


def grow(draw: random.Random, spec: Body) -> None:
    """Add one field to a pod, or to a container of it."""
    holder, kind = (spec, "PodSpec")
    if draw.random() < 0.5:
        holder, kind = (spec["containers"][0], "Container")
    fields = {k: v for k, v in table()[kind]["fields"].items() if k not in _GIVEN}
    field = draw.choice(list(fields))
    keys = tuple(table()[kind]["keys"].get(field, ()))
    holder[field] = value(draw, fields[field], _DEPTH, keys)


def value(draw: random.Random, written: str, depth: int, keys: tuple[str, ...] = ()) -> Any:
    """Generate a value of a type from the table."""
    if written.startswith("[set]"):
        return [value(draw, written[5:], depth - 1)]
    if written.startswith("[]"):
        number = draw.choice((0, 1, 1, 2)) if depth > 0 else 0
        members = [value(draw, written[2:], depth - 1) for _ in range(number)]
        return _apart(members, keys)
    if written.startswith("{}"):
        number = draw.choice((0, 1, 2)) if depth > 0 else 0
        return {name: value(draw, written[2:], depth - 1) for name in ("a", "b/c")[:number]}
    if written in _SCALARS:
        return draw.choice(_SCALARS[written])
    return _fields(draw, written, depth)


def _fields(draw: random.Random, kind: str, depth: int) -> Body:
    stated = table()[kind]
    chosen = set(stated["required"])
    optional = sorted(set(stated["fields"]) - chosen)
    if depth > 0 and optional:
        chosen |= set(draw.sample(optional, min(len(optional), draw.choice((0, 1, 1, 2, 3)))))
    return {
        name: value(draw, stated["fields"][name], depth - 1, tuple(stated["keys"].get(name, ())))
        for name in sorted(chosen)
    }


def _apart(members: list[Any], keys: tuple[str, ...]) -> list[Any]:
    """Make the items of a list with keys differ in the first key."""
    for index, member in enumerate(members if keys else ()):
        first = keys[0]
        member[first] = index + 1 if first in {"containerPort", "port"} else f"k{index}"
    return members


def _image(draw: random.Random) -> str:
    return draw.choice(("vllm/vllm-openai:v0.33.0", "busybox", "registry:5000/a/b@sha256:00", ""))
