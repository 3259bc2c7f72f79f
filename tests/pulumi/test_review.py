"""The script that a workflow calls, on a real branch, with the real engine and the policies."""

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from kthena_components.cli.review.comment import MARK
from tests.support.engine import ROOT, Stack

pytestmark = pytest.mark.programs
COPIED = ("ci", "policies", "kthena_components")
DEV = "stacks/Pulumi.dev.yaml"
OWN = """\
config:
  kubernetes:renderYamlToDirectory: rendered
  kthena-components:tensor: "8"
  kthena-components:workers: "2"
"""
SENTENCE = (
    "engine 'serve' starts tensor 1 × pipeline 3 = 3 ranks, but its 2 pods × 1 GPU hold 2. Set "
    "pipeline to 2, or give the engine 3 pods (worker\\_replicas: 2). [world-size-equals-gpus]"
)


@dataclass(frozen=True)
class Ran:
    """What a run of the script gave."""

    status: int
    comment: str
    log: str

    @property
    def lines(self) -> list[str]:
        return self.comment.splitlines()


class Repository:
    """A repository with this project, whose stack `dev` is deployed from the branch main."""

    def __init__(self, folder: Path) -> None:
        """Copy the project, deploy the stack, commit it, and begin a branch."""
        self.stack = Stack.make(ROOT, "dev", folder)
        self.root = self.stack.project
        for name in COPIED:
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, self.root / name, ignore=ignored)
        for name in ("staging", "prod", "sandbox"):
            (self.root / "stacks" / f"Pulumi.{name}.yaml").unlink()
        (self.root / ".venv").symlink_to(sys.prefix)
        (self.root / ".gitignore").write_text("/.venv\n/rendered/\n__pycache__/\n")
        self.stack.up().require()
        self.git("init", "--quiet", "--initial-branch", "main")
        self.commit()

    def branch(self) -> None:
        """Begin a branch anew."""
        self.git("switch", "--quiet", "--force-create", "change", "main")

    def git(self, *arguments: str) -> str:
        """Run git as somebody."""
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        ran = subprocess.run(
            ["git", *who, *arguments], cwd=self.root, check=True, capture_output=True, text=True
        )
        return ran.stdout

    def commit(self) -> None:
        """Commit everything."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "a change")

    def edit(self, path: str, old: str, new: str) -> None:
        """Change a string in a file, and commit it."""
        file = self.root / path
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new))
        self.commit()

    def review(self, *arguments: str, **variables: str) -> Ran:
        """Run the script as a workflow does, against main if nothing else is named."""
        named = any(not word.startswith("-") for word in arguments)
        ran = subprocess.run(
            [self.root / "ci" / "review", *(() if named else ("main",)), *arguments],
            cwd=self.root,
            env={**self.stack.variables, **variables},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        return Ran(ran.returncode, ran.stdout, ran.stderr)


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return Repository(tmp_path_factory.mktemp("review"))


@pytest.fixture
def repository(deployed: Repository) -> Repository:
    deployed.branch()
    return deployed


def cells(ran: Ran) -> list[str]:
    (line,) = (line for line in ran.lines if line.startswith("| default/llama-8b"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_a_longer_pipeline_is_reviewed(repository: Repository) -> None:
    repository.edit(DEV, "pipeline: 2", "pipeline: 3")
    ran = repository.review()
    assert ran.status == 1, ran.log
    assert "### Stack dev: **fails**, 1 mandatory finding" in ran.lines
    assert ran.lines[-1] == MARK
    assert ran.lines[-3].endswith(SENTENCE)
    assert cells(ran)[4:9] == ["2", "1", "1 × 2 × 1", "2", "2"]

    repository.edit(DEV, "worker_replicas: 1", "worker_replicas: 2")
    ran = repository.review()
    assert ran.status == 0, ran.log
    assert "1 stack affected: **no mandatory findings**. GPUs: 2 → 3 (+1)." in ran.lines
    assert cells(ran)[4:9] == ["2 → 3", "1", "1 × 2 × 1 → 1 × 3 × 1", "2 → 3", "2 → 3"]
    assert "**Replaced** StatefulSets default/llama-8b-0-serve-0, default/llama-8b-0-" in (
        ran.comment
    )
    assert "- Policies:" not in ran.comment
    page = (ROOT / "docs" / "review.md").read_text().splitlines()
    shown = [line.removeprefix(">").strip() for line in page if line.startswith(">")]
    assert "\n".join(shown) in ran.comment
    assert repository.git("status", "--porcelain") == ""


def test_the_pack_refuses_a_manifest_that_somebody_wrote(repository: Repository) -> None:
    shutil.copy(ROOT / "tests" / "policies" / "program" / "__main__.py", repository.root)
    (repository.root / DEV).unlink()
    (repository.root / "stacks" / "Pulumi.own.yaml").write_text(OWN)
    repository.commit()
    ran = repository.review()
    assert ran.status == 1, ran.log
    assert "Stack dev: the branch deletes its file. Its resources stay until" in ran.comment
    assert "Stack own: this job cannot read its state" in ran.comment
    assert (
        "engine 'decode' starts tensor 8 × pipeline 2 = 16 ranks, but its 3 pods × 8 GPUs hold 24. "
        "Set pipeline to 3, or give the engine 2 pods. [world-size-equals-gpus]"
    ) in ran.comment
    assert "0 → 24" in ran.comment
    kept = (repository.root / "stacks" / "Pulumi.own.yaml").read_text()
    assert kept == OWN, "the state that the script makes for itself leaves no salt in it"


def test_what_touches_no_stack_previews_none(repository: Repository) -> None:
    (repository.root / "docs").mkdir(exist_ok=True)
    (repository.root / "docs" / "note.md").write_text("a note\n")
    repository.commit()
    ran = repository.review()
    assert (ran.status, ran.log) == (0, "")
    assert "This change affects no stack." in ran.lines


def test_the_program_touches_every_stack_and_needs_a_person(repository: Repository) -> None:
    repository.edit("__main__.py", "main()\n", "main()  # again\n")
    ran = repository.review()
    assert ran.status == 3, ran.log
    assert ran.lines[0].startswith(
        "**A person must approve this branch.** It changes code that previews run "
        "(\\_\\_main\\_\\_.py). The checks are those of its base, "
    )
    assert "--- stack dev" in ran.log
    assert "No sizes change: 1 role, 2 GPUs." in ran.lines


def test_without_access_to_the_state_all_shows_as_new(repository: Repository) -> None:
    repository.edit(DEV, "pipeline: 2", "pipeline: 3")
    repository.edit(DEV, "worker_replicas: 1", "worker_replicas: 2")
    ran = repository.review(PULUMI_BACKEND_URL="file:///nowhere/at/all")
    assert ran.status == 0, ran.log
    assert "Stack dev: this job cannot read its state" in ran.comment
    assert "GPUs: **0 → 3 (+3)**" in ran.lines
    assert repository.git("status", "--porcelain") == ""
