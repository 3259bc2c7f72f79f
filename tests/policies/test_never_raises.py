"""Nothing that a resource can hold makes a policy raise: that would end the whole operation."""

import copy
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pulumi_policy.proxy import unknown_checking_proxy

from kthena_components.compiler.compile import compile_serving
from kthena_components.core.findings import Level
from kthena_components.core.plan.report import shape
from kthena_components.policies import pack, resource_checks
from kthena_components.policies.secret_marks_and_stack_gpu import plain
from tests.policies.broken import emitted
from tests.policies.objects import (
    COMPONENT,
    DEPLOYMENT,
    GPU,
    MODEL_SERVING,
    POD,
    STATEFUL_SET,
    UNKNOWN,
    Args,
    advice,
    group_advice,
    group_refusals,
    in_stack,
    model_serving,
    pod,
    refusals,
    type_of,
    vllm,
    workload,
)
from tests.support.specs import ENGINE_RAY, GUIDE
from tests.support.strategies import damaged, json_trees

JUDGED = (COMPONENT, DEPLOYMENT, MODEL_SERVING, POD, STATEFUL_SET, "kubernetes:batch/v1:Job")
GOOD: dict[str, Args] = {
    DEPLOYMENT: workload(vllm("-tp", "8")),
    STATEFUL_SET: emitted(ENGINE_RAY)[-2],
    POD: pod(vllm("-tp", "8")),
    MODEL_SERVING: emitted(GUIDE, "kthena")[0],
}


def shape_of(args: Args) -> Args:
    """Give the row of a serving of one role."""
    (row,) = shape(compile_serving(args).plan)
    return row


fuzz = settings(max_examples=150, deadline=None)


def judge(resource_type: str, props: Args) -> None:
    """Judge through proxies; unknown strings in them raise as soon as they are touched."""
    for finding in resource_checks.check_resource(
        resource_type, plain(unknown_checking_proxy(props))
    ):
        assert str(finding)
        assert finding.level in set(Level)


@pytest.mark.property
@fuzz
@given(st.sampled_from(JUDGED), st.dictionaries(st.text(max_size=9), json_trees(), max_size=4))
def test_any_properties_are_checked(resource_type: str, props: Args) -> None:
    judge(resource_type, props)


@pytest.mark.property
@fuzz
@given(
    st.sampled_from(JUDGED),
    st.fixed_dictionaries({}, optional=dict.fromkeys(("metadata", "spec", "shape"), json_trees())),
)
def test_any_values_of_the_known_fields_are_checked(resource_type: str, props: Args) -> None:
    judge(resource_type, props)


@pytest.mark.property
@fuzz
@given(st.sampled_from(sorted(GOOD)), st.data())
def test_any_damage_to_a_good_resource_is_checked(resource_type: str, data: st.DataObject) -> None:
    judge(resource_type, data.draw(damaged(GOOD[resource_type])))


WORDS = (
    "--config", "--data-parallel-backend", "--data-parallel-external-lb", "--data-parallel-rank",
    "--data-parallel-hybrid-lb", "--data-parallel-start-rank", "--distributed-executor-backend",
    "--enable-dp-attention", "--headless", "--nnodes", "--node-rank", "-dp", "-dpl", "-pcp", "-pp",
    "-tp", "$(TP)", "0", "1", "2", "3", "6", "8", "16", "-1", "mp", "ray", "x",
)  # fmt: skip
STARTS = (
    "vllm serve m",
    "python3 -m sglang.launch_server",
    "mpirun -n 8 trtllm-serve m",
    "bash multi-node-serving.sh leader --ray_cluster_size=2",
    "ray start --head",
)
AMOUNTS = st.sampled_from([0, 2, 4, 8, 8.0, "8", "8k", "x", -1, 1e30, 0.5, None, UNKNOWN])
LISTS = st.dictionaries(st.sampled_from([GPU, "amd.com/gpu", "rdma/ib"]), AMOUNTS, max_size=2)
RESOURCES = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("limits", "requests"), LISTS | st.just(UNKNOWN))
)
SIZES = st.sampled_from(["0", "2", "x", "9" * 5000, UNKNOWN])


