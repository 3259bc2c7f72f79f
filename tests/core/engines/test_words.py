"""Options written as words are read as the same options."""

import pytest

from kthena_components.core.engines import read_command
from kthena_components.core.engines.writer import words_for

LINES = {
    "vllm": [
        "vllm serve m --max-model-len 8k --served-model-name a b --no-enable-prefix-caching",
        "vllm serve m --speculative-config.method ngram --trust-remote-code --seed=-1",
        'vllm serve m --kv-transfer-config {"kv_role":"kv_both"} --gpu-memory-utilization 0.9',
    ],
    "sglang": [
        "python3 -m sglang.launch_server --model-path m --mem-fraction-static 0.8 --enable-metrics",
        'python3 -m sglang.launch_server --model-path m --json-model-override-args {"a":1}',
    ],
    "trtllm": ["trtllm-serve m --max_batch_size 8 --kv_cache_free_gpu_memory_fraction 0.8"],
}
STARTS = {
    "vllm": ["vllm", "serve", "m"],
    "sglang": ["python3", "-m", "sglang.launch_server", "--model-path", "m"],
    "trtllm": ["trtllm-serve", "m"],
}


@pytest.mark.parametrize(
    ("kind", "line"), [(k, line) for k, lines in LINES.items() for line in lines]
)
def test_words_are_read_as_the_same_options(kind: str, line: str) -> None:
    before = read_command(line.split(), {})
    assert before is not None
    made = words_for(kind, before.options)
    assert made.unknown == []
    after = read_command([*STARTS[kind], *made.words], {})
    assert after is not None
    assert {name: after.options[name] for name in made.options} == {
        name: before.options[name] for name in made.options
    }
    assert made.options != []


def test_what_the_package_sets_itself_is_left_out() -> None:
    command = read_command([*STARTS["vllm"], "-tp", "8", "--port=80", "--max-num-seqs", "4"], {})
    assert command is not None
    assert words_for("vllm", command.options).words == ["--max-num-seqs", "4"]


def test_values_that_are_not_known_are_named() -> None:
    command = read_command(["vllm", "serve", "m", "--seed", "$(SEED)", "--max-num-seqs", "4"], {})
    assert command is not None
    assert words_for("vllm", command.options).unknown == ["--seed"]


def test_options_of_another_program_are_named() -> None:
    options = {"--model-path": "m", "--tp_size": 8, "--max_num_tokens": 3}
    made = words_for("trtllm", options)
    assert (made.words, made.foreign) == (["--max_num_tokens", "3"], ["--model-path"])
    older = words_for("vllm", {"--disable-log-requests": True, "--disaggregation-mode": "decode"})
    assert (older.words, older.foreign) == (["--disable-log-requests"], ["--disaggregation-mode"])
