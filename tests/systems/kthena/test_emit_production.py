"""What a serving on Kthena has besides its ModelServing: the autoscaler's and the router's part."""

from typing import Any

import pytest

from kthena_components.compiler.compile import compile_serving
from kthena_components.core.plan.manifest import BACKGROUND, Manifest
from tests.support.for_each import for_each
from tests.support.specs import (
    ENGINE_NATIVE,
    PAIR,
    PREFILL_DECODE,
    REMOVED,
    SGLANG,
    Args,
    changed,
    template,
)
from tests.support.strategies import LATE

WAITING = {"name": "waiting", "target_value": "5"}
SOURCE = {"waiting": {"pod": {"name": "vllm:num_requests_waiting"}}}
SCALING = {"min_replicas": 1, "max_replicas": 4, "metrics": [WAITING], "metric_sources": SOURCE}
ROLES = {
    "metrics": [WAITING],
    "metric_sources": SOURCE,
    "roles": {
        "prefill": {"min_replicas": 1, "max_replicas": 8},
        "decode": {"min_replicas": 1, "max_replicas": 4},
    },
}


def emitted(args: Args, options: dict[str, Any], version: str = "1.0") -> dict[str, Manifest]:
    """Give what is emitted, by key."""
    changes = {"backend": "kthena", "backend_options": options, "kthena_version": version}
    return {m.key: m for m in compile_serving(changed(args, changes)).manifests}


def spec_of(args: Args, options: dict[str, Any], key: str, version: str = "1.0") -> Any:
    return emitted(args, options, version)[key].body["spec"]


def test_whole_groups_are_scaled_by_a_metric_of_the_engines_port() -> None:
    assert spec_of(ENGINE_NATIVE, {"autoscaling": SCALING}, "AutoscalingPolicy/chat") == {
        "tolerancePercent": 10,
        "metrics": [{"name": "waiting", "targetValue": "5"}],
        "homogeneousTarget": {
            "target": {
                "targetRef": {"kind": "ModelServing", "name": "chat"},
                "metricSources": {
                    "waiting": {
                        "pod": {
                            "name": "vllm:num_requests_waiting",
                            "uri": "/metrics",
                            "port": 8080,
                        }
                    }
                },
            },
            "minReplicas": 1,
            "maxReplicas": 4,
        },
    }


@pytest.mark.parametrize(
    ("base", "options"),
    [(ENGINE_NATIVE, {"autoscaling": SCALING}), ({**ENGINE_NATIVE, "autoscaled": True}, {})],
    ids=["Kthena's", "another one"],
)
def test_up_neither_undoes_nor_awaits_the_autoscalers_number(
    base: Args, options: dict[str, Any]
) -> None:
    serving = emitted(base, options)["ModelServing/chat"]
    assert serving.ignore == ("spec.replicas",)
    annotations = serving.body["metadata"]["annotations"]
    assert annotations == {**BACKGROUND, "pulumi.com/waitFor": "condition=Available"}


def test_a_serving_without_autoscaler_keeps_its_number() -> None:
    serving = emitted(ENGINE_NATIVE, {"model_server": {}})["ModelServing/chat"]
    assert serving.ignore == ()
    assert "updatedReplicas" in serving.body["metadata"]["annotations"]["pulumi.com/waitFor"]


def test_roles_are_scaled_in_their_ratio() -> None:
    ratio = {
        "numerator_role": "prefill",
        "denominator_role": "decode",
        "min_ratio": "0.5",
        "max_ratio": "2",
    }
    target = spec_of(
        PREFILL_DECODE,
        {"autoscaling": {**ROLES, "ratio_constraint": ratio}},
        "AutoscalingPolicy/split",
    )["disaggregatedTarget"]
    assert target["targetRef"] == {"kind": "ModelServing", "name": "split"}
    assert {name: (r["minReplicas"], r["maxReplicas"]) for name, r in target["roles"].items()} == {
        "prefill": (1, 8),
        "decode": (1, 4),
    }
    assert target["roles"]["decode"]["metricSources"]["waiting"]["pod"]["port"] == 8080
    assert target["ratioConstraint"] == {
        "numeratorRole": "prefill",
        "denominatorRole": "decode",
        "minRatio": "0.5",
        "maxRatio": "2",
    }


