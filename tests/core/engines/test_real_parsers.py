"""The reader against the engines' own parsers: what each release said of random lines.

`make engine-tables` asks a release when it adds it, and keeps the answers in lines.json.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from kthena_components.core.engines import CommandFacts, read_command
from kthena_components.core.values.unknown import Unknown

Row = tuple[str, str, list[str], Mapping[str, Any] | None]
LINES: Mapping[str, Mapping[str, Any]] = json.loads(
    Path(__file__).with_name("lines.json").read_text()
)
IMAGES = {"vllm": "vllm/vllm-openai:v", "sglang": "lmsysorg/sglang:v"}
STARTS = {"vllm": ["vllm", "serve"], "sglang": ["python3", "-m", "sglang.launch_server"]}
FIELDS = {
    "tensor_parallel_size": "tensor",
    "tp_size": "tensor",
    "pipeline_parallel_size": "pipeline",
    "pp_size": "pipeline",
    "data_parallel_size": "data",
    "decode_context_parallel_size": "decode_context",
    "prefill_context_parallel_size": "prefill_context",
    "enable_expert_parallel": "expert",
    "nnodes": "nnodes",
    "node_rank": "node_rank",
    "max_model_len": "max_model_len",
    "context_length": "max_model_len",
    "model_path": "model",
    "model_tag": "model",
}
NOT_STATED = {"nnodes": 1, "node_rank": 0}
# What a release reads with code of its own, which no table shows.
BEYOND = (
    "--prompt-ada", "--limit-mm", "--override-neuron", "--mm-encoder-attn-dtype", "-O",
)  # fmt: skip
LATER = {
    "--data-parallel-backend has": (0, 11, 1),
    "--kv-cache-dtype has": (0, 33, 0),
    "--hf-overrides takes": (0, 9, 0),
}
"""What vLLM's configuration rejects, and not its parser, since a release: test_by_release.py."""
MODEL_REQUIRED = (0, 8, 2)
"""The last vLLM that ends without a bare word; model-stated says so."""


def rows() -> Iterator[Row]:
    for engine, releases in LINES.items():
        for version, said in releases.items():
            yield from ((engine, version, words, read) for words, read in said)


def read(engine: str, version: str, words: list[str]) -> CommandFacts:
    facts = read_command([*STARTS[engine], *words], {}, image=IMAGES[engine] + version)
    assert facts is not None
    assert facts.release is not None
    assert facts.release.sure
    return facts


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_a_line_is_refused_by_the_reader_as_by_the_engine(engine: str) -> None:
    checked, wrong = 0, []
    for _, version, words, said in (row for row in rows() if row[0] == engine):
        facts = read(engine, version, words)
        if any(word.replace("_", "-").startswith(BEYOND) for word in words):
            continue
        assert facts.release is not None
        early = engine == "vllm" and facts.release.version <= MODEL_REQUIRED
        if early and "org/M" not in words:
            continue
        checked += 1
        problems = [p for p in facts.problems if p.hard]
        # What the parser takes, and the engine refuses right after.
        later = ["of at least", *(["takes the model of"] if early else [])]
        if engine == "vllm":
            later += [text for text, at in LATER.items() if facts.release.version >= at]
        problems = [p for p in problems if not any(text in p.text for text in later)]
        if bool(problems) is not (said is None):
            wrong.append((version, words, [p.text for p in problems]))

    assert checked > 600
    assert wrong == []


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_a_line_says_to_the_reader_what_it_says_to_the_engine(engine: str) -> None:
    compared, wrong = 0, []
    for _, version, words, said in (row for row in rows() if row[0] == engine):
        facts = read(engine, version, words)
        for name, value in (said or {}).items():
            field = FIELDS.get(name)
            found = getattr(facts, field) if field else None
            if field is None or isinstance(found, Unknown) or value in {"auto", -1}:
                continue
            compared += 1
            stated = NOT_STATED.get(field) if found is None else found
            if stated != value:
                wrong.append((version, words, field, value, found))

    assert compared > 1500
    assert wrong == []
