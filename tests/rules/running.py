"""Runs the cases of one folder: each has a module test_cases.py that calls this."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.rules.cases import Case, case_files, read_cases


def cases_beside(module: str) -> Callable[[Case], None]:
    """Make the test of all cases in the folder `cases` beside a module."""
    here = Path(module).parent / "cases"
    rules = [rule for rule, path in case_files().items() if path.parent == here]
    cases = [case for rule in rules for case in read_cases(rule)]
    assert cases, f"no case in {here}"

    @pytest.mark.parametrize(
        "case", cases, ids=lambda case: f"{case.rule}-{case.kind}-{case.number}"
    )
    def run(case: Case) -> None:
        if case.none is not None:
            assert case.none.strip()
            return
        findings = case.findings()
        own = [str(finding) for finding in findings if finding.rule == case.rule]
        if case.says is None or case.by is not None:
            assert own == []
        if case.says is not None:
            speaker = case.by or case.rule
            told = [str(f) for f in findings if f.rule == speaker and f.level is case.weight]
            assert case.says in "\n".join(told), [str(finding) for finding in findings]

    return run
