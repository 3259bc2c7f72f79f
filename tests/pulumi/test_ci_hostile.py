"""The jobs that decide and that have a token, on branches that try to run something in them.

The steps are those of docs/ci and action.yml, run by bash with git, venv and pip. They start in a
checkout of the branch, which is worse than what the hosts give them. Each file of the branch that
can run leaves a mark, so a mark is a hole. The comment is what a host on the loopback interface
gets.
"""

import base64
from collections.abc import Callable, Iterator
from pathlib import Path

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
from tests.support.git_server import serving
from tests.support.user_project import STACK, files_of

__all__ = ["host"]
pytestmark = pytest.mark.programs
UNAPPROVED = "**A person must approve this branch.**"
PROGRAMS = ("git", "make", "python", "python3", "pip", "pulumi", "bash", "sh", "mktemp", "base64",
            "kthena-components", "cat", "helm")  # fmt: skip
MODULES = ("venv", "pip", "ensurepip", "sitecustomize", "usercustomize", "json", "urllib", "os",
           "encodings", "kthena_components", "yaml", "tabulate", "setup", "conftest")  # fmt: skip
WORKFLOW = jobs("github-actions")
GITLAB = jobs("gitlab-ci")
CONSOLE = "/bin/kthena-components"


Write = Callable[[Repository, Path, str], None]


def programs_and_modules(repository: Repository, marks: Path, below: str) -> None:
    """Write programs and modules with the names of those that the jobs start and import."""
    for folder in {"", below, "judge/", "branch/", "commits/"}:
        for name in PROGRAMS:
            repository.write({f"{folder}{name}": f"#!/bin/sh\n: > {marks}/{name}\n"})
            (repository.folder / folder / name).chmod(0o755)
        for name in MODULES:
            left = f"open({str(marks / f'{name}.py')!r}, 'w')\n"
            package = f"{folder}{name}/__init__.py" if name == "kthena_components" else None
            repository.write({package or f"{folder}{name}.py": left})
    settings = {
        ".envrc": f": > {marks}/envrc\n",
        "Makefile": f"venv:\n\ttouch {marks}/make\n",
        "pip.conf": f"[global]\ntarget = {marks}\n",
        "pyvenv.cfg": "home = .\ninclude-system-site-packages = true\n",
        ".pth": f"import os; os.mkdir({str(marks / 'pth')!r})\n",
        ".bashrc": f": > {marks}/bashrc\n",
        "judge/.venv/bin/kthena-components": f"#!/bin/sh\n: > {marks}/console\n",
        "judge/.venv/bin/python": f"#!/bin/sh\n: > {marks}/console-python\n",
    }
    repository.write(settings)
    for name in ("kthena-components", "python"):
        (repository.folder / "judge/.venv/bin" / name).chmod(0o755)


def settings_of_git(repository: Repository, marks: Path, below: str) -> None:
    """Write a bare repository as files, attributes with drivers, and a submodule."""
    run = f"touch {marks}"
    bare = {
        "HEAD": "ref: refs/heads/main\n",
        "config": "[core]\n\trepositoryformatversion = 0\n\tbare = true\n"
        f"\tfsmonitor = {run}/fsmonitor\n\thooksPath = hooks\n\tworktree = .\n"
        f'[filter "x"]\n\tclean = {run}/clean\n\tsmudge = {run}/smudge\n'
        f'[diff "x"]\n\tcommand = {run}/diff\n\ttextconv = {run}/textconv\n'
        f"[uploadpack]\n\tpackObjectsHook = {run}/pack\n[alias]\n\tfetch = !{run}/alias\n",
        "hooks/post-checkout": f"#!/bin/sh\n{run}/hook\n",
        "objects/.keep": "", "refs/.keep": "", "index": "",
    }  # fmt: skip
    for folder in {"", below, "commits/"}:
        repository.write({f"{folder}{name}": text for name, text in bare.items()})
        repository.write({f"{folder}.gitattributes": "* filter=x diff=x merge=x export-subst\n"})
    (repository.folder / "hooks/post-checkout").chmod(0o755)
    repository.write({
        ".gitmodules": f'[submodule "s"]\n\tpath = s\n\turl = ext::{run}/submodule\n'
        "\tignore = all\n",
        ".lfsconfig": f"[lfs]\n\turl = file://{marks}/lfs\n",
    })  # fmt: skip
    commit = repository.git("rev-parse", "HEAD").strip()
    repository.git("update-index", "--add", "--cacheinfo", f"160000,{commit},s")


