"""Every fix of a finding, applied literally, makes the finding go away and brings no other one."""

import json
from collections.abc import Iterator
from itertools import chain
from typing import Any, NamedTuple

import pytest

from kthena_components.core.findings import Finding
from tests.rules.cases import Case, case_files, read_cases
from tests.rules.choices import CHOICES, UNCOVERS
from tests.rules.following import faults, in_words, wrong_way

HUGE = "pods-within-cluster"
"""The rule whose fixes leave 150,000 pods, which takes minutes to plan."""
RULES = sorted(case_files())


def failing(rule: str) -> list[Case]:
    cases = (case for case in read_cases(rule) if case.none is None)
    return [case for case in cases if case.says is not None and case.kind != "unknown"]


class Wrong(NamedTuple):
    """A fix that misleads."""

    found: Finding
    fix: list[dict[str, Any]]
    why: str

    @property
    def exceptions(self) -> set[tuple[str, str]]:
        pairs = (pair for pair in UNCOVERS if pair[0] == self.found.rule)
        return {pair for pair in pairs if self.why.endswith(f"[{pair[1]}]")}


def followed(case: Case) -> Iterator[Wrong]:
    tree = case.input()
    before = case.findings()
    for found in faults(before):
        for fix in found.fixes or in_words(found, tree):
            changes = [change.as_json() for change in fix]
            json.dumps(changes)
            if why := wrong_way(case.judge, tree, before, found, fix):
                yield Wrong(found, changes, why)


@pytest.fixture(scope="module")
def wrong() -> list[Wrong]:
    cases = chain.from_iterable(failing(rule) for rule in RULES if rule != HUGE)
    return list(chain.from_iterable(map(followed, cases)))


def test_each_fix_of_each_finding_works(wrong: list[Wrong]) -> None:
    assert [(str(one.found), one.fix, one.why) for one in wrong if not one.exceptions] == []


def test_each_exception_is_one(wrong: list[Wrong]) -> None:
    assert set().union(*(one.exceptions for one in wrong)) == UNCOVERS.keys()


@pytest.fixture(scope="module")
def fixed() -> set[str]:
    """Give the rules of which some finding in a case has a fix."""
    cases = chain.from_iterable(map(failing, RULES))
    return {found.rule for case in cases for found in case.findings() if found.fixes}


def test_a_rule_without_a_fix_has_a_reason(fixed: set[str]) -> None:
    listed = set(chain.from_iterable(CHOICES.values()))
    assert {rule for rule in RULES if rule not in fixed and any(failing(rule))} - listed == set()
    assert listed & fixed == set(), "has a fix now"
    assert listed <= set(RULES), "is not a rule, or has no case"
    assert len(listed) == sum(map(len, CHOICES.values())), "is listed twice"


def test_a_serving_within_the_limit_has_no_more_pods_than_its_remedy_says() -> None:
    for case in failing(HUGE):
        for found in (each for each in case.findings() if each.rule == HUGE):
            ((change,),) = found.fixes
            assert 0 < change.value <= 150_000
            assert found.remedy == f"write at most {change.value}"
