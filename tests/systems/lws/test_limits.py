"""What LeaderWorkerSets and DisaggregatedSets cannot do, and in which words that is refused."""

from typing import Any

import pytest

from tests.support.for_each import for_each
from tests.support.refusals import refusal_of
from tests.support.specs import GUIDE, TEMPLATES_PLAIN, Args, changed, example_for, template

UPDATE = "rollout_strategy.rolling_update_configuration"
ONE = changed(example_for("lws", "engine-native"), {"roles[0].replicas": 2})
"""Two groups of two engines of two pods."""
SEVERAL = changed(TEMPLATES_PLAIN, {"backend": "lws"})
"""One group of two roles."""


OPTION = "backend_options"
REFUSED: dict[str, tuple[Args, dict[str, Any], str]] = {
    "unknown-option": (
        ONE,
        {OPTION: {"exclusive_topolgy": "rack"}},
        (
            "backend_options.exclusive_topolgy: there is no field 'exclusive_topolgy' here. Write "
            "'exclusive_topology'. [unknown-field]"
        ),
    ),
    "subgroup-of-no-role": (
        ONE,
        {OPTION: {"subgroups": {"decoder": {"size": 1}}}},
        "backend_options.subgroups.decoder: is not a role; the roles are decode. Write 'decode'.",
    ),
    "subgroup-size": (
        ONE,
        {"roles[0].worker_replicas": 3, OPTION: {"subgroups": {"decode": {"size": 5}}}},
        (
            "backend_options.subgroups.decode.size: is 5, but must divide the 4 pods, or the 3 "
            "workers, of an engine of role 'decode'. Write 1 or 2 or 3 or 4. [backend-options]"
        ),
    ),
    "subgroup-without-leader": (
        ONE,
        {
            "roles[0].worker_replicas": 3,
            OPTION: {"subgroups": {"decode": {"size": 2, "type": "LeaderExcluded"}}},
        },
        "is 2, but must divide the 3 workers, of an engine of role 'decode'. Write 1 or 3.",
    ),
    "ready-leader": (
        ONE,
        {OPTION: {"startup_policy": "LeaderReady"}},
        (
            "backend_options.startup_policy: is LeaderReady, with which LWS creates the workers "
            "only after their leader is ready, but the first pod of engine 'decode' answers on "
            "8080 only when all of its 2 pods have joined, and its startupProbe (port 8080) waits "
            "for that. Write 'LeaderCreated'. [start-order]"
        ),
    ),
    "ready-leader-of-templates": (
        changed(GUIDE, {"backend": "lws"}),
        {OPTION: {"startup_policy": "LeaderReady"}},
        (
            "backend_options.startup_policy: is LeaderReady, with which LWS creates the workers "
            "only after their leader is ready, but the first pod of engine 'llama-405b' answers "
            "on 8080 only when all of its 2 pods have joined, and its readinessProbe (port 8080) "
            "waits for that."
        ),
    ),
    "exclusive-gang": (
        ONE,
        {OPTION: {"exclusive_topology": "rack"}},
        (
            "exclusive_topology: is given, so LWS creates the workers of an engine "
            "after its leader is scheduled; Volcano schedules the 2 pods of role 'decode' "
            "together, so "
            "none is ever scheduled. Write scheduler_name: default-scheduler, or remove it."
        ),
    ),
    "recreated-never": (
        ONE,
        {"recovery_policy": "None", OPTION: {"recreate_after_start": True}},
        (
            "recreate_after_start: is true, but with recovery_policy: None nothing is "
            "recreated. Remove one of them."
        ),
    ),
    "topology-key": (
        ONE,
        {OPTION: {"exclusive_topology": "-rack"}},
        "backend_options.exclusive_topology: is '-rack', but must be the key of a label, such as",
    ),
    "group-recovery": (
        ONE,
        {"recovery_policy": "ServingGroupRecreate"},
        (
            "recovery_policy: is ServingGroupRecreate, but LWS recreates the "
            "engine whose pod failed, and a ServingGroup has 2 engines. Write "
            "RoleRecreate, or write backend: kthena."
        ),
    ),
    "grace": (
        ONE,
        {"restart_grace_period_seconds": 9},
        "restart_grace_period_seconds: is 9, but LWS recreates an engine at once.",
    ),
    "name-of-several": (
        SEVERAL,
        {"replicas": 1, "backend_options": {"set_name": "llama"}},
        "backend_options.set_name: is given, but several roles are a DisaggregatedSet. Remove it.",
    ),
    "name-of-the-front": (
        ONE,
        {"name": "llama", "expose": {}, "backend_options": {"set_name": "llama"}},
        (
            "backend_options.set_name: is 'llama', like the serving, and LWS creates a Service of "
            "this name, as expose does. Give the serving another name, or remove expose."
        ),
    ),
    "autoscaled": (
        SEVERAL,
        {"replicas": 1, "autoscaled": True},
        "autoscaled: is true, but several roles are a DisaggregatedSet, which has no scale",
    ),
    "gang-of-engines": (
        ONE,
        {"gang_policy": {"min_role_replicas": {"decode": 2}}},
        (
            "gang_policy.min_role_replicas: requests 2 engines together, but LWS schedules "
            "each engine as a gang of its own."
        ),
    ),
    "group-topology": (
        ONE,
        {"network_topology": {"group_policy": {"mode": "soft"}}},
        (
            "network_topology.group_policy: is given, but the PodGroups that LWS creates have no "
            "network topology."
        ),
    ),
    "role-topology": (
        ONE,
        {"network_topology": {"role_policy": {"mode": "soft"}}},
        "network_topology.role_policy: is given",
    ),
    "odd-surge": (ONE, {f"{UPDATE}.max_surge": "101%"}, "max_surge: is 101%, but must be a count"),
    "negative-surge": (ONE, {f"{UPDATE}.max_surge": -1}, "max_surge: is -1, but must be a count"),
    "role-budget": (
        ONE,
        {"rollout_strategy": {"type": "RoleRollingUpdate"}, "roles[0].max_unavailable": 1},
        (
            "roles[0].max_unavailable: is 1 of each group, but LWS has one budget for the "
            "engines of all 2 groups."
        ),
    ),
    "several-groups": (
        SEVERAL,
        {"replicas": 3},
        (
            "replicas: is 3, but a DisaggregatedSet of LWS 0.9 is one group of its 2 roles. "
            "Write 1 and multiply roles[].replicas by 3, or write backend: native or kthena."
        ),
    ),
    "partition": (
        SEVERAL,
        {UPDATE: {"partition": 1}},
        f"{UPDATE}.partition: is 1, but a DisaggregatedSet updates its roles together.",
    ),
    "by-role": (
        SEVERAL,
        {"rollout_strategy": {"type": "RoleRollingUpdate"}},
        (
            "rollout_strategy.type: is RoleRollingUpdate, but a DisaggregatedSet updates all roles "
            "when one changes."
        ),
    ),
    "empty-role": (
        SEVERAL,
        {"roles[1].replicas": 0},
        (
            "roles[1].replicas: is 0, but role 'prefill' has engines, and a "
            "DisaggregatedSet serves with every role or with none."
        ),
    ),
    "host-of-an-entry": (
        SEVERAL,
        {"roles[1].entry_template.spec.containers[0].args": ["http://sample-0-prefill-0-0:8080"]},
        (
            "roles[1]: contains the host name 'sample-0-prefill-0-0', but LWS gives entry pods "
            "other names."
        ),
    ),
    "long-name": (
        SEVERAL,
        {"name": "c" * 40},
        (
            "roles[0].name: gives the StatefulSet name 'cccccccccccccccccccccccccccccccccccccccc"
            "-0-00000000-prefill-0', 61 characters"
        ),
    ),
}


