"""The placement in the comment on a real branch, with the real engine: the base's file counts."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from tests.cli.previews import cells
from tests.pulumi.test_review import DEV, Repository
from tests.pulumi.test_review_attacks import write

pytestmark = pytest.mark.programs
FILE = "inventory/dev.yaml"
TODAY = datetime.now(UTC).replace(microsecond=0)
SERVING = "    - name: llama-8b\n"
CHAT = """\
    - name: chat
      backend: native
      roles:
        - name: serve
          worker_replicas: 1
          engine:
            kind: vllm
            image: vllm/vllm-openai:v0.33.0
            model: meta-llama/Llama-3.1-8B-Instruct
            launcher: native
            parallelism: { pipeline: 2 }
          resources: { gpus_per_pod: 1 }
"""
OVERWRITES = """\
import pathlib, shutil

shutil.copy({larger!r}, {smaller!r})
pathlib.Path({marker!r}).touch()
"""


def inventory(nodes: int, taken: datetime = TODAY) -> str:
    """Return an inventory of one rack."""
    return yaml.safe_dump({
        "apiVersion": "kthena-components/v1", "kind": "Inventory", "taken": taken.isoformat(),
        "racks": 1, "nodes_per_rack": nodes, "gpus": 1,
    })  # fmt: skip


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """Commit an inventory whose two nodes the deployed serving fills."""
    repository = Repository(tmp_path_factory.mktemp("placement"))
    write(repository, FILE, inventory(nodes=2))
    return repository


@pytest.fixture
def repository(deployed: Repository) -> Repository:
    deployed.branch()
    return deployed


def test_a_serving_that_waits_and_one_that_no_longer_fits_are_shown(repository: Repository) -> None:
    repository.edit(DEV, SERVING, CHAT + SERVING)
    ran = repository.review("main", "--inventory", f"dev={FILE}")
    assert ran.status == 1, ran.log
    head = f"Placement on dev (snapshot of {TODAY:%Y-%m-%d}): 2 groups: 1 fits, 1 waits."
    assert head in ran.lines
    assert cells(ran.comment, "default/chat-0")[1] == "new → waits"
    assert "| default/llama-8b-0 |" not in ran.comment, "it does not change"
    (finding,) = [line for line in ran.lines if line.endswith("[placement-fits]")]
    assert finding.startswith("- default/chat-0 waits on dev: ")
    assert "```mermaid" in ran.comment
    repository.branch()
    repository.edit(DEV, "pipeline: 2", "pipeline: 4")
    repository.edit(DEV, "worker_replicas: 1", "worker_replicas: 3")
    ran = repository.review("main", "--inventory", f"dev={FILE}")
    assert ran.status == 1, ran.log
    assert cells(ran.comment, "default/llama-8b-0")[1] == "fits → never"


def test_an_old_snapshot_is_advice(repository: Repository) -> None:
    write(repository, FILE, inventory(2, datetime(2020, 1, 1, tzinfo=UTC)))
    repository.git("branch", "--force", "old")
    repository.edit(DEV, "port: 80, ", "port: 81, ")
    ran = repository.review("old", "--inventory", f"dev={FILE}")
    assert ran.status == 0, ran.log
    assert "Placement on dev (snapshot of 2020-01-01): 1 group: 1 fits." in ran.lines
    (finding,) = [line for line in ran.lines if line.endswith("[placement-fits]")]
    assert "days old, and may be out of date after 7" in finding


def test_a_branch_does_not_bring_its_own_cluster(repository: Repository) -> None:
    repository.edit(DEV, SERVING, CHAT + SERVING)
    write(repository, FILE, inventory(nodes=20))
    for stated in (FILE, str(repository.root / FILE)):
        ran = repository.review("main", "--inventory", f"dev={stated}")
        assert ran.status == 1, ran.log
        assert cells(ran.comment, "default/chat-0")[1] == "new → waits"
        assert f"Placement: the branch changes {FILE}; the file of its base is used." in ran.lines


def test_a_file_that_only_the_branch_has_needs_an_approval(repository: Repository) -> None:
    repository.edit(DEV, SERVING, CHAT + SERVING)
    write(repository, "mine/dev.yaml", inventory(nodes=20))
    (repository.root / "link").symlink_to("mine")
    repository.commit()
    for stated, file in (("mine/dev.yaml",) * 2, ("link/dev.yaml",) * 2, ("mine", "mine")):
        ran = repository.review("main", "--inventory", f"dev={stated}")
        assert ran.status == 2, ran.log
        told = f"the inventory of stack dev is not used: only the branch has {file}."
        assert told in ran.lines[0], ran.lines[0]
    ran = repository.review("main", "--approved", "--inventory", "dev=mine/dev.yaml")
    assert ran.status == 0, ran.log
    assert cells(ran.comment, "default/chat-0")[1] == "new → fits"


def test_a_program_that_overwrites_the_file_is_too_late(
    repository: Repository, tmp_path: Path
) -> None:
    small, large, marker = (tmp_path / name for name in ("dev.yaml", "large.yaml", "RAN"))
    small.write_text(inventory(nodes=2))
    large.write_text(inventory(nodes=20))
    program = (repository.root / "__main__.py").read_text()
    attack = OVERWRITES.format(larger=str(large), smaller=str(small), marker=str(marker))
    write(repository, "__main__.py", program.replace("main()\n", f"main()\n{attack}"))
    repository.edit(DEV, SERVING, CHAT + SERVING)
    ran = repository.review("main", "--inventory", f"dev={small}")
    assert marker.exists(), ran.log
    assert small.read_text() == large.read_text()
    assert ran.status == 1, ran.log
    assert cells(ran.comment, "default/chat-0")[1] == "new → waits"
