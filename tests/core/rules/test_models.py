"""Whether a model's layers can be cut as an engine wants: every size, every rule, every message."""

import itertools

import pytest

from kthena_components.compiler.compile import compile_serving
from kthena_components.core.findings import Level, SpecError
from kthena_components.core.rules.registry import MODEL_RULES
from tests.support.for_each import for_each
from tests.support.models import DEEPSEEK, FP8, LLAMA, PHI, QWEN, SGLANG, findings, rules, told
from tests.support.specs import ENGINE_RAY, changed

HEADS, BLOCKS = ["tp-divides-heads"], ["fp8-block-multiple"]
CODER = "Qwen/Qwen3-Coder-480B-A35B-Instruct-FP8"
SIZES = (1, 2, 4, 8, 16, 32)
ALL: dict[int, list[str]] = {}
FROM_8 = {8: BLOCKS, 16: BLOCKS, 32: BLOCKS}
# Which rules refuse a tensor size; first with experts split, then with expert parallelism.
LEGAL: dict[str, tuple[dict[int, list[str]], dict[int, list[str]] | None]] = {
    "meta-llama/Llama-3.1-8B-Instruct": (ALL, None),
    "meta-llama/Llama-3.1-70B-Instruct": (ALL, None),
    "meta-llama/Llama-3.3-70B-Instruct": (ALL, None),
    LLAMA: (ALL, None),
    "Qwen/Qwen2.5-72B-Instruct": (ALL, None),
    "Qwen/Qwen3-235B-A22B": (ALL, ALL),
    FP8: (FROM_8, ALL),
    CODER: (FROM_8, ALL),
    "mistralai/Mixtral-8x22B-Instruct-v0.1": ({32: HEADS}, {32: HEADS}),
    "openai/gpt-oss-120b": (ALL, ALL),
    DEEPSEEK: ({32: BLOCKS}, {32: BLOCKS}),
    "deepseek-ai/DeepSeek-R1": ({32: BLOCKS}, {32: BLOCKS}),
    "moonshotai/Kimi-K2-Instruct": ({32: BLOCKS}, {32: BLOCKS}),
    "MiniMaxAI/MiniMax-M2": ({**FROM_8, 32: [*HEADS, *BLOCKS]}, {32: HEADS}),
    "MiniMaxAI/MiniMax-M2.7": ({**FROM_8, 32: [*HEADS, *BLOCKS]}, {32: HEADS}),
}


@for_each(("model", "tensor"), [*itertools.product(LEGAL, SIZES)])
def test_a_well_known_model_takes_the_tensor_sizes_it_is_known_to_take(
    model: str, tensor: int
) -> None:
    split, spread = LEGAL[model]
    command = f"vllm serve {model} -tp {tensor}"
    assert rules(command) == split.get(tensor, [])
    dense = ["moe-expert-shape"]
    wanted = dense if spread is None else spread.get(tensor, [])
    assert rules(f"{command} --enable-expert-parallel") == wanted


RIGHT = {
    "one-gpu": f"vllm serve {QWEN}",
    "every-head-alone": f"vllm serve {QWEN} -tp 64",
    "kv-heads-twice": f"vllm serve {QWEN} -tp 16",
    "latent-attention": f"vllm serve {DEEPSEEK} -tp 16",
    "a-stage-for-each-layer": f"vllm serve {QWEN} -pp 64",
    "whole-blocks": f"vllm serve {FP8} -tp 4",
    "dense-over-copies": f"vllm serve {QWEN} -tp 8 -dp 3",
    "attention-by-itself": f"{SGLANG} {QWEN} --tp-size 8 --dp-size 8 --enable-dp-attention",
    "redundant-experts": (
        f"{SGLANG} {DEEPSEEK} --tp-size 48 --dp-size 48 --enable-dp-attention "
        "--moe-a2a-backend deepep --ep-num-redundant-experts 32"
    ),
    "experts-of-two-ranks": f"trtllm-serve {FP8} --tp_size 8 --ep_size 4",
    "expert-parallel-of-one": f"trtllm-serve {QWEN} --tp_size 8 --ep_size 1",
    "uneven-experts-in-vllm": f"vllm serve {FP8} -tp 4 -dp 12 --enable-expert-parallel",
    "private-model-in-one-piece": "vllm serve m/m",
}


@pytest.mark.parametrize("command", RIGHT.values(), ids=RIGHT)
def test_what_fits_is_not_spoken_of(command: str) -> None:
    assert told(command) == []


