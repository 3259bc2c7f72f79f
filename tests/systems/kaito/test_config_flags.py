"""The flags in the ConfigMap of `inference.config`: as on any command line of vLLM, and KAITO's."""

from typing import Any

import pytest

from kthena_components.checker.check_cluster_objects import check_objects_together
from kthena_components.checker.manifest import check_manifest
from kthena_components.core.facts.context import Context, gather
from tests.support.peers import Manifest
from tests.systems.kaito.test_config_map import LLAMA, ROLES, SET, said, vllm

OF_FLAGS = ("kaito-config", "engine-option-known", "memory-fraction-range", "scheduler-sizes",
            "context-within-model")  # fmt: skip


def written(body: Manifest, *maps: Manifest, versions: Any = None) -> list[str]:
    """Give what the rules about the flags say beside some ConfigMaps."""
    context = Context(config_maps=gather(maps), versions=versions or {})
    found = check_manifest(body, context=context)
    return [f"{f.level}: {f}" for f in found if f.rule in OF_FLAGS]


NO_SWAP = "vLLM 0.22.1 has no option '--swap-space': 0.17.1 is the last release with it"
FLAGS = {
    "share": (
        "gpu-memory-utilization: 1.95",
        "mandatory",
        (
            "--gpu-memory-utilization 1.95, and the whole memory is 1. Write "
            "--gpu-memory-utilization 0.9. "
            "[memory-fraction-range]"
        ),
    ),
    "number": (
        "max-num-seqs: many",
        "mandatory",
        "--max-num-seqs takes an integer, not 'many'. Write a number. [engine-option-known]",
    ),
    "unknown key": (
        "max-model-length: 5",
        "advisory",
        "has no option '--max-model-length' and does not start with it. Write --max-model-len.",
    ),
    "key of an earlier release": ("swap-space: 4", "advisory", NO_SWAP),
    "underscores": ("max_model_len: 200000", "mandatory", "Write --max-model-len 131072 or less"),
    "batch": ("max-num-batched-tokens: 0", "mandatory", "has --max-num-batched-tokens 0"),
}


@pytest.mark.parametrize(("flag", "level", "words"), FLAGS.values(), ids=FLAGS)
@pytest.mark.parametrize("body", [LLAMA, SET, ROLES], ids=lambda body: body["kind"])
def test_flags_are_checked_as_on_a_command_line(
    body: Manifest, flag: str, level: str, words: str
) -> None:
    """The component refuses the same flags in extra_args: test_limits_pods.py."""
    (told,) = written(body, vllm(flag))
    assert told.startswith(f"{level}: ")
    assert words in told
    assert ".config: " in told or ".runtimeConfig: " in told


def test_what_depends_on_vllms_release_is_sure_for_a_given_kaito() -> None:
    for version in ("0.11", "0.11.0", "v0.11.0"):
        (told,) = written(LLAMA, vllm("swap-space: 4"), versions={"kaito": version})
        assert told.startswith("mandatory: inference.config: names options of vLLM: vLLM 0.22.1")
    (told,) = written(LLAMA, vllm("swap-space: 4"), versions={"kaito": "0.9"})
    assert told.startswith("advisory")


def test_one_value_of_a_switch_is_taken_for_the_model() -> None:
    """`--enforce-eager True`: vLLM's parser has one bare word, which KAITO does not read."""
    assert written(LLAMA, vllm("enforce-eager: true")) == []
    two = vllm("enforce-eager: true", "enable-chunked-prefill: true")
    (told,) = written(LLAMA, two, versions={"kaito": "0.11"})
    assert "'True' is a value of a switch, which takes none, and KAITO writes one" in told
    (told,) = written(LLAMA, vllm("enforce-eager: false"))
    assert "--enforce-eager False, and vLLM turns it on" in told
    assert "Write no-enforce-eager: true, or remove it." in told


def test_ranks_without_gpus_are_refused() -> None:
    (told,) = written(LLAMA, vllm("pipeline-parallel-size: 81"))
    assert told == (
        "mandatory: inference.config: makes vLLM start 81 ranks (tensor 1 × pipeline 81), but "
        "KAITO provides 3 GPUs on 3 nodes. Remove the sizes: KAITO starts tensor 1 × pipeline 3. "
        "[kaito-config]"
    )


def test_a_share_and_ranks_that_vllm_rejects_are_no_gap_of_memory() -> None:
    for flag in ("gpu-memory-utilization: 1.95", "tensor-parallel-size: 2"):
        assert [line for line in said(LLAMA, vllm(flag)) if "kaito-capacity" in line] == []


def test_a_decoder_listens_elsewhere() -> None:
    """KAITO gives the pods of a decode role port 5001: preset_inferences.go."""
    assert written(ROLES, vllm("port: 5001")) == []
    (told,) = written(SET, vllm("port: 8000"))
    assert told.startswith("mandatory: spec.template.inference.config: has port 8000")


def test_the_pack_reads_the_config_map_beside() -> None:
    found = check_objects_together(
        {"w": LLAMA, "c": vllm("max-model-len: 200000", "swap-space: 4")}
    )
    assert {f.rule for f in found} >= {"kaito-config", "engine-option-known"}
