"""Text Generation Inference: flags and variables of its launcher, and the GPUs that it takes."""

from typing import Any

import pytest

from kthena_components.checker.manifest import check_manifest
from kthena_components.core.engines import read_command
from kthena_components.core.engines.facts import ALL_GPUS, CommandFacts
from kthena_components.core.findings import Level
from kthena_components.core.values.unknown import Unknown

IMAGE = "ghcr.io/huggingface/text-generation-inference:3.3.4"
START = ["text-generation-launcher", "--model-id", "m"]


def read(*words: str, **env: str | Unknown) -> CommandFacts:
    facts = read_command([*START, *words], env)
    assert facts is not None
    return facts


@pytest.mark.parametrize(
    ("words", "env", "tensor"),
    [
        (["--num-shard", "4"], {}, 4),
        (["--num-shard=4"], {"NUM_SHARD": "2"}, 4),
        ([], {"NUM_SHARD": "2"}, 2),
        (["--sharded", "false"], {}, 1),
        ([], {"SHARDED": "false"}, 1),
        (["--sharded", "true"], {}, ALL_GPUS),
        ([], {}, ALL_GPUS),
        ([], {"CUDA_VISIBLE_DEVICES": "0,1"}, 2),
        ([], {"NVIDIA_VISIBLE_DEVICES": "all"}, ALL_GPUS),
        (["--num-shard", "2"], {"CUDA_VISIBLE_DEVICES": "0,1,2,3"}, 2),
    ],
)
def test_the_shards_are_those_of_the_flag_the_variable_or_the_gpus(
    words: list[str], env: dict[str, str], tensor: object
) -> None:
    facts = read(*words, **env)
    assert (facts.engine, facts.tensor, facts.problems) == ("tgi", tensor, ())


def test_what_cannot_be_read_is_unknown() -> None:
    late = Unknown("it comes later")
    assert read(NUM_SHARD=late).tensor == late
    assert read(SHARDED=late).tensor == late
    assert read(CUDA_VISIBLE_DEVICES=late).tensor == late
    assert isinstance(read("--num-shard", "many").tensor, Unknown)


def test_a_flag_of_another_engine_is_refused() -> None:
    (problem,) = read("--num_shard", "4").problems
    assert (problem.hard, problem.remedy) == (True, "write --num-shard")


def test_the_model_and_the_longest_request_come_from_variables_too() -> None:
    facts = read_command(START[:1], {"MODEL_ID": "org/m", "MAX_TOTAL_TOKENS": "8192"})
    assert facts is not None
    assert (facts.model, facts.max_model_len) == ("org/m", 8192)
    assert facts.where["model"] == "MODEL_ID org/m"


def pod(resource: str, gpus: int, **fields: Any) -> dict[str, Any]:
    resources = {"limits": {resource: gpus}, "requests": {resource: gpus}}
    container = {"name": "tgi", "image": IMAGE, "resources": resources, **fields}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "chat"},
        "spec": {"containers": [container], "hostIPC": True},
    }


def told(body: dict[str, Any], level: Level) -> str:
    return "\n".join(str(f) for f in check_manifest(body) if f.level is level)


def test_an_image_starts_it_and_it_takes_all_gpus_of_nvidia() -> None:
    env = [{"name": "MODEL_ID", "value": "m"}]
    body = pod("nvidia.com/gpu", 4, env=env)
    assert told(body, Level.MANDATORY) == ""
    assert "world-size" not in told(body, Level.UNKNOWN)
    assert "takes all GPUs of its container" in told(pod("amd.com/gpu", 4, env=env), Level.UNKNOWN)


@pytest.mark.parametrize(("shards", "gpus"), [(8, 4), (2, 4)])
def test_other_shards_than_gpus_are_refused(shards: int, gpus: int) -> None:
    refused = told(pod("nvidia.com/gpu", gpus, args=["--num-shard", str(shards)]), Level.MANDATORY)
    assert f"starts tensor {shards} = {shards} ranks, but its pod has {gpus} GPUs" in refused
    assert f"Set tensor to {gpus}, or give each pod {shards} GPUs. [world" in refused


def test_the_image_with_llama_cpp_is_another_program() -> None:
    body = pod("nvidia.com/gpu", 4, image=f"{IMAGE}-llamacpp", args=["--model-gguf", "x"])
    assert "no command line of a known engine was found" in told(body, Level.UNKNOWN)