WRONG = {
    "heads": (
        f"vllm serve {QWEN} -tp 6",
        """splits 64 attention heads over tensor 6, which leaves a remainder of 4.
        Set tensor to 4 and pipeline to 2, or set tensor to 8. [tp-divides-heads]

        splits 8 KV heads over tensor 6, and neither is a multiple of the other.
        Set tensor to 4 and pipeline to 2, or set tensor to 8. [tp-divides-kv-heads]

        splits a feed-forward layer of 25600 over 6 ranks, which leaves a remainder of 4.
        Set tensor to 4 and pipeline to 2, or set tensor to 8. [ffn-divisible]""",
    ),
    "one-rank-too-many": (
        f"vllm serve {QWEN} -tp 128",
        """splits 64 attention heads over tensor 128, which leaves a remainder of 64.
        Set tensor to 8. [tp-divides-heads]""",
    ),
    "kv-heads": (
        f"vllm serve {PHI} -tp 4",
        """splits 10 KV heads over tensor 4, and neither is a multiple of the other.
        Set tensor to 2 and pipeline to 4. [tp-divides-kv-heads]""",
    ),
    "attention-data": (
        f"{SGLANG} {PHI} --tp-size 8 --attn-dp-size 2",
        """splits 10 KV heads over tensor 8 ÷ attention data 2 = 4, and neither is a multiple of
        the other. Set tensor to 4 and pipeline to 2. [tp-divides-kv-heads]""",
    ),
    "experts-split": (
        "vllm serve mistralai/Mixtral-8x22B-Instruct-v0.1 -tp 8 -dp 3",
        """splits an expert feed-forward layer of 16384 over 24 ranks, which leaves a remainder of
        16. Change the parallelism. [ffn-divisible]""",
    ),
    "too-many-stages": (
        f"vllm serve {QWEN} -pp 65",
        """splits 64 layers over pipeline 65, and a stage needs one.
        Set pipeline to 64 or less. [pp-within-layers]""",
    ),
    "dense-in-vllm": (
        f"vllm serve {QWEN} -tp 8 --enable-expert-parallel",
        """enables expert parallelism, but its model is dense: it has no experts.
        Disable expert parallelism. [moe-expert-shape]""",
    ),
    "uneven-experts": (
        f"{SGLANG} {FP8} --tp 48 --dp-size 12 --enable-dp-attention --ep-size 48",
        """spreads 128 experts over 48 ranks, which leaves a remainder of 32. Spread them over
        16 ranks, or set --ep-num-redundant-experts to 16. [moe-expert-shape]""",
    ),
    "uneven-redundant-experts": (
        f"{SGLANG} {FP8} --tp 5 --attn-dp-size 5 --ep-size 5 --ep-num-redundant-experts 1",
        """spreads 128 experts and 1 redundant one over 5 ranks, which leaves a remainder of 4.
        Set --ep-num-redundant-experts to 2. [moe-expert-shape]""",
    ),
    "experts-cut": (
        f"vllm serve {FP8} -tp 8",
        """gives its ranks parts of FP8 blocks, but each rank needs a multiple of 128: expert
        feed-forward layer 1536 ÷ 8 = 192. Set tensor to 4 and pipeline to 2, or enable expert
        parallelism.
        [fp8-block-multiple]""",
    ),
    "experts-cut-by-copies": (
        f"vllm serve {FP8} -tp 4 -dp 2",
        """gives its ranks parts of FP8 blocks, but each rank needs a multiple of 128: expert
        feed-forward layer 1536 ÷ 8 = 192. Set tensor to 2 and pipeline to 2, or enable expert
        parallelism.
        [fp8-block-multiple]""",
    ),
}


def lines(text: str) -> list[str]:
    """Give paragraphs as single lines."""
    return [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_cut_is_refused_with_its_numbers(case: str) -> None:
    command, text = WRONG[case]
    assert told(command) == lines(text)
    assert {finding.level for finding in findings(command)} == {Level.MANDATORY}


ADVICE = {
    "uneven-stages": (
        f"vllm serve {LLAMA} -tp 8 -pp 40",
        """splits 126 layers over pipeline 40, so that its fullest stage has 4 and its emptiest
        3: the others wait for it, and a step takes 27% longer than with an even split. Set
        pipeline to 21 or 42 and change the GPUs with it, or leave memory for 4 layers on each GPU.
        [pp-within-layers]""",
    ),
    "a-prime-number-of-layers": (
        f"vllm serve {DEEPSEEK} -tp 8 -pp 25",
        """splits 61 layers over pipeline 25, so that its fullest stage has 3 and its emptiest 2:
        the others wait for it, and a step takes 23% longer than with an even split. Leave memory
        for 3 layers on each GPU. [pp-within-layers]""",
    ),
    "dense-outside-vllm": (
        f"trtllm-serve {QWEN} --tp_size 8 --ep_size 8",
        """enables expert parallelism, but its model is dense: it has no experts.
        Disable expert parallelism. [moe-expert-shape]""",
    ),
}


@pytest.mark.parametrize("case", ADVICE)
def test_what_starts_but_not_well_is_worth_a_look(case: str) -> None:
    command, text = ADVICE[case]
    assert told(command) == lines(text)
    assert [finding.level for finding in findings(command)] == [Level.ADVISORY]


OF_THE_ROLE = "roles[0].engine.model", "roles[0].engine.parallelism"


def test_a_component_is_refused_where_its_sizes_are_written() -> None:
    model, sizes = OF_THE_ROLE
    wrong = changed(ENGINE_RAY, {model: PHI, sizes: {"tensor": 16, "pipeline": 1}})
    with pytest.raises(SpecError) as caught:
        compile_serving(wrong)
    assert [str(finding) for finding in caught.value.findings] == lines(
        """roles[0].engine.parallelism: engine 'decode' splits 40 attention heads over tensor 16,
        which leaves a remainder of 8. Set tensor to 2 and pipeline to 8. [tp-divides-heads]

        roles[0].engine.parallelism: engine 'decode' splits 10 KV heads over tensor 16, and
        neither is a multiple of the other. Set tensor to 2 and pipeline to 8.
        [tp-divides-kv-heads]"""
    )


def test_a_component_says_nothing_of_a_private_model() -> None:
    args = changed(ENGINE_RAY, {OF_THE_ROLE[0]: "ours/private"})
    assert [f for f in compile_serving(args).findings if f.rule in MODEL_RULES] == []


@for_each("stages", [2, 3, 4, 5, 6, 8, 16])
def test_sizes_that_engines_split_by_themselves_are_not_told(stages: int) -> None:
    """A stage has at most one of 61 layers more than another: 8 % above the mean, or less."""
    assert told(f"vllm serve {DEEPSEEK} -tp 8 -pp {stages}") == []


def test_a_component_says_nothing_of_a_prime_number_of_layers() -> None:
    args = changed(ENGINE_RAY, {OF_THE_ROLE[0]: DEEPSEEK})
    assert [f for f in compile_serving(args).findings if f.rule in MODEL_RULES] == []
