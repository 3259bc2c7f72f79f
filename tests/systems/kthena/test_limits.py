"""What each version of Kthena cannot do, and in which words that is refused."""

from typing import Any, NamedTuple

import pytest

from kthena_components.compiler.compile import compile_serving
from kthena_components.core.findings import SpecError
from tests.support.specs import ENGINE_RAY, GUIDE, NATIVE_8B, PREFILL_DECODE, Args, changed

UPDATE = "rollout_strategy.rolling_update_configuration"
OLDEST = {"backend": "kthena", "kthena_version": "0.1"}


def said(args: Args, version: str, changes: dict[str, Any]) -> str:
    """Give the refusal, or an empty string."""
    try:
        compile_serving(changed(args, {"backend": "kthena", "kthena_version": version, **changes}))
    except SpecError as refusal:
        return str(refusal)
    return ""


class Added(NamedTuple):
    """Something that a version of Kthena brought."""

    needed: str
    older: str
    args: Args
    changes: dict[str, Any]
    seen: str


CONFIG = {
    "num_hidden_layers": 126,
    "num_attention_heads": 128,
    "num_key_value_heads": 8,
    "hidden_size": 16384,
    "intermediate_size": 53248,
    "vocab_size": 128256,
}
"""Shape of Llama-3.1-405B."""
CRASHES = "a template with annotations (earlier controllers crash)"
ADDED = {
    "queue": Added("1.0", "0.4", NATIVE_8B, {"queue": "research"}, "queue: a queue"),
    "budget-of-a-role": Added(
        "1.0",
        "0.4",
        ENGINE_RAY,
        {"roles[0].max_unavailable": 1, "rollout_strategy.type": "RoleRollingUpdate"},
        "roles[0].max_unavailable: a budget per role",
    ),
    "update-by-role": Added(
        "0.4",
        "0.3",
        ENGINE_RAY,
        {"rollout_strategy.type": "RoleRollingUpdate"},
        "rollout_strategy.type: RoleRollingUpdate",
    ),
    "percent-of-groups": Added(
        "0.4",
        "0.3",
        ENGINE_RAY,
        {f"{UPDATE}.partition": "50%"},
        f"{UPDATE}.partition: a partition in percent",
    ),
    "annotations": Added(
        "0.4",
        "0.3",
        GUIDE,
        {"roles[0].worker_template.metadata.annotations": {"a": "b"}},
        f"roles[0].worker_template.metadata.annotations: {CRASHES}",
    ),
    "annotations-in-an-overlay": Added(
        "0.4",
        "0.3",
        ENGINE_RAY,
        {"roles[0].overlay.metadata.annotations": {"a": "b"}},
        f"roles[0].overlay.metadata.annotations: {CRASHES}",
    ),
    "shape-of-a-model": Added(
        "0.4",
        "0.3",
        ENGINE_RAY,
        {"roles[0].engine.hf_config": CONFIG},
        f"roles[0].engine.hf_config: {CRASHES}",
    ),
    "plugins": Added(
        "0.3",
        "0.2",
        ENGINE_RAY,
        {"backend_options": {"plugins": [{"name": "demo-pod-tweaks"}]}},
        "backend_options.plugins: a plugin",
    ),
    "scheduler": Added(
        "0.2",
        "0.1",
        NATIVE_8B,
        {"scheduler_name": "default-scheduler"},
        "scheduler_name: another scheduler than Volcano",
    ),
    "role-topology": Added(
        "0.2", "0.1", PREFILL_DECODE, {}, "network_topology.role_policy: a topology per role"
    ),
    "tier-name": Added(
        "0.2",
        "0.1",
        PREFILL_DECODE,
        {"network_topology": {"group_policy": {"highest_tier_name": "rack"}}},
        "network_topology.group_policy.highest_tier_name: a tier by name",
    ),
    "several-groups-at-once": Added(
        "0.2",
        "0.1",
        GUIDE,
        {f"{UPDATE}.max_unavailable": 2},
        f"{UPDATE}.max_unavailable: a max_unavailable other than 1",
    ),
}


@pytest.mark.parametrize("added", ADDED.values(), ids=ADDED)
def test_what_a_version_lacks_is_refused_before_it(added: Added) -> None:
    assert said(added.args, added.older, added.changes) == (
        f"{added.seen} needs Kthena {added.needed} or later, and kthena_version is {added.older}. "
        f"Remove it, or write kthena_version: '{added.needed}'. [backend-loss]"
    )
    assert said(added.args, added.needed, added.changes) == ""


def test_a_topology_without_a_gang_crashes_the_first_version() -> None:
    assert said(ENGINE_RAY, "0.1", {}) == (
        "gang_policy: is missing while network_topology is given, and Kthena 0.1 crashes on that. "
        "Give gang_policy.min_role_replicas, or write kthena_version: '0.2'. [backend-loss]"
    )
    assert said(ENGINE_RAY, "0.1", {"gang_policy.min_role_replicas.decode": 1}) == ""


