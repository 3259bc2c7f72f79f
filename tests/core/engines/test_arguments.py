"""Flags of the engines, one by one."""

from typing import Any

import pytest

from kthena_components.core.engines import CommandFacts, read_command
from kthena_components.core.values.unknown import Blank, Unknown
from tests.support.for_each import for_each


def read(command: str, **env: str) -> CommandFacts:
    facts = read_command(command.split(), env)
    assert facts is not None
    return facts


FLAGS: list[tuple[str, str, Any]] = [
    ("vllm serve M -dpl 0", "data_local", 0),
    ("vllm serve M -dpn 3", "data_rank", 3),
    ("vllm serve M -dpr 4", "data_start_rank", 4),
    ("vllm serve M -dpb ray", "data_backend", "ray"),
    ("vllm serve M -r 1", "node_rank", 1),
    ("vllm serve M -t 8", "tensor", 8),
    ("vllm serve M --distributed-executor-backend=ray", "executor", "ray"),
    ("vllm serve M --max-model-len 8k", "max_model_len", 8000),
    ("vllm serve M --max-model-len 25.6k", "max_model_len", 25600),
    ("vllm serve M --max-model-len 2M", "max_model_len", 2 * 1024**2),
    ("vllm serve M --max-model-len 4096", "max_model_len", 4096),
    ("vllm serve M --max-model-len auto", "max_model_len", None),
    ("vllm serve M --max-model-len -1", "max_model_len", None),
    ("vllm serve M --gpu-memory-utilization .85", "memory_fraction", 0.85),
    ("vllm serve M -q fp8", "quantization", "fp8"),
    ("vllm serve M --kv_cache_dtype fp8_e5m2", "kv_cache_dtype", "fp8_e5m2"),
    ("vllm serve M --kv-cache-memory-bytes 8G", "kv_cache_bytes", 8 * 1024**3),
    ("vllm serve M --cpu-offload-gb 40", "cpu_offload_gib", 40.0),
    ("vllm serve M $(MORE)", "quantization", Unknown("$(MORE) may contain any flag")),
    ('vllm serve M --hf-overrides {"architectures":["A",1]}', "architectures", ("A",)),
    ('vllm serve M --hf-overrides {"architectures":"A"}', "architectures", None),
    ("vllm serve M --hf-overrides.architectures A", "architectures", None),
    ('vllm serve M --kv-transfer-config={"kv_role":"kv_both"}', "kv_role", "kv_both"),
    ('vllm serve M --kv-transfer-config {"kv_role":7}', "kv_role", None),
    ("vllm serve M --kv-transfer-config.kv_role kv_producer", "kv_role", "kv_producer"),
    ('vllm serve M --speculative_config {"num_speculative_tokens":3}', "speculative_tokens", 3),
    (
        'vllm serve M --speculative-config {"num_speculative_tokens":true}',
        "speculative_tokens",
        None,
    ),
    ("vllm serve M --speculative-config.num_speculative_tokens=4", "speculative_tokens", 4),
    ("vllm serve M --speculative-config [1]", "speculative_tokens", None),
    (
        "vllm serve M --speculative-config {1}",
        "speculative_tokens",
        Unknown("--speculative-config takes JSON, not '{1}'"),
    ),
    ("sglang serve M --attn-dp-size 4", "attention_data", 4),
    ("sglang serve M --context-length 4096", "max_model_len", 4096),
    ("sglang serve M --mem-fraction-static 0.8", "memory_fraction", 0.8),
    ("sglang serve M --quantization fp8", "quantization", "fp8"),
    ("sglang serve M --kv-cache-dtype fp8_e4m3", "kv_cache_dtype", "fp8_e4m3"),
    ("sglang serve M --cpu-offload-gb 4", "cpu_offload_gib", 4.0),
    ("sglang serve M --use-ray", "executor", "ray"),
    ('sglang serve M --json-model-override-args {"architectures":["A"]}', "architectures", ("A",)),
    ("sglang serve M --dcp-size 2", "decode_context", 2),
    (
        "sglang serve M --config x.yaml",
        "pipeline",
        Unknown("the file of --config x.yaml is not available"),
    ),
    ("trtllm-serve M --max_seq_len 4096", "max_model_len", 4096),
    ("trtllm-serve M --kv_cache_free_gpu_memory_fraction 0.8", "memory_fraction", 0.8),
    ("python -m dynamo.trtllm --tensor-parallel-size 8", "tensor", 8),
    (
        "python /vllm/inference_api.py --kaito-config-file x -tp 8",
        "pipeline",
        Unknown(
            "the file of --kaito-config-file x is not available, and it overrides the command line"
        ),
    ),
]