@st.composite
def containers(draw: st.DrawFn) -> Args:
    """Draw a container that starts an engine in some way, on some GPUs."""
    flags = draw(st.lists(st.sampled_from([*WORDS, UNKNOWN]), max_size=8))
    return {
        "name": draw(st.sampled_from(["a", "b", UNKNOWN])),
        "image": draw(st.sampled_from(["vllm/vllm-openai:v1", UNKNOWN])),
        "command": draw(st.sampled_from([None, UNKNOWN, *map(str.split, STARTS)])),
        "args": flags,
        "env": [{"name": name, "value": draw(SIZES)} for name in ("TP", "GROUP_SIZE")],
        "resources": draw(RESOURCES | st.just(UNKNOWN)),
    }


@pytest.mark.property
@fuzz
@given(st.lists(containers(), min_size=1, max_size=2), AMOUNTS, st.data())
def test_any_command_line_on_any_gpus_is_checked(
    drawn: list[Args], replicas: Any, data: st.DataObject
) -> None:
    judge(DEPLOYMENT, workload(*drawn, replicas=replicas))
    worker = data.draw(st.none() | containers().map(pod))
    judge(MODEL_SERVING, model_serving(pod(*drawn), worker, replicas))


@pytest.mark.property
@fuzz
@given(
    st.dictionaries(
        st.sampled_from([*shape_of(ENGINE_RAY), "context"]), AMOUNTS | st.just("?"), max_size=9
    )
)
def test_any_row_of_a_component_is_checked(row: Args) -> None:
    judge(COMPONENT, {"name": "chat", "shape": [row]})


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """List every place in a tree, the root left out."""
    items: Any = value.items() if isinstance(value, dict) else enumerate(value)
    return [
        place
        for key, item in items
        for place in ((*path, key), *(places(item, (*path, key)) if _holds(item) else ()))
    ]


def _holds(item: Any) -> bool:
    return isinstance(item, dict | list)


@pytest.mark.parametrize("resource_type", GOOD)
def test_an_unknown_value_anywhere_refuses_nothing(resource_type: str) -> None:
    for place in places(GOOD[resource_type]):
        props = copy.deepcopy(GOOD[resource_type])
        holder = props
        for key in place[:-1]:
            holder = holder[key]
        holder[place[-1]] = UNKNOWN
        assert refusals(resource_type, props) == "", place
        assert UNKNOWN not in advice(resource_type, props), place


@pytest.mark.property
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_damage_to_a_group_is_checked(data: st.DataObject) -> None:
    bodies = [body for body in emitted(ENGINE_RAY) if type_of(body).endswith(("Set", "Group"))]
    number = data.draw(st.integers(0, len(bodies) - 1))
    body = data.draw(damaged({key: bodies[number][key] for key in ("metadata", "spec")}))
    objects = [in_stack(each) for each in bodies]
    objects[number].props = unknown_checking_proxy(body)
    group_refusals(objects)
    group_advice(objects)


@pytest.mark.usefixtures("faults_told")
def test_a_fault_of_a_rule_is_advice_and_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("gone")

    monkeypatch.setattr(resource_checks, "check_whole", broken)
    monkeypatch.setattr(pack, "check_objects_together", broken)
    wrong = model_serving(pod(vllm("-tp", "17")))
    assert refusals(MODEL_SERVING, wrong) == ""
    fault = (
        "was not checked, because checking failed with KeyError at "
        "<module>:<line>. "
        "Please report it; the findings of other rules are complete. [rule-fault]"
    )
    place = re.compile(r"kthena_components\.[\w.]+:\d+\.")
    assert place.sub("<module>:<line>.", advice(MODEL_SERVING, wrong)) == fault
    stack = [in_stack(body) for body in emitted(ENGINE_RAY)]
    assert group_refusals(stack) == []
    (owner, line), (_, memory) = group_advice(stack)
    assert memory.endswith("[memory-weights-fit]")
    assert (owner, place.sub("<module>:<line>.", line)) == ("None", fault)
