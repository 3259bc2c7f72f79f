"""docs/troubleshooting.md quotes what is printed: by this package, or by those that it names."""

import ast
import re
from functools import cache
from pathlib import Path

from tests.support.for_each import for_each

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text()
ROWS = [line.split(" | ") for line in PAGE.splitlines() if line.startswith("| ")]
QUOTES = [
    quote for row in ROWS for quote in re.findall(r"`([^`]+)`", row[0]) if row[0] != "| it prints"
]
OF_OTHERS = {
    ".metadata.annotations.kthena-components/stack",
    "an unhandled error occurred: Program exited with non-zero exit code: 1",
    "The program ended with exit code 1.",
    "Server-Side Apply field conflict detected",
    "no stack named 'staging' found",
    "specified in 'config' not found in namespace",
}
"""What Pulumi, the API server and webhooks print."""


@cache
def texts() -> tuple[str, ...]:
    """Give all strings of the package, with a mark in place of each value."""
    found: list[str] = []
    for path in (ROOT / "kthena_components").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.JoinedStr):
                parts = (p.value if isinstance(p, ast.Constant) else "…" for p in node.values)
                found.append("".join(map(str, parts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return tuple(found)


def test_there_are_quotes() -> None:
    assert len(QUOTES) > len(OF_OTHERS) * 4
    assert set(QUOTES) >= OF_OTHERS


@for_each("quote", sorted(set(QUOTES) - OF_OTHERS))
def test_each_quote_is_printed(quote: str) -> None:
    parts = [part.strip(" :") for part in quote.strip("[]").split("…")]
    for part in filter(None, parts):
        assert any(part in text for text in texts()), part
