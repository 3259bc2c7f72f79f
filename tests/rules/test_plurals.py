"""Each noun behind a number of a message agrees with it: `count_of` writes both."""

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from tests.support.for_each import for_each

ROOT = Path(__file__).parents[2]
NOUNS = (
    "containers copies days engines GPUs groups layers members nodes pods racks ranks replicas "
    "roles sequences servings tasks workers"
)
NOUN = re.compile(rf" ({NOUNS.replace(' ', '|')})\b(?!-)")
LIMIT = re.compile(r"_?[A-Z][A-Z_0-9]*")
"""Constants, such as _MOST_NODES, are more than 1."""


def wrong(text: str) -> Iterator[str]:
    """Yield the numbers of a module's messages whose noun is always a plural."""
    for node in ast.walk(ast.parse(text)):
        parts = node.values if isinstance(node, ast.JoinedStr) else []
        for value, after in pairwise(parts):
            found = NOUN.match(str(after.value)) if isinstance(after, ast.Constant) else None
            if found and isinstance(value, ast.FormattedValue):
                number = ast.unparse(value.value)
                if not LIMIT.fullmatch(number):
                    yield f"{{{number}}} {found[1]}"


@for_each("path", sorted((ROOT / "kthena_components").rglob("*.py")))
def test_no_number_has_a_fixed_plural(path: Path) -> None:
    assert list(wrong(path.read_text())) == []


def test_what_is_wrong() -> None:
    assert list(wrong('f"of {plan.groups} groups"')) == ["{plan.groups} groups"]
    assert list(wrong("""f"at most {_MOST} pods, {count_of(n, 'pod')}" """)) == []