@for_each("case", REFUSED)
def test_what_lws_cannot_do_is_an_error(case: str) -> None:
    args, changes, message = REFUSED[case]
    assert refusal_of(args, {}) == ""
    assert message in refusal_of(args, changes)


def test_all_refusals_come_at_once() -> None:
    changes = {
        "replicas": 2,
        UPDATE: {"partition": 2},
        "restart_grace_period_seconds": 5,
        "gang_policy": {"min_role_replicas": {"prefill": 1, "decode": 1}},
    }
    assert refusal_of(SEVERAL, changes).count("[backend-loss]") == 4


def test_a_disaggregated_set_has_ten_roles() -> None:
    def roles(number: int) -> Args:
        made = [{"name": f"r{i}", "entry_template": template()} for i in range(number)]
        return {"name": "chat", "backend": "lws", "roles": made}

    assert refusal_of(roles(10), {}) == ""
    assert "roles: has 11 roles, and a DisaggregatedSet has at most 10" in refusal_of(roles(11), {})


@pytest.mark.parametrize(
    ("args", "changes"),
    [
        (ONE, {"roles[0].replicas": 1, "recovery_policy": "ServingGroupRecreate"}),
        (ONE, {"gang_policy": {"min_role_replicas": {"decode": 1}}}),
        (ONE, {"restart_grace_period_seconds": 0}),
        (ONE, {UPDATE: {"max_unavailable": 0, "max_surge": "1%"}}),
        (SEVERAL, {UPDATE: {"partition": "0%"}}),
        (SEVERAL, {"replicas": 0}),
        (SEVERAL, {"roles[1].entry_template.spec.containers[0].args": ["sample-0-other-0-0"]}),
        (SEVERAL, {"roles[1].entry_template.spec.containers[0].args": ["my-sample-0-decode-0-0"]}),
        (SEVERAL, {"roles[0].replicas": 0, "roles[1].replicas": 0}),
    ],
)
def test_what_means_the_same_is_taken(args: Args, changes: dict[str, Any]) -> None:
    assert refusal_of(args, changes) == ""


def test_another_backend_still_needs_an_unavailable_group() -> None:
    assert "max_unavailable: is 0" in refusal_of(
        ONE, {UPDATE: {"max_unavailable": 0, "max_surge": "0%"}}
    )
    assert "max_surge" in refusal_of(
        ONE, {"backend": "native", UPDATE: {"max_unavailable": 0, "max_surge": 1}}
    )
