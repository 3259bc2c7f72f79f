"""The pack, started as the engine starts it: what it is called, its levels, what it answers."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from kthena_components.checker.levels import ENVIRONMENTS
from kthena_components.core.rules.production import PRODUCTION_NAMES
from kthena_components.policies.pack import POLICIES
from tests.policies.broken import native
from tests.policies.objects import (
    DEPLOYMENT,
    GPU,
    UNKNOWN,
    Args,
    addressed,
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
    "ranks, but its pod has 8 GPUs. Set tensor to 8, or give the engine 2 pods and connect "
    "them with --nnodes 2, --node-rank and --master-addr. "
    "[world-size-equals-gpus]"
)
REFUSED = ["[world-size-equals-gpus]", "[leader-worker-same-gpus]"]
ADVISED = ["[headless-service]", "[headless-service]"]
"""What is advice in the group below: its Service has a cluster IP."""


@pytest.fixture(scope="module")
def pack() -> Iterator[Pack]:
    with started() as running:
        yield running


def levels(environment: str) -> Args:
    found: Args = json.loads((PACK / "levels" / f"{environment}.json").read_text())
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


def of_group(pack: Pack, bodies: dict[str, tuple[str, Args]]) -> list[str]:
    """Return what is said of objects together. No test here names a GPU."""
    return [line for line in pack.analyze_stack(bodies) if "[memory-" not in line]


def unless_reviewed(lines: list[str]) -> list[str]:
    """Return the lines of other rules than those about production."""
    return [line for line in lines if "[production-" not in line]


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_only_prod_reviews_what_a_pod_lacks(pack: Pack, environment: str) -> None:
    pack.configure(levels(environment))
    lines = pack.analyze(DEPLOYMENT, workload(vllm("-tp", "8")))
    rules = [line.rpartition("[")[2].removesuffix("]") for line in lines]
    assert all(line.startswith("advisory serving-advice : ") for line in lines)
    assert set(rules) == (PRODUCTION_NAMES if environment == "prod" else set())
    assert len(set(rules)) == len(rules), "one line for each rule"


def test_a_resource_is_checked_on_the_wire(pack: Pack) -> None:
    pack.configure({})
    assert pack.analyze(DEPLOYMENT, WRONG) == [f"mandatory serving-rules : {REFUSAL}"]
    assert pack.analyze(DEPLOYMENT, workload(vllm("-tp", "8"))) == []
    assert pack.analyze("kubernetes:core/v1:Service", {"spec": {"ports": [UNKNOWN]}}) == []


def test_what_is_not_known_is_advice_on_the_wire(pack: Pack) -> None:
    pack.configure(levels("prod"))
    (line,) = unless_reviewed(pack.analyze(DEPLOYMENT, workload(container(args=UNKNOWN))))
    assert line == (
        "advisory serving-advice : spec.template.spec.containers[0].args: engine 'chat' was not "
        "checked, because <output> may contain any flag. [world-size-equals-gpus]"
    )


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_what_cannot_start_is_refused_in_every_environment(pack: Pack, environment: str) -> None:
    pack.configure(levels(environment))
    found = unless_reviewed(pack.analyze(DEPLOYMENT, WRONG))
    assert found == [f"mandatory serving-rules : {REFUSAL}"]
    found = of_group(pack, uneven_group())
    refused = [line for line in found if line.startswith("mandatory serving-groups ")]
    assert [line.rpartition(" ")[2] for line in refused] == REFUSED
    advised = [line for line in found if line.startswith("advisory serving-groups-advice ")]
    assert [line.rpartition(" ")[2] for line in advised] == ADVISED


@pytest.mark.parametrize(
    ("environment", "by"),
    [
        ("dev", "advisory serving-advice"),
        ("staging", "advisory serving-advice"),
        ("prod", "mandatory serving-rules"),
    ],
)
def test_an_environment_decides_who_says_it(pack: Pack, environment: str, by: str) -> None:
    pack.configure(levels(environment))
    moving = workload(vllm("-tp", "8", image="vllm/vllm-openai:latest"))
    (line,) = unless_reviewed(pack.analyze(DEPLOYMENT, moving))
    assert line.startswith(f"{by} : ")
    assert line.endswith("[image-pinned]")


@pytest.mark.parametrize(
    ("level", "by"),
    [("advisory", "advisory serving-groups-advice"), ("mandatory", "mandatory serving-groups")],
)
def test_a_rule_of_the_stack_is_told_by_the_policy_of_its_level(
    pack: Pack, level: str, by: str
) -> None:
    config = levels("prod")
    config["serving-groups"]["levels"] = {"*": level}
    pack.configure(config)
    lines = of_group(pack, uneven_group())
    assert {line.partition(" urn")[0] for line in lines} == {by}
    assert [line.rpartition(" ")[2] for line in lines] == [*REFUSED, *ADVISED]


def test_a_config_that_cannot_be_used_is_told_in_one_sentence(pack: Pack) -> None:
    pack.configure({"serving-rules": {"enforcementLevel": "mandatory", "levels": {"shm": "x"}}})
    told, *found = pack.analyze(DEPLOYMENT, WRONG)
    assert told.startswith(
        "mandatory serving-rules : the config of serving-rules is not used: levels: there is no "
        "rule 'shm'; "
    )
    assert found == [f"mandatory serving-rules : {REFUSAL}"]
    assert pack.analyze(DEPLOYMENT, WRONG) == found


def test_advice_is_given_without_the_policy_that_refuses(pack: Pack) -> None:
    pack.configure({"serving-rules": "disabled"})
    (line,) = pack.analyze(DEPLOYMENT, workload(container(args=UNKNOWN)))
    assert line.startswith("advisory serving-advice")
    assert pack.analyze(DEPLOYMENT, WRONG) == []


def test_a_group_is_checked_on_the_wire(pack: Pack) -> None:
    pack.configure(levels("dev"))
    found = of_group(pack, uneven_group())
    assert [line.partition(": ")[0] for line in found] == [
        "mandatory serving-groups urn:entry",
        "mandatory serving-groups urn:workers",
        "advisory serving-groups-advice urn:workers",
        "advisory serving-groups-advice urn:entry",
    ]


def test_gpus_are_limited_on_the_wire(pack: Pack) -> None:
    right = workload(vllm("-tp", "8"), replicas=2)
    stack = {"urn:chat": (DEPLOYMENT, {**right, "apiVersion": "apps/v1", "kind": "Deployment"})}
    for budget, found in ((24, []), (16, ["surge-needs-spare-gpus"]), (15, ["gpu-budget"])):
        config = levels("prod")
        config["serving-groups"]["gpuBudget"] = budget
        pack.configure(config)
        lines = of_group(pack, stack)
        assert [line.rpartition(" ")[2].strip("[]") for line in lines] == found, budget
    config["serving-groups"] |= {"gpuBudget": 24, "gpuTypes": ["amd.com/gpu"]}
    pack.configure(config)
    (line,) = of_group(pack, stack)
    assert line.startswith("mandatory serving-groups urn:chat: spec.template.spec.containers[0]")
    assert line.endswith("[gpu-type-allowed]")


def uneven_group() -> dict[str, tuple[str, Args]]:
    """Give a group whose workers have other GPUs than its entry."""
    parts = native()
    engine = parts["workers"]["spec"]["template"]["spec"]["containers"][0]
    engine["resources"] = {"limits": {GPU: 4}, "requests": {GPU: 4}}
    parts["service"] = addressed(parts["entry"]["spec"]["serviceName"])
    return {f"urn:{part}": (type_of(body), body) for part, body in parts.items()}


@pytest.mark.parametrize("path", LEVELS, ids=lambda path: path.stem)
def test_a_levels_file_names_every_policy_and_a_level_that_there_is(path: Path) -> None:
    stated = levels(path.stem)
    assert set(stated) == {policy.name for policy in POLICIES}
    refusing = {"enforcementLevel": "mandatory", "environment": path.stem}
    assert stated["serving-rules"] == stated["serving-groups"] == refusing
    advising = {stated["serving-advice"], stated["serving-groups-advice"]}
    assert advising == {"advisory"}, "what is not known yet must stop nothing"


def test_every_environment_has_a_levels_file() -> None:
    assert {path.stem for path in LEVELS} == set(ENVIRONMENTS)


def test_the_pack_is_run_by_the_projects_own_python() -> None:
    settings = yaml.safe_load((PACK / "PulumiPolicy.yaml").read_text())
    project = yaml.safe_load((PACK.parent / "Pulumi.yaml").read_text())
    own = (PACK / settings["runtime"]["options"]["virtualenv"]).resolve()
    assert own == (PACK.parent / project["runtime"]["options"]["virtualenv"]).resolve()
