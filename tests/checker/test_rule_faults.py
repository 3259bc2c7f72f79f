"""A rule that fails is named, and hides nothing that another rule finds."""

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from itertools import chain
from typing import Any, NoReturn

import pytest

from kthena_components.checker import manifest as readers
from kthena_components.checker import pod_schema as templates
from kthena_components.checker.catalogue import rule_names
from kthena_components.checker.check_cluster_objects import check_objects_together
from kthena_components.checker.cluster_rules import ASKED_RULES, cluster_rules
from kthena_components.checker.levels import LevelOverride, Levels
from kthena_components.checker.manifest import check_manifest, check_whole
from kthena_components.checker.pod_schema import pod_schema
from kthena_components.checker.unread_kinds_and_parts import kind_read
from kthena_components.checker.waivers import PREFIX, waiver
from kthena_components.compiler.compile import compile_serving
from kthena_components.core.findings import (
    RULE_FAULT,
    Finding,
    Level,
    check_by,
    rule_name,
    run_rule,
)
from kthena_components.core.rules.registry import CHECKS
from kthena_components.core.topology.hypernode_tree import TREE_RULES
from kthena_components.systems import all_systems
from kthena_components.systems.volcano.rules.topology_tier_exists import hypernode_tree
from tests.rules.cases import documents
from tests.rules.test_cases import CASES
from tests.support.for_each import for_each
from tests.support.specs import GUIDE
from tests.toughness.corpus import put

Rule = Callable[..., Any]
FOUND = Finding(path="a", seen="is wrong", rule="half")
pytestmark = pytest.mark.usefixtures("faults_told")
KINDS = [kind for system in all_systems() for kind in system.kinds]
LISTS: list[Sequence[Rule]] = [
    CHECKS, [pod_schema, kind_read, waiver], TREE_RULES, ASKED_RULES,
    *(kind.rules for kind in KINDS), *(kind.change_rules for kind in KINDS),
    [rule for rule in cluster_rules() if rule is not hypernode_tree],
]  # fmt: skip
RULES: dict[str, set[Rule]] = {}
"""By name: a rule over engines may be one over a system's parts as well."""
for listed in chain(*LISTS):
    RULES.setdefault(rule_name(listed), set()).add(inspect.unwrap(listed))


def broken(*_: object, **__: object) -> NoReturn:
    raise KeyError("a piece of input")


def fail(name: str, patched: pytest.MonkeyPatch) -> None:
    """Make a rule fail in whatever list it stands, and keep its name."""
    for rule in RULES[name]:
        patched.setattr(rule, "__code__", broken.__code__)
    # In a run, equal templates are checked once, and no rule changes.
    patched.setattr(templates, "_KNOWN", {})


@pytest.fixture
def break_rule(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Make a rule fail until the end of the test."""
    return partial(fail, patched=monkeypatch)


def faults(findings: list[Finding]) -> list[str]:
    return [str(finding) for finding in findings if finding.rule == RULE_FAULT]


@for_each("name", RULES)
def test_a_rule_that_fails_is_named_and_hides_no_other(name: str) -> None:
    case = next(c for c in CASES if c.rule == name and c.says and not c.by)
    before = case.judge(case.input())
    with pytest.MonkeyPatch.context() as patched:
        fail(name, patched)
        after = case.judge(case.input())

    assert faults(before) == []
    assert all(f" the rule {name} failed with KeyError at kthena_" in f for f in faults(after))
    assert faults(after)
    assert "a piece of input" not in "".join(faults(after))
    assert [finding for finding in before if finding.rule != name and finding not in after] == []


def test_every_name_is_one_of_the_catalogue() -> None:
    assert RULES.keys() <= rule_names()


def test_what_a_rule_found_before_it_failed_is_kept() -> None:
    def half(_: object) -> Iterator[Finding]:
        yield FOUND
        raise ValueError

    def whole(_: object) -> Iterator[Finding]:
        yield replace(FOUND, rule="whole")

    found = check_by([half, whole], None, "spec")
    assert [finding.rule for finding in found] == ["half", RULE_FAULT, "whole"]
    assert [finding.path for finding in found] == ["spec.a", "spec", "spec.a"]


def test_a_fault_is_told_without_the_text_of_its_error() -> None:
    (told,) = run_rule(broken, name="reading the moon")
    assert (told.level, told.path) == (Level.UNKNOWN, "")
    assert re.fullmatch(
        r"was not checked, because reading the moon failed with KeyError at kthena_components\.core"
        r"\.findings:\d+\. Please report it; the findings of other rules are complete\. "
        r"\[rule-fault\]",
        str(told),
    )


def test_a_fault_in_reading_hides_no_rule_that_reads_for_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (body,) = documents("lws")
    pods = body["spec"]["leaderWorkerTemplate"]["workerTemplate"]
    wrong = put(body, ("spec", "leaderWorkerTemplate", "workerTemplate"), {**pods, "spec": 5})
    monkeypatch.setattr(readers, "_facts", broken)
    whole = check_whole(wrong, "lws")
    found, held = whole.findings, whole.demand

    (told,) = faults(found)
    assert told.startswith("lws: was not checked, because reading the object failed with KeyError")
    assert "pod-schema" in {finding.rule for finding in found}
    assert held is None


def test_a_waiver_of_a_rule_that_failed_is_not_called_useless(
    break_rule: Callable[[str], None],
) -> None:
    (body,) = documents("deployment")
    noted = {"annotations": {f"{PREFIX}image-pinned": "2026-12-31 it is a mirror"}}
    waived = {**body, "metadata": {**body["metadata"], **noted}}
    today = date(2026, 6, 30)
    assert "waiver" in {finding.rule for finding in check_manifest(waived, today=today)}
    break_rule("image-pinned")
    found = check_manifest(waived, today=today)
    assert [finding.rule for finding in found] == [RULE_FAULT]


def test_a_level_for_all_rules_does_not_hide_a_fault() -> None:
    found = list(run_rule(broken))
    assert Levels(weights={"*": LevelOverride.DISABLED}).apply(found) == found
    assert Levels(weights={"*": LevelOverride.MANDATORY}).apply(found) == found
    assert Levels(weights={RULE_FAULT: LevelOverride.DISABLED}).apply(found) == []


def test_objects_together_are_checked_by_the_other_rules(break_rule: Callable[[str], None]) -> None:
    bodies = {str(body["metadata"]["name"]): body for body in documents("stack")}
    twice = {**bodies, "again": next(iter(bodies.values()))}
    break_rule("queue-exists")
    found = check_objects_together(twice)
    assert len(faults(found)) == 1
    assert "object-twice" in {finding.rule for finding in found}


def test_a_component_is_planned_and_says_what_was_not_checked(
    break_rule: Callable[[str], None],
) -> None:
    break_rule("world-size-equals-gpus")
    compiled = compile_serving(GUIDE)
    assert compiled.manifests
    assert len(faults(list(compiled.findings))) == 1
