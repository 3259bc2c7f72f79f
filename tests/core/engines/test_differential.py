"""The reader against argparse: random lines of every release, read by both.

The seed is another one in each run, and a failure shows it: KTHENA_SEED=… runs it again.
"""

import os
import random
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from kthena_components.core.engines import CommandFacts, read_command
from kthena_components.core.values.unknown import Unknown
from tests.core.engines.reference import RefusedError, dest_of, parser_of, releases, rows_at

LINES = 10_000
IMAGES = {"vllm": "vllm/vllm-openai:v{}", "sglang": "lmsysorg/sglang:v{}"}
STARTS = {"vllm": ["vllm", "serve"], "sglang": ["python3", "-m", "sglang.launch_server"]}
FIELDS = {
    "vllm": {
        "--tensor-parallel-size": "tensor",
        "--pipeline-parallel-size": "pipeline",
        "--data-parallel-size": "data",
        "--prefill-context-parallel-size": "prefill_context",
        "--decode-context-parallel-size": "decode_context",
        "--nnodes": "nnodes",
        "--node-rank": "node_rank",
        "--max-model-len": "max_model_len",
        "--gpu-memory-utilization": "memory_fraction",
        "--enable-expert-parallel": "expert",
        "model_tag": "model",
    },
    "sglang": {
        "--tensor-parallel-size": "tensor",
        "--tp-size": "tensor",
        "--pipeline-parallel-size": "pipeline",
        "--pp-size": "pipeline",
        "--nnodes": "nnodes",
        "--node-rank": "node_rank",
        "--context-length": "max_model_len",
        "--mem-fraction-static": "memory_fraction",
        "--model-path": "model",
    },
}
# What the engines do to these before argparse sees them has tests of its own.
LEFT_OUT = {"--model", "--config", "-O", "--compilation-config", "--optimization-level", "-h"}
LEFT_OUT |= {"--lora-modules"}
WORDS = ("8", "2", "0.5", "8k", "8K", "2Ki", "abc", "auto", "None", "true", "{}", "-1", "x y", "")
ODD = ("--no-such-thing", "--tensor-", "-z", "--enable", "stray", "-tp9", "--disable-a", "-1")


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_random_lines_are_read_as_argparse_reads_them(engine: str) -> None:
    seed = int(os.environ.get("KTHENA_SEED", random.SystemRandom().randrange(10**9)))
    chance = random.Random(seed)
    refused = 0
    for number in range(LINES):
        version = chance.choice(releases(engine))
        words = list(_line(engine, version, chance))
        said = f"KTHENA_SEED={seed}, line {number}: {version} {words}"
        expected = _by_argparse(engine, version, words)
        facts = read_command([*STARTS[engine], *words], {}, image=IMAGES[engine].format(version))
        assert facts is not None, said
        # Numbers with a unit inside JSON are taken by some releases, and no table says which.
        if any("takes JSON" in problem.text and not problem.hard for problem in facts.problems):
            continue
        hard = [problem for problem in facts.problems if problem.hard and not _later(problem.text)]
        assert bool(hard) is (expected is None), (said, hard)
        if expected is None:
            refused += 1
        else:
            _compare(engine, expected, facts, said)
    assert LINES // 5 < refused < LINES * 4 // 5, "the lines test one side only"


def _later(text: str) -> bool:
    """Tell what argparse takes, and the engine refuses right before or after."""
    return "of at least" in text or "takes the model first" in text


def _line(engine: str, version: str, chance: random.Random) -> Iterator[str]:
    rows = [row for row in rows_at(engine, version) if not LEFT_OUT.intersection(row["names"])]
    sizes = [row for row in rows if dest_of(row) in FIELDS[engine]]
    if engine == "vllm" and chance.random() < 0.8:
        yield "org/M"
    for _ in range(chance.randrange(6)):
        if chance.random() < 0.08:
            yield chance.choice(ODD)
        yield from _option(chance.choice(sizes if chance.random() < 0.5 else rows), engine, chance)


def _option(row: Mapping[str, Any], engine: str, chance: random.Random) -> Iterator[str]:
    name = chance.choice([*row["names"], *row.get("off", ())])
    short = name[: chance.randrange(6, len(name))] if len(name) > 8 else name
    # What `-spec-dra=4` is differs between Pythons.
    if chance.random() < 0.1 and short not in LEFT_OUT and name.startswith("--"):
        name = short
    if engine == "vllm" and name.startswith("--") and chance.random() < 0.2:
        name = "--" + name[2:].replace("-", "_")
    words = [_word(row, chance) for _ in range(_count(row.get("arity", "1"), chance))]
    if len(words) == 1 and chance.random() < 0.3:
        yield f"{name}={words[0]}"
    else:
        yield from (name, *words)


def _count(arity: str, chance: random.Random) -> int:
    if chance.random() < 0.05:
        return chance.randrange(3)
    if arity in "?*+":
        return chance.randrange(arity == "+", 2 if arity == "?" else 4)
    return int(arity)


def _word(row: Mapping[str, Any], chance: random.Random) -> str:
    if chance.random() < 0.1:
        return chance.choice(WORDS)
    if row.get("choices"):
        return str(chance.choice(row["choices"]))
    kind = row.get("type", "text").removesuffix("?")
    usual = {"int": "4", "float": "0.7", "json": '{"a": 1}', "bool": "True"}
    usual["object"] = usual["json"]
    return usual.get(kind, chance.choice(("8192", "8k")) if kind.startswith("size") else "word")


def _by_argparse(engine: str, version: str, words: list[str]) -> dict[str, Any] | None:
    if engine == "vllm":
        words = [_hyphens(word) for word in words]
    try:
        return vars(parser_of(engine, version).parse_args(words))
    except RefusedError:
        return None


def _hyphens(word: str) -> str:
    head, equals, value = word.partition("=")
    return head.replace("_", "-") + equals + value if word.startswith("--") else word


def _compare(engine: str, expected: Mapping[str, Any], facts: CommandFacts, said: str) -> None:
    for dest, field in FIELDS[engine].items():
        value, read = expected.get(dest), getattr(facts, field)
        if value is None or value is False or isinstance(read, Unknown):
            continue
        assert read == value, (said, field)
