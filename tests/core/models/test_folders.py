"""A local path, a bucket or a served name is named after its model."""

import pytest

from kthena_components.core.models import find_by_folder, find_by_spelling
from tests.support.for_each import for_each

FOLDERS = {
    "/models/Qwen3-8B": "Qwen/Qwen3-8B",
    "/models/qwen3-8b/": "Qwen/Qwen3-8B",
    "./Qwen3-8B": "Qwen/Qwen3-8B",
    "s3://bucket/deepseek-ai/DeepSeek-R1-Distill-Llama-8B": (
        "deepseek-ai/DeepSeek-R1-Distill-Llama-8B"
    ),
    "s3://bucket/deepseek-ai/DeepSeek-V3-W8A8/vllm-ascend": "vllm-ascend/DeepSeek-V3-W8A8",
    "/cache/hub/models--Qwen--Qwen3-8B/snapshots/0a1b2c": "Qwen/Qwen3-8B",
    "s3://bucket/meta-llama--Llama-3.1-8B-Instruct": "meta-llama/Llama-3.1-8B-Instruct",
    "/models/Qwen3-8B/Qwen3-0.6B": "Qwen/Qwen3-0.6B",
    "/models/Qwen3-8B-tuned": None,
    "/models/Qwen3": None,
    "/models/mine": None,
    "/mnt/models": None,
    "/": None,
    "mine/Qwen3-8B": None,
    "Qwen3-8B": None,
}


@pytest.mark.parametrize("path", FOLDERS)
def test_a_folder_is_named_after_its_model(path: str) -> None:
    found = find_by_folder(path)
    assert (found.name if found else None) == FOLDERS[path]


SERVED = {
    "deepseek-r1": True,
    "deepseek-r1-qwen-14b-w4a16": False,
    "deepseek-r1-671b": True,
    "deepseek-r1-70b": False,
    "qwen3-30b-a3b": False,
    None: True,
}


@for_each("served", SERVED)
def test_a_folder_is_not_named_after_a_model_that_is_served_with_another_size(
    served: str | None,
) -> None:
    assert (find_by_folder("pvc://deepseek-r1/models", served) is not None) is SERVED[served]


def test_a_served_name_may_state_the_size_of_the_folder() -> None:
    assert find_by_folder("/models/Qwen3-30B-A3B", "qwen3-30b") is not None
    assert find_by_folder("/models/Qwen3-30B-A3B", "qwen3-3b") is None


SPELLED = {
    "Qwen-2.5-0.5B": "Qwen/Qwen2.5-0.5B-Instruct",
    "qwen2-5-7b-instruct": "Qwen/Qwen2.5-7B-Instruct",
    "mine/llama-3-1-8b-instruct": None,
    "llama3-1-8b": "meta-llama/Llama-3.1-8B-Instruct",
    "llama3-8b-chat": None,
    "deepseek-r1-671b": "deepseek-ai/DeepSeek-V3",
    "deepseek-r1-70b": None,
    "qwen3-30b": None,
    "deepseek-coder-7b-instruct": "deepseek-ai/deepseek-llm-7b-chat",
    "tinyllama-1-1b-chat": "TinyLlama/TinyLlama-1.1B-Chat-v1.0",
    "mistral-7b-instruct": None,
    "deepseek": None,
    "qwen": None,
    "": None,
    "-": None,
}


@for_each("name", SPELLED)
def test_a_name_may_differ_in_separators(name: str) -> None:
    found = find_by_spelling(name)
    assert (found.name if found else None) == SPELLED[name]
