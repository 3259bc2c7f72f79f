"""The workflow for manifests, run with bash, git, venv and pip in a repository without Pulumi."""

from pathlib import Path
from subprocess import CompletedProcess

import pytest
import yaml

from tests.support.ci_jobs import ROOT, Machine, Repository, jobs, offline, scripts_of
from tests.support.for_each import for_each

pytestmark = pytest.mark.programs
JOB = yaml.safe_load((ROOT / "docs" / "ci" / "manifests.yml").read_text())
STEPS = JOB["jobs"]["check"]["steps"]
CHECK = "Check the manifests"
RIGHT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: chat}
spec:
  selector: {matchLabels: {app: chat}}
  template:
    metadata: {labels: {app: chat}}
    spec:
      containers:
      - name: engine
        image: vllm/vllm-openai:v0.26.0
        command: [vllm, serve, Qwen/Qwen3-32B, -tp=4]
        resources: {limits: {nvidia.com/gpu: 4}}
"""
WRONG = RIGHT.replace("gpu: 4", "gpu: 2")
SAYS = "starts tensor 4 × pipeline 1 = 4 ranks, but its pod has 2 GPUs"
HOSTILE = "raise SystemExit('the branch runs')\n"


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory, wheel: Path, libraries: Path) -> Machine:
    folder = tmp_path_factory.mktemp("manifests")
    files = {
        "requirements.txt": f"kthena-components[policy] @ {wheel.as_uri()}\n",
        "serving/chat.yaml": RIGHT,
    }
    repository = Repository.made(folder / "origin", files)
    # A hostile commit has the bytes of its author, whatever its .gitattributes say.
    attributes = repository.folder / ".git" / "info" / "attributes"
    attributes.write_text("* -text -ident -filter !working-tree-encoding\n")
    return Machine(repository, {**offline(libraries, folder / "tmp"), **JOB["env"]}, {})


def checked(
    machine: Machine, folder: Path, files: dict[str, str], **more: str
) -> CompletedProcess[str]:
    """Run the job for a branch with some files, and give the result of its last step."""
    machine.repository.git("reset", "--quiet", "--hard", "main")
    machine.repository.write(files)
    machine.repository.commit()
    folder.mkdir()
    results = machine.github(folder, STEPS, **more)[1]
    (*before, last) = results.values()
    assert all(step.returncode == 0 for step in before), before
    assert results[CHECK] is last
    return last


def test_a_right_branch_passes(machine: Machine, tmp_path: Path) -> None:
    done = checked(machine, tmp_path / "w", {"README.md": "ours\n"})
    assert done.returncode == 0, done.stderr
    assert "1 object checked in 1 file: 0 mandatory" in done.stdout + done.stderr


def test_a_finding_is_an_annotation_at_its_line(machine: Machine, tmp_path: Path) -> None:
    done = checked(machine, tmp_path / "w", {"serving/chat.yaml": WRONG}, OPTIONS="--gpu h100")
    assert done.returncode == 1, done.stderr
    assert "::error file=serving/chat.yaml,line=12,title=world-size-equals-gpus::" in done.stdout
    assert SAYS in done.stdout
    assert "name it with --gpu" not in done.stdout


@for_each(
    ("files", "status"),
    [
        ({"requirements.txt": "nothing\n", "serving/chat.yaml": WRONG}, 1),
        ({"kthena_components/__init__.py": HOSTILE, "serving/chat.yaml": WRONG}, 1),
        ({"serving/sitecustomize.py": HOSTILE, "sitecustomize.py": HOSTILE}, 0),
        ({"serving/more.yaml": "a: [\n"}, 2),
        ({".gitattributes": "*.yaml filter=x\n", "serving/chat.yaml": WRONG}, 1),
        # As this encoding, the last words of the line would be a comment.
        (
            {
                ".gitattributes": "*.yaml working-tree-encoding=BS_4730\n",
                "serving/chat.yaml": RIGHT.replace(
                    "-tp=4]", "-tp=4, --served-model-name, a £ , -tp=2\n        ]"
                ),
            },
            1,
        ),
    ],
)
def test_the_branch_chooses_neither_the_program_nor_what_is_read(
    files: dict[str, str], status: int, machine: Machine, tmp_path_factory: pytest.TempPathFactory
) -> None:
    done = checked(machine, tmp_path_factory.mktemp("hostile") / "w", files)
    assert done.returncode == status, done.stdout + done.stderr
    assert "the branch runs" not in done.stdout + done.stderr


def test_the_steps_before_are_those_of_the_other_workflow() -> None:
    other = jobs("github-actions")["judge"]
    assert scripts_of({"steps": STEPS})[:2] == scripts_of(other)[:2]
    assert JOB["permissions"] == {}
    assert JOB["jobs"]["check"]["permissions"] == {"contents": "read"}
    assert set(JOB[True]) == {"pull_request"}, "YAML reads `on` as true"
