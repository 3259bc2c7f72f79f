"""`kthena-components size`: what its text says of weights, doubts and images."""

import json
import re

import pytest

from tests.cli.test_size import LLAMA, size
from tests.support.for_each import for_each


def test_an_image_that_is_still_to_be_named_refuses_no_shape(
    capsys: pytest.CaptureFixture[str],
) -> None:
    status, out, _ = size(capsys, LLAMA, "--gpu", "tpu-v6e", "--nodes", "4", "--context", "8192")
    assert status == 0
    assert "is for GPUs of NVIDIA: name an image for Google TPU v6e with --image." in out
    assert "* recommended: " in out


def test_no_shape_is_recommended_if_all_are_tight(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = size(capsys, "openai/gpt-oss-120b", "--gpu", "h100", "--nodes", "1")
    assert "* try this first: the fewest GPUs. Its memory is tight: it may not start." in out
    assert "recommended" not in out


@for_each(
    ("model", "gpu", "shape"),
    [
        (LLAMA, "l4", "1 × 1 × 1 on 1 × 1"),
        ("openai/gpt-oss-120b", "h100", "1 × 1 × 1 on 1 × 1"),
        ("MiniMaxAI/MiniMax-M2", "h100", "2 × 2 × 1 on 1 × 4"),
    ],
)
def test_a_smaller_engine_holds_shorter_requests(
    model: str, gpu: str, shape: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (model, "--gpu", gpu, "--nodes", "8")
    told = re.search(
        rf"^For shorter requests, {shape} is enough: --context (\d+) surely fits\.$",
        size(capsys, *words)[1],
        re.MULTILINE,
    )
    assert told is not None
    gpus = json.loads(size(capsys, *words, "-o", "json")[1])["shapes"][0]["gpus"]
    shorter = json.loads(size(capsys, *words, "--context", told[1], "-o", "json")[1])["shapes"]
    small = next(row for row in shorter if row["recommended"])
    assert small["doubt"] is None
    assert small["gpus"] <= gpus


def test_weights_that_are_not_loaded_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("deepseek-ai/DeepSeek-V3", "--gpu", "h200")
    _, out, _ = size(capsys, *words, "--nodes", "8")
    title = "deepseek-ai/DeepSeek-V3: 627.1 GiB of weights, fp8; 10.8 GiB more for drafts (MTP) are"
    assert out.startswith(title)
    assert "GiB on the fullest GPU; some weights are copied to several GPUs." in out
    found = json.loads(size(capsys, *words, "-o", "json")[1])
    assert (found["weights_gib"], found["loaded_gib"]) == (637.85, 627.08)


def test_what_64_nodes_do_not_hold_is_told_by_its_weights(
    capsys: pytest.CaptureFixture[str],
) -> None:
    status, out, _ = size(capsys, "moonshotai/Kimi-K3", "--gpu", "l4", "--nodes", "1")
    assert status == 1
    told = "None fits on up to 64 nodes of 1 GPU either, the most that are tried."
    assert f"No shape fits. {told} The weights alone fill 65 × NVIDIA L4." in out
