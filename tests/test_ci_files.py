"""The workflow files that users copy, and the action: every command in them exists.

tests/pulumi/test_ci_steps.py runs them.
"""

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.ci_jobs import ACTION, FILES, ROOT, jobs, scripts_of
from toolchain.programs import CLI, known_programs

SCRIPT = ROOT / "ci" / "review"
OF_THE_RUNNER = {"apt-get", "pulumi"}
"""Programs that the runner's image has, and a contributor's machine may not."""
OF_THE_WHEEL = {"kthena-components", "python"}
"""Programs of the environment into which a job installs the wheel."""
OF_THE_SHELL = {"unset", "exit", "echo", "if", "then", "else", "fi", "case", "esac", "*", "{", "}",
                "cd", "export", "true"}  # fmt: skip
CONSOLE = "$PWD/judge/.venv/bin/kthena-components"
SIDES = ["review", "--repository", "commits", "--base", "refs/heads/base", "--head",
         "refs/heads/head", "--project", "$PROJECT"]  # fmt: skip
ALL = {
    **{f"github {name}": scripts_of(job) for name, job in jobs("github-actions").items()},
    **{f"gitlab {name}": scripts_of(job) for name, job in jobs("gitlab-ci").items()},
    "action": scripts_of({"steps": ACTION["runs"]["steps"]}),
}
"""What the shell of each job runs."""

each_file = pytest.mark.parametrize("name", FILES)


def content(name: str) -> dict[Any, Any]:
    body: dict[Any, Any] = yaml.safe_load(FILES[name].read_text())
    return body


def scripts(name: str) -> list[str]:
    """Give what the shell of a workflow runs."""
    return [script for job in jobs(name).values() for script in scripts_of(job)]


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
    reviews = [words for words in called if words[0] == CONSOLE]
    assert [("--no-preview" in words) for words in reviews] == [True, False, True]
    assert [("--tree" in words) for words in reviews] == [False, True, False]
    assert all(words[1 : len(SIDES) + 1] == SIDES for words in reviews)
    assert os.access(SCRIPT, os.X_OK)


@each_file
def test_every_command_of_a_workflow_exists(name: str) -> None:
    for words in (words for script in scripts(name) for words in commands(script)):
        first = words[1] if words[0] in {"if", "then", "else"} and words[1:] else words[0]
        if first in OF_THE_RUNNER | OF_THE_SHELL | {"["} or re.match(r"\w+=", first):
            continue
        first = re.sub(r"^\$(PWD|OLDPWD)/judge/", "", first)
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
    used = {step["uses"].partition("@")[0] for step in steps if "uses" in step}
    assert used == {
        "actions/setup-python", "actions/upload-artifact", "actions/download-artifact",
        "pulumi/actions",
    }, "no checkout: it would write files of the branch, or keep a token"  # fmt: skip
    assert "cache" not in str([step.get("with") for step in steps])
    with_token = [step["name"] for step in steps if "github.token" in str(step)]
    assert with_token == ["Fetch the commits"] * 3 + ["Comment"]
    holders = [step.get("name") for step in steps if "secrets." in str(step)]
    assert holders == ["Review"], "one step sees the secrets"


TRUSTED = ("github judge", "github comment", "gitlab judge", "gitlab comment")


@pytest.mark.parametrize("job", TRUSTED)
def test_the_jobs_with_a_token_or_a_required_verdict_run_nothing_of_the_branch(job: str) -> None:
    """The branch is never a file there. tests/pulumi/test_ci_hostile.py runs these jobs."""
    for script in ALL[job]:
        assert "worktree add" not in script or "refs/heads/head" not in script
        for words in commands(script):
            program = next((word for word in words if not re.match(r"\w+=", word)), "")
            own = re.match(r"\$(PWD|OLDPWD)/judge/", program)
            assert own or "/" not in program, words
            assert words[:3] != ["make", "-C", "branch"], words
            outside = [word for word in words if "CI_PROJECT_DIR" in word or "WORKSPACE" in word]
            assert not outside or "kthena_components.cli.review.post_comment" in words
            assert job.startswith("github") or not outside
        written = set(re.findall(r">+ *([^\s;)]+)", script))
        assert written <= {"judge.md", "comment.md", '"$GITHUB_STEP_SUMMARY"', '"$GITHUB_OUTPUT"'}


def test_a_job_of_gitlab_starts_in_an_empty_folder() -> None:
    body = content("gitlab-ci")
    stated = {"GIT_STRATEGY": "clone", "GIT_CHECKOUT": "false", "GIT_DEPTH": "1"}
    assert body["variables"] == {**stated, "PROJECT": ".", "INVENTORY": ""}
    assert not [name for name, job in jobs("gitlab-ci").items() if "variables" in job]
    assert not [name for name, job in jobs("gitlab-ci").items() if "cache" in job]


