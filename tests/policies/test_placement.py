"""With an inventory in its config, the policy of all objects says which pods do not fit."""

from pathlib import Path

import pytest
from pulumi_policy import PolicyResource

from tests.policies.objects import Args, group_advice, group_refusals, in_stack, vllm, workload

INVENTORY = """\
apiVersion: kthena-components/v1
kind: Inventory
racks: 1
nodes_per_rack: 2
gpus: 8
cpu: 128
memory: 1Ti
"""


@pytest.fixture
def inventory(tmp_path: Path) -> str:
    """Write a rack of two nodes."""
    path = tmp_path / "prod.yaml"
    path.write_text(INVENTORY)
    return str(path)


def _chat(replicas: int, provider: str = "default") -> PolicyResource:
    body = workload(vllm("-tp", "8"), replicas=replicas)
    return in_stack({"apiVersion": "apps/v1", "kind": "Deployment", **body}, provider)


def _told(replicas: int, config: Args, *providers: str) -> list[str]:
    stack = [_chat(replicas, each) for each in providers or ("default",)]
    refused = [text for _, text in group_refusals(stack, config)]
    assert not any("[placement-fits]" in text for text in refused), "it is advice without a level"
    return [text for _, text in group_advice(stack, config) if "[placement-fits]" in text]


def test_pods_that_fit_are_silent(inventory: str) -> None:
    assert _told(2, {"inventory": inventory}) == []


def test_pods_that_do_not_fit_are_advice_with_numbers(inventory: str) -> None:
    (told,) = _told(3, {"inventory": inventory})
    assert told.startswith("default/chat fits in part on ")
    assert "each requests 8 GPUs" in told
    assert told.endswith("Add one node like rack-1-node-1 to rack-1. [placement-fits]")


def test_without_an_inventory_nothing_is_placed() -> None:
    assert _told(3, {}) == []


def test_a_level_decides_whether_it_refuses(inventory: str) -> None:
    stack = [_chat(3)]
    for config, refused in (
        ({"environment": "prod"}, 1),
        ({"environment": "dev"}, 0),
        ({"levels": {"placement-fits": "mandatory"}}, 1),
        ({"levels": {"placement-fits": "disabled"}}, 0),
    ):
        found = group_refusals(stack, {"inventory": inventory, **config})
        assert sum("[placement-fits]" in text for _, text in found) == refused, config


def test_an_inventory_that_cannot_be_read_is_told_and_ends_nothing(tmp_path: Path) -> None:
    missing, wrong = tmp_path / "none.yaml", tmp_path / "wrong.yaml"
    wrong.write_text(f"{INVENTORY}colour: red\n")
    (told,) = _told(1, {"inventory": str(missing)})
    assert told.startswith("not checked, because ")
    assert "none.yaml" in told
    (told,) = _told(1, {"inventory": str(wrong)})
    assert "colour" in told


def test_an_old_snapshot_is_advice(tmp_path: Path) -> None:
    path = tmp_path / "old.yaml"
    path.write_text(f"{INVENTORY}taken: 2020-01-01T00:00:00Z\n")
    (told,) = _told(1, {"inventory": str(path)})
    assert "days old, and may be out of date after 7" in told


def test_a_snapshot_of_a_later_day_is_advice(tmp_path: Path) -> None:
    path = tmp_path / "later.yaml"
    path.write_text(f"{INVENTORY}taken: 2999-01-01T00:00:00Z\n")
    (told,) = _told(1, {"inventory": str(path)})
    assert "is dated 2999-01-01, after today, so its age is not known" in told


def test_objects_of_two_providers_are_not_placed(inventory: str) -> None:
    (told,) = _told(1, {"inventory": inventory}, "here", "there")
    assert told == (
        "not checked, because the objects have several providers, and an inventory is of one "
        "cluster. [placement-fits]"
    )


def test_a_path_that_is_no_text_is_an_error_of_the_config() -> None:
    told = [text for _, text in group_refusals([_chat(1)], {"inventory": 3})]
    (text,) = told
    assert text == (
        "the config of serving-groups is not used: inventory is 3; write the path of a file."
        " [policy-config]"
    )
