"""The ConfigMap that `inference.config` names: what KAITO and vLLM take from it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kthena_components.checker.check_cluster_objects import check_objects_together
from kthena_components.checker.manifest import check_manifest, check_whole
from kthena_components.core.facts.context import NO_CONTEXT, Context, gather
from kthena_components.core.findings import Level
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems.kaito.estimator import stated_tokens
from kthena_components.systems.kaito.view import inference_config
from tests.support.peers import GONE, LATE, Manifest, changed

KEY = "inference_config.yaml"
A100, H100 = "Standard_NC24ads_A100_v4", "Standard_NC80adis_H100_v5"
LLAMA: Manifest = {
    "apiVersion": "kaito.sh/v1beta1",
    "kind": "Workspace",
    "metadata": {"name": "llama"},
    "resource": {
        "count": 3,
        "instanceType": A100,
        "labelSelector": {"matchLabels": {"apps": "llama"}},
    },
    "inference": {
        "preset": {
            "name": "llama-3.3-70b-instruct",
            "presetOptions": {"modelAccessSecret": "hf-token"},
        },
        "config": "params",
    },
}
"""KAITO makes 3 nodes for it by default, and 6 for requests of 131072 tokens."""
MISTRAL = changed(
    LLAMA,
    {
        "resource/count": GONE,
        "resource/instanceType": H100,
        "inference/preset/name": "mistral-large-3-675b-instruct",
    },
)
QWEN = changed(
    LLAMA,
    {
        "resource/count": GONE,
        "resource/instanceType": "inf2.24xlarge",
        "inference/preset/name": "Qwen/Qwen3-32B",
    },
)
"""6 GPUs of 32 GiB, over which KAITO splits 64 heads."""
SET: Manifest = {
    "apiVersion": "kaito.sh/v1beta1",
    "kind": "InferenceSet",
    "metadata": {"name": "llama"},
    "spec": {
        "replicas": 2,
        "nodeCountLimit": 6,
        "template": {"resource": {"instanceType": A100}, "inference": LLAMA["inference"]},
    },
}
ROLES: Manifest = {
    "apiVersion": "kaito.sh/v1alpha1",
    "kind": "MultiRoleInference",
    "metadata": {"name": "llama"},
    "spec": {
        "model": {"name": "llama-3.3-70b-instruct", "modelAccessSecret": "hf-token"},
        "roles": [
            {"type": "prefill", "instanceType": A100, "runtimeConfig": "params"},
            {"type": "decode", "instanceType": A100},
        ],
    },
}
LONG = "max-model-len: 131072"
RULES = ("kaito-capacity", "kaito-parallelism")


def config_map(text: object, **metadata: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "params", **metadata},
        "data": {KEY: text},
    }


def vllm(*flags: str) -> Manifest:
    """Give a ConfigMap that states flags of vLLM."""
    lines = ["max_probe_steps: 6", "", "vllm:", *(f"  {flag}" for flag in flags)]
    return config_map("\n".join(lines) + "\n")


def said(body: Manifest, *maps: Manifest) -> list[str]:
    """Give what the rules about nodes say beside some ConfigMaps."""
    found = check_manifest(body, context=Context(config_maps=gather(maps)))
    return [f"{f.level}: {f}" for f in found if f.rule in RULES]


def gpus(body: Manifest, *maps: Manifest) -> object:
    """Count the GPUs that KAITO makes for it."""
    held = check_whole(body, context=Context(config_maps=gather(maps))).demand
    assert held is not None
    return held.gpus


def test_the_text_of_a_config_map_is_given() -> None:
    text = "vllm:\n  tensor-parallel-size: 4\n"
    held = {**config_map(text), "metadata": {"name": "ds"}}
    other = {**held, "metadata": {"name": "c"}, "data": {"TP": "8"}}
    around = Context(config_maps=gather([held, other]))

    assert inference_config("ds", around) == text
    absent = "ConfigMap 'ds' is not among the objects that are checked"
    assert inference_config("ds", NO_CONTEXT) == Unknown(absent)
    assert inference_config(None, around) is None
    assert inference_config("", around) is None
    assert inference_config("c", around) == Unknown(f"ConfigMap 'c' has no key '{KEY}'")
    late = Unknown("its name is late")
    assert inference_config(late, around) is late


def test_a_longer_request_means_more_nodes() -> None:
    assert said(LLAMA, vllm("cpu-offload-gb: 0")) == []
    (told,) = said(LLAMA, vllm(LONG))
    assert told == (
        "mandatory: resource.count: is 3, but KAITO counts 6 GPUs for the 131.42 GiB of "
        "llama-3.3-70b-instruct and requests of 131072 tokens, and creates 6 nodes of 1 GPU of 80 "
        "GiB. Write 6, or leave it out, or choose an instance type with more GPU memory. "
        "[kaito-capacity]"
    )
    assert said(changed(LLAMA, {"resource/count": 6}), vllm(LONG)) == []
    assert gpus(LLAMA, vllm("cpu-offload-gb: 0")) == 3
    assert gpus(LLAMA, vllm(LONG)) == 6


def test_so_it_does_in_a_set_and_in_the_role_that_names_it() -> None:
    assert said(SET, vllm("cpu-offload-gb: 0")) == []
    (told,) = said(SET, vllm(LONG))
    assert told.startswith("advisory: spec.nodeCountLimit: is 6, but 2 replicas of 6 nodes")
    assert gpus(SET, vllm(LONG)) == 12
    assert gpus(ROLES, vllm(LONG)) == 6 + 3


def test_a_request_for_which_no_gpu_has_room_is_refused() -> None:
    small = changed(
        LLAMA,
        {
            "resource/count": GONE,
            "resource/instanceType": "g4ad.xlarge",
            "inference/preset/name": "microsoft/Phi-3-mini-128k-instruct",
        },
    )
    (told,) = said(small, vllm(LONG))
    assert "vLLM may use 6.7 GiB, but 50.3 GiB are used before any weights" in told
    assert "or state a shorter max-model-len" in told
    assert gpus(small, vllm(LONG)) == Unknown(
        "KAITO finds no room on 'g4ad.xlarge' for 'microsoft/Phi-3-mini-128k-instruct'"
    )


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("vllm:\n  max-model-len: 4096\n", 4096),
        ("# all\nvllm:\n\n# in between\n  swap-space: 4\n  max-model-len: 4096", 4096),
        ("vllm:\r\n  max-model-len: 4096\r\n", 4096),
        ("vllm:\n    max-model-len: +4096\n", 4096),
        ("a:\n  vllm:\n    max-model-len: 4096\n", 4096),
        ("vllm:\n  max-model-len: 4096 # the longest\n", None),
        ('vllm:\n  max-model-len: "4096"\n', None),
        ("vllm:\n  max-model-len: 4k\n", None),
        ("vllm:\n  max-model-len: 4_096\n", None),
        ("vllm:\n  max-model-len: -1\n", None),
        ("vllm:\n  max-model-len: auto\n", None),
        ("vllm:\n  max-model-len:\n  max-model-len: 4096\n", None),
        ("vllm:\n  max_model_len: 4096\n", None),
        ("vllm: {max-model-len: 4096}\n", None),
        ("vllm:\n  swap-space: 4\nother:\n  max-model-len: 4096\n", None),
        ("max-model-len: 4096\n", None),
        (f"vllm:\n  max-model-len: {2**63}\n", None),
        (f"vllm:\n  max-model-len: {2**63 - 1}\n", 2**63 - 1),
        ("", None),
    ],
)
def test_kaito_looks_for_the_length_line_by_line(text: str, tokens: int | None) -> None:
    """Source: kaito-project/kaito pkg/utils/config_parser.go ParseExplicitMaxModelLen."""
    assert stated_tokens(text) == tokens


@pytest.mark.property
@given(st.text(alphabet="vllm:max-ode\n #0189\t", max_size=200))
def test_any_text_is_looked_through(text: str) -> None:
    tokens = stated_tokens(f"vllm:\n{text}")
    assert tokens is None or tokens > 0


def test_what_kaito_does_not_find_vllm_starts_with_all_the_same() -> None:
    """A comment behind the number hides it from KAITO's count of nodes, and not from vLLM."""
    commented = vllm("max-model-len: 131072 # all of it", "gpu-memory-utilization: 0.75")
    (told,) = said(LLAMA, commented)
    assert gpus(LLAMA, commented) == 3
    assert told.startswith("advisory: resource.instanceType: makes KAITO start tensor 1 × pip")
    assert "and not for the 131072 that the ConfigMap states" in told


