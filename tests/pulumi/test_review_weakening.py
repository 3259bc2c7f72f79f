"""Branches that weaken their checks in ways that no string tells, and what their base says."""

import json
import shutil

import pytest

from tests.pulumi.test_review import DEV, OWN, Repository
from tests.pulumi.test_review_attacks import LEVELS, write
from tests.support.engine import ROOT

pytestmark = pytest.mark.programs


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return Repository(tmp_path_factory.mktemp("weakening"))


@pytest.fixture
def repository(deployed: Repository) -> Repository:
    deployed.branch()
    return deployed


def test_a_waiver_of_the_base_does_not_follow_to_another_namespace(repository: Repository) -> None:
    repository.edit(DEV, "pipeline: 2", "pipeline: 12")
    repository.edit(DEV, "worker_replicas: 1", "worker_replicas: 11")
    waiver = 'waivers: {pp-within-layers: "2099-12-31 nobody minds"}'
    repository.edit(DEV, "- name: llama-8b\n", f"- name: llama-8b\n      {waiver}\n")
    repository.git("branch", "--force", "waived")
    repository.edit(DEV, "replicas: 1\n      roles", "replicas: 2\n      roles")
    ordinary = repository.review("waived")
    assert ordinary.status == 0, ordinary.log
    assert "\nWaived:" in ordinary.comment
    repository.edit(DEV, "- name: llama-8b\n", "- name: llama-8b\n      namespace: other\n")
    ran = repository.review("waived")
    assert ran.status == 1, ran.log
    assert "is new in this branch and does not apply to it: waived until 2099-12-31" in ran.comment
    assert "\nWaived:" not in ran.comment


def test_a_waiver_in_the_code_of_the_base_is_for_the_object_that_was_deployed(
    repository: Repository,
) -> None:
    """The program states the waiver, and the branch changes only data, or a stack without state."""
    shutil.copy(ROOT / "tests" / "policies" / "program" / "__main__.py", repository.root)
    text = '"world-size-equals-gpus", "2099-12-31 nobody minds"'
    repository.edit("__main__.py", 'config.get("waiver")', f"({text})[1]")
    lines = (repository.root / DEV).read_text().splitlines()
    salt = next(line for line in lines if line.startswith("encryptionsalt: "))
    own = OWN.replace('tensor: "8"', 'tensor: "16"')
    (repository.root / DEV).write_text(f"{own}{salt}\n")
    repository.commit()
    repository.git("branch", "--force", "waived")
    repository.edit(DEV, 'workers: "2"', 'workers: "1"')
    ran = repository.review("waived")
    # The state has the StatefulSets of dev, and this Deployment is new.
    assert ran.status == 1, ran.log
    assert "\nWaived:" not in ran.comment
    assert "tensor 16" in ran.comment
    alone = repository.review("waived", PULUMI_BACKEND_URL=f"file://{repository.root.parent}/none")
    assert "because the preview has no state" in alone.comment, alone.comment


def test_a_limit_in_the_project_file_is_one_of_every_stack(repository: Repository) -> None:
    limit = "\nconfig:\n  kthena-components:gpu_budget: 2\n"
    write(repository, "Pulumi.yaml", (repository.root / "Pulumi.yaml").read_text() + limit)
    repository.git("branch", "--force", "limited")
    repository.edit("Pulumi.yaml", "gpu_budget: 2", "gpu_budget: 999")
    ran = repository.review("limited", "--no-preview")
    assert ran.status == 1, ran.log
    assert "gpu\\_budget: would be 999, and the base has 2" in ran.comment


@pytest.mark.parametrize(
    "config", [{"all": "disabled"}, {"serving-rules": {"enforcementLevel": "disabled"}}]
)
def test_levels_that_the_base_does_not_state_cannot_be_lowered(
    repository: Repository, config: dict[str, object]
) -> None:
    write(repository, LEVELS, json.dumps({"serving-rules": {"environment": "dev"}}))
    repository.git("branch", "--force", "silent")
    write(repository, LEVELS, json.dumps({"serving-rules": {"environment": "dev"}, **config}))
    ran = repository.review("silent", "--no-preview")
    assert ran.status == 1, ran.log
    assert "serving-rules.enforcementLevel: would be disabled, and the base has mandatory" in (
        ran.comment.replace("\\", "")
    )
