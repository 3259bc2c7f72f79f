"""The OpenAPI schema of a CRD as types without words: what crds.py reads.

Only names, types and limits are taken. Descriptions are not, nor rules in CEL.
Source of what each keyword does: k8s.io/apiextensions-apiserver pkg/apis/apiextensions/v1/types.go.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

Node: TypeAlias = str | int | dict[str, Any]
"""A word for a scalar, the number of a type, or a type that has no number yet."""
Number: TypeAlias = Callable[[dict[str, Any]], int]
_UNKNOWN = "x-kubernetes-preserve-unknown-fields"
_QUANTITY = "[KMGTPE]i"
"""Part of the pattern that tells an amount of a resource from another number or text."""
_LIMITS = {
    "minLength": "shortest",
    "maxLength": "longest",
    "minimum": "least",
    "maximum": "most",
    "minItems": "fewest",
    "maxItems": "most",
    "pattern": "pattern",
}


def served_roots(crd: Mapping[str, Any], number: Number) -> dict[tuple[str, str], int]:
    """Read the versions that a CRD serves: the number of the type, by kind and apiVersion."""
    spec = crd["spec"]
    return {
        (spec["names"]["kind"], f"{spec['group']}/{version['name']}"): read_root(
            version["schema"]["openAPIV3Schema"], number
        )
        for version in spec["versions"]
        if version["served"]
    }


def read_root(schema: Mapping[str, Any], number: Number) -> int:
    """Read the schema of a kind in one version. Metadata and status are every kind's."""
    fields = {k: v for k, v in schema["properties"].items() if k not in {"metadata", "status"}}
    required = [name for name in schema.get("required", ()) if name in fields]
    root = _read({**schema, "properties": fields, "required": required}, number)
    if not isinstance(root, int):
        raise TypeError(f"the schema of a kind is {root!r}")
    return root


def _read(schema: Mapping[str, Any], number: Number) -> Node:
    kind = schema.get("type")
    readers = {"object": _object, "array": _list, "string": _text, "integer": _integer}
    if schema.get("x-kubernetes-int-or-string"):
        return "quantity" if _QUANTITY in schema.get("pattern", "") else "int-or-string"
    if kind in readers:
        return readers[kind](schema, number)
    if kind in {"boolean", "number"}:
        return str(kind)
    if kind is None and schema.get(_UNKNOWN):
        return "any"
    raise ValueError(f"there is no reading for {sorted(schema)}")


def _object(schema: Mapping[str, Any], number: Number) -> Node:
    values, properties = schema.get("additionalProperties"), schema.get("properties")
    if isinstance(values, Mapping):
        return number({"map": _read(values, number)})
    if not properties:
        # With nothing declared, server-side apply takes anything.
        return "object"
    fields = {name: _read(properties[name], number) for name in sorted(properties)}
    # What has a default is never missing, and a null may stand where it is allowed.
    required = sorted(
        name
        for name in schema.get("required", ())
        if "default" not in (of := properties.get(name, {})) and not of.get("nullable")
    )
    made: dict[str, Any] = {"fields": fields}
    made |= {"required": required} if required else {}
    made |= {"open": True} if schema.get(_UNKNOWN) else {}
    return number(made)


def _list(schema: Mapping[str, Any], number: Number) -> Node:
    items = dict(schema["items"])
    # What is kept in a list is what its members have besides their fields.
    items |= {_UNKNOWN: True} if schema.get(_UNKNOWN) else {}
    made: dict[str, Any] = {"list": _read(items, number)}
    kind = schema.get("x-kubernetes-list-type")
    made |= {"keys": schema["x-kubernetes-list-map-keys"]} if kind == "map" else {}
    made |= {"set": True} if kind == "set" else {}
    return number({**made, **_limits(schema)})


def _text(schema: Mapping[str, Any], number: Number) -> Node:
    limits = _limits(schema)
    enums = [part["enum"] for part in (schema, *schema.get("allOf", ())) if "enum" in part]
    if enums:
        limits["enum"] = [word for word in enums[0] if all(word in enum for enum in enums)]
    return number({"scalar": "string", **limits}) if limits else "string"


def _integer(schema: Mapping[str, Any], number: Number) -> Node:
    bits, limits = schema.get("format", "int64"), _limits(schema)
    return number({"scalar": bits, **limits}) if limits else str(bits)


def _limits(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {name: schema[key] for key, name in _LIMITS.items() if key in schema}
