"""Objects with every field that a published CRD declares, with values of all types.

One object changes all fields at one depth at once: the API server reports each one by its path.
What is above has a right value, and what is below is left out.
"""

from collections.abc import Iterator, Mapping
from typing import Any

VALUES: tuple[Any, ...] = (
    "a", "", "8Gi", 3, 0, -1, 1.5, 2**31, 2**63, True, [], ["a"], [None], {}, {"a": "b"}, None,
)  # fmt: skip
UNDECLARED = "unheardOf"
Schema = Mapping[str, Any]
_ROOT = frozenset({"apiVersion", "kind", "metadata", "status"})
_LONGEST = 1_000
"""Maximum length of a list or a string at a limit."""


Plan = tuple[int, int]
"""A depth, and the place of a value in VALUES, or below 0 one of each schema's own limits."""


def plans(schema: Schema) -> list[Plan]:
    """List the objects for one version of a kind, for `made`."""
    levels: dict[int, int] = {}
    for depth, of in _levels(_fields_of(schema), 0):
        levels[depth] = max(levels.get(depth, 0), len(_limits(of)))
    return [
        (depth, place)
        for depth, limits in sorted(levels.items())
        if depth
        for place in range(-limits, len(VALUES))
    ]


def made(head: Mapping[str, Any], schema: Schema, plan: Plan) -> dict[str, Any]:
    """Make one object."""
    depth, place = plan

    def values(of: Schema) -> list[Any]:
        return [VALUES[place]] if place >= 0 else _limits(of)[-place - 1 : -place]

    return {**head, **_at(_fields_of(schema), depth, values)}


def _fields_of(schema: Schema) -> Schema:
    fields = {name: of for name, of in schema["properties"].items() if name not in _ROOT}
    return {"type": "object", "properties": fields}


def _levels(schema: Schema, depth: int) -> Iterator[tuple[int, Schema]]:
    yield depth, schema
    more = schema.get("additionalProperties"), schema.get("items")
    for of in (*schema.get("properties", {}).values(), *more):
        if isinstance(of, Mapping):
            yield from _levels(of, depth + 1)


def whole(head: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """Return an object with every field, and beside the fields of each map an undeclared one."""
    return {**head, **_with_unknown(_fields_of(schema))}


def _at(schema: Schema, depth: int, values: Any) -> Any:
    """Return a right value, with changed values at one depth.

    Args:
        depth: Levels to go down.
        values: Gives for a schema a list with the changed value, or an empty one for none.
    """
    if not depth:
        return next(iter(values(schema)), _right(schema))
    match _kind(schema):
        case "object" if properties := schema.get("properties"):
            return {name: _at(of, depth - 1, values) for name, of in properties.items()}
        case "object" if isinstance(of := schema.get("additionalProperties"), Mapping):
            return {"key": _at(of, depth - 1, values)}
        case "array":
            return [_at(schema["items"], depth - 1, values)]
        case _:
            return _right(schema)


def _kind(schema: Schema) -> str:
    return "" if schema.get("x-kubernetes-int-or-string") else str(schema.get("type", ""))


def _right(schema: Schema) -> Any:
    """Return a right value, but for patterns, and for required fields of maps."""
    words = _words(schema)
    if words:
        return words[0]
    least = schema.get("minimum", 1)
    right = {"integer": least, "number": least, "boolean": True, "array": [], "object": {}}
    return right.get(_kind(schema), "1" if _kind(schema) == "string" else 1)


def _words(schema: Schema) -> list[Any]:
    return [word for part in (schema, *schema.get("allOf", ())) for word in part.get("enum", ())]


def _limits(schema: Schema) -> list[Any]:
    """Return values at the limits of a schema and beyond them."""
    found = _words(schema)
    for limit in ("minimum", "maximum"):
        if limit in schema:
            found += [schema[limit] + by for by in (-1, 0, 1)]
    lengths = {schema[limit] + by for limit in ("minLength", "maxLength", "minItems", "maxItems")
               for by in (-1, 0, 1) if limit in schema}  # fmt: skip
    is_list = _kind(schema) == "array"
    for length in sorted(lengths - {-1}):
        if length <= _LONGEST:
            found.append(_members(schema, length) if is_list else "a" * length)
    if is_list:
        item = schema["items"]
        right = {k: _right(of) for k, of in item.get("properties", {}).items()} or _right(item)
        found += [[right, right], [right, _other(right)]]
    if "pattern" in schema:
        found += _TEXTS
    return found


def _members(schema: Schema, number: int) -> list[Any]:
    """Return so many members of a list, with different keys."""
    keys, item = schema.get("x-kubernetes-list-map-keys", ()), schema["items"]
    if not keys:
        return [_right(item)] * number
    texts = {key: _kind(item["properties"][key]) == "string" for key in keys}
    return [
        {key: str(index) if is_text else index for key, is_text in texts.items()}
        for index in range(number)
    ]


def _other(value: Any) -> Any:
    """Return a value of the same type."""
    match value:
        case dict():
            return {name: _other(each) for name, each in value.items()}
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return value + "2"
        case _:
            return value


_TEXTS = ("a-b", "A", "a.b", "a/b", "-a", "1h", "1h30m", "1.5s", "10", "0.5", "50%", "101%", "a b",
          "2026-01-01T00:00:00Z", "10.0.0.1", "a:b", "https://a.b/c", "a_b", "0", "01", "+1Gi",
          "a\n", "*", "*.a", "nvidia.com/gpu", "é", "auto", "1e3", "0s", "24h",
          "* * * * *")  # fmt: skip
"""Strings that patterns of CRDs tell apart."""


def _with_unknown(schema: Schema) -> Any:
    match _kind(schema):
        case "object" if properties := schema.get("properties"):
            return {**{n: _with_unknown(of) for n, of in properties.items()}, UNDECLARED: 1}
        case "object" if isinstance(of := schema.get("additionalProperties"), Mapping):
            return {"key": _with_unknown(of)}
        case "array":
            return [_with_unknown(schema["items"])]
        case _:
            return _right(schema)
