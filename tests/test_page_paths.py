"""The Python files that the pages for developers name exist."""

import re
import subprocess
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from tests.support.for_each import for_each

ROOT = Path(__file__).parent.parent
ARCHITECTURE = ROOT / "docs" / "architecture.md"
PAGES = [
    ARCHITECTURE,
    ROOT / "CONTRIBUTING.md",
    ROOT / "docs" / "glossary.md",
    *sorted((ROOT / "docs" / "decisions").glob("*.md")),
]
NAMED = re.compile(r"(?P<former>\bformer(?:ly)?\s+`)?(?P<path>[\w*<>./-]*[\w*>]\.py)\b")
"""A path. `former` before it says that it exists no longer."""
ELSEWHERE = {
    "setup.py": "of source distributions",
    "tensorrt_llm/commands/serve.py": "of TensorRT-LLM",
    "examples/app.py": "of a branch that a review checks",
    "venv.py": "of a branch that a review checks",
    "sitecustomize.py": "of a branch that a review checks",
}


@cache
def files() -> list[str]:
    """List the repository's Python files, each with a slash before it."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return [f"/{name}" for name in listed.stdout.splitlines() if (ROOT / name).exists()]


def missing(text: str) -> list[str]:
    """List the paths in a string that are not files."""
    named = [found["path"] for found in NAMED.finditer(text) if not found["former"]]
    return [path for path in named if path not in ELSEWHERE and not exists(path)]


def exists(path: str) -> bool:
    """Return whether a path, or its end, is a file. `<name>` stands for any name."""
    pattern = re.sub(r"<\w+>", "*", path)
    return any(fnmatchcase(file, f"*/{pattern}") for file in files())


@for_each("page", PAGES, ids=[page.name for page in PAGES])
def test_the_named_files_exist(page: Path) -> None:
    assert missing(page.read_text()) == []


def test_the_files_of_a_system_exist() -> None:
    """The table names them without their folder."""
    table = ARCHITECTURE.read_text().partition("| file | content |\n")[2].partition("\n\n")[0]
    rows = [line.split(" | ")[0] for line in table.splitlines()]
    named = [path for row in rows for path in re.findall(r"`([^`]+\.py)`", row)]
    assert len(named) >= 10
    assert [path for path in named if not exists(f"systems/<name>/{path}")] == []


def test_the_files_elsewhere_are_named() -> None:
    pages = "".join(page.read_text() for page in PAGES)
    assert [path for path in ELSEWHERE if path not in pages] == []


def test_a_missing_file_is_found() -> None:
    text = (
        "`core/rules/name_fits.py`, `systems/<name>/view.py`, `core/none.py`, former `old/none.py`"
    )
    assert missing(text) == ["core/none.py"]
    assert missing("`core/spec/rules_*.py` and\n`systems/<name>/changes.py`") == [
        "core/spec/rules_*.py",
        "systems/<name>/changes.py",
    ]
