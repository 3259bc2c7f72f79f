"""What a ModelBooster cannot say is rejected by name, and what its pods lack is told."""

from typing import Any

import pytest

from kthena_components.compiler.compile import compile_serving
from kthena_components.core.findings import Level, SpecError
from tests.support.for_each import for_each
from tests.support.specs import REMOVED, Args, changed, example_for, template

ONE, RAY = example_for("booster", "native-8b"), example_for("booster", "engine-ray")
PAIR = example_for("booster", "prefill-decode")
ENGINE = "roles[0].engine"


def refused(args: Args, changes: dict[str, Any]) -> list[str]:
    """Give the fields that are rejected as losses."""
    try:
        compile_serving(changed(args, changes))
    except SpecError as error:
        return [finding.path for finding in error.findings if finding.rule == "backend-loss"]
    return []


@pytest.mark.parametrize("args", [ONE, RAY, PAIR], ids=["one", "ray", "pair"])
def test_the_examples_are_written_and_told_what_their_pods_lack(args: Args) -> None:
    told = [f for f in compile_serving(args).findings if f.rule == "booster-defaults"]
    assert [(finding.path, finding.level) for finding in told] == [("backend", Level.ADVISORY)]
    lacks = "64 MiB of" if args is PAIR else "without a limit"
    assert lacks in told[0].seen
    assert "a change of replicas recreates all of them" in told[0].seen


@for_each(
    ("changes", "path"),
    [
        ({"queue": "research"}, "queue"),
        ({"priority_class": "gold"}, "priority_class"),
        ({"spread_over": "example.com/rack"}, "spread_over"),
        ({"autoscaled": True}, "autoscaled"),
        ({"monitoring": True}, "monitoring"),
        ({"kthena_version": "0.4"}, "kthena_version"),
        ({"network_topology.group_policy.mode": "soft"}, "network_topology.group_policy"),
        ({"network_topology.role_policy.mode": "soft"}, "network_topology.role_policy"),
        (
            {"roles[0].replicas": 2, "gang_policy": {"min_role_replicas": {"leader": 1}}},
            "gang_policy.min_role_replicas",
        ),
        ({"rollout_strategy.type": "RoleRollingUpdate"}, "rollout_strategy.type"),
        ({"recovery_policy": "None"}, "recovery_policy"),
        ({"restart_grace_period_seconds": 61}, "restart_grace_period_seconds"),
        ({"roles[0].name": "server"}, "roles"),
        ({"roles[0].drain_seconds": 30}, "roles[0].drain_seconds"),
        ({"roles[0].startup_seconds": 600}, "roles[0].startup_seconds"),
        ({"roles[0].network": {"interface": "eth0"}}, "roles[0].network"),
        ({"roles[0].overlay.spec.nodeSelector": {"a": "b"}}, "roles[0].overlay"),
        ({"roles[0].resources.shm": "16Gi"}, "roles[0].resources.shm"),
        ({"roles[0].hugging_face_token": {"name": "t", "key": "TOKEN"}},
         "roles[0].hugging_face_token.key"),
        ({"roles[0].cache": REMOVED}, "roles[0].cache"),
        ({"roles[0].cache": {"size": "100Gi", "download": True}}, "roles[0].cache"),
        ({"roles[0].cache.mount_path": "/models"}, "roles[0].cache.mount_path"),
        ({"roles[0].cache.download": False}, "roles[0].cache.download"),
        ({f"{ENGINE}.kind": "sglang", f"{ENGINE}.image": "lmsysorg/sglang:v0.5.2"},
         f"{ENGINE}.kind"),
        ({f"{ENGINE}.port": 8080}, f"{ENGINE}.port"),
        ({f"{ENGINE}.model": "s3://bucket/m"}, f"{ENGINE}.model"),
        ({f"{ENGINE}.model": "/models/m"}, f"{ENGINE}.model"),
        ({f"{ENGINE}.hf_config": {"num_attention_heads": 64}}, f"{ENGINE}.hf_config"),
        ({f"{ENGINE}.kv_transfer": {"role": "both", "connector": "nixl"}},
         f"{ENGINE}.kv_transfer"),
        ({f"{ENGINE}.extra_args": ["--max-num-seqs", "1", "--max-num-seqs", "2"]},
         f"{ENGINE}.extra_args"),
        ({f"{ENGINE}.extra_args": ["--middleware", "a", "b"]}, f"{ENGINE}.extra_args"),
        ({f"{ENGINE}.extra_args": ["--chat-template", ""]}, f"{ENGINE}.extra_args"),
        ({f"{ENGINE}.extra_args": ["-O3"]}, f"{ENGINE}.extra_args"),
        ({f"{ENGINE}.extra_args": ["--hf-overrides.rope_scaling", "1"]},
         f"{ENGINE}.extra_args"),
    ],
)  # fmt: skip
def test_a_field_without_a_place_is_rejected(changes: dict[str, Any], path: str) -> None:
    assert refused(ONE, changes) == [path]


