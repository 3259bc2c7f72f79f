"""Each fenced block of each page can be read, and commands that no test runs say why."""

import json
import re
from functools import cache

import yaml
from markdown_it import MarkdownIt

from tests.pages.unprompted import UNPROMPTED
from tests.support.for_each import for_each
from tests.support.pages import ROOT, pages

PROGRAM = re.compile(
    r"(?:cd|cp|curl|docker|dotnet|eval|export|git|go|helm|kthena-components|kubectl|kustomize|make"
    r"|npm|pip|pulumi|python3?|sudo|\.venv/bin/\S+) "
)


@cache
def blocks(page: str) -> tuple[tuple[str, str], ...]:
    """List the blocks of a page, each with its language."""
    tokens = MarkdownIt().parse((ROOT / page).read_text())
    return tuple((one.info, one.content) for one in tokens if one.type == "fence")


@for_each("page", pages(), ids=pages())
def test_a_block_is_of_its_language(page: str) -> None:
    for language, text in blocks(page):
        if language in {"python", "py"}:
            compile(text, page, "exec")
        elif language in {"yaml", "yml"}:
            assert [*yaml.safe_load_all(text)]
        elif language == "json":
            json.loads(text if text.startswith(("{", "[")) else f"{{{text}}}")


def unprompted() -> dict[str, list[str]]:
    """List the commands that begin a block without a prompt, by page."""
    found: dict[str, list[str]] = {}
    for page in pages():
        for language, text in blocks(page):
            if language in {"", "bash", "sh"} and PROGRAM.match(text):
                found.setdefault(page, []).append(text.partition("\n")[0])
    return found


def test_a_command_without_a_prompt_says_why_it_is_not_run() -> None:
    found = unprompted()
    untold = [
        f"{page}: {command}"
        for page, commands in found.items()
        for command in commands
        if not command.startswith(tuple(UNPROMPTED.get(page, {})))
    ]
    gone = [
        f"{page}: {start}"
        for page, starts in UNPROMPTED.items()
        for start in starts
        if not any(command.startswith(start) for command in found.get(page, []))
    ]
    assert (untold, gone) == ([], [])


def test_a_module_that_runs_a_command_exists() -> None:
    named = [why for starts in UNPROMPTED.values() for why in starts.values() if "/" in why]
    assert [why for why in named if not (ROOT / why).is_file()] == []
    assert named
