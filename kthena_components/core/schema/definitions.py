"""The CustomResourceDefinitions among the files that are checked.

A repository of a controller, or of a cluster, has the CRDs that its objects are written for. Its
objects are checked with them, and not with those of a release (decision 49).
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from kthena_components.core.schema.crds import CrdTable
from kthena_components.core.schema.language import Fields, Items, Schema, Table
from kthena_components.core.values.read import mapping
from kthena_components.core.values.regex import FORMATS

# The OpenAPI schema of a CRD as types without words: what crds.py reads.
#
# Only names, types and limits are taken. Descriptions are not, nor rules in CEL.
# Source of what each keyword does: k8s.io/apiextensions-apiserver
# pkg/apis/apiextensions/v1/types.go.


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
    "minProperties": "fewest",
    "maxProperties": "most",
    "pattern": "pattern",
}


def served_roots(crd: Mapping[str, Any], number: Number) -> dict[tuple[str, str], int]:
    """Return the number of each served version's type, by kind and apiVersion."""
    spec = crd["spec"]
    return {
        (spec["names"]["kind"], api_version(spec["group"], version["name"])): read_root(
            _scaled(version), number
        )
        for version in spec["versions"]
        if version["served"]
    }


def _scaled(version: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of a version, with the limit of a field that autoscalers write.

    Source: k8s.io/apiextensions-apiserver pkg/registry/customresource/validator.go,
    ValidateScaleSpec.
    """
    schema: dict[str, Any] = version["schema"]["openAPIV3Schema"]
    scale = mapping(mapping(version.get("subresources")).get("scale"))
    spec = mapping(schema["properties"].get("spec"))
    replicas = mapping(mapping(spec.get("properties")).get("replicas"))
    if scale.get("specReplicasPath") != ".spec.replicas" or replicas.get("type") != "integer":
        return schema
    least = {**replicas, "minimum": max(0, replicas.get("minimum", 0))}
    spec = {**spec, "properties": {**spec["properties"], "replicas": least}}
    return {**schema, "properties": {**schema["properties"], "spec": spec}}


def api_version(group: str, version: str) -> str:
    """Return the apiVersion of a group's objects; the core group has no name."""
    return f"{group}/{version}" if group else version


def read_root(schema: Mapping[str, Any], number: Number) -> int:
    """Read the schema of a kind in one version. Metadata and status are every kind's."""
    fields = {k: v for k, v in schema["properties"].items() if k not in {"metadata", "status"}}
    required = [name for name in schema.get("required", ()) if name in fields]
    root = _read({**schema, "properties": fields, "required": required}, number)
    if not isinstance(root, int):
        raise TypeError(f"the schema of a kind is {root!r}")
    return root


def _read(schema: Mapping[str, Any], number: Number) -> Node:
    """Read an OpenAPI schema of a CRD as a node of our tables: a word, or a number of a type."""
    kind = schema.get("type")
    readers = {"object": _object, "array": _list, "string": _text, "integer": _integer}
    if schema.get("x-kubernetes-int-or-string"):
        return "quantity" if _QUANTITY in schema.get("pattern", "") else "int-or-string"
    if kind in readers:
        return readers[kind](schema, number)
    if kind in {"boolean", "metadata", "number"}:
        return str(kind)
    if kind is None and schema.get(_UNKNOWN):
        return "any"
    raise ValueError(f"there is no reading for {sorted(schema)}")


def _object(schema: Mapping[str, Any], number: Number) -> Node:
    """Read an object: a map of equal values, or fields, some of them required."""
    values, properties = schema.get("additionalProperties"), schema.get("properties")
    if isinstance(values, Mapping):
        return number({"map": _read(values, number), **_limits(schema)})
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
    return number({**made, **_limits(schema)})


def _list(schema: Mapping[str, Any], number: Number) -> Node:
    """Read a list with its limits; `keys` identify items, and a set has no item twice."""
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
    if schema.get("format") in FORMATS:
        limits["format"] = schema["format"]
    enums = [part["enum"] for part in (schema, *schema.get("allOf", ())) if "enum" in part]
    if enums:
        limits["enum"] = [word for word in enums[0] if all(word in enum for enum in enums)]
    return number({"scalar": "string", **limits}) if limits else "string"


def _integer(schema: Mapping[str, Any], number: Number) -> Node:
    bits, limits = schema.get("format", "int64"), _limits(schema)
    limits |= {"enum": schema["enum"]} if "enum" in schema else {}
    return number({"scalar": bits, **limits}) if limits else str(bits)


def _limits(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {name: schema[key] for key, name in _LIMITS.items() if key in schema}


_NUMBERS = ("shortest", "longest", "least", "most", "fewest")
_LEVELS = 6
"""Levels of fields by which a release is told from another: to those of a role's pods."""
_NAMES = ("enum", "required", "keys", "fields")


def defined(body: Mapping[str, Any]) -> tuple[str, str]:
    """Return the API group and the kind that a CRD defines; empty strings if it states none."""
    spec = mapping(body.get("spec"))
    group, kind = spec.get("group"), mapping(spec.get("names")).get("kind")
    return (group, kind) if isinstance(group, str) and isinstance(kind, str) else ("", "")


def tables_of(
    crds: Iterable[tuple[str, Mapping[str, Any]]], packaged: CrdTable
) -> tuple[CrdTable, ...]:
    """Read CRDs of one kind, each once. One that cannot be read is left out.

    Args:
        crds: CRDs with their files.
        packaged: The releases of the kind's system.
    """
    found: list[tuple[object, CrdTable]] = []
    for file, body in crds:
        spec = body.get("spec")
        if all(spec != other for other, _ in found):
            table = _definition(file, body, packaged)
            found += [(spec, table)] if table else []
    return tuple(table for _, table in found)


def _definition(file: str, body: Mapping[str, Any], packaged: CrdTable) -> CrdTable | None:
    """Read a CRD among the files as a table of one release; None if any part is not understood."""
    types: list[Mapping[str, Any]] = []
    try:
        roots = served_roots(body, _numbering(types, packaged.patterns))
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
        return None
    kinds: dict[str, dict[str, list[tuple[int, int | None]]]] = {}
    for (kind, served), number in roots.items():
        if not served.rpartition("/")[2].isalnum():
            return None
        kinds.setdefault(kind, {})[served] = [(0, number)]
    filled = packaged.filled
    if not kinds:
        return None
    table = CrdTable(file, ((),), kinds, {}, filled, packaged.unsigned, types)
    return replace(table, like=_nearest(table, packaged))


def _nearest(table: CrdTable, packaged: CrdTable) -> str:
    """Return the release with the fields most like those of a CRD; empty for the newest."""
    kind, served = next((kind, served) for kind, forms in table.kinds.items() for served in forms)
    own, last = _declared(table, kind, served, 0), len(packaged.releases) - 1
    differing = {
        place: len(own ^ _declared(packaged, kind, served, place)) for place in range(last, -1, -1)
    }
    nearest = min(differing, key=differing.__getitem__)
    return "" if nearest == last else ".".join(map(str, packaged.releases[nearest][:2]))


def _declared(table: CrdTable, kind: str, served: str, place: int) -> frozenset[str]:
    number = table.number(kind, served, place)
    return frozenset() if number is None else frozenset(_paths(table.root(number, kind)[0], ""))


def _paths(schema: Schema, at: str, levels: int = _LEVELS) -> Iterator[str]:
    while isinstance(schema, Items | Table):
        schema = schema.of
    if isinstance(schema, Fields) and levels:
        for name, one in schema.fields.items():
            yield f"{at}.{name}"
            yield from _paths(one, f"{at}.{name}", levels - 1)


def _numbering(
    types: list[Mapping[str, Any]], patterns: frozenset[str]
) -> Callable[[dict[str, Any]], int]:
    """Return the function that gives equal types one number, and adds new ones to `types`."""
    numbers: dict[str, int] = {}

    def number(made: dict[str, Any]) -> int:
        """Return the number of a type; a pattern that our own tables do not have is dropped."""
        if made.get("pattern") not in patterns:
            # A pattern of anybody's could take hours to match.
            made.pop("pattern", None)
        whole = all(type(made[name]) is int for name in _NUMBERS if name in made)
        words = int if str(made.get("scalar")).startswith("int") else str
        named = all(type(word) is words for name in _NAMES for word in made.get(name, ()))
        if not (whole and named):
            raise ValueError("a limit is not a number, or a name is not a string")
        text = json.dumps(made, sort_keys=True)
        if text not in numbers:
            numbers[text] = len(types)
            types.append(made)
        return numbers[text]

    return number