@for_each(("command", "field", "value"), FLAGS)
def test_a_flag_states_its_value(command: str, field: str, value: object) -> None:
    assert getattr(read(command), field) == value


@pytest.mark.parametrize(
    ("flags", "mode"),
    [
        ("-dp 4", "internal"),
        ("-dp 4 -dpn 1", "external"),
        ("-dp 4 -dpe", "external"),
        ("-dp 4 --no-data-parallel-external-lb", "internal"),
        ("-dp 4 -dph -dpl 2", "hybrid"),
        ("-dp 4 -dpl 2 -dpr 2", "hybrid"),
        ("-dp 4 -dpl 2 -dpr 2 --headless", "internal"),
        ("-dp 4 -dpr 2", "internal"),
        ("-dp 4 -dpl 2 -dpm", "hybrid"),
    ],
)
def test_the_data_parallel_mode_is_derived_as_vllm_does(flags: str, mode: str) -> None:
    assert read(f"vllm serve M {flags}").data_mode == mode


def test_the_mode_is_unknown_when_headless_is() -> None:
    facts = read("vllm serve M -dp 4 -dpl 2 -dpr 2 $(MORE)")

    assert facts.data_mode == Unknown("$(MORE) may contain any flag")
    assert read("vllm serve M $(MORE)").data_mode == Unknown("$(MORE) may contain any flag")


@pytest.mark.parametrize(
    ("flags", "ranks"),
    [
        ("", 1),
        ("--ep-size 4", 4),
        ("--moe-a2a-backend none --ep-size 4", 4),
        ("--moe-a2a-backend deepep", 8),
        ("--moe-a2a-backend deepep --ep-size 4", 8),
    ],
)
def test_an_exchange_backend_spreads_experts_over_the_tensor_group(flags: str, ranks: int) -> None:
    assert read(f"sglang serve M --tp-size 8 {flags}").expert_size == ranks


def test_redundant_experts_are_read() -> None:
    flags = "--tp-size 8 --ep-size 8 --ep-num-redundant-experts 32"
    assert read(f"sglang serve M {flags}").redundant_experts == 32
    assert read("sglang serve M --tp-size 8").redundant_experts == 0


def test_old_attention_data_parallelism_of_sglang_takes_no_gpus() -> None:
    facts = read("sglang serve M --tp-size 8 --dp-size 8 --enable-dp-attention")

    assert (facts.data, facts.attention_data, facts.world) == (1, 8, 8)
    stated = read("sglang serve M --tp-size 8 --enable-dp-attention --attn-dp-size 4")
    assert (stated.data, stated.attention_data) == (1, 4)


def test_quotes_in_a_line_of_flags_hold_a_value_together() -> None:
    words = ["vllm", "serve", "M", "--chat-template 'a -tp 4' -tp=8 --x \"y z\""]
    facts = read_command(words, {})

    assert facts is not None
    assert facts.tensor == 8


def test_a_value_with_blanks_is_not_a_line_of_flags() -> None:
    json = '--kv-transfer-config={"kv_role": "kv_both", "note": "-x --y"}'
    facts = read_command(["vllm", "serve", "M", json, "--chat-template", "-a b"], {})

    assert facts is not None
    assert (facts.kv_role, facts.problems) == ("kv_both", ())


def test_a_placeholder_is_no_word_of_the_same_letters() -> None:
    """Words are cached, and a placeholder equals the text that stands for it."""
    for word in ("8123", Blank("8123"), Blank("8124"), "8124"):
        facts = read_command(["vllm", "serve", "M", "--max-num-seqs", word], {})
        assert facts is not None
        assert isinstance(facts.options["--max-num-seqs"], Unknown) == isinstance(word, Blank)