@pytest.mark.parametrize(
    ("replicas", "partition", "remedy"),
    [(2, 2, "Write at most 1"), (0, 0, "Remove it")],
    ids=["all-groups", "no-groups"],
)
def test_earlier_versions_want_a_group_outside_the_partition(
    replicas: int, partition: int, remedy: str
) -> None:
    changes = {"replicas": replicas, f"{UPDATE}.partition": partition}
    assert said(ENGINE_RAY, "0.3", changes) == (
        f"{UPDATE}.partition: is {partition} of {replicas} groups, and Kthena 0.3 requires that at "
        f"least one group is updated. {remedy}, or write kthena_version: '0.4'. [backend-loss]"
    )
    assert said(ENGINE_RAY, "0.4", changes) == ""


NO_LETTER = "and Kthena requires a role name that starts with a letter. Write, for example,"


@pytest.mark.parametrize(
    ("name", "version", "refusal"),
    [
        ("405b", "0.2", ""),
        ("405b", "0.3", f"is '405b', {NO_LETTER} 'r405b'"),
        ("405b-decoder", "1.0", f"is '405b-decoder', {NO_LETTER} 'r405b-decode'"),
        (
            "speculative-decode",
            "1.0",
            "is 'speculative-decode', 18 characters, and a ModelServing allows 12. Shorten it by 6",
        ),
        ("twelve-chars", "1.0", ""),
    ],
    ids=["digit-once", "digit", "digit-and-full", "too-long", "longest"],
)
def test_a_role_name_is_one_that_kthena_takes(name: str, version: str, refusal: str) -> None:
    message = f"roles[0].name: {refusal}. [backend-loss]" if refusal else ""
    assert said(NATIVE_8B, version, {"roles[0].name": name}) == message


def test_a_role_name_that_starts_with_a_digit_is_fine_natively() -> None:
    compile_serving(changed(NATIVE_8B, {"roles[0].name": "405b"}))


def test_the_webhook_measures_a_name_with_the_counts() -> None:
    longest = 63 - len("-1-server-1-0")
    assert said(NATIVE_8B, "1.0", {"name": "c" * longest}) == ""
    assert "characters; at most 63" in said(NATIVE_8B, "1.0", {"name": "c" * (longest + 1)})


LEADER, IN_ENV = "$(LWS_LEADER_ADDRESS)", "which only LeaderWorkerSet sets"


@pytest.mark.parametrize(
    ("backend", "title"), [("kthena", "Kthena"), ("matrixinfer", "MatrixInfer")]
)
def test_a_template_for_leader_worker_set_is_refused(backend: str, title: str) -> None:
    container = "roles[0].worker_template.spec.containers[0]"
    changes = {
        "backend": backend,
        f"{container}.command": ["sh", "-c", f"ray start --block --address={LEADER}:6379"],
        f"{container}.env": [{"name": "AT", "value": f"{LEADER}:20000"}],
    }
    assert said(GUIDE, "1.0", changes) == (
        f"{container}.command: refers to LWS_LEADER_ADDRESS, {IN_ENV}; {title} sets ENTRY_ADDRESS. "
        "Write ENTRY_ADDRESS, or write backend: native or lws. [backend-loss]\n"
        f"{container}.env[0].value: refers to LWS_LEADER_ADDRESS, {IN_ENV}; {title} sets "
        "ENTRY_ADDRESS, but after the variables of the template. Use ENTRY_ADDRESS in the command, "
        "or write backend: native or lws. [backend-loss]"
    )
    for other in ("native", "lws"):
        compile_serving(changed(GUIDE, {**changes, "backend": other}))


def test_a_sidecar_for_leader_worker_set_is_refused() -> None:
    sidecar = {"name": "probe", "image": "busybox:1.37", "args": ["$(LWS_WORKER_INDEX)"]}
    assert said(ENGINE_RAY, "1.0", {"roles[0].overlay.spec.containers": [sidecar]}) == (
        f"roles[0].overlay: refers to LWS_WORKER_INDEX, {IN_ENV}; Kthena sets WORKER_INDEX. Write "
        "WORKER_INDEX, or write backend: native. [backend-loss]"
    )


def test_plugins_have_names_of_their_own_and_run_in_roles_that_exist() -> None:
    twice = [{"name": "demo-pod-tweaks"}, {"name": "demo-pod-tweaks", "scope": {"roles": ["x"]}}]
    refusal = said(ENGINE_RAY, "1.0", {"backend_options": {"plugins": twice}})
    at = "backend_options.plugins[1]"
    assert (
        f"{at}.name: is 'demo-pod-tweaks', already the name of plugins[0]. Remove one of them. "
        "[backend-options]"
    ) in refusal
    (role,) = ENGINE_RAY["roles"]
    assert (
        f"{at}.scope.roles[0]: is 'x', but the roles are {role['name']}, so the plugin would not "
        "run there. Write the name of a role. [backend-options]"
    ) in refusal
