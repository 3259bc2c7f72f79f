"""An image that somebody built on vLLM's is recognised by its name and by all its arguments."""

import pytest

from kthena_components.core.engines import derived_entrypoint
from kthena_components.core.engines.programs import API_SERVER
from kthena_components.core.facts.pod_template import read_pod

ARGS = ("--model", "org/m", "--tensor-parallel-size=2", "--quantization", "fp8")


@pytest.mark.parametrize(
    ("image", "args"),
    [
        ("docker.io/library/vllm-gemma4:local", ARGS),
        ("quay.io/modh/vllm@sha256:0123", ("--model=/mnt/models", "--port=8080")),
        ("example.com/tgis-vllm", ("--port", "8000", "--model", "m")),
        ("my-vllm", ("--model", "m", "--swap-space", "4")),  # of older releases
        ("my-vllm", ("--model", "m", "--max_model_len", "4096", "-tp", "2")),
    ],
)
def test_it_starts_the_server(image: str, args: tuple[str, ...]) -> None:
    assert derived_entrypoint(image, args) == API_SERVER


@pytest.mark.parametrize(
    ("image", "args"),
    [
        ("example.com/gemma:local", ARGS),  # nothing says vLLM
        ("example.com/vllm/gemma:local", ARGS),  # the image is not named after it
        ("vllm-bench", (*ARGS, "--num-prompts", "100")),  # another program's option
        ("vllm-omni", (*ARGS, "--omni")),
        ("my-vllm", ("--tensor-parallel-size", "2")),  # the image may name the model, and more
        ("my-vllm", ("serve", "--model", "m")),  # a program of the image's own
        ("my-vllm", ()),
        ("", ARGS),
    ],
)
def test_nothing_is_known_of_others(image: str, args: tuple[str, ...]) -> None:
    assert derived_entrypoint(image, args) == ()


def test_its_pod_is_read_unless_it_has_a_command() -> None:
    gpus = {"limits": {"nvidia.com/gpu": 1}}
    container = {"name": "a", "image": "my-vllm:v1", "args": [*ARGS], "resources": gpus}
    read = read_pod({"spec": {"containers": [container]}}, "")
    assert read.command is not None
    assert (read.command.tensor, read.gpus) == (2, 1)
    other = {**container, "command": ["/start"]}
    assert read_pod({"spec": {"containers": [other]}}, "").command is None
