"""`kthena-components review` of the wheel, in a repository that has nothing but a program.

The repository's checks are the wheel's: its policies and its levels.
"""

import subprocess
from pathlib import Path

import pytest

from kthena_components.cli.policy_pack import FOLDER
from tests.support.engine import STATE_VARIABLES, environment
from tests.support.user_project import FILES, STACK
from tests.support.wheel import Venv, install

pytestmark = pytest.mark.programs
NOTHING = "from pulumi_policy import PolicyPack\n\nPolicyPack(name='nothing', policies=[])\n"


class Repository:
    """A user's repository, with the stack `prod` and its state."""

    def __init__(self, folder: Path, wheel: Path, below: str = "") -> None:
        """Write the files, install the wheel into .venv, and commit the rest.

        The project is below the root of the repository.
        """
        self.top = folder / "mine"
        self.root = self.top / below
        self.root.mkdir(parents=True)
        (folder / "state").mkdir()
        for name, text in FILES.items():
            (self.root / name).write_text(text)
        self.venv: Venv = install(wheel, self.root / ".venv")
        own = {"PULUMI_BACKEND_URL": (folder / "state").as_uri()}
        self.variables = {**environment(), **STATE_VARIABLES, **own}
        del self.variables["PYTHONPATH"]
        self.pulumi("stack", "init", "prod", "--no-select")
        self.git("init", "--quiet", "--initial-branch", "main")
        self.commit()

    def pulumi(self, *arguments: str) -> None:
        """Run Pulumi."""
        subprocess.run(
            ["pulumi", *arguments, "--non-interactive"],
            cwd=self.root, env=self.variables, check=True, capture_output=True,
        )  # fmt: skip

    def git(self, *arguments: str) -> None:
        """Run git as somebody."""
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        command = ["git", *who, *arguments]
        subprocess.run(command, cwd=self.top, check=True, capture_output=True)

    def commit(self) -> None:
        """Commit everything."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "a change")

    def write(self, path: str, text: str) -> None:
        """Write a file on the branch, and commit it."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        self.commit()

    def edit(self, path: str, old: str, new: str) -> None:
        """Change a string in a file, and commit it."""
        text = (self.root / path).read_text()
        assert old in text
        self.write(path, text.replace(old, new))

    def review(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the command as the README says."""
        command = ("kthena-components", "review", "--branch", "main", *arguments)
        return self.venv.run(*command, cwd=self.root, **self.variables)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Repository:
    return Repository(tmp_path_factory.mktemp("user"), wheel)


@pytest.fixture
def repository(made: Repository) -> Repository:
    made.git("switch", "--quiet", "--force-create", "change", "main")
    return made


def test_a_change_of_a_stack_is_checked_by_the_policies_of_the_wheel(
    repository: Repository,
) -> None:
    repository.edit(STACK, 'pipeline: "2"', 'pipeline: "3"')
    ran = repository.review()
    assert ran.returncode == 1, ran.stderr
    assert "### Stack prod: **fails**, 1 mandatory finding" in ran.stdout
    assert "starts tensor 1 × pipeline 3 = 3 ranks, but its 2 pods × 1 GPU hold 2" in ran.stdout


def test_the_levels_of_the_wheel_apply_to_a_stack_of_their_environment(
    repository: Repository,
) -> None:
    """A moving tag is advice for a component, and mandatory for the objects of `prod`."""
    repository.edit(STACK, "config:\n", "config:\n  mine:image: vllm/vllm-openai:latest\n")
    ran = repository.review()
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "[image-pinned]" in ran.stdout.replace("\\", "")
    assert not (repository.root / FOLDER).exists(), "nothing is written into the checkout"


def test_a_policy_pack_of_the_branch_does_not_check_it(repository: Repository) -> None:
    (repository.root / FOLDER).mkdir()
    (repository.root / FOLDER / "PulumiPolicy.yaml").write_text("runtime: python\nversion: 0.0.1\n")
    repository.write(f"{FOLDER}/__main__.py", NOTHING)
    repository.write(f"{FOLDER}/levels/prod.json", '{"serving-rules": "disabled"}\n')
    repository.write("kthena_components/core/__init__.py", "raise SystemExit('from the branch')\n")
    repository.edit(STACK, 'pipeline: "2"', 'pipeline: "3"')
    ran = repository.review()
    assert ran.returncode == 1, ran.stderr
    assert ran.stdout.startswith("**A person must approve this branch.** It changes its own checks")
    assert "starts tensor 1 × pipeline 3 = 3 ranks" in ran.stdout
    assert "[levels-weakened]" in ran.stdout.replace("\\", "")


def test_the_check_runs_no_program_of_the_branch(repository: Repository) -> None:
    repository.write("__main__.py", "raise SystemExit('ran')\n")
    ran = repository.review("--no-preview")
    assert ran.returncode == 3, ran.stderr
    assert "A person must approve this branch" in ran.stdout


def test_the_pack_of_the_wheel_works_on_its_own(repository: Repository, tmp_path: Path) -> None:
    """The commands of docs/review.md, with the environment activated."""
    path = f"{repository.venv.folder / 'bin'}:{repository.variables['PATH']}"
    variables = {**repository.variables, "PATH": path}
    repository.edit(STACK, "config:\n", "config:\n  mine:image: vllm/vllm-openai:latest\n")
    made = repository.venv.run(
        "kthena-components", "policy-pack", str(tmp_path / "pack"), cwd=tmp_path
    )
    assert (made.returncode, made.stdout, made.stderr) == (0, f"wrote {tmp_path / 'pack'}\n", "")
    levels = tmp_path / "pack" / "levels" / "prod.json"
    command = f"pulumi preview --stack prod --non-interactive --policy-pack {tmp_path / 'pack'} "
    ran = subprocess.run(
        ["bash", "-c", f"{command} --policy-pack-config {levels}"],
        cwd=repository.root, env=variables, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode != 0
    assert "[mandatory]  serving-rules" in ran.stdout
    assert "[image-pinned]" in ran.stdout


@pytest.fixture(scope="module")
def monorepo(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Repository:
    made = Repository(tmp_path_factory.mktemp("monorepo"), wheel, "platform/serving")
    made.write("../../libs/sizes.py", "PODS = 2\n")
    return made


def test_a_project_in_a_subfolder_is_reviewed(monorepo: Repository) -> None:
    """The paths of its stacks, of its code, and of what lies beside it."""
    monorepo.git("switch", "--quiet", "--force-create", "change", "main")
    monorepo.edit(STACK, 'pipeline: "2"', 'pipeline: "3"')
    monorepo.write("../billing/main.py", "# of another team\n")
    ran = monorepo.review("--reads", "libs")
    assert ran.returncode == 1, ran.stderr
    assert "### Stack prod: **fails**, 1 mandatory finding" in ran.stdout
    assert "must approve" not in ran.stdout
    monorepo.git("switch", "--quiet", "--force-create", "change", "main")
    monorepo.write("../../libs/sizes.py", "PODS = 3\n")
    monorepo.write("../../.github/workflows/review.yml", "on: push\n")
    ran = monorepo.review("--reads", "libs")
    assert ran.returncode == 3, ran.stdout + ran.stderr
    assert "its own checks (/.github/workflows/review.yml)" in ran.stdout.replace("\\", "")
    assert "code that previews run (/libs/sizes.py)" in ran.stdout.replace("\\", "")
    assert "### Stack prod: **passes**" in ran.stdout


def test_what_others_change_in_a_monorepo_concerns_no_stack(monorepo: Repository) -> None:
    monorepo.git("switch", "--quiet", "--force-create", "change", "main")
    monorepo.write("../billing/main.py", "# of another team\n")
    monorepo.write("../billing/new.py", "# new\n")
    ran = monorepo.review("--no-preview", "--reads")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    everything = monorepo.review("--no-preview")
    assert everything.returncode == 3
    assert "/platform/billing/main.py" in everything.stdout.replace("\\", "")
    assert "/platform/billing/new.py" in everything.stdout.replace("\\", "")
    misspelt = monorepo.review("--no-preview", "--reads", "lib")
    assert misspelt.returncode == 2
    assert "the repository has no such folder" in misspelt.stdout


def test_a_new_project_in_a_subfolder_is_compared_with_nothing(monorepo: Repository) -> None:
    monorepo.git("switch", "--quiet", "--force-create", "change", "main")
    other = monorepo.top / "platform" / "other"
    other.mkdir()
    for name in ("Pulumi.yaml", "__main__.py", STACK):
        (other / name).write_text(FILES[name])
    monorepo.commit()
    ran = monorepo.review("--no-preview", "--reads", "--tree", str(other))
    assert ran.returncode == 3, ran.stdout + ran.stderr
    assert "It changes code that previews run (Pulumi.yaml, __main__.py)" in ran.stdout.replace(
        "\\", ""
    )