def test_the_numbers_of_scaled_roles_are_ignored_and_their_list_is_taken_over() -> None:
    serving = emitted(PREFILL_DECODE, {"autoscaling": ROLES})["ModelServing/split"]
    assert serving.ignore == ("spec.template.roles[0].replicas", "spec.template.roles[1].replicas")
    annotations = serving.body["metadata"]["annotations"]
    assert annotations["pulumi.com/patchForce"] == "true"
    assert "updatedReplicas" in annotations["pulumi.com/waitFor"]


def test_a_role_of_a_fixed_number_has_no_metric() -> None:
    fixed = {**ROLES, "roles": {**ROLES["roles"], "decode": {"min_replicas": 1, "max_replicas": 1}}}  # type: ignore[dict-item]
    policy = spec_of(PREFILL_DECODE, {"autoscaling": fixed}, "AutoscalingPolicy/split")
    roles = policy["disaggregatedTarget"]["roles"]
    assert roles["decode"] == {"minReplicas": 1, "maxReplicas": 1}


def test_behavior_and_metrics_of_a_role_are_spelled_as_in_the_crd() -> None:
    prometheus = {"server_url": "http://prometheus:9090", "query": "sum(queued)"}
    own = {
        "min_replicas": 1,
        "max_replicas": 4,
        "metrics": [{"name": "queued", "target_value": "500m"}],
        "metric_sources": {"queued": {"prometheus": prometheus}},
    }
    behavior = {
        "scale_up": {"panic_policy": {"period": "5s", "panic_threshold_percent": 150}},
        "scale_down": {"stabilization_window": "10m"},
    }
    scaling = {"roles": {"decode": own}, "behavior": behavior, "tolerance_percent": 0}
    policy = spec_of(PREFILL_DECODE, {"autoscaling": scaling}, "AutoscalingPolicy/split")
    assert policy["behavior"] == {
        "scaleUp": {"panicPolicy": {"period": "5s", "panicThresholdPercent": 150}},
        "scaleDown": {
            "instances": 1,
            "percent": 100,
            "period": "15s",
            "selectPolicy": "Or",
            "stabilizationWindow": "10m",
        },
    }
    assert policy["tolerancePercent"] == 0
    (role,) = policy["disaggregatedTarget"]["roles"].values()
    assert role["metrics"] == [{"name": "queued", "targetValue": "500m"}]
    assert role["metricSources"] == {
        "queued": {"prometheus": {"serverURL": "http://prometheus:9090", "query": "sum(queued)"}}
    }


def test_before_1_0_a_binding_names_the_target_after_its_policy() -> None:
    made = emitted(ENGINE_NATIVE, {"autoscaling": SCALING}, "0.4")
    assert made["AutoscalingPolicy/chat"].body["spec"] == {
        "tolerancePercent": 10,
        "metrics": [{"metricName": "vllm:num_requests_waiting", "targetValue": "5"}],
    }
    binding = made["AutoscalingPolicyBinding/chat"]
    assert binding.after == ("AutoscalingPolicy/chat",)
    assert binding.body["spec"] == {
        "policyRef": {"name": "chat"},
        "homogeneousTarget": {
            "target": {
                "targetRef": {"kind": "ModelServing", "name": "chat"},
                "metricEndpoint": {"uri": "/metrics", "port": 8080},
            },
            "minReplicas": 1,
            "maxReplicas": 4,
        },
    }


def test_before_1_0_each_role_has_a_policy_and_a_binding() -> None:
    made = emitted(PREFILL_DECODE, {"autoscaling": ROLES}, "0.4")
    for role in ("prefill", "decode"):
        binding = made[f"AutoscalingPolicyBinding/split-{role}"]
        target = binding.body["spec"]["homogeneousTarget"]["target"]
        assert target["subTargets"] == {"kind": "Role", "name": role}
        assert binding.body["spec"]["policyRef"] == {"name": f"split-{role}"}


