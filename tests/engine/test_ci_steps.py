"""The steps of the workflow and of the action, run with bash in checkouts of a user's repository.

Left out are the steps with `uses`, and `pulumi install`, which needs a package registry: the test
makes what they would leave behind. pip installs the built wheel from a file, without its libraries.
"""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.engine.test_wheel_review import FILES, STACK
from tests.support.comments import Host, host
from tests.support.engine import ROOT, STATE_VARIABLES, environment
from tests.support.wheel import build, libraries
from tests.support.workflow import Runner
from tests.test_ci_files import jobs, scripts_of

__all__ = ["host"]
pytestmark = pytest.mark.engine
JOBS = yaml.safe_load((ROOT / "docs" / "ci" / "github-actions.yml").read_text())["jobs"]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
OF_THE_BRANCH = "Install what the program of the branch imports"
LABEL = "contains(github.event.pull_request.labels.*.name, 'judge-approved') && '--approved' || ''"
REFUSED = "starts tensor 1 × pipeline 3 = 3 ranks, but its 2 pods × 1 GPU hold 2"
UNAPPROVED = "**A person must approve this branch.**"


class Checkouts:
    """What the checkout steps of a job leave behind, for a repository and its branch."""

    def __init__(self, folder: Path) -> None:
        """Write the repository with a branch, whose stack has one stage too many."""
        self.folder = folder
        self.origin = folder / "origin"
        self.origin.mkdir()
        (folder / "state").mkdir()
        wheel = build(folder / "dist")
        listed = {"requirements.txt": f"kthena-components[policy] @ {wheel.as_uri()}\n"}
        for name, text in {**FILES, **listed}.items():
            (self.origin / name).write_text(text)
        self._git("init", "--quiet", "--initial-branch", "main")
        self.base = self.commit("the base")
        self._git("switch", "--quiet", "--create", "change")
        text = (self.origin / STACK).read_text()
        (self.origin / STACK).write_text(text.replace('"2"', '"3"'))
        self.commit("a longer pipeline")

    def commit(self, message: str) -> str:
        """Commit everything, and give the commit."""
        self._git("add", "--all")
        self._git("commit", "--quiet", "--message", message)
        return self._git("rev-parse", "HEAD").strip()

    def runner(self, name: str, more: Mapping[str, str] | None = None) -> Runner:
        """Make a machine with the folders `judge` and `branch`."""
        folder = self.folder / name
        for checkout, commit in (("judge", self.base), ("branch", "change")):
            self._git("clone", "--quiet", str(self.origin), str(folder / checkout))
            self._git("-C", str(folder / checkout), "checkout", "--quiet", "--detach", commit)
        # Instead of `pulumi install`. The link is there before the environment.
        (folder / "branch" / ".venv").symlink_to(folder / "judge" / ".venv")
        return Runner(folder, {**self._variables(), **(more or {})}, self._values())

    def _variables(self) -> dict[str, str]:
        path = f"{Path(sys.executable).parent}:{environment()['PATH']}"
        shared = str(libraries(self.folder / "libraries"))
        offline = {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PYTHONPATH": shared}
        return {**environment(), **STATE_VARIABLES, **offline, "PATH": path}

    def _values(self) -> dict[str, str]:
        return {
            "github.event.pull_request.base.sha": self.base,
            LABEL: "",
            "vars.PULUMI_BACKEND_URL": (self.folder / "state").as_uri(),
            "secrets.PULUMI_ACCESS_TOKEN": "",
            "secrets.PULUMI_CONFIG_PASSPHRASE": "only for tests",
            "github.token": "t",
            "github.event.pull_request.number": "5",
        }

    def _git(self, *arguments: str) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        command = ["git", *who, *arguments]
        ran = subprocess.run(command, cwd=self.origin, check=True, capture_output=True, text=True)
        return ran.stdout


@pytest.fixture(scope="module")
def checkouts(tmp_path_factory: pytest.TempPathFactory) -> Checkouts:
    return Checkouts(tmp_path_factory.mktemp("ci"))


def steps_of(job: str) -> list[dict[str, Any]]:
    return [step for step in JOBS[job]["steps"] if step.get("name") != OF_THE_BRANCH]


def test_the_workflow_judges_previews_and_comments(checkouts: Checkouts, host: str) -> None:
    judge = checkouts.runner("judging")
    ran = judge.run(steps_of("judge"))
    assert [(name, step.returncode) for name, step in ran.items()] == [
        ("Install the package of the base", 0),
        ("Check the branch", 0),
        ("Verdict", 0),
    ], ran
    told = judge.values["steps.judge.outputs.text"]

    review = checkouts.runner("reviewing")
    ran = review.run(steps_of("review"))
    codes = [step.returncode for step in ran.values()]
    assert codes == [0, 0, 1], ran["Review"].stderr
    comment = (review.folder / "comment.md").read_text()
    assert REFUSED in comment
    assert (review.folder / "GITHUB_STEP_SUMMARY").read_text() == comment

    own = {"GITHUB_REPOSITORY": "a/b", "GITHUB_API_URL": host, "no_proxy": "127.0.0.1"}
    last = checkouts.runner("commenting", own)
    last.values["needs.judge.outputs.text"] = told
    (last.folder / "previewed").mkdir()
    (last.folder / "previewed" / "comment.md").write_text(comment)
    ran = last.run(steps_of("comment"))
    assert [step.returncode for step in ran.values()] == [0, 0], ran["Comment"].stderr
    method, path, body = Host.asked[-1]
    assert (method, path) == ("POST", "/repos/a/b/issues/5/comments")
    assert REFUSED in body["body"]


def gitlab(checkouts: Checkouts, job: str, name: str, more: Mapping[str, str]) -> Path:
    """Run the script of a job of GitLab in a clone of the branch, and give its folder."""
    runner = checkouts.runner(name)
    own = {
        "CI_BUILDS_DIR": str(runner.folder),
        "CI_JOB_ID": "1",
        "CI_MERGE_REQUEST_IID": "5",
        "CI_MERGE_REQUEST_LABELS": "",
        "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
        "CI_PROJECT_DIR": str(runner.folder / "branch"),
        **more,
    }
    ran = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", "\n".join(scripts_of(jobs("gitlab-ci")[job]))],
        cwd=runner.folder / "branch", env={**runner.variables, **own},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return runner.folder / "branch"


def test_the_jobs_of_gitlab_judge_and_comment(checkouts: Checkouts, host: str) -> None:
    """The job between them runs `pulumi install`, and else what the one of GitHub does."""
    folder = gitlab(checkouts, "judge", "gitlab-judging", {})
    (told,) = (folder / "judge.md").read_text().splitlines()[:1]
    assert told
    token = {"REVIEW_TOKEN": "t", "CI_API_V4_URL": host, "CI_PROJECT_ID": "3"}
    own = {**token, "no_proxy": "127.0.0.1"}
    gitlab(checkouts, "comment", "gitlab-commenting", own)
    method, path, _ = Host.asked[-1]
    assert (method, path) == ("POST", "/projects/3/merge_requests/5/notes")


def action(checkouts: Checkouts, name: str, preview: str) -> tuple[Runner, list[int]]:
    """Run the steps of the action with its inputs."""
    runner = checkouts.runner(name)
    runner.variables = {
        **runner.variables,
        "PULUMI_BACKEND_URL": (checkouts.folder / "state").as_uri(),
    }
    inputs = {name: str(stated.get("default", "")) for name, stated in ACTION["inputs"].items()}
    # The project is at the root, so nothing lies outside it.
    inputs |= {"base": checkouts.base, "preview": preview, "reads": "-"}
    runner.values |= {f"inputs.{name}": value for name, value in inputs.items()}
    runner.values |= {
        "inputs.preview == 'true' && '' || '--no-preview'": (
            "" if preview == "true" else "--no-preview"
        ),
        "inputs.approved == 'true' && '--approved' || ''": "",
    }
    ran = runner.run(ACTION["runs"]["steps"])
    return runner, [step.returncode for step in ran.values()]


def test_the_action_previews_with_the_checks_of_the_base(checkouts: Checkouts) -> None:
    runner, codes = action(checkouts, "action", "true")
    comment = (runner.folder / "comment.md").read_text()
    assert (codes, runner.values["steps.review.outputs.status"]) == ([0, 0, 1], "1"), comment
    assert REFUSED in comment


def test_the_action_judges_without_running_the_branch(checkouts: Checkouts) -> None:
    (checkouts.origin / "__main__.py").write_text("raise SystemExit('ran')\n")
    checkouts.commit("another program")
    runner, codes = action(checkouts, "judge-only", "false")
    comment = (runner.folder / "comment.md").read_text()
    assert codes == [0, 0, 3], comment
    assert comment.startswith(UNAPPROVED)


def test_the_action_states_its_inputs_and_outputs() -> None:
    """GitHub wants a description of each, and a shell for each step of a composite action."""
    assert ACTION["runs"]["using"] == "composite"
    assert all(
        each["description"] for each in [*ACTION["inputs"].values(), *ACTION["outputs"].values()]
    )
    for step in ACTION["runs"]["steps"]:
        assert step["shell"] == "bash"
        assert "${{" not in step["run"], "what a stranger names would become a part of the script"
