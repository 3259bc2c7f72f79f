"""The workflow files that users copy: both call one script, and every command in them exists."""

import os
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kthena_components.cli.comment import MARK

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "ci" / "review"
FILES = {name: ROOT / "docs" / "ci" / f"{name}.yml" for name in ("github-actions", "gitlab-ci")}
OF_THE_RUNNER = {"apt-get", "curl", "gh"}
"""Programs that the runner's image has, and a contributor's machine may not."""
OF_THE_SHELL = {"eval", "exit", "echo", "if", "then", "else", "fi", "status=0", "status=$?"}

each_file = pytest.mark.parametrize("name", FILES)


def content(name: str) -> dict[Any, Any]:
    body: dict[Any, Any] = yaml.safe_load(FILES[name].read_text())
    return body


def scripts(name: str) -> list[str]:
    """Give what the shell of a workflow runs."""
    body = content(name)
    if name == "gitlab-ci":
        job = body["review"]
        return [*job["before_script"], *job["script"]]
    return [step["run"] for step in body["jobs"]["review"]["steps"] if "run" in step]


def commands(script: str) -> Iterator[list[str]]:
    """Give the simple commands of a script, word by word."""
    inner = re.findall(r"\$\(((?:[^()']|'[^']*')*)\)", script)
    for text in (script, *inner):
        lexer = shlex.shlex(text.replace("\\\n", " "), posix=True, punctuation_chars="();|&\n")
        lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t", True, ""
        words: list[str] = []
        for word in [*lexer, "\n"]:
            if set(word) <= set("();|&\n"):
                if words:
                    yield words
                words = []
            else:
                words.append(word)


@each_file
def test_a_workflow_calls_the_script(name: str) -> None:
    called = [words for script in scripts(name) for words in commands(script)]
    assert sum(words[0] == "ci/review" for words in called) == 1
    assert os.access(SCRIPT, os.X_OK)


@each_file
def test_every_command_of_a_workflow_exists(name: str) -> None:
    for words in (words for script in scripts(name) for words in commands(script)):
        first = words[1] if words[0] in {"if", "then", "else"} and words[1:] else words[0]
        if first in OF_THE_RUNNER | OF_THE_SHELL | {"["} or re.match(r"[a-z]+=", first):
            continue
        assert (ROOT / first).exists() if "/" in first else shutil.which(first), words


@each_file
def test_every_target_of_make_exists(name: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    asked = {
        word
        for script in scripts(name)
        for words in commands(script)
        if words[0] == "make"
        for word in words[1:]
        if not word.startswith("-")
    }
    assert asked
    assert asked <= targets


@each_file
def test_the_files_that_a_workflow_names_exist(name: str) -> None:
    text = FILES[name].read_text()
    for path in ("requirements.lock", "toolchain/versions.json"):
        assert path not in text or (ROOT / path).exists()
    assert "requirements.lock" in text


def test_a_fork_gets_no_secret_and_the_token_may_do_little() -> None:
    body = content("github-actions")
    assert body[True] == "pull_request", "YAML reads `on` as true"
    assert body["permissions"] == {"contents": "read", "pull-requests": "write"}
    steps = body["jobs"]["review"]["steps"]
    (comment,) = (step for step in steps if "gh pr comment" in step.get("run", ""))
    assert comment["if"] == "github.event.pull_request.head.repo.full_name == github.repository"
    assert "--edit-last --create-if-none" in comment["run"]
    (checkout,) = (step for step in steps if step.get("uses", "").startswith("actions/checkout@"))
    assert checkout["with"] == {"fetch-depth": 0, "persist-credentials": False}


def test_actions_are_pinned_to_a_version() -> None:
    used = [step["uses"] for step in content("github-actions")["jobs"]["review"]["steps"]
            if "uses" in step]  # fmt: skip
    assert used == ["actions/checkout@v4", "actions/setup-python@v5", "actions/cache@v4"]


def test_the_note_on_a_merge_request_is_found_by_the_mark_of_the_comment() -> None:
    (post,) = (script for script in scripts("gitlab-ci") if "/notes" in script)
    (mark,) = re.findall(r'startswith\("(.*?)"\)', post)
    assert MARK.startswith(mark)


def test_a_verdict_is_given_after_the_comment() -> None:
    """A refusal must not keep the comment that explains it from being written."""
    for name in FILES:
        texts = scripts(name)
        at = [i for i, text in enumerate(texts) if "ci/review" in text]
        posted = [i for i, text in enumerate(texts) if "gh pr comment" in text or "/notes" in text]
        assert texts[-1].startswith("exit "), name
        assert at[0] < posted[0] < len(texts) - 1
        assert "&& status=0 || status=$?" in texts[at[0]]


def test_the_script_is_short_enough_to_be_read() -> None:
    assert len(SCRIPT.read_text().splitlines()) <= 150
