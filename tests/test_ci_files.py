"""The workflow files that users copy, and the action: every command in them exists.

tests/engine/test_ci_steps.py runs them.
"""

import os
import re
import shlex
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from toolchain.programs import CLI, known_programs

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "ci" / "review"
FILES = {name: ROOT / "docs" / "ci" / f"{name}.yml" for name in ("github-actions", "gitlab-ci")}
OF_THE_RUNNER = {"apt-get", "openssl", "pulumi"}
"""Programs that the runner's image has, and a contributor's machine may not."""
OF_THE_WHEEL = {"kthena-components", "python"}
"""Programs of the environment into which a job installs the wheel."""
OF_THE_SHELL = {"unset", "exit", "echo", "if", "then", "else", "fi", "case", "esac", "*", "{", "}"}

each_file = pytest.mark.parametrize("name", FILES)


def content(name: str) -> dict[Any, Any]:
    body: dict[Any, Any] = yaml.safe_load(FILES[name].read_text())
    return body


def scripts(name: str) -> list[str]:
    """Give what the shell of a workflow runs."""
    return [script for job in jobs(name).values() for script in scripts_of(job)]


def jobs(name: str) -> dict[str, dict[str, Any]]:
    """Give the jobs of a workflow by name, in their order."""
    body = content(name)
    if name == "gitlab-ci":
        return {name: body[name] for name in body["stages"]}
    found: dict[str, dict[str, Any]] = body["jobs"]
    return found


def scripts_of(job: dict[str, Any]) -> list[str]:
    """Give what the shell of a job runs."""
    if "steps" in job:
        return [step["run"] for step in job["steps"] if "run" in step]
    listed = [*job.get("before_script", []), *job["script"]]
    # GitLab takes a list in a list for its items.
    nested = [each if isinstance(each, list) else [each] for each in listed]
    return [script for scripts in nested for script in scripts]


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
    reviews = [words for words in called if words[0].endswith("judge/.venv/bin/kthena-components")]
    assert [("--no-preview" in words) for words in reviews] == [True, False]
    assert all(words[1:3] == ["review", "--base"] for words in reviews)
    assert os.access(SCRIPT, os.X_OK)


@each_file
def test_every_command_of_a_workflow_exists(name: str) -> None:
    for words in (words for script in scripts(name) for words in commands(script)):
        first = words[1] if words[0] in {"if", "then", "else"} and words[1:] else words[0]
        if first in OF_THE_RUNNER | OF_THE_SHELL | {"["} or re.match(r"[A-Za-z_]+=", first):
            continue
        first = re.sub(r"^(\$judge|judge)/", "", first)
        if first.startswith(".venv/bin/"):
            assert first.rpartition("/")[2] in OF_THE_WHEEL, words
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
        for before, word in pairwise(words)
        if not word.startswith("-") and before != "-C"
    }
    assert asked
    assert asked <= targets


def test_pulumi_has_the_release_that_is_tested() -> None:
    released = known_programs()[CLI].version
    assert f"pulumi-version: {released}\n" in FILES["github-actions"].read_text()
    assert f"image: pulumi/pulumi-python:{released}\n" in FILES["gitlab-ci"].read_text()


def test_a_fork_gets_no_secret_and_the_token_may_do_little() -> None:
    body = content("github-actions")
    assert set(body[True]) == {"pull_request"}, "YAML reads `on` as true"
    assert body["permissions"] == {}
    assert {name: job["permissions"] for name, job in body["jobs"].items()} == {
        "judge": {"contents": "read"},
        "review": {"contents": "read"},
        "comment": {"contents": "read", "pull-requests": "write"},
    }
    steps = [step for job in body["jobs"].values() for step in job["steps"]]
    checkouts = [step for step in steps if step.get("uses", "").startswith("actions/checkout@")]
    assert len(checkouts) == 5
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)
    holders = [step.get("name") for step in steps if "secrets." in str(step)]
    assert holders == ["Review"], "one step sees the secrets"


def test_the_jobs_with_a_token_or_a_required_verdict_run_nothing_of_the_branch() -> None:
    """The branch is checked out in one of them, as data, and never in the other."""
    body = content("github-actions")["jobs"]
    checked_out = [step["with"] for step in body["comment"]["steps"] if "checkout" in str(step)]
    assert [with_.get("ref") for with_ in checked_out] == [
        "${{ github.event.pull_request.base.sha }}"
    ]
    for name in ("judge", "comment"):
        for script in scripts_of(body[name]):
            for words in commands(script):
                assert not words[0].startswith(("branch/", "./")), words
                assert words[:3] != ["make", "-C", "branch"], words
    assert "make venv" not in scripts_of(content("gitlab-ci")["judge"])
    comment = content("gitlab-ci")["comment"]
    assert comment["variables"] == {"GIT_STRATEGY": "clone", "GIT_CHECKOUT": "false"}


def test_no_expression_stands_inside_a_script() -> None:
    """What a stranger names, such as a branch, would become a part of the script."""
    for script in scripts("github-actions"):
        inside = re.findall(r"\$\{\{(.*?)\}\}", script)
        assert all(re.fullmatch(r" steps\.\w+\.outputs\.status ", text) for text in inside), script


def test_actions_are_pinned_to_a_commit_and_say_its_version() -> None:
    text = FILES["github-actions"].read_text()
    used = re.findall(r"uses: (.*)", text)
    assert used
    for line in used:
        assert re.fullmatch(
            r"(actions/[a-z-]+|pulumi/actions)@[0-9a-f]{40} # v\d+\.\d+\.\d+", line
        ), line


def test_a_token_of_gitlab_is_in_one_job_by_its_environment() -> None:
    body = jobs("gitlab-ci")
    assert [name for name, job in body.items() if "REVIEW_TOKEN" in str(job)] == ["comment"]
    named = {name: job.get("environment", {}).get("name") for name, job in body.items()}
    assert named == {"judge": None, "review": "review", "comment": "review-comment"}


def test_a_verdict_is_given_after_the_comment_is_kept() -> None:
    """A refusal must not keep the comment that explains it from being written."""
    for name in FILES:
        for job in ("judge", "review"):
            texts = scripts_of(jobs(name)[job])
            at = next(
                i for i, text in enumerate(texts) if "components" in text and " review " in text
            )
            assert texts[-1].startswith("exit "), name
            assert "&& status=0 || status=$?" in texts[at]
        assert "always" in str(jobs(name)["comment"])
    steps = content("github-actions")["jobs"]
    assert "upload-artifact" in steps["review"]["steps"][-2]["uses"]
    assert steps["judge"]["outputs"] == {"text": "${{ steps.judge.outputs.text }}"}
    for job in ("judge", "review"):
        assert jobs("gitlab-ci")[job]["artifacts"]["when"] == "always"


def test_trust_is_stated_beside_what_it_explains() -> None:
    for path in FILES.values():
        text = path.read_text()
        assert text.count("# Trust: ") >= 5
        assert "docs/security.md" in text


def test_the_script_is_short_enough_to_be_read() -> None:
    assert len(SCRIPT.read_text().splitlines()) <= 150
