"""Facts: the numbers that checks judge, read from templates, whatever stands there."""

from typing import Any

import pytest
from hypothesis import given

from kthena_components.core.facts.pod import DeviceFacts, PodFacts
from kthena_components.core.facts.pod_template import read_pod, read_pods
from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.plan.build import build_plan
from kthena_components.core.plan.facts import facts_from_plan
from kthena_components.core.spec.parse import parse_spec
from kthena_components.core.spec.serving_spec import ModelServingSpec
from kthena_components.core.values.read import count_or_unknown, mapping, sequence
from kthena_components.core.values.unknown import Unknown
from tests.support.specs import (
    ENGINE_RAY,
    GUIDE,
    NATIVE_8B,
    PREFILL_DECODE,
    TEMPLATES_PLAIN,
    Args,
    changed,
    gpu_template,
    template,
)
from tests.support.strategies import LATE, json_trees, law


def facts(args: Args, changes: Args | None = None) -> ServingFacts:
    return facts_from_plan(build_plan(parse_spec(ModelServingSpec, changed(args, changes))))


def device(pod: PodFacts) -> DeviceFacts:
    (only,) = pod.devices
    return only


def test_a_plan_is_read_from_the_templates_that_it_makes() -> None:
    (engine,) = facts(ENGINE_RAY).engines
    command = engine.entry.command
    assert command is not None
    assert (command.tensor, command.pipeline, command.ray_cluster_size) == (8, 2, 2)
    assert (engine.pods, engine.replicas, engine.entry.gpus) == (2, 1, 8)
    assert engine.worker is not None
    assert engine.worker.gpus == 8


def test_an_engine_is_named_where_the_user_wrote_it() -> None:
    (engine,) = facts(ENGINE_RAY).engines
    assert engine.path == "roles[0]"
    assert engine.entry.command_path == "roles[0].engine.parallelism"
    assert engine.entry.gpus_path == "roles[0].resources.gpus_per_pod"


def test_a_template_is_named_down_to_its_container() -> None:
    (engine,) = facts(GUIDE).engines
    assert engine.entry.command_path == "roles[0].entry_template.spec.containers[0].command"
    assert engine.entry.gpus_path == "roles[0].entry_template.spec.containers[0].resources"


def test_a_gang_has_the_minimum_of_each_role() -> None:
    gang = facts(PREFILL_DECODE).gang
    assert gang is not None
    assert (gang.min_member, gang.minima) == (7, {"prefill": 1, "decode": 1})


def test_without_volcano_there_is_no_gang() -> None:
    read = facts(NATIVE_8B, {"scheduler_name": "default-scheduler"})
    assert (read.gang, read.gang_expected) == (None, False)


def test_pods_that_serve_no_model_have_no_command() -> None:
    (prefill, _) = facts(TEMPLATES_PLAIN).engines
    assert (prefill.entry.command, prefill.entry.gpus) == (None, 0)


@pytest.mark.parametrize(
    ("resources", "count"),
    [
        ({"limits": {"nvidia.com/gpu": "8"}}, 8),
        ({"limits": {"nvidia.com/gpu": 8.0}}, 8),
        ({"requests": {"nvidia.com/gpu": 4}}, 4),
        ({"limits": {"nvidia.com/gpu": 8}, "requests": {"nvidia.com/gpu": 4}}, 8),
        ({"limits": {"nvidia.com/gpu": 1, "amd.com/gpu": 1}}, 2),
        ({"limits": {"cpu": 64}}, 0),
        (None, 0),
    ],
    ids=["limit", "as-a-float", "request", "limit-first", "two-kinds", "no-device", "nothing"],
)
def test_gpus_are_what_kubernetes_gives(resources: Any, count: int) -> None:
    assert read_pod(template(resources=resources), "t").gpus == count


