"""Laws over the index: what every system states of its kinds holds, and is all there is."""

import ast
import json
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kthena_components
from kthena_components.checker.cluster_rules import compare_objects
from kthena_components.checker.manifest import check_manifest, read_demand, read_manifest
from kthena_components.checker.update_rules import check_change
from kthena_components.core.findings import RULE_FAULT, Level
from kthena_components.core.objects.object import read_object
from kthena_components.core.rules.production import PRODUCTION_NAMES
from kthena_components.core.values.read import group_kind
from kthena_components.systems import (
    COMPARING,
    COMPLETING,
    EMITTERS,
    INDEX,
    SYSTEMS,
    all_systems,
    find_emitter,
    find_kind,
    find_system,
)
from kthena_components.systems.system import Kind
from tests.rules.cases import bases, documents
from tests.support.for_each import for_each
from tests.support.strategies import damaged, json_trees
from toolchain.pages import kinds

PACKAGE = Path(kthena_components.__file__).parent
KINDS = [kind for system in all_systems() for kind in system.kinds]
JUDGED = [kind for kind in KINDS if kind.is_checked]
BASES = {
    group_kind(body): body
    for name in bases()
    for body in documents(name)
    if len(documents(name)) == 1 and "apiVersion" in body
}
"""One manifest of each kind that is right."""
LAST = {"AutoscalingPolicyBinding": {"kthena": "0.4"}}
"""The last release that has a kind, if a newer one has not."""
PLANNED = ("volcano.sh", "k8s.io", "nvidia.com")
"""What API groups that may stand in core end in: those whose words a plan speaks, Kubernetes' own,
and the one that is also the domain of a GPU's resource."""


def name_of(kind: Kind[Any]) -> str:
    return f"{kind.group}/{kind.name}"


each_kind = for_each("kind", KINDS, ids=name_of)
each_checked = for_each("kind", JUDGED, ids=name_of)


def test_the_index_is_the_union_of_the_kinds() -> None:
    assert {k.group_kind: s.name for s in all_systems() for k in s.kinds} == dict(INDEX)
    assert len(KINDS) == len(INDEX)


def test_the_kinds_that_complete_others_are_those_of_the_index() -> None:
    assert {kind.group_kind for kind in KINDS if kind.completes} == COMPLETING


def test_every_package_or_module_is_a_system_and_has_its_own_name() -> None:
    packages = {path.parent.name for path in (PACKAGE / "systems").glob("*/__init__.py")}
    modules = {path.stem for path in (PACKAGE / "systems").glob("*.py")} - {
        "__init__",
        "system",
        "emitter",
        "converter",
    }
    assert not packages & modules
    assert packages | modules == set(SYSTEMS)
    assert [find_system(name).name for name in SYSTEMS] == list(SYSTEMS)


def test_the_systems_that_emit_are_those_of_the_index() -> None:
    written = {path.parent.name for path in (PACKAGE / "systems").glob("*/emit.py")}
    assert {name for name in written if hasattr(_emit(name), "EMITTER")} == set(EMITTERS)
    assert all(find_emitter(name) is _emit(name).EMITTER for name in EMITTERS)


def test_the_systems_that_compare_objects_are_those_of_the_index() -> None:
    assert tuple(s.name for s in all_systems() if s.cluster_rules) == COMPARING


def _emit(name: str) -> ModuleType:
    return import_module(f"kthena_components.systems.{name}.emit")


@each_checked
def test_every_kind_has_a_manifest_that_is_right(kind: Kind[Any]) -> None:
    versions = LAST.get(kind.name, {})
    findings = check_manifest(BASES[kind.group_kind], versions=versions)
    assert [str(finding) for finding in findings if finding.level is Level.MANDATORY] == []


@each_checked
def test_what_is_left_out_has_a_reason(kind: Kind[Any]) -> None:
    """A kind that serves makes pods: they are counted, have templates, and restart on updates."""
    if kind.facts is None:
        return
    stated = {"pods": kind.pods, "templates": kind.templates, "restarts": kind.restarts}
    missing = {field for field, value in stated.items() if not value}
    assert missing - set(kind.without) == set()


@each_kind
def test_a_reason_is_given_for_what_is_left_out_alone(kind: Kind[Any]) -> None:
    fields = {field for field in kind.without if hasattr(kind, field)}
    assert [field for field in fields if getattr(kind, field)] == []
    assert all(reason.strip() for reason in kind.without.values())


ANYTHING = st.fixed_dictionaries(dict.fromkeys(("metadata", "spec", "inference"), json_trees()))


@pytest.mark.property
@settings(deadline=None, max_examples=8)
@given(st.data())
@pytest.mark.parametrize("kind", KINDS, ids=name_of)
def test_nothing_raises(kind: Kind[Any], data: st.DataObject) -> None:
    body: dict[str, Any] = data.draw(ANYTHING)
    good = BASES.get(kind.group_kind)
    if good is not None and data.draw(st.booleans()):
        body = data.draw(damaged(good))
    body = {**body, "apiVersion": f"{kind.group}/v1" if kind.group else "v1", "kind": kind.name}
    kind.view(read_object(body))
    read_manifest(body)
    read_demand(body)
    asked = PRODUCTION_NAMES
    findings = [*check_manifest(body, asked=asked)]
    findings += [*compare_objects([body, body], budget=8, gpu_types=["H100"])]
    findings += check_change(body, good or body)
    assert [str(finding) for finding in findings if finding.rule == RULE_FAULT] == []


@each_kind
def test_objects_of_a_kind_are_told_from_others(kind: Kind[Any]) -> None:
    """A kind that is only alike, of another group, is nobody's."""
    assert find_kind(kind.group_kind) is kind
    assert find_kind((f"not.{kind.group}", kind.name)) is None


def test_no_text_of_core_holds_a_foreign_api_group() -> None:
    foreign = {group for group, _ in INDEX if "." in group and not group.endswith(PLANNED)}
    assert {"ray.io", "kaito.sh", "serving.kserve.io"} <= foreign
    found = {
        f"{path.relative_to(PACKAGE)}: {group}"
        for path in (PACKAGE / "core").rglob("*.py")
        for text in [code_of(path)]
        for group in foreign
        if group in text
    }
    assert found == set()


def code_of(path: Path) -> str:
    """Give the contents of a module that are no documentation."""
    tree = ast.parse(path.read_text())
    documentation = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    texts = (
        n for n in ast.walk(tree) if isinstance(n, ast.Constant) and id(n) not in documentation
    )
    return json.dumps([str(node.value) for node in texts])


def test_the_page_of_kinds_is_current() -> None:
    """`make policies-docs` writes it."""
    assert (PACKAGE.parent / "docs" / "kinds.md").read_text() == kinds.render()
