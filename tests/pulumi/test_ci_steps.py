"""The steps of the workflows and of the action, run with bash for a user's repository.

Left out are the steps with `uses`, and `pulumi install`, which needs a package registry: the test
makes what they would leave behind. pip installs the built wheel from a file, without its libraries.
"""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kthena_components.cli.review.references import APART
from tests.support.ci_jobs import (
    ACTION,
    OF_THE_BRANCH,
    Machine,
    Repository,
    action_values,
    jobs,
    offline,
    scripts_of,
)
from tests.support.comments import Host, host
from tests.support.engine import STATE_VARIABLES, environment
from tests.support.user_project import FILES, STACK, files_of
from tests.support.workflow import Runner

__all__ = ["host"]
pytestmark = pytest.mark.programs
WORKFLOW = jobs("github-actions")
GITLAB = jobs("gitlab-ci")
REFUSED = "starts tensor 1 × pipeline 3 = 3 ranks, but its 2 pods × 1 GPU hold 2"
UNAPPROVED = "**A person must approve this branch.**"
INSTALL = "pulumi -C "
LINKED = """\
GIT_LFS_SKIP_SMUDGE=1 git --git-dir=commits worktree add --quiet --detach branch refs/heads/head
ln -s "$PWD/judge/.venv" branch/.venv
"""
"""Instead of the step that calls `pulumi install`."""


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory, wheel: Path, libraries: Path) -> Machine:
    """Make a machine with a repository."""
    folder = tmp_path_factory.mktemp("ci")
    (folder / "state").mkdir()
    repository = Repository.made(folder / "origin", files_of(wheel))
    variables = offline(libraries, folder / "tmp")
    path = f"{variables['PATH'].partition(':')[0]}:{environment()['PATH']}"
    state = {"PULUMI_BACKEND_URL": (folder / "state").as_uri()}
    values = {
        "vars.PULUMI_BACKEND_URL": state["PULUMI_BACKEND_URL"],
        "secrets.PULUMI_ACCESS_TOKEN": "",
        "secrets.PULUMI_CONFIG_PASSPHRASE": "only for tests",
    }
    engine = {**environment(), **STATE_VARIABLES, **state}
    return Machine(repository, {**engine, **variables, "PATH": path}, values)


@pytest.fixture
def machine(prepared: Machine) -> Machine:
    """Give the machine, with a branch whose stack has one stage too many."""
    prepared.repository.git("reset", "--quiet", "--hard", "main")
    prepared.repository.write({STACK: FILES[STACK].replace('"2"', '"3"')})
    prepared.repository.commit()
    return prepared


