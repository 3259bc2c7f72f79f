"""Kinds without a CRD here: their metadata, spec and a few fields have the types that Go reads."""

from collections.abc import Iterator
from typing import Any

from kthena_components.checker.crd_schema import served_versions
from kthena_components.checker.manifest import check_manifest
from kthena_components.core.schema.crds import load
from kthena_components.core.schema.language import (
    Amount,
    Budget,
    Fields,
    Free,
    Items,
    Schema,
    Switch,
    Table,
    Text,
    Whole,
)
from kthena_components.core.values.unknown import Blank
from kthena_components.systems import all_systems
from tests.support.for_each import for_each
from tests.support.specs import changed

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
        if path or name == "spec":
            yield (*path, name), of
            yield from leaves(of, (*path, name))


def shapes() -> Iterator[tuple[str, str, Schema]]:
    """Yield the kinds of Kubernetes in the versions that the newest release serves."""
    table = load("kthena_components.systems.kubernetes")
    assert table is not None
    newest = table.place(None)
    for kind, versions in table.kinds.items():
        for served in versions:
            number = table.number(kind, served, newest)
            if number is not None:
                yield served, kind, table.root(number, kind)[0]


FIELDS = [
    (served, kind, path, schema)
    for served, kind, shape in shapes()
    for path, schema in leaves(shape)
]
RIGHT: dict[type[Schema], tuple[Any, list[Any]]] = {
    Amount: ("1Gi", ["x", [], {"a": 1}, True]),
    Budget: (3, [[], {"a": 1}, True, 1.5]),
    Fields: ({}, [3, "hi", [], True]),
    Items: ([], [3, "hi", {"a": 1}, True]),
    Switch: (False, ["true", 3, [], {}]),
    Table: ({}, [3, "hi", [], True]),
    Text: ("", [3, [], {"a": 1}, True]),
    Whole: (3, ["3", [], {"a": 1}, True, 1.5]),
}
"""A right value of each type, and wrong ones."""


@for_each("served, kind, path, schema", FIELDS)
def test_each_field_of_kubernetes_has_its_type(
    served: str, kind: str, path: tuple[str, ...], schema: Schema
) -> None:
    if isinstance(schema, Free):
        return
    right, wrong = RIGHT[type(schema)]
    for value, is_wrong in [*((each, True) for each in wrong), (right, False), (None, False),
                            (Blank("{{ .Values.a }}"), False)]:  # fmt: skip
        made: Any = value
        for name in reversed(path):
            made = {name: made}
        found = check_manifest(
            {"apiVersion": served, "kind": kind, "metadata": {"name": "a"}, **made}
        )
        at = [each for each in found if str(each.path) == ".".join(path)]
        odd = [each for each in at if "but must be" in each.seen or "no quantity" in each.seen
               or "not a quantity" in each.seen]  # fmt: skip
        assert bool(odd) == is_wrong, (path, value, at)


def test_most_fields_of_kubernetes_are_there() -> None:
    assert len(FIELDS) > 300
    assert {kind for _, kind, path, _ in FIELDS} >= {"Deployment", "Service", "Job", "Node"}


STATEFUL_SET: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "StatefulSet",
    "metadata": {"name": "a"},
    "spec": {"podManagementPolicy": "Parallel", "selector": {}, "template": {}},
}


@for_each(
    "path, value, says",
    [
        ("spec.podManagementPolicy", "parallel", "but must be 'OrderedReady' or 'Parallel'"),
        ("spec.podManagementPolicy", "", ""),
        ("spec.replica", 2, "is not a field of StatefulSet in Kubernetes 1.37"),
        ("spec.updateStrategy", {"type": "Rolling"}, "but must be 'RollingUpdate' or 'OnDelete'"),
        ("metadata.namespace", 7, "but must be a string"),
        ("metadata.labels", {"app": "a b"}, "but a label's value is empty or of at most 63"),
    ],
)
def test_a_statefulset_is_checked_by_the_document_of_kubernetes(
    path: str, value: object, says: str
) -> None:
    said = [str(each) for each in check_manifest(changed(STATEFUL_SET, {path: value}))]
    found = [each for each in said if each.startswith(path) and "[crd-schema]" in each]
    assert bool(found) == bool(says), said
    assert all(says in each for each in found)
