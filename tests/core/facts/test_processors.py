"""Which processors an engine runs on, and what that means for its ranks."""

from typing import Any

import pytest

from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.values.unknown import OUTPUT_CLOSE, OUTPUT_OPEN, Unknown
from tests.support.specs import Args, changed, gpu_template

OUTPUT = f"{OUTPUT_OPEN}7{OUTPUT_CLOSE}"
CONTAINER = "spec.containers[0]"
IMAGE, ENV, RESOURCES = f"{CONTAINER}.image", f"{CONTAINER}.env", f"{CONTAINER}.resources"


def on_cpus(command: str = "vllm serve m -tp 2", **container: Any) -> object:
    """Tell whether an engine without GPUs runs on CPUs."""
    fields = {f"{CONTAINER}.{name}": value for name, value in container.items()}
    body: Args = changed(gpu_template(command, 8), {RESOURCES: {}, **fields})
    return read_pod(body, "t").on_cpus


@pytest.mark.parametrize(
    "image",
    [
        "vllm/vllm-openai-cpu:v0.11.0",
        "public.ecr.aws/q9t5s3a7/vllm-cpu-release-repo:v0.11.0",
        "ghcr.io/me/vllm:0.11-cpu",
        "lmsysorg/sglang:v0.5.2-xeon",
    ],
)
def test_an_image_for_cpus_is_known_by_its_name(image: str) -> None:
    assert on_cpus(image=image) is True


@pytest.mark.parametrize("image", ["vllm/vllm-openai:v0.11.0", "me/cpuless:1", "me/vllm:1"])
def test_others_are_not(image: str) -> None:
    assert on_cpus(image=image) is False


def test_variables_and_options_tell_it_too() -> None:
    assert on_cpus(env=[{"name": "VLLM_CPU_OMP_THREADS_BIND", "value": "auto"}]) is True
    assert on_cpus(env=[{"name": "VLLM_TARGET_DEVICE", "value": "cpu"}]) is True
    line = "python3 -m sglang.launch_server --model-path m --tp 6 --device cpu"
    assert on_cpus(line, image="lmsysorg/sglang:v0.5.2") is True


def test_a_late_image_may_be_one_for_cpus() -> None:
    assert isinstance(on_cpus(image=OUTPUT), Unknown)


def test_with_gpus_it_runs_on_them() -> None:
    pod = read_pod(changed(gpu_template("vllm serve m", 8), {IMAGE: "me/vllm-cpu:1"}), "t")
    assert pod.on_cpus is False


@pytest.mark.parametrize(
    ("resource", "one"),
    [
        ("google.com/tpu", True),
        ("aws.amazon.com/neuron", True),
        ("aws.amazon.com/neuroncore", True),
        ("nvidia.com/gpu", False),
        ("amd.com/gpu", False),
        ("gpu.intel.com/i915", False),
        ("habana.ai/gaudi", False),
    ],
)
def test_one_process_serves_tpus_and_neuron(resource: str, one: bool) -> None:
    template = changed(gpu_template("vllm serve m", 8), {RESOURCES: {"limits": {resource: 8}}})
    assert read_pod(template, "t").one_process is one


def test_late_resources_may_be_tpus() -> None:
    template = changed(gpu_template("vllm serve m", 8), {RESOURCES: OUTPUT})
    assert isinstance(read_pod(template, "t").one_process, Unknown)