def test_the_router_gets_the_entry_pods_of_the_only_role() -> None:
    made = emitted(ENGINE_NATIVE, {"model_server": {}, "model_route": {}})
    assert made["ModelServer/chat"].body["spec"] == {
        "inferenceEngine": "vLLM",
        "model": "meta-llama/Llama-3.1-405B-Instruct",
        "workloadPort": {"port": 8080, "protocol": "http"},
        "workloadSelector": {
            "matchLabels": {
                "modelserving.volcano.sh/name": "chat",
                "modelserving.volcano.sh/entry": "true",
            }
        },
    }
    assert made["ModelRoute/chat"].body["spec"] == {
        "modelName": "meta-llama/Llama-3.1-405B-Instruct",
        "rules": [
            {"name": "default", "targetModels": [{"modelServerName": "chat", "weight": 100}]}
        ],
    }


def test_prefill_and_decode_are_a_pair_in_their_group() -> None:
    server = {"kv_connector": {"type": "nixl"}, "traffic_policy": {"timeout": "2m"}}
    spec = spec_of(PREFILL_DECODE, {"model_server": server}, "ModelServer/split")
    assert spec["workloadSelector"]["pdGroup"] == {
        "groupKey": "modelserving.volcano.sh/group-name",
        "prefillLabels": {"modelserving.volcano.sh/role": "prefill"},
        "decodeLabels": {"modelserving.volcano.sh/role": "decode"},
    }
    assert spec["kvConnector"] == {"type": "nixl"}
    assert spec["trafficPolicy"] == {"timeout": "2m"}


TRANSFER = '--kv-transfer-config={"kv_connector":"%s","kv_role":"%s"%s}'
MULTI = (
    ',"kv_connector_extra_config":{"connectors":[{"kv_connector":"NixlConnector",'
    '"kv_role":"kv_both"},{"kv_connector":"OffloadingConnector","kv_role":"kv_both"}]}'
)


@pytest.mark.parametrize(
    ("connector", "extra", "expected"),
    [
        ("NixlConnector", "", {"type": "nixl"}),
        ("MooncakeConnector", "", {"type": "mooncake"}),
        ("LMCacheConnectorV1", "", {"type": "lmcache"}),
        ("MultiConnector", MULTI, {"type": "nixl"}),
        ("OffloadingConnector", ',"kv_connector_extra_config":{"num_cpu_blocks":4096}', None),
    ],
)
def test_the_router_hands_over_the_cache_as_the_engines_do(
    connector: str, extra: str, expected: object
) -> None:
    """Kthena v1.0.0 router.go getKVConnector takes HTTP if the ModelServer states nothing."""
    words = [[TRANSFER % (connector, role, extra)] for role in ("kv_producer", "kv_consumer")]
    changes: dict[str, Any] = {f"roles[{i}].engine.extra_args": w for i, w in enumerate(words)}
    for role in ("roles[0]", "roles[1]"):  # NIXL finds one stage
        changes |= {
            f"{role}.engine.image": "vllm/vllm-openai:v0.13.0",
            f"{role}.worker_replicas": 0,
        }
        changes[f"{role}.engine.parallelism"] = {"tensor": 8}
    spec = spec_of(changed(PREFILL_DECODE, changes), {"model_server": {}}, "ModelServer/split")
    assert spec.get("kvConnector") == expected


def test_the_connector_of_kv_transfer_is_the_routers() -> None:
    args = changed(PAIR, {"expose": REMOVED})
    pair: dict[str, Any] = {"model_server": {"pd_group": {}}}
    assert spec_of(args, pair, "ModelServer/pair")["kvConnector"] == {"type": "nixl"}


def test_engines_outside_a_pair_have_no_connector() -> None:
    spec = spec_of(PREFILL_DECODE, {"model_server": {"role": "decode"}}, "ModelServer/split")
    assert "kvConnector" not in spec


def test_one_of_several_roles_is_chosen_by_its_label() -> None:
    spec = spec_of(PREFILL_DECODE, {"model_server": {"role": "decode"}}, "ModelServer/split")
    assert spec["workloadSelector"] == {
        "matchLabels": {
            "modelserving.volcano.sh/name": "split",
            "modelserving.volcano.sh/entry": "true",
            "modelserving.volcano.sh/role": "decode",
        }
    }


