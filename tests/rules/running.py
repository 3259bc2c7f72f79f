"""Runs the cases of one folder: each has a module test_cases.py that calls this."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kthena_components.checker.catalogue import EDGES, all_rules, rule_names
from tests.rules.cases import Case, case_files, read_cases
from tests.support.for_each import for_each

NEED_CASES = rule_names() - {rule.name for rule in all_rules() if rule.subject == EDGES}
"""Rules of all findings that a case may have, also of those that are made, passed on or translated.

A rule of the edges that a case of another rule meets would have a place among the others.
"""


def cases_beside(module: str) -> Callable[[str], None]:
    """Make the test of all cases in the folder `cases` beside a module: one for each file."""
    here = Path(module).parent / "cases"
    rules = [rule for rule, path in case_files().items() if path.parent == here]
    assert rules, f"no case in {here}"

    @pytest.mark.parametrize("rule", rules)
    def run(rule: str) -> None:
        cases = list(read_cases(rule))
        for_each("case", cases, ids=lambda case: f"{case.kind}-{case.number}")(check)()

    return run


def check(case: Case) -> None:
    """Compare what the rule says with what its case states."""
    if case.none is not None:
        assert case.none.strip()
        return
    findings = case.findings()
    assert {finding.rule for finding in findings} <= NEED_CASES
    own = [str(finding) for finding in findings if finding.rule == case.rule]
    if case.says is None or case.by is not None:
        assert own == []
    else:
        assert len(own) == case.times, own
    if case.says is not None:
        speaker = case.by or case.rule
        told = [str(f) for f in findings if f.rule == speaker and f.level is case.weight]
        assert case.says in "\n".join(told), [str(finding) for finding in findings]