def odd_names_and_links(repository: Repository, marks: Path, below: str) -> None:
    """Write links to where the jobs write, and names that a shell or a program could misread."""
    for name in ("judge.md", "comment.md", "commits", "judge", "branch", "previewed"):
        (repository.folder / name).symlink_to(marks / f"through-{name}")
    (repository.folder / f"{below}stacks").symlink_to(marks)
    (repository.folder / f"{below}environ.md").symlink_to("/proc/self/environ")
    for name in ("a b.py", "a\nb.py", "-rf", "--tree", "$(touch x)", "`touch x`", "é.py", "'\".py",
                 "--requirement=x", "\x1b[31m.py", "@team.py", "##[error]x"):  # fmt: skip
        repository.write({f"{below}{name}": "x"})


def other_requirements(repository: Repository, marks: Path, below: str) -> None:
    """Change what the jobs install, and put in its place what would be found by a relative path."""
    evil = f"import pathlib; pathlib.Path({str(marks / 'setup')!r}).touch()\n"
    repository.write({
        f"{below}requirements.txt": "./evil\n", f"{below}evil/setup.py": evil,
        "requirements.txt": "./evil\n", "evil/setup.py": evil,
        f"{below}evil/pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "setup"\n'
        'backend-path = ["."]\n',
    })  # fmt: skip


HOSTILE: dict[str, tuple[Write, ...]] = {
    "programs": (programs_and_modules, settings_of_git, other_requirements),
    "links": (odd_names_and_links, other_requirements),
}


@pytest.fixture(params=[*HOSTILE])
def hostile(
    request: pytest.FixtureRequest, tmp_path: Path, wheel: Path, libraries: Path
) -> Iterator[tuple[Machine, Path, Path]]:
    """Give a machine with a repository, a checkout of its hostile branch, and the folder of marks.

    Nothing may be in the folder of marks at the end.
    """
    below = "platform/serving/"
    repository = Repository.made(tmp_path / "origin", files_of(wheel, below))
    marks = tmp_path / "marks"
    marks.mkdir()
    for write in HOSTILE[request.param]:
        write(repository, marks, below)
    repository.git("config", "core.symlinks", "true")
    repository.commit()
    checkout = tmp_path / "checkout"
    repository.git("clone", "--quiet", "--branch", "change", ".", str(checkout))
    with (checkout / ".git" / "config").open("a") as config:
        config.write(f"[core]\n\tfsmonitor = touch {marks}/fsmonitor-of-the-checkout\n")
        config.write(f"[alias]\n\tworktree = !touch {marks}/alias\n")
    machine = Machine(repository, offline(libraries, tmp_path / "tmp"), {})
    yield machine, checkout, marks
    assert [path.name for path in marks.iterdir()] == []


def plain(text: str) -> str:
    return text.replace(APART, "")


def comment_of(host: str) -> dict[str, str]:
    return {
        "GITHUB_API_URL": host, "CI_API_V4_URL": host, "CI_PROJECT_ID": "3", "REVIEW_TOKEN": "t",
        "no_proxy": "127.0.0.1", "PROJECT": "platform/serving",
    }  # fmt: skip


def test_github_checks_a_hostile_branch(hostile: tuple[Machine, Path, Path], host: str) -> None:
    machine, checkout, _ = hostile
    runner, ran = machine.github(checkout, WORKFLOW["judge"]["steps"], PROJECT="platform/serving")
    codes = {name: step.returncode for name, step in ran.items()}
    assert codes == {
        "Fetch the commits": 0, "Install the package of the base": 0, "Check the branch": 0,
        "Verdict": 3,
    }, [step.stderr for step in ran.values()]  # fmt: skip
    assert UNAPPROVED in runner.summary
    _, ran = machine.github(checkout, WORKFLOW["comment"]["steps"], **comment_of(host))
    assert [step.returncode for step in ran.values()] == [0, 0, 0, 1], ran["Comment"].stderr
    assert ran["Comment"].stderr == "the previews have no result\n"
    assert Host.asked[-1][:2] == (
        "POST",
        f"/repos/{machine.repository.folder.name}/issues/5/comments",
    )
    assert plain(runner.summary.partition("\n")[0]) in plain(Host.asked[-1][2]["body"])


def test_gitlab_checks_a_hostile_branch(hostile: tuple[Machine, Path, Path], host: str) -> None:
    machine, checkout, _ = hostile
    ran = machine.gitlab(checkout, scripts_of(GITLAB["judge"]), PROJECT="platform/serving")
    assert ran.returncode == 3, ran.stderr
    assert UNAPPROVED in ran.stdout
    ran = machine.gitlab(checkout, scripts_of(GITLAB["comment"]), **comment_of(host))
    assert (ran.returncode, ran.stderr.splitlines()[-1]) == (1, "the previews have no result")
    assert Host.asked[-1][:2] == ("POST", "/projects/3/merge_requests/5/notes")
    assert UNAPPROVED in Host.asked[-1][2]["body"]


