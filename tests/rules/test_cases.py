"""Every rule has cases of five kinds. The folder that holds them runs them: its test_cases.py."""

from itertools import chain
from pathlib import Path

from kthena_components.checker.catalogue import BRANCH, EDGES, FOLDERS, all_rules
from kthena_components.core.values.read import group_kind
from tests.rules.cases import KINDS, bases, case_files, documents, read_cases
from tests.support.for_each import for_each

ROOT = Path(__file__).parents[2]
OTHERS = {EDGES, BRANCH, FOLDERS}
RULES = sorted(rule.name for rule in all_rules() if rule.subject not in OTHERS)
"""Those that check manifests or the input of a component: the others have tests of their own."""
CASES = list(chain.from_iterable(read_cases(rule) for rule in RULES))


@for_each("rule", RULES)
def test_a_rule_has_cases_of_every_kind(rule: str) -> None:
    assert {case.kind for case in CASES if case.rule == rule} == set(KINDS)


def test_no_file_is_of_a_rule_that_does_not_exist() -> None:
    assert case_files().keys() <= set(RULES)


@for_each("rule", RULES)
def test_pass_is_silent_and_fail_is_not(rule: str) -> None:
    cases = [case for case in CASES if case.rule == rule]
    assert all(case.says is None for case in cases if case.kind == "pass")
    assert all(case.says is not None or case.none for case in cases if case.kind == "fail")


def test_the_documents_of_a_base_have_names_of_their_own() -> None:
    for base in {case.base for case in CASES if case.base}:
        names = [str(body.get("metadata", body).get("name")) for body in documents(base)]
        assert sorted(names) == sorted(set(names)), base


def test_every_base_is_used() -> None:
    """By cases, or as the one base of its kind: tests/systems/test_laws.py."""
    used = {case.base for case in CASES if case.none is None}
    kinds = {kind_of(name) for name in used}
    assert {name for name in bases().keys() - used if kind_of(name) in kinds} == set()


def kind_of(base: str) -> object:
    body = documents(base)[0]
    return group_kind(body) if "apiVersion" in body else base


def test_every_folder_with_cases_runs_them() -> None:
    folders = {path.parent.parent for path in case_files().values()}
    assert {folder for folder in folders if not (folder / "test_cases.py").exists()} == set()


def test_the_documentation_of_a_rule_names_its_code_and_its_cases() -> None:
    named = [rule for rule in all_rules() if rule.file]
    assert [rule.name for rule in named if not (ROOT / rule.file).is_file()] == []
    cased = [rule for rule in named if rule.module and rule.subject != BRANCH]
    assert [rule.name for rule in cased if not (ROOT / rule.cases).is_file()] == []
    assert cased
    assert len(named) > 9 * len(RULES) / 10
