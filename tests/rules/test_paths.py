"""A finding names a place of the object, not one of the pod that its controller makes of it."""

import re
from typing import Any

import pytest

from tests.rules.cases import Case, case_files, read_cases
from tests.support.for_each import for_each

_STEP = re.compile(r"\[(?:(\d+)|\"([^\"]*)\")\]|([^.\[\]]+)")


def has_items(tree: Any, path: str) -> bool:
    """Return whether each list in a path has the item that the path names."""
    for number, quoted, name in _STEP.findall(path):
        if number:
            if not isinstance(tree, list) or int(number) >= len(tree):
                return False
            tree = tree[int(number)]
        else:
            tree = tree.get(quoted or name) if isinstance(tree, dict) else None
    return True


@pytest.mark.parametrize("rule", sorted(case_files()))
def test_each_item_that_a_finding_names_is_in_its_object(rule: str) -> None:
    def check(case: Case) -> None:
        tree = case.input()
        assert [str(each) for each in case.findings() if not has_items(tree, each.path)] == []

    cases = [case for case in read_cases(rule) if case.none is None]
    for_each("case", cases, ids=lambda case: f"{case.kind}-{case.number}")(check)()