@pytest.mark.parametrize(
    ("amount", "because"),
    [
        ("x", "'x' is not a count of nvidia.com/gpu"),
        ("1500m", "'1500m' is not a count of nvidia.com/gpu"),
        (-1, "-1 is not a count of nvidia.com/gpu"),
        (2**31, "2147483648 is not a count of nvidia.com/gpu"),
        ([], "a list is not a count of nvidia.com/gpu"),
        (LATE, "the amount of nvidia.com/gpu is not known yet"),
    ],
    ids=["text", "fraction", "negative", "huge", "list", "output"],
)
def test_an_amount_that_is_no_count_is_unknown(amount: Any, because: str) -> None:
    pod = read_pod(template(resources={"limits": {"nvidia.com/gpu": amount}}), "t")
    assert device(pod).limit == Unknown(because)
    assert pod.gpus == Unknown(because)


def test_a_command_is_found_behind_other_containers() -> None:
    pod = gpu_template("vllm serve m -tp 8")
    pod["spec"]["containers"].insert(0, {"name": "proxy", "image": "envoy:v1"})
    read = read_pod(pod, "t")
    assert read.command_path == "t.spec.containers[1].command"
    assert read.command is not None
    assert read.command.tensor == 8


def test_each_engine_of_a_pod_is_read() -> None:
    pod = gpu_template("vllm serve m -tp 4", 4)
    pod["spec"]["containers"].append({**pod["spec"]["containers"][0], "name": "second"})
    assert [(read.container, read.gpus) for read in read_pods(pod, "t")] == [
        ("engine", 4),
        ("second", 4),
    ]


def test_variables_of_the_container_are_expanded() -> None:
    env = [{"name": "TP", "value": "4"}]
    command = read_pod(gpu_template("vllm serve m -tp $TP", 4, env=env), "t").command
    assert command is not None
    assert command.tensor == 4


def test_what_will_be_injected_wins() -> None:
    env = [{"name": "GROUP_SIZE", "value": "9"}]
    script = "bash multi-node-serving.sh leader --ray_cluster_size=$GROUP_SIZE; vllm serve m"
    command = read_pod(gpu_template(script, env=env), "t", {"GROUP_SIZE": "2"}).command
    assert command is not None
    assert command.ray_cluster_size == 2


@pytest.mark.parametrize("name", ["WORKER_INDEX", "ENTRY_ADDRESS"])
def test_what_differs_from_pod_to_pod_is_no_fact(name: str) -> None:
    pods = [
        gpu_template(f"vllm serve m --node-rank ${name}", env=[{"name": name, "value": value}])
        for value in ("0", "1")
    ]
    first, second = (read_pod(pod, "t") for pod in pods)
    assert first == second


@pytest.mark.property
@law
@given(json_trees())
def test_reading_a_pod_never_raises(tree: Any) -> None:
    for pod in (
        tree,
        {"spec": tree},
        {"spec": {"containers": tree}},
        template(env=tree, args=tree),
    ):
        assert read_pods(pod, "t", {"GROUP_SIZE": "2"})
    read_pod(template(resources={"limits": tree, "requests": {"nvidia.com/gpu": tree}}), "t")


COUNTS: dict[str, tuple[Any, Any]] = {
    "missing": (None, 7),
    "count": (3, 3),
    "float": (3.0, 3),
    "zero": (0, 0),
    "output": (LATE, Unknown("n is not known yet")),
    "true": (True, Unknown("n is true, which is not a count")),
    "negative": (-1, Unknown("n is -1, which is not a count")),
    "fraction": (1.5, Unknown("n is 1.5, which is not a count")),
    "text": ("3", Unknown("n is '3', which is not a count")),
    "infinity": (float("inf"), Unknown("n is inf, which is not a count")),
    "not-a-number": (float("nan"), Unknown("n is nan, which is not a count")),
    "huge": (10**40, Unknown("n is a number of 133 bits, which is not a count")),
}


@pytest.mark.parametrize(("value", "count"), COUNTS.values(), ids=COUNTS)
def test_a_count_is_a_number_or_unknown(value: Any, count: Any) -> None:
    assert count_or_unknown(value, "n", 7) == count


def test_other_shapes_are_empty() -> None:
    assert (mapping([]), mapping({"a": 1}), sequence({}), sequence((1,))) == (
        {},
        {"a": 1},
        (),
        (1,),
    )
