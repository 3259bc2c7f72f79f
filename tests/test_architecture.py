"""What keeps the code small and its layers apart, beside the import contracts in pyproject.toml."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.for_each import for_each

ROOT = Path(__file__).parent.parent
MOST_LINES, MOST_FUNCTION_LINES = 340, 45
SOURCES = sorted(
    path
    for folder in ("kthena_components", "policies", "toolchain")
    for path in (ROOT / folder).rglob("*.py")
)
PURE = [
    "kthena_components.core",
    "kthena_components.core.plan.report",
    "kthena_components.checker.manifest",
    "kthena_components.cli.main",
]

each_source = for_each("path", SOURCES, ids=[str(path.relative_to(ROOT)) for path in SOURCES])


@pytest.mark.parametrize("module", PURE)
def test_the_pure_layers_do_not_load_pulumi(module: str) -> None:
    program = (
        f"import sys, {module}\n"
        "print([name for name in sys.modules if name.partition('.')[0].startswith('pulumi')])"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert loaded.stdout.strip() == "[]"


@each_source
def test_a_file_can_be_read_at_once(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= MOST_LINES


@each_source
def test_a_function_fits_on_a_page(path: Path) -> None:
    long = [f"{name} {lines}" for name, lines in functions(path) if lines > MOST_FUNCTION_LINES]
    assert long == []


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Give the name and the length of each function in a file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1


def test_the_sources_are_found() -> None:
    assert len(SOURCES) > 40


def test_no_pattern_has_a_possessive_group() -> None:
    """Python before 3.11.5 matches too much with them: write an atomic group, `(?>…)`."""
    found = [
        f"{file.relative_to(ROOT)}:{number}"
        for file in SOURCES
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if re.search(r"\)[*+?]\+", line)
    ]
    assert found == []