def test_a_shorter_request_than_the_models_own_has_room() -> None:
    (told,) = said(MISTRAL, vllm("swap-space: 4"))
    assert "116335 tokens, and not for the model's 294912" in told
    assert said(MISTRAL, vllm("max-model-len: 32768")) == []
    (told,) = said(MISTRAL, vllm("max-model-len: 150000"))
    assert told.startswith("advisory")
    assert "116335 tokens, and not for the 150000 that the ConfigMap states" in told
    assert "or state a shorter max-model-len" in told


def test_a_stated_share_of_the_memory_counts() -> None:
    (told,) = said(LLAMA, vllm("gpu-memory-utilization: 0.5"))
    assert told.startswith("advisory: resource.instanceType: makes KAITO start tensor 1")
    assert "nothing is left for the KV cache" in told
    more = said(MISTRAL, vllm("gpu-memory-utilization: 0.95"))
    assert more == []


def test_a_stated_type_of_the_cache_counts() -> None:
    (told,) = said(MISTRAL, vllm("kv-cache-dtype: auto"))
    assert "116335 tokens" in told
    (told,) = said(MISTRAL, vllm("kv-cache-dtype: fp8"))
    assert "232671 tokens" in told


@pytest.mark.parametrize(
    ("flag", "because"),
    [
        ("cpu-offload-gb: 10", "a part of its weights stays in the memory of the host"),
        ("kv-cache-dtype: fp3", "the size of a KV cache of 'fp3' is not known"),
    ],
)
def test_what_cannot_be_added_up_is_not_checked(flag: str, because: str) -> None:
    (told,) = said(LLAMA, vllm(flag))
    assert told.startswith(f"unknown: inference.config: not checked, because {because}")


