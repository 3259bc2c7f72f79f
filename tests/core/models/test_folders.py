"""A local path or a bucket is named after its model."""

import pytest

from kthena_components.core.models import find_by_folder

FOLDERS = {
    "/models/Qwen3-8B": "Qwen/Qwen3-8B",
    "/models/qwen3-8b/": "Qwen/Qwen3-8B",
    "./Qwen3-8B": "Qwen/Qwen3-8B",
    "s3://bucket/deepseek-ai/DeepSeek-R1-Distill-Llama-8B": (
        "deepseek-ai/DeepSeek-R1-Distill-Llama-8B"
    ),
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
