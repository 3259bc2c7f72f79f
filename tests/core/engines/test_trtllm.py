"""TensorRT-LLM's options by release, on both sides of each change."""

import json
from importlib import resources

import pytest

from kthena_components.core.engines import CommandFacts, read_command
from kthena_components.core.engines.option_table import load
from tests.support.for_each import for_each

IMAGE = "nvcr.io/nvidia/tensorrt-llm/release:"


def read(words: str, tag: str) -> CommandFacts:
    facts = read_command(["trtllm-serve", "M", *words.split()], {}, image=IMAGE + tag)
    assert facts is not None
    return facts


@for_each(
    ("tag", "words", "refused"),
    [
        ("0.18.2", "--tp_size 8 --pp_size 2", False),
        ("0.18.2", "--ep_size 8", True),
        ("0.19.0", "--tp_size 8 --ep_size 8 --extra_llm_api_options x", False),
        ("0.19.0", "--cluster_size 2", True),
        ("0.20.0", "--cluster_size 2 --reasoning_parser deepseek-r1", False),
        ("0.20.0", "--log_level trace", True),
        ("0.21.0", "--log_level trace --server_role context", False),
        ("0.21.0", "--backend trt", True),
        ("1.0.0", "--backend trt --fail_fast_on_attention_window_too_large", False),
        ("1.0.0", "--backend tensorrt", True),
        ("1.1.0", "--backend tensorrt", False),
        ("1.1.0", "--tensor_parallel_size 8", True),
        ("1.2.0", "--tensor_parallel_size 8 --tp_size 8 --cp_size 2 --config x", False),
        ("1.2.1", "--reasoning_parser qwen3 --tool_parser kimi_k2 --revision main", False),
        ("1.2.1", "--reasoning_parser kimi_k2", True),
        ("1.2.1", "--tp_size many", True),
        ("1.2.1", "--tp 8", True),
        ("1.2.1", "--tp-size 8", True),
        ("1.2.1", "--tensor_parallel 8", True),
        ("0.18.2", "--help", False),
        # Candidates and other tags are checked against the newest, which is uncertain.
        ("1.3.0rc10", "--kv_cache_dtype fp8 --no-telemetry --tp_size 8", False),
        ("latest", "--no_such_option 1", False),
    ],
)
def test_options_by_release(tag: str, words: str, *, refused: bool) -> None:
    assert any(problem.hard for problem in read(words, tag).problems) is refused


@pytest.mark.parametrize(
    ("tag", "because"),
    [
        ("1.2.1", ""),
        ("1.2.1-cuda13", ""),
        ("1.3.0", "only a candidate of TensorRT-LLM 1.3.0 is known"),
        ("1.3.0rc29", "the image's tag states no release of TensorRT-LLM"),
        ("1.0.1", "TensorRT-LLM 1.0.1 is none of the known releases"),
        ("2.0.0", "TensorRT-LLM 2.0.0 is newer than the known releases"),
    ],
)
def test_how_certain_the_release_is(tag: str, because: str) -> None:
    release = read("--tp_size 8", tag).release
    assert release is not None
    assert release.because == because


@pytest.mark.parametrize(("tag", "spelling"), [("1.1.0", "--tp_size"), ("1.2.0", "--tp_size")])
def test_sizes_are_read_by_any_spelling(tag: str, spelling: str) -> None:
    facts = read(f"{spelling} 8 --pp_size 2 --ep_size 4 --max_seq_len 4096", tag)
    assert (facts.tensor, facts.pipeline, facts.expert, facts.max_model_len) == (8, 2, 4, 4096)
    assert facts.problems == ()


def test_the_table_by_hand_has_the_form_of_the_others() -> None:
    folder = resources.files("kthena_components.core.engines").joinpath("tables")
    table = json.loads(folder.joinpath("trtllm.json").read_text())
    versions = [release["version"] for release in table["releases"]]
    keys = [(row["names"][0].lstrip("-"), versions.index(row["since"])) for row in table["options"]]
    assert keys == sorted(keys)
    assert all(release["page"] for release in table["releases"])
    for row in table["options"]:
        assert set(row) <= {"names", "arity", "type", "choices", "off", "since", "until"}
        assert row.get("type", "text") in {"text", "int", "float"}
        assert versions.index(row["since"]) <= versions.index(row.get("until", versions[-1]))
        assert row.get("choices", []) == sorted(row.get("choices", []))
    loaded = load("trtllm")
    assert list(loaded.versions) == sorted(loaded.versions)
    for version in loaded.versions:
        spelled = [name for row in loaded.at(version) for name in (*row.names, *row.off)]
        assert len(spelled) == len(set(spelled))