def test_the_cache_may_be_stated_in_bytes() -> None:
    assert said(MISTRAL, vllm("kv-cache-memory-bytes: 1000000000")) == []


def test_a_stated_parallelism_is_checked_in_place_of_kaitos_own() -> None:
    (told,) = said(QWEN, vllm("swap-space: 4"))
    assert told.startswith("mandatory: resource.instanceType: makes KAITO start tensor 6")
    assert said(QWEN, vllm("tensor-parallel-size: 4")) == []
    short, told = said(QWEN, vllm("tensor-parallel-size: 3", "data_parallel_size: 2"))
    assert "weights take about 20.7 GiB of the fullest GPU, and 2.6 GiB are left" in short
    assert told.startswith(
        "mandatory: inference.config: makes KAITO start data 2 × tensor 3 × pipeline 1, where "
        "engine 'Qwen/Qwen3-32B' splits 64 attention heads over tensor 3"
    )
    assert told.endswith("Set tensor to 4. [kaito-parallelism]")
    (told,) = said(LLAMA, vllm("pipeline-parallel-size: 81"))
    assert "inference.config: makes KAITO start tensor 1 × pipeline 81, where engine" in told


def test_a_parallelism_that_is_no_number_is_not_checked() -> None:
    told = said(QWEN, vllm("tensor-parallel-size: many"))
    assert [line.partition(":")[0] for line in told] == ["unknown", "unknown"]
    assert all("inference.config: not checked, because" in line for line in told)