def test_no_job_of_gitlab_gets_anything_of_another_one() -> None:
    """An artifact may be variables, and the text of a comment is asked for instead.

    Source: gitlabhq app/models/ci/build_dependencies.rb: variables come from the jobs whose
    artifacts a job needs, or without `needs` from all earlier stages.
    """
    body = jobs("gitlab-ci")
    assert {name: job["needs"] for name, job in body.items()} == {
        "judge": [],
        "review": [{"job": "judge", "artifacts": False}],  # and so nothing runs before an approval
        "comment": [{"job": "review", "artifacts": False}],
    }
    assert all(job["inherit"] == {"default": ["tags"]} for job in body.values())
    assert not [name for name, job in body.items() if "dependencies" in job]


def lines_of(job: str, first: str, last: str) -> list[str]:
    """Give the lines of a job between two of them that begin with a string."""
    lines = "\n".join(ALL[job]).splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(first))
    end = next(number for number, line in enumerate(lines) if line.startswith(last))
    return lines[start : end + 1]


@pytest.mark.parametrize(
    ("first", "last"),
    [("folder=$(mktemp", "git --git-dir=commits fetch"), ("GIT_LFS_SKIP_SMUDGE=1", "fi")],
    ids=["fetch", "install"],
)
def test_every_job_fetches_and_installs_in_the_same_words(first: str, last: str) -> None:
    found = {tuple(lines_of(job, first, last)) for job in ALL}
    (words,) = found
    assert len(words) > 3


def test_every_preview_installs_the_program_of_the_branch_in_the_same_words() -> None:
    found = {
        script
        for job in ("github review", "gitlab review", "action")
        for script in ALL[job]
        if "worktree add" in script and "refs/heads/head" in script
    }
    assert len({script.strip() for script in found}) == 1


@pytest.mark.parametrize(
    ("packages", "installed"),
    [
        ("", []),
        (
            "packages: {kthena: kthena@0.3.0}",
            ["plugin install resource kthena 1.2.3 --file .venv/bin/pulumi-resource-kthena"],
        ),
    ],
)
def test_a_program_in_another_language_gets_the_plugin_of_its_wheel(
    tmp_path: Path, packages: str, installed: list[str]
) -> None:
    (script,) = (each for each in ALL["action"] if "pulumi -C" in each)
    (tmp_path / "judge").mkdir()
    project = tmp_path / "branch" / "a b"
    (project / ".venv" / "bin").mkdir(parents=True)
    (project / "Pulumi.yaml").write_text(f"name: a\nruntime: nodejs\n{packages}\n")
    stubs = {
        tmp_path / "git": "",
        tmp_path / "python3": "",
        tmp_path / "pulumi": f'echo "$@" >> {tmp_path}/ran',
        project / ".venv" / "bin" / "python": "",
        project / ".venv" / "bin" / "kthena-components": "echo kthena-components 1.2.3",
    }
    for file, text in stubs.items():
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    subprocess.run(
        ["bash", "-e", "-c", script], cwd=tmp_path, env={"PATH": path, "PROJECT": "a b"}, check=True
    )
    ran = (tmp_path / "ran").read_text().splitlines()
    assert ran == [*installed, "-C branch/a b install"]


def test_python_never_imports_from_the_folder_in_which_it_starts() -> None:
    for job, scripts_ in ALL.items():
        for words in (words for script in scripts_ for words in commands(script)):
            if re.search(r"(^|/)python3?$", words[0]):
                assert words[1] == "-I", (job, words)


def test_a_retargeted_pull_request_is_reviewed_again() -> None:
    body = content("github-actions")
    assert "edited" in body[True]["pull_request"]["types"]
    conditions = {name: job.get("if") for name, job in body["jobs"].items()}
    assert conditions["judge"] is None, "GitHub takes a job that is skipped as one that passed"
    assert conditions["review"] is None
    targets = {"github": "$GITHUB_BASE_REF", "gitlab": "$CI_MERGE_REQUEST_TARGET_BRANCH_NAME"}
    for job, run in ALL.items():
        if job != "action":
            assert f"base=refs/heads/{targets[job.partition(' ')[0]]}" in "\n".join(run)


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
    steps = content("github-actions")["jobs"]
    assert "upload-artifact" in steps["review"]["steps"][-2]["uses"]
    assert "!cancelled()" in steps["comment"]["if"]
    assert jobs("gitlab-ci")["comment"]["rules"][0]["when"] == "always"
    assert jobs("gitlab-ci")["review"]["artifacts"]["when"] == "always"


def test_what_the_check_says_does_not_travel_between_jobs() -> None:
    """A job that runs code of the branch could replace an artifact of the same run."""
    body = content("github-actions")["jobs"]
    assert [name for name, job in body.items() if "outputs" in job] == []
    assert [name for name, job in jobs("gitlab-ci").items() if "artifacts" in job] == ["review"]
    for name in FILES:
        judge, comment = (
            [script for script in scripts_of(jobs(name)[job]) if "--no-preview" in script]
            for job in ("judge", "comment")
        )
        assert judge[0].splitlines()[0] == comment[0].splitlines()[0]


def test_trust_is_stated_beside_what_it_explains() -> None:
    for path in FILES.values():
        text = path.read_text()
        assert text.count("# Trust: ") >= 5
        assert "docs/security.md" in text


def test_the_script_is_short_enough_to_be_read() -> None:
    assert len(SCRIPT.read_text().splitlines()) <= 150