def linked(steps: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give the steps without the one that needs a registry."""
    return [
        {**step, "run": LINKED} if step.get("name") == OF_THE_BRANCH else step for step in steps
    ]


def made_folder(runner: Runner) -> Path:
    return Path(runner.values["steps.fetch.outputs.folder"])


def plain(text: str) -> str:
    return text.replace(APART, "").replace("\\", "")


def folder(parent: Path, name: str) -> Path:
    (parent / name).mkdir()
    return parent / name


def test_the_workflow_checks_previews_and_comments(
    machine: Machine, tmp_path: Path, host: str
) -> None:
    judge, ran = machine.github(folder(tmp_path, "judge"), WORKFLOW["judge"]["steps"], PROJECT=".")
    assert [(name, step.returncode) for name, step in ran.items()] == [
        ("Fetch the commits", 0),
        ("Install the package of the base", 0),
        ("Check the branch", 0),
        ("Verdict", 0),
    ], ran
    told = judge.summary
    workspace = folder(tmp_path, "review")
    review, ran = machine.github(workspace, linked(WORKFLOW["review"]["steps"]), PROJECT=".")
    codes = [step.returncode for step in ran.values()]
    assert codes == [0, 0, 0, 0, 1], ran["Review"].stderr
    comment = (made_folder(review) / "comment.md").read_text()
    assert REFUSED in comment
    assert review.summary == comment
    assert list(workspace.iterdir()) == [], "no job needs the workspace"

    last = folder(tmp_path, "comment")
    (folder(last, "previewed") / "comment.md").write_text(comment)
    own = {"GITHUB_API_URL": host, "no_proxy": "127.0.0.1", "PROJECT": "."}
    _, ran = machine.github(last, WORKFLOW["comment"]["steps"], **own)
    assert [step.returncode for step in ran.values()] == [0] * 4, ran["Comment"].stderr
    method, path, body = Host.asked[-1]
    assert (method, path) == ("POST", "/repos/origin/issues/5/comments")
    assert REFUSED in body["body"]
    assert told.splitlines()[0] in body["body"]


def test_the_jobs_of_gitlab_check_preview_and_comment(
    machine: Machine, tmp_path: Path, host: str
) -> None:
    ran = machine.gitlab(tmp_path, scripts_of(GITLAB["judge"]))
    assert ran.returncode == 0, ran.stderr
    (told,) = ran.stdout.splitlines()[:1]
    assert told
    assert list(tmp_path.iterdir()) == []

    review = [
        LINKED if INSTALL in script else script
        for script in scripts_of(GITLAB["review"])
        if not script.startswith("apt-get ")
    ]
    assert review.count(LINKED) == 1
    ran = machine.gitlab(tmp_path, review)
    assert ran.returncode == 1, ran.stderr
    assert REFUSED in (tmp_path / "comment.md").read_text()

    Host.jobs = [{"id": 8, "name": "judge"}, {"id": 9, "name": "review"}]
    Host.kept = {"9/artifacts/comment.md": (tmp_path / "comment.md").read_bytes()}
    (tmp_path / "comment.md").unlink()
    token = {"REVIEW_TOKEN": "t", "CI_API_V4_URL": host, "CI_PROJECT_ID": "3"}
    ran = machine.gitlab(tmp_path, scripts_of(GITLAB["comment"]), **token, no_proxy="127.0.0.1")
    assert ran.returncode == 0, ran.stderr
    method, path, body = Host.asked[-1]
    assert (method, path) == ("POST", "/projects/3/merge_requests/5/notes")
    assert REFUSED in body["body"]
    assert told in body["body"]


def action(
    machine: Machine, workspace: Path, **inputs: str
) -> tuple[Runner, dict[str, subprocess.CompletedProcess[str]]]:
    """Run the steps of the action with its inputs."""
    own = Machine(machine.repository, machine.variables, action_values(**inputs))
    steps = linked(ACTION["runs"]["steps"])
    if own.values["inputs.preview"] == "false":
        steps = [step for step in steps if step["name"] != OF_THE_BRANCH]
    return own.github(workspace, steps)


def test_the_action_previews_with_the_checks_of_the_base(machine: Machine, tmp_path: Path) -> None:
    # The project is at the root, so nothing lies outside it.
    runner, ran = action(machine, tmp_path, preview="true", reads="-")
    comment = (made_folder(runner) / "comment.md").read_text()
    codes = [step.returncode for step in ran.values()]
    assert (codes, runner.values["steps.review.outputs.status"]) == ([0, 0, 0, 0, 1], "1"), comment
    assert REFUSED in comment


def test_the_action_reads_folders_from_several_lines(machine: Machine, tmp_path: Path) -> None:
    """A folder that it left out would make the changes in it harmless."""
    runner, ran = action(machine, tmp_path, preview="false", reads="one\n  lib\tcharts\n")
    assert ran["Verdict"].returncode == 2, ran["Review"].stderr
    comment = (made_folder(runner) / "comment.md").read_text()
    for name in ("one", "lib", "charts"):
        assert f"--reads {name}: the repository has no such folder" in plain(comment)


def test_the_action_takes_inventories_from_several_lines(machine: Machine, tmp_path: Path) -> None:
    _, ran = action(machine, tmp_path, preview="false", inventory="dev=a.yaml\n  prod=b.yaml\tlast")
    assert ran["Verdict"].returncode == 2
    assert "write STACK=FILE instead of 'last'" in ran["Review"].stderr


@pytest.mark.parametrize("preview", ["True", "yes", "", "true "])
def test_the_action_does_not_guess_whether_to_preview(
    machine: Machine, tmp_path: Path, preview: str
) -> None:
    """Without a preview a branch may pass that a preview would refuse."""
    steps = [step for step in ACTION["runs"]["steps"] if step["name"] == "Review"]
    values = {**action_values(preview=preview), "steps.fetch.outputs.folder": str(tmp_path)}
    _, ran = Machine(machine.repository, machine.variables, values).github(tmp_path, steps)
    assert ran["Review"].returncode == 2
    assert ran["Review"].stderr == f"preview: write true or false instead of '{preview}'\n"


def test_the_action_runs_no_code_of_the_branch_by_default(machine: Machine, tmp_path: Path) -> None:
    machine.repository.write({"__main__.py": "raise SystemExit('ran')\n"})
    machine.repository.commit()
    runner, ran = action(machine, tmp_path, base="refs/heads/main", reads="-")
    assert [step.returncode for step in ran.values()] == [0, 0, 0, 3], ran["Review"].stderr
    comment = (made_folder(runner) / "comment.md").read_text()
    assert comment.startswith(UNAPPROVED)
    assert list(tmp_path.iterdir()) == [], "nothing is written into the workspace"


@pytest.mark.parametrize("inputs", [{}, {"base": "refs/heads/main"}, {"head": "refs/heads/main"}])
def test_the_action_does_not_compare_the_base_with_itself(
    machine: Machine, tmp_path: Path, inputs: dict[str, str]
) -> None:
    """For pull_request_target, GITHUB_SHA is a commit of the base."""
    own = {"GITHUB_EVENT_NAME": "pull_request_target"}
    sha = machine.repository.git("rev-parse", "main").strip()
    variables = {**machine.variables, **own, "GITHUB_SHA": sha}
    values = action_values(preview="false", **inputs)
    step = ACTION["runs"]["steps"][:1]
    _, ran = Machine(machine.repository, variables, values).github(tmp_path, step, **own)
    assert ran["Fetch the commits"].returncode == 2
    assert "name both commits: base and head" in ran["Fetch the commits"].stderr
    both = {"base": "refs/heads/main", "head": "refs/heads/change"}
    named = action_values(preview="false", **both)
    _, ran = Machine(machine.repository, variables, named).github(tmp_path, step, **own)
    assert ran["Fetch the commits"].returncode == 0, ran["Fetch the commits"].stderr


def test_the_action_states_its_inputs_and_outputs() -> None:
    """GitHub wants a description of each, and a shell for each step of a composite action."""
    assert ACTION["runs"]["using"] == "composite"
    assert all(
        each["description"] for each in [*ACTION["inputs"].values(), *ACTION["outputs"].values()]
    )
    for step in ACTION["runs"]["steps"]:
        assert step["shell"] == "bash"
        assert "${{" not in step["run"], "what a stranger names would become a part of the script"
