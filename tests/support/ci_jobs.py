"""The jobs of the workflow files and of the action, and what runs them on one machine."""

import os
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.support.engine import COMPILED
from tests.support.workflow import Runner

ROOT = Path(__file__).parent.parent.parent
FILES = {name: ROOT / "docs" / "ci" / f"{name}.yml" for name in ("github-actions", "gitlab-ci")}
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
OF_THE_BRANCH = "Install what the program of the branch imports"
LABEL = "contains(github.event.pull_request.labels.*.name, 'judge-approved') && '--approved' || ''"
NUMBER = "5"
PIPELINE = "70"


def jobs(name: str) -> dict[str, dict[str, Any]]:
    """Give the jobs of a workflow by name, in their order."""
    body = yaml.safe_load(FILES[name].read_text())
    if name == "gitlab-ci":
        return {name: body[name] for name in body["stages"]}
    found: dict[str, dict[str, Any]] = body["jobs"]
    return found


def scripts_of(job: Mapping[str, Any]) -> list[str]:
    """Give what the shell of a job runs."""
    if "steps" in job:
        return [step["run"] for step in job["steps"] if "run" in step]
    listed = [*job.get("before_script", []), *job["script"]]
    # GitLab takes a list in a list for its items.
    nested = [each if isinstance(each, list) else [each] for each in listed]
    return [script for scripts in nested for script in scripts]


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository of a host, with a pull request from the branch `change` to `main`."""

    folder: Path

    @classmethod
    def made(cls, folder: Path, files: Mapping[str, str]) -> "Repository":
        """Commit the files on `main`, and start the branch."""
        folder.mkdir(parents=True)
        own = cls(folder)
        own.git("init", "--quiet", "--initial-branch", "main")
        own.write(files)
        own.commit()
        own.git("switch", "--quiet", "--create", "change")
        return own

    def write(self, files: Mapping[str, str]) -> None:
        """Write files, without a commit."""
        for name, text in files.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(text)

    def commit(self) -> str:
        """Commit everything, and give the commit."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "a change")
        return self.git("rev-parse", "HEAD").strip()

    def git(self, *arguments: str) -> str:
        """Run git as somebody, and give its output."""
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        return subprocess.run(
            ["git", *who, *arguments], cwd=self.folder, check=True, capture_output=True, text=True
        ).stdout


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine of a host that runs jobs, each in a workspace."""

    repository: Repository
    variables: Mapping[str, str]
    """What the environment of a job has beside the variables of the host."""
    values: Mapping[str, str]
    """The values of GitHub's expressions beside those of the repository."""

    def github(
        self, workspace: Path, steps: Sequence[Mapping[str, Any]], **more: str
    ) -> tuple[Runner, dict[str, subprocess.CompletedProcess[str]]]:
        """Run the steps of a job of GitHub. Give the runner, and the results by name."""
        commit = self.repository.git("rev-parse", "change").strip()
        own = {
            "GITHUB_SERVER_URL": self.repository.folder.parent.as_uri(),
            "GITHUB_REPOSITORY": self.repository.folder.name,
            "GITHUB_BASE_REF": "main",
            "GITHUB_EVENT_NAME": "pull_request",
            "GITHUB_SHA": commit,
        }
        values = {
            LABEL: "",
            "github.token": "t",
            "github.event.pull_request.number": NUMBER,
            "github.event.pull_request.head.sha": commit,
        }
        runner = Runner(workspace, {**self.variables, **own, **more}, {**values, **self.values})
        return runner, runner.run(steps)

    def gitlab(
        self, workspace: Path, scripts: Sequence[str], **more: str
    ) -> subprocess.CompletedProcess[str]:
        """Run the script of a job of GitLab."""
        own = {
            "CI_COMMIT_SHA": self.repository.git("rev-parse", "change").strip(),
            "CI_MERGE_REQUEST_IID": NUMBER,
            "CI_MERGE_REQUEST_LABELS": "",
            "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
            "CI_PIPELINE_ID": PIPELINE,
            "CI_PROJECT_DIR": str(workspace),
            "CI_REPOSITORY_URL": self.repository.folder.as_uri(),
            "PROJECT": ".",
        }
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", "\n".join(scripts)],
            cwd=workspace, env={**self.variables, **own, **more},
            capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip


def offline(libraries: Path, temporary: Path) -> dict[str, str]:
    """Give the variables with which pip installs a built wheel, without network and libraries."""
    temporary.mkdir(parents=True, exist_ok=True)
    own = _programs(temporary.with_name(f"{temporary.name}-programs"))
    return {
        **os.environ,
        "PATH": f"{own}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PIP_NO_COMPILE": "0",  # pip reads it as the value of `compile`
        "PIP_NO_DEPS": "1",
        "PIP_NO_INDEX": "1",
        "PYTHONPATH": f"{COMPILED}:{libraries}",
        "TMPDIR": str(temporary),
    }


PYTHON = """\
#!/bin/bash
# Link pip into a new environment. Installing pip takes most of a job's processor time, and `venv`
# runs that in the environment's own folder, so no file of a branch can change it.
[[ " $* " == *" -m venv "* ]] || exec {python} "$@"
{python} "$@" --without-pip || exit
made=$(echo "${{!#}}"/lib/python*/site-packages)
ln -s {packages}/pip {packages}/pip-*.dist-info "$made"
printf '#!/bin/sh\\nexec "%s/python" -m pip "$@"\\n' "$PWD/${{!#}}/bin" > "${{!#}}/bin/pip"
chmod +x "${{!#}}/bin/pip"
"""


def _programs(folder: Path) -> Path:
    """Write a `python3` whose `-m venv` is cheap, and all the same in what it reads."""
    folder.mkdir(exist_ok=True)
    packages = sysconfig.get_path("purelib")
    for name in ("python", "python3"):
        file = folder / name
        file.write_text(PYTHON.format(python=sys.executable, packages=packages))
        file.chmod(0o755)
    return folder


def action_values(**inputs: str) -> dict[str, str]:
    """Give the values of the expressions of the action, with inputs or their defaults."""
    stated = {name: str(of.get("default", "")) for name, of in ACTION["inputs"].items()}
    values = {**stated, "token": "t", **inputs}
    found = {f"inputs.{name}": value for name, value in values.items()}
    approved = "--approved" if values["approved"] == "true" else ""
    return {**found, "inputs.approved == 'true' && '--approved' || ''": approved}
