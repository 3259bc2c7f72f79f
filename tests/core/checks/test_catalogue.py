"""Every rule's docstring is its documentation."""

import re
from collections import Counter
from pathlib import Path

import pytest

from kthena_components.core import role_rules, rollout_rules, spec_rules, template_rules
from kthena_components.core.checks.catalogue import (
    ANY_MANIFEST,
    INPUT,
    Example,
    RuleDoc,
    all_rules,
    read_docstring,
)
from kthena_components.core.findings import Level

each_rule = pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.name)


def test_names_are_unique() -> None:
    assert [name for name, n in Counter(r.name for r in all_rules()).items() if n > 1] == []


@each_rule
def test_a_rule_says_in_a_sentence_what_holds(rule: RuleDoc) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*", rule.name)
    assert rule.summary.endswith(".")


@each_rule
def test_a_rule_has_a_source_and_says_what_passes_and_what_fails(rule: RuleDoc) -> None:
    assert rule.sources
    assert {example.passes for example in rule.examples} == {True, False}


@pytest.mark.parametrize(
    "rule", [r for r in all_rules() if r.judges == ANY_MANIFEST], ids=lambda rule: rule.name
)
def test_the_cases_of_a_rule_about_anybodys_serving_have_numbers(rule: RuleDoc) -> None:
    assert all(re.search(r"\d", example.text) for example in rule.examples)


def test_the_names_of_rules_about_input_are_those_of_their_findings() -> None:
    """Some functions give findings of several names, or of another than their own."""
    stated = {
        name
        for module in (spec_rules, rollout_rules, role_rules, template_rules)
        for name in re.findall(r'rule="([a-z-]+)"', Path(module.__file__ or "").read_text())
    }
    named = {rule.name for rule in all_rules() if rule.judges == INPUT}
    assert stated <= {rule.name for rule in all_rules()}
    assert named - stated == {"engine-launch", "sglang-data-multi-node"}


def test_sections_are_read_from_a_docstring() -> None:
    text = """All is well.

Because it is.

Pass: 1 of 1.
Pass: 2 of
2.
Fail: 1 of 2.
Level: advisory, as an example.
Source: here.

Further words.
"""
    assert read_docstring(text, name="well", judges=INPUT) == RuleDoc(
        name="well",
        judges=INPUT,
        summary="All is well.",
        body="Because it is.\n\nFurther words.",
        level=Level.ADVISORY,
        sources=("here.",),
        examples=(
            Example(passes=True, text="1 of 1."),
            Example(passes=True, text="2 of 2."),
            Example(passes=False, text="1 of 2."),
        ),
    )