def test_templates_are_rejected() -> None:
    role = {"name": "leader", "entry_template": template()}
    assert refused(ONE, {"roles": [role]}) == ["roles[0].entry_template"]


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({f"{ENGINE}.launcher": "native", f"{ENGINE}.image": "example.com/vllm:v1"},
         f"{ENGINE}.launcher"),
        ({f"{ENGINE}.image": "vllm/vllm-openai:v0.33.0"}, f"{ENGINE}.image"),
        ({f"{ENGINE}.parallelism": {"tensor": 8, "data": 2}}, f"{ENGINE}.parallelism.data"),
        ({f"{ENGINE}.extra_args": ["--override-generation-config", '{"top_k": 1}']}, ENGINE),
        ({f"{ENGINE}.model": "org/m;id"}, ENGINE),
    ],
)  # fmt: skip
def test_several_pods_need_what_kthenas_template_starts(changes: dict[str, Any], path: str) -> None:
    assert path in refused(RAY, changes)


def variables(**values: str) -> Args:
    """Give an overlay that sets variables of the engine."""
    env = [{"name": name, "value": value} for name, value in values.items()]
    return {"spec": {"containers": [{"name": "engine", "env": env}]}}


SKIPS = "KTHENA_SKIP_ENGINE_DEPENDENCY_INSTALL"


@pytest.mark.parametrize(
    ("overlay", "said"),
    [
        (variables(VLLM_USE_V1="0"), "sets VLLM_USE_V1, which Kthena sets to a value of its own"),
        (variables(PEER="$(POD_NAME)-0"), "sets PEER to '$(POD_NAME)-0', but Kthena writes"),
    ],
)
def test_variables_that_would_be_others_are_rejected(overlay: Args, said: str) -> None:
    with pytest.raises(SpecError) as caught:
        compile_serving(changed(ONE, {"roles[0].overlay": overlay}))
    (finding,) = [each for each in caught.value.findings if each.rule == "backend-loss"]
    assert (finding.path, finding.seen[: len(said)]) == ("roles[0].overlay", said)
    assert finding.remedy == "remove it, or write backend: native, kthena or lws"


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"roles[0].overlay": variables(HF_HUB_OFFLINE="0")}, "roles[0].overlay"),
        ({"roles[1].overlay": variables(GLOO_SOCKET_IFNAME="bond0")}, "roles[1].overlay"),
        ({"roles[0].overlay": variables(**{SKIPS: "false"})}, "roles[0].overlay"),
        ({"roles[1].overlay": variables(TZ="UTC")}, "roles[1].overlay"),
        ({"roles[0].overlay": variables(TZ="UTC")}, "roles[1].overlay"),
    ],
)
def test_variables_of_one_half_are_rejected(changes: dict[str, Any], path: str) -> None:
    assert path in refused(PAIR, changes)


def test_variables_of_both_halves_are_written() -> None:
    overlay = variables(TZ="UTC", **{SKIPS: "1"})
    both = {f"roles[{number}].overlay": overlay for number in (0, 1)}
    body = compile_serving(changed(PAIR, both)).manifests[0].body
    env = {each["name"]: each.get("value") for each in body["spec"]["backend"]["env"]}
    assert (env["TZ"], env[SKIPS]) == ("UTC", "1")


@pytest.mark.parametrize("port", [5600, 5601])
def test_a_stated_default_is_no_difference(port: int) -> None:
    changes = {"roles[1].engine.kv_transfer.port": port}
    assert bool(refused(PAIR, changes)) is (port != 5600)


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"roles[1].worker_replicas": 1, "roles[1].engine.launcher": "ray"},
         "roles[1].worker_replicas"),
        ({"roles[1].engine.model": "org/other"}, "roles[1].engine.model"),
        ({"roles[1].cache": {"host_path": "/data", "download": True}}, "roles[1].cache"),
        ({"roles[1].hugging_face_token": {"name": "t"}}, "roles[1].hugging_face_token"),
        ({"roles[1].engine.kv_transfer.port": 5601}, "roles[1].engine.kv_transfer.port"),
        ({"roles[1].name": "other"}, "roles"),
    ],
)  # fmt: skip
def test_a_pair_is_two_engines_of_one_backend(changes: dict[str, Any], path: str) -> None:
    assert path in refused(PAIR, changes)
