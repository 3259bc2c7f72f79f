"""What a policy's config changes: levels rule by rule, and the Kthena that is checked for."""

import pytest
from pulumi_policy import PolicyResource

from kthena_components.checker.enforcement import TOGETHER
from kthena_components.policies.pack import POLICIES
from tests.policies.broken import emitted
from tests.policies.objects import (
    DEPLOYMENT,
    MODEL_SERVING,
    Args,
    advice,
    group_advice,
    group_refusals,
    in_stack,
    pod,
    policy,
    refusals,
    resource,
    vllm,
    workload,
)
from tests.support.specs import GUIDE

WRONG = workload(vllm("-tp", "16"), name="config")
RULE = "world-size-equals-gpus"
LOWERED = {"levels": {RULE: "advisory"}}


def both(config: Args, other: Args | None = None) -> list[list[str]]:
    """Give what serving-rules and serving-advice report about one resource, as the SDK asks."""
    args, said = resource(DEPLOYMENT, WRONG, config), []
    for name, given in (("serving-rules", config), ("serving-advice", other)):
        lines: list[str] = []
        args._ResourceValidationArgs__config = given or {}  # type: ignore[attr-defined]
        policy(name).validate(args, lambda message, _, lines=lines: lines.append(message))
        said.append(lines)
    return said


@pytest.mark.parametrize(
    ("weight", "counts"), [("mandatory", [1, 0]), ("advisory", [0, 1]), ("disabled", [0, 0])]
)
def test_a_finding_is_told_by_one_policy_whatever_it_weighs(weight: str, counts: list[int]) -> None:
    assert [len(lines) for lines in both({"levels": {RULE: weight}})] == counts


def test_the_config_of_the_policy_that_refuses_holds_for_both() -> None:
    refused, advised = both(LOWERED, {"levels": {RULE: "mandatory"}})
    assert refused == []
    assert [line.rpartition(" ")[2] for line in advised] == ["[policy-config]", f"[{RULE}]"]
    assert advised[0] == (
        "the config of serving-advice is not used: the config of serving-rules applies to both "
        "policies. [policy-config]"
    )
    assert [len(lines) for lines in both(LOWERED, LOWERED)] == [0, 1]


def test_the_policy_that_advises_goes_by_its_own_where_the_other_is_disabled() -> None:
    assert advice(DEPLOYMENT, WRONG) == ""
    assert advice(DEPLOYMENT, WRONG, LOWERED).endswith(f"[{RULE}]")


def test_a_config_that_cannot_be_used_is_told_once_and_changes_nothing() -> None:
    wrong = {"levels": {RULE: "advisory", "shm": "advisory"}}
    told, *found = refusals(DEPLOYMENT, WRONG, wrong).splitlines()
    assert told.startswith(
        "the config of serving-rules is not used: levels: there is no rule 'shm'"
    )
    assert found == refusals(DEPLOYMENT, WRONG, wrong).splitlines()
    assert [line.rpartition(" ")[2] for line in found] == [f"[{RULE}]"]


def test_a_model_serving_is_checked_for_the_kthena_that_is_asked_for() -> None:
    serving = emitted(GUIDE, "kthena")[0]
    serving["spec"]["rolloutStrategy"] = {"type": "RoleRollingUpdate"}
    assert refusals(MODEL_SERVING, serving) == ""
    old = refusals(MODEL_SERVING, serving, {"kthenaVersion": "v0.3.0"})
    assert "RoleRollingUpdate" in old
    bad = refusals(MODEL_SERVING, serving, {"kthenaVersion": "7"})
    assert bad == (
        "the config of serving-rules is not used: there is no Kthena '7'; known: 0.1, 0.2, "
        "0.3, 0.4, 1.0. [policy-config]"
    )


def pods_of_gpus(gpus: int, provider: str = "default", name: str = "a") -> PolicyResource:
    body = {"apiVersion": "v1", "kind": "Pod", **pod(vllm("-tp", str(gpus), gpus=gpus), name=name)}
    return in_stack(body, provider)


def test_gpus_are_limited_in_each_cluster_by_the_policy_that_sees_all_objects() -> None:
    stack = [pods_of_gpus(8), pods_of_gpus(8, name="b"), pods_of_gpus(8, "elsewhere")]
    assert group_refusals(stack, {"gpuBudget": 16}) == []
    ((owner, told),) = group_refusals(stack, {"gpuBudget": 15.0})
    assert owner == "None", "it is about all of them"
    assert told == (
        "these pods request 16 GPUs, but the budget is 15. Request 1 fewer, or ask for "
        "a larger budget. [gpu-budget]"
    )
    lowered = {"gpuBudget": 15, "levels": {"gpu-budget": "advisory"}}
    assert group_refusals(stack, lowered) == []
    assert len(group_advice(stack, lowered)) == 1
    assert group_refusals(stack, {"gpuBudget": 16}) == []


def test_accelerators_are_those_that_the_config_names() -> None:
    stack = [pods_of_gpus(8)]
    assert group_refusals(stack, {"gpuTypes": ["nvidia.com/gpu"]}) == []
    ((owner, told),) = group_refusals(stack, {"gpuTypes": ["amd.com/gpu"]})
    assert owner == "default/a"
    assert told.endswith("[gpu-type-allowed]")


def test_a_limit_that_cannot_be_used_is_told_once() -> None:
    stack, wrong = [pods_of_gpus(8)], {"gpuBudget": 3.5}
    ((_, told),) = group_refusals(stack, wrong)
    assert told == (
        "the config of serving-groups is not used: gpuBudget is 3.5; write a number of GPUs from "
        "0 on. [policy-config]"
    )
    assert group_refusals(stack, wrong) == []
    assert "only policies that see all objects" in refusals(DEPLOYMENT, WRONG, {"gpuBudget": 1})


def test_a_limit_stands_in_the_schema_of_the_policies_that_heed_it() -> None:
    for each in POLICIES:
        stated = each.config_schema.properties if each.config_schema else {}
        assert ("gpuBudget" in stated) == (each.name in TOGETHER), each.name
