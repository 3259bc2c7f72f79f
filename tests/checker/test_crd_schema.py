"""Kinds without a CRD here: their metadata, spec and a few fields have the types that Go reads."""

from collections.abc import Iterator
from typing import Any

from kthena_components.checker.crd_schema import _OUTLINES, served_versions
from kthena_components.checker.manifest import check_manifest
from kthena_components.core.schema.language import Fields, Free, Items, Schema, Table
from kthena_components.core.values.unknown import Blank
from kthena_components.systems import all_systems
from tests.support.for_each import for_each

WHOLE = {("", "Pod"), ("", "PodTemplate")}
KINDS = [
    kind.group_kind
    for system in all_systems()
    for kind in system.kinds
    if kind.group_kind not in WHOLE and not served_versions(kind.group_kind)
]
WRONG: tuple[object, ...] = ("hi", 3, True, ["a"])


def body(group_kind: tuple[str, str], **fields: Any) -> dict[str, Any]:
    group, kind = group_kind
    version = f"{group}/v1" if group else "v1"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "a"}, **fields}


def told(object_: dict[str, Any]) -> set[str]:
    found = check_manifest(object_)
    return {str(each.path) for each in found if each.rule == "crd-schema"}


@for_each("group_kind", KINDS)
def test_the_spec_of_each_kind_is_a_map(group_kind: tuple[str, str]) -> None:
    for wrong in WRONG:
        assert "spec" in told(body(group_kind, spec=wrong))
        assert "metadata" in told(body(group_kind, metadata=wrong))
    rights: tuple[Any, ...] = ({}, None, Blank("{{ .Values.spec }}"))
    for right in rights:
        assert told(body(group_kind, spec=right)) == set()


def leaves(schema: Schema, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Schema]]:
    for name, of in schema.fields.items() if isinstance(schema, Fields) else ():
        if (*path, name) != ("metadata",) and name != "metadata":
            yield (*path, name), of
            yield from leaves(of, (*path, name))


FIELDS = [
    (group_kind, path, schema)
    for group_kind, shape in _OUTLINES.items()
    for path, schema in leaves(shape)
]


@for_each("group_kind, path, schema", FIELDS)
def test_each_field_has_its_type(
    group_kind: tuple[str, str], path: tuple[str, ...], schema: Schema
) -> None:
    right: Any
    wrong: list[Any]
    match schema:
        case Fields() | Table(Free()):
            right, wrong = {}, [3, "hi", [], True]
        case Items():
            right, wrong = [], [3, "hi", {"a": 1}, True]
        case _:
            right, wrong = 3, ["3", [], {"a": 1}, True, 1.5]
    for value, is_wrong in [*((each, True) for each in wrong), (right, False), (None, False),
                            (Blank("{{ .Values.a }}"), False)]:  # fmt: skip
        made: Any = value
        for name in reversed(path):
            made = {name: made}
        found = check_manifest(body(group_kind, **made))
        at = [each for each in found if str(each.path) == ".".join(path)]
        assert bool([each for each in at if "but must be" in each.seen]) == is_wrong, (path, value)
