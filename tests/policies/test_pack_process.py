"""The pack, started as the engine starts it: what it is called, its levels, what it answers."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from policies.pack import POLICIES
from tests.policies.broken import native
from tests.policies.objects import (
    DEPLOYMENT,
    GPU,
    UNKNOWN,
    Args,
    container,
    type_of,
    vllm,
    workload,
)
from tests.policies.process import PACK, Pack, started

LEVELS = sorted((PACK / "levels").glob("*.json"))
WRONG = workload(vllm("-tp", "16"))
REFUSAL = (
    "spec.template.spec.containers[0].args: engine 'chat' starts tensor 16 × pipeline 1 = 16 "
    "ranks, but its pod has 8 GPUs. Set tensor to 8, or give the engine 2 pods, or give each pod "
    "16 GPUs. [world-size-equals-gpus]"
)


@pytest.fixture(scope="module")
def pack() -> Iterator[Pack]:
    with started() as running:
        yield running


def levels(environment: str) -> dict[str, str]:
    found: dict[str, str] = json.loads((PACK / "levels" / f"{environment}.json").read_text())
    return found


def test_the_pack_tells_its_policies(pack: Pack) -> None:
    info = pack.info()
    assert info.name == "kthena-components"
    assert [found.name for found in info.policies] == [policy.name for policy in POLICIES]
    assert all(found.description for found in info.policies)


def test_the_pack_starts_from_any_folder_of_any_name(tmp_path: Path) -> None:
    copy = tmp_path / "our-rules"
    shutil.copytree(PACK, copy)
    with started(copy) as running:
        assert running.analyze(DEPLOYMENT, WRONG)


def test_a_resource_is_judged_on_the_wire(pack: Pack) -> None:
    pack.configure({})
    assert pack.analyze(DEPLOYMENT, WRONG) == [f"mandatory serving-rules : {REFUSAL}"]
    assert pack.analyze(DEPLOYMENT, workload(vllm("-tp", "8"))) == []
    assert pack.analyze("kubernetes:core/v1:Service", {"spec": {"ports": [UNKNOWN]}}) == []


def test_what_is_not_known_is_advice_on_the_wire(pack: Pack) -> None:
    pack.configure(levels("prod"))
    (line,) = pack.analyze(DEPLOYMENT, workload(container(args=UNKNOWN)))
    assert line == (
        "advisory serving-advice : spec.template.spec.containers[0].args: engine 'chat' was not "
        "checked, because <output> may hold any flag. [world-size-equals-gpus]"
    )


@pytest.mark.parametrize(
    ("environment", "level"), [("dev", "advisory"), ("staging", "mandatory"), ("prod", "mandatory")]
)
def test_an_environment_decides_what_stops_it(pack: Pack, environment: str, level: str) -> None:
    pack.configure(levels(environment))
    assert pack.analyze(DEPLOYMENT, WRONG) == [f"{level} serving-rules : {REFUSAL}"]
    stack = pack.analyze_stack(uneven_group())
    assert [line.partition(" ")[0] for line in stack] == [level, level]


def test_advice_is_given_without_the_policy_that_refuses(pack: Pack) -> None:
    pack.configure({"serving-rules": "disabled"})
    (line,) = pack.analyze(DEPLOYMENT, workload(container(args=UNKNOWN)))
    assert line.startswith("advisory serving-advice")
    assert pack.analyze(DEPLOYMENT, WRONG) == []


def test_a_group_is_judged_on_the_wire(pack: Pack) -> None:
    pack.configure(levels("prod"))
    found = pack.analyze_stack(uneven_group())
    assert [line.partition(": ")[0] for line in found] == [
        "mandatory serving-groups urn:entry",
        "mandatory serving-groups urn:workers",
    ]


def uneven_group() -> dict[str, tuple[str, Args]]:
    """Give a group whose workers have other GPUs than its entry."""
    parts = native()
    engine = parts["workers"]["spec"]["template"]["spec"]["containers"][0]
    engine["resources"] = {"limits": {GPU: 4}, "requests": {GPU: 4}}
    return {f"urn:{part}": (type_of(body), body) for part, body in parts.items()}


@pytest.mark.parametrize("path", LEVELS, ids=lambda path: path.stem)
def test_a_levels_file_names_every_policy_and_a_level_that_there_is(path: Path) -> None:
    stated = levels(path.stem)
    assert set(stated) == {policy.name for policy in POLICIES}
    assert set(stated.values()) <= {"advisory", "mandatory", "disabled"}
    assert stated["serving-advice"] == "advisory", "what is not known yet must stop nothing"


def test_the_pack_is_run_by_the_projects_own_python() -> None:
    settings = yaml.safe_load((PACK / "PulumiPolicy.yaml").read_text())
    project = yaml.safe_load((PACK.parent / "Pulumi.yaml").read_text())
    own = (PACK / settings["runtime"]["options"]["virtualenv"]).resolve()
    assert own == (PACK.parent / project["runtime"]["options"]["virtualenv"]).resolve()
