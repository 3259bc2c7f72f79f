"""The list of checks: each is named, documented and sourced, and carries its own name."""

import re
from collections import Counter
from pathlib import Path

from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import rule_name
from kthena_components.core.rules.registry import CHECKS, Check, run_checks
from tests.support.for_each import for_each

each_check = for_each("check", CHECKS, ids=rule_name)


def test_names_are_unique() -> None:
    assert [name for name, n in Counter(map(rule_name, CHECKS)).items() if n > 1] == []


@each_check
def test_a_name_is_in_kebab_case(check: Check) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*", rule_name(check))


@each_check
def test_a_check_says_in_one_sentence_what_holds_and_where_that_is_from(check: Check) -> None:
    lines = (check.__doc__ or "").strip().splitlines()
    assert lines[0].endswith(".")
    assert any(line.strip().startswith("Source: ") for line in lines)


@each_check
def test_the_cases_of_a_check_are_where_they_are_looked_for(check: Check) -> None:
    """What they hold is checked by tests/rules/test_cases.py."""
    assert (Path(__file__).parent / "cases" / f"{rule_name(check)}.yaml").exists()


def test_nothing_to_check_gives_nothing() -> None:
    assert run_checks(ServingFacts(path="", name="", engines=())) == []