def test_the_engine_is_read_from_the_command_line() -> None:
    spec = spec_of(SGLANG, {"model_server": {}}, f"ModelServer/{SGLANG['name']}")
    assert (spec["inferenceEngine"], spec["workloadPort"]["port"]) == (
        "SGLang",
        SGLANG["roles"][0]["engine"].get("port", 8080),
    )


@for_each(("stated", "name"), [
    (["--served-model-name=llama"], "llama"),
    (["--served-model-name", "llama", "chat"], "llama"),
    ([], str(ENGINE_NATIVE["roles"][0]["engine"]["model"])),
    (["--served-model-name=$(NAME)"], None),
], ids=str)  # fmt: skip
def test_the_router_asks_for_the_name_that_the_engine_serves(
    stated: list[str], name: str | None
) -> None:
    """Without spec.model it passes on the name that a route matched, such as that of another."""
    args = changed(ENGINE_NATIVE, {"roles[0].engine.extra_args": stated})
    options = {"model_server": {}, "model_route": {"model_name": "alias"}}
    assert spec_of(args, options, "ModelServer/chat").get("model") == name
    assert spec_of(args, options, "ModelRoute/chat")["modelName"] == "alias"
    if name is not None:
        options["model_route"] = {}
        assert spec_of(args, options, "ModelRoute/chat")["modelName"] == name


def test_a_route_is_written_as_its_crd_spells_it() -> None:
    route = {
        "model_name": "llama",
        "lora_adapters": ["sql"],
        "rules": [
            {
                "name": "beta",
                "model_match": {
                    "headers": {"x-tenant_id": {"exact": "beta"}},
                    "uri": {"prefix": "/v1"},
                    "body": {"model": "llama"},
                },
                "target_models": [{"weight": 90}, {"model_server_name": "next", "weight": 10}],
            }
        ],
        "rate_limit": {
            "input_tokens_per_unit": 1000,
            "unit": "minute",
            "global": {"redis": {"address": "redis:6379"}},
        },
        "parent_refs": [{"name": "inference", "section_name": "http"}],
    }
    made = emitted(ENGINE_NATIVE, {"model_server": {}, "model_route": route})["ModelRoute/chat"]
    assert made.replace_on == ("spec.modelName",)
    assert made.body["spec"] == {
        "modelName": "llama",
        "loraAdapters": ["sql"],
        "rules": [
            {
                "name": "beta",
                "modelMatch": {
                    "headers": {"x-tenant_id": {"exact": "beta"}},
                    "uri": {"prefix": "/v1"},
                    "body": {"model": "llama"},
                },
                "targetModels": [
                    {"modelServerName": "chat", "weight": 90},
                    {"modelServerName": "next", "weight": 10},
                ],
            }
        ],
        "rateLimit": {
            "inputTokensPerUnit": 1000,
            "unit": "minute",
            "global": {"redis": {"address": "redis:6379"}},
        },
        "parentRefs": [{"name": "inference", "sectionName": "http"}],
    }


def test_an_output_passes_through() -> None:
    source = {"waiting": {"prometheus": {"server_url": LATE, "query": "sum(waiting)"}}}
    options = {"autoscaling": {**SCALING, "metric_sources": source}}
    policy = spec_of(ENGINE_NATIVE, options, "AutoscalingPolicy/chat")
    sources = policy["homogeneousTarget"]["target"]["metricSources"]
    assert sources["waiting"]["prometheus"]["serverURL"] == LATE


def test_a_template_needs_its_port_and_engine_stated() -> None:
    args: Args = {"name": "chat", "roles": [{"name": "serve", "entry_template": template()}]}
    server = {"inference_engine": "SGLang", "workload_port": {"port": 30000, "protocol": "https"}}
    spec = spec_of(args, {"model_server": server}, "ModelServer/chat")
    assert spec["workloadPort"] == {"port": 30000, "protocol": "https"}
    assert "model" not in spec