def test_the_action_checks_a_hostile_branch(hostile: tuple[Machine, Path, Path]) -> None:
    machine, checkout, _ = hostile
    inputs = action_values(preview="false", project="platform/serving")
    steps = [step for step in ACTION["runs"]["steps"] if step["name"] != OF_THE_BRANCH]
    own = Machine(machine.repository, machine.variables, inputs)
    runner, ran = own.github(checkout, steps)
    assert [step.returncode for step in ran.values()] == [0, 0, 0, 3], ran["Review"].stderr
    assert UNAPPROVED in runner.summary


@pytest.mark.parametrize("name", ["Fetch the commits", "Install the package of the base"])
def test_the_preview_installs_the_package_before_code_of_the_branch_runs(name: str) -> None:
    """What the hostile branches cannot do in the job `judge`, they cannot do in these steps."""
    texts = {
        step["run"]
        for job in (*WORKFLOW.values(), {"steps": ACTION["runs"]["steps"]})
        for step in job["steps"]
        if step.get("name") == name
    }
    assert len(texts) == (1 if name.startswith("Install") else 2)
    names = [step.get("name") for step in WORKFLOW["review"]["steps"]]
    assert names.index(name) < names.index(OF_THE_BRANCH)


CLONE = {
    "kthena_components/__init__.py": "",
    "Makefile": "venv:\n\t@mkdir -p .venv/bin && touch .venv/of-the-base\n",
}
"""What a clone of kthena-components is recognized by."""


@pytest.mark.parametrize("job", ["github judge", "github review", "gitlab judge", "action"])
@pytest.mark.parametrize("base", [CLONE, {}], ids=["clone", "others"])
def test_the_base_alone_decides_what_is_installed(
    tmp_path: Path, job: str, base: dict[str, str]
) -> None:
    """The branch adds or replaces the folder and the Makefile that a clone has."""
    temporary, marks = tmp_path / "tmp", tmp_path / "marks"
    marks.mkdir()
    repository = Repository.made(tmp_path / "origin", {**base, "requirements.txt": ""})
    programs_and_modules(repository, marks, "")
    repository.commit()
    checkout = tmp_path / "checkout"
    repository.git("clone", "--quiet", ".", str(checkout))
    machine = Machine(repository, offline(tmp_path, temporary), action_values())
    named = {"Fetch the commits", "Install the package of the base"}
    if job == "gitlab judge":
        scripts = [text for text in scripts_of(GITLAB["judge"]) if CONSOLE not in text][:-2]
        codes = [machine.gitlab(checkout, scripts).returncode]
    else:
        of = ACTION["runs"] if job == "action" else WORKFLOW[job.partition(" ")[2]]
        steps = [step for step in of["steps"] if step.get("name") in named]
        _, ran = machine.github(checkout, steps, PROJECT=".")
        codes = [step.returncode for step in ran.values()]
    assert not any(codes)
    (made,) = temporary.glob("*/judge/.venv")
    assert (made / "of-the-base").exists() == bool(base)
    assert (made / "bin" / "pip").exists() == (not base)
    assert list(marks.iterdir()) == []


def test_a_private_repository_is_fetched_with_the_token_of_one_step(
    tmp_path: Path, wheel: Path, libraries: Path
) -> None:
    repository = Repository.made(tmp_path / "origin", files_of(wheel, ""))
    repository.write({STACK: "config: {}\n"})
    repository.commit()
    secret = "ghs_only-for-tests"  # noqa: S105
    (fetch, install) = (
        step
        for step in WORKFLOW["judge"]["steps"]
        if step.get("name") in {"Fetch the commits", "Install the package of the base"}
    )
    temporary = tmp_path / "tmp"
    with serving(repository.folder / ".git", "x-access-token", secret) as address:
        own = {"GITHUB_SERVER_URL": address, "GITHUB_REPOSITORY": "a/b", "no_proxy": "127.0.0.1"}
        for token, status in (("wrong", 128), (secret, 0)):
            machine = Machine(repository, offline(libraries, temporary), {"github.token": token})
            show = {"name": "show", "run": "env", "working-directory": install["working-directory"]}
            steps = [fetch] if status else [fetch, show]
            _, ran = machine.github(tmp_path, steps, **own, GIT_TERMINAL_PROMPT="0")
            assert ran["Fetch the commits"].returncode == status, ran["Fetch the commits"].stderr
    assert "PWD=" in ran["show"].stdout
    assert secret not in ran["show"].stdout
    assert "TOKEN" not in ran["show"].stdout
    files = [path for path in temporary.rglob("*") if path.is_file()]
    assert any(path.name == "FETCH_HEAD" for path in files)
    encoded = base64.b64encode(f"x-access-token:{secret}".encode())
    for path in files:
        text = path.read_bytes()
        assert secret.encode() not in text, path
        assert encoded not in text, path