GAP = "not checked, because"
UNREADABLE: dict[str, tuple[list[Manifest], str]] = {
    "missing": ([], "the ConfigMap 'params' may state max-model-len, and is not available"),
    "missing among others": (
        [config_map("", name="other")],
        "the ConfigMap 'params' may state max-model-len, and is not available",
    ),
    "of another key": (
        [changed(vllm(LONG), {"data": {"inference.yaml": ""}})],
        f"ConfigMap 'params' has no key '{KEY}'",
    ),
    "late": ([config_map(LATE)], f"key '{KEY}' of ConfigMap 'params' is not known yet"),
    "no string": ([config_map({"vllm": {}})], f"key '{KEY}' of ConfigMap 'params' holds no string"),
    "binary": (
        [changed(vllm(), {"data": GONE, "binaryData": {KEY: "e30="}})],
        f"key '{KEY}' of ConfigMap 'params' is binary",
    ),
    "broken": (
        [config_map("vllm: [")],
        f"key '{KEY}' of the ConfigMap 'params' cannot be read: it is not valid YAML",
    ),
    "aliases": (
        [config_map("a: &a {max-model-len: 4096}\nvllm: *a")],
        (
            f"key '{KEY}' of the ConfigMap 'params' cannot be read: it has aliases, which are not "
            "resolved here"
        ),
    ),
    "a list": (
        [config_map("- vllm")],
        f"key '{KEY}' of the ConfigMap 'params' cannot be read: it contains no map",
    ),
    "a list inside": (
        [config_map("vllm: [a]")],
        f"key '{KEY}' of the ConfigMap 'params' cannot be read: vllm is not a map in it",
    ),
    "two of them": (
        [vllm(LONG), changed(vllm(LONG), {"data": {}})],
        "several ConfigMap 'params' differ",
    ),
}


@pytest.mark.parametrize(("maps", "because"), UNREADABLE.values(), ids=UNREADABLE)
def test_what_cannot_be_read_is_not_checked(maps: list[Manifest], because: str) -> None:
    assert said(LLAMA, *maps) == [f"unknown: inference.config: {GAP} {because}. [kaito-capacity]"]
    assert gpus(LLAMA, *maps) == Unknown(because)


def test_a_count_that_is_too_small_for_any_request_is_told_all_the_same() -> None:
    few = changed(LLAMA, {"resource/count": 1})
    told = said(few)
    assert any("is 1, but KAITO counts at least 3 GPUs" in line for line in told)
    assert any("is not available" in line for line in told)


def test_it_is_looked_for_in_the_namespace_of_the_object() -> None:
    there = changed(LLAMA, {"metadata/namespace": "serving"})
    near = changed(vllm(LONG), {"metadata/namespace": "serving"})
    far = changed(vllm("swap-space: 4"), {"metadata/namespace": "default"})
    (told,) = said(there, far, near)
    assert "KAITO counts 6 GPUs" in told
    (told,) = said(there, far)
    assert "is not available" in told


def test_objects_that_are_checked_together_know_their_config_map() -> None:
    found = check_objects_together({"w": LLAMA, "c": vllm(LONG)})
    assert [f.path for f in found if f.level is Level.MANDATORY] == ["w.resource.count"]
    assert check_objects_together({"w": LLAMA, "c": vllm("cpu-offload-gb: 0")}) == []


def test_an_empty_section_states_nothing() -> None:
    for text in ("vllm:\n", "", "max_probe_steps: 6\n"):
        assert said(LLAMA, config_map(text)) == []


@pytest.mark.property
@given(
    st.text(max_size=80)
    | st.dictionaries(
        st.sampled_from(
            [
                *("tensor-parallel-size", "pipeline-parallel-size", "data-parallel-size"),
                *("gpu-memory-utilization", "max-model-len", "kv-cache-dtype", "cpu-offload-gb"),
            ]
        ),
        st.one_of(st.integers(), st.floats(), st.booleans(), st.none(), st.text(max_size=9)),
    ).map(lambda flags: vllm(*(f"{k}: {v}" for k, v in flags.items()))["data"][KEY])
)
def test_anything_may_stand_in_it(text: Any) -> None:
    for body in (LLAMA, SET, ROLES, QWEN):
        for line in said(body, config_map(text)):
            assert "rule-fault" not in line
            assert len(line) < 900
