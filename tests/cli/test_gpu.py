"""`check --gpu`: the GPU of the pods whose manifests name none."""

import json
import re

import pytest
import yaml

from tests.cli.conftest import Command, Write
from tests.support.for_each import for_each


@pytest.fixture(autouse=True)
def few_rules() -> None:
    """Run all rules, in place of the fixture that leaves out those about memory."""


def deployment(*flags: str, name: str = "llama", pool: str = "", **resources: str) -> str:
    """Give a Deployment of Llama-3.3-70B, whose weights are 131.4 GiB."""
    limits = resources or {"nvidia.com/gpu": "1"}
    container = {
        "name": "engine",
        "image": "vllm/vllm-openai:v0.30.0",
        "command": ["vllm", "serve", "meta-llama/Llama-3.3-70B-Instruct", *flags],
        "resources": {"limits": limits},
    }
    pod = {"containers": [container], **({"nodeSelector": {"pool": pool}} if pool else {})}
    labels = {"app": name}
    return yaml.safe_dump(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name},
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": pod},
            },
        }
    )


NOTE = "memory was not checked, because nothing names the GPU: name it with --gpu."
H100 = "but may use 73.3 GiB of it: 0.92 × 79.7 GiB of NVIDIA H100."

# Options, exit status, part of the text.
NAMED = [
    ([], 0, NOTE),
    (["--gpu", "h100"], 1, H100),
    (["--gpu", "NVIDIA-H100-80GB-HBM3"], 1, H100),
    (["--gpu", "h100_sxm"], 1, H100),
    (["--gpu", "p5.48xlarge"], 1, H100),
    (["--gpu", "a3-highgpu-8g"], 1, H100),
    (["--gpu", "big=h100"], 1, H100),
    (["--gpu", "b200", "--gpu", "big=h100"], 1, H100),
    (["--gpu", "b200,big=h100"], 1, H100),
    (["--gpu", "small=h100"], 0, NOTE),
    (["--gpu", "mi300x"], 0, "because it requests nvidia.com/gpu, which is no AMD Instinct MI300X"),
]


@for_each(("options", "status", "text"), NAMED, ids=str)
def test_the_option_names_the_gpu(
    run: Command, write: Write, options: list[str], status: int, text: str
) -> None:
    write("a.yaml", deployment("--max-model-len=1024", pool="big"))
    ran = run("a.yaml", *options)
    assert ran.status == status
    assert text in ran.out


def test_a_file_that_names_no_model_learns_how_to_name_it(run: Command, write: Write) -> None:
    write("a.yaml", re.sub(" +- meta-llama.*\n", "", deployment()))
    way = "write the model in the command line, or a known name in --served-model-name."
    note = f"nothing names the GPU or the model: name the GPU with --gpu, and {way}"
    assert note in run("a.yaml").out
    assert f"because its command line names no model; {way}" in run("a.yaml", "--gpu=h100").out


def test_a_gpu_with_room_leaves_nothing_to_say(run: Command, write: Write) -> None:
    write("a.yaml", deployment("--max-model-len=1024"))
    ran = run("a.yaml", "--gpu", "b200")
    assert "0 mandatory, 0 advisory, 0 not checked" in ran.out


def test_the_note_is_said_once_per_object(run: Command, write: Write) -> None:
    pod = yaml.safe_load(deployment("--max-model-len=1024"))
    containers = pod["spec"]["template"]["spec"]["containers"]
    containers.append({**containers[0], "name": "second"})
    write("a.yaml", yaml.safe_dump(pod))
    write("b.yaml", deployment("--max-model-len=1024", name="other"))
    ran = run("a.yaml", "b.yaml")
    assert ran.out.count(NOTE) == 2


def test_without_a_gpu_weights_that_none_holds_are_refused(run: Command, write: Write) -> None:
    text = deployment("--max-model-len=1024").replace(
        "meta-llama/Llama-3.3-70B-Instruct", "deepseek-ai/DeepSeek-V3"
    )
    write("a.yaml", text)
    ran = run("a.yaml")
    assert ran.status == 1
    assert "puts 627.1 GiB of weights on each GPU" in ran.out
    assert "no known GPU that its pods may request has more than 255.3 GiB for it" in ran.out
    assert NOTE not in ran.out


def test_a_gpu_of_others_hides_no_weights_that_none_holds(run: Command, write: Write) -> None:
    text = deployment("--max-model-len=1024").replace(
        "meta-llama/Llama-3.3-70B-Instruct", "deepseek-ai/DeepSeek-V3"
    )
    write("a.yaml", text)
    ran = run("a.yaml", "--gpu", "mi300x")
    assert ran.status == 1
    assert "no known GPU that its pods may request has more than 255.3 GiB for it" in ran.out
    assert "0 not checked" in ran.out


WRONG = {
    "h10": "--gpu: 'h10' is not in the table of GPUs; near names: h100, h20, a10",
    "a100": "--gpu: 'a100' may be a100-40gb or a100-80gb",
    "": "the value of --gpu is empty: write it, or leave it out",
    "pool=": "--gpu: 'pool=' names no GPU: write a name such as h200",
    "h100,h200": "--gpu: all pods have two GPUs, NVIDIA H100 and NVIDIA H200",
}


@pytest.mark.parametrize("stated", WRONG)
def test_an_unknown_gpu_names_near_ones(run: Command, write: Write, stated: str) -> None:
    write("a.yaml", deployment())
    ran = run("a.yaml", "--gpu", stated)
    assert ran.status == 2
    assert WRONG[stated] in ran.err


def test_the_policies_config_names_the_gpu(run: Command, write: Write) -> None:
    write("a.yaml", deployment("--max-model-len=1024"))
    write("p.json", json.dumps({"serving-rules": {"gpu": "h100"}}))
    assert H100 in run("a.yaml", "--level", "p.json").out
    ran = run("a.yaml", "--level", "p.json", "--gpu", "b200")
    assert ran.status == 0
    write("p.json", json.dumps({"serving-rules": {"gpu": "h10"}}))
    ran = run("a.yaml", "--level", "p.json")
    assert (ran.status, ran.out) == (2, "")
    assert "p.json: gpu: 'h10' is not in the table of GPUs" in ran.err


def test_the_profile_of_kubeai_names_its_gpu(run: Command, write: Write) -> None:
    """Whatever the user says of pods that name none."""
    model = {
        "apiVersion": "kubeai.org/v1",
        "kind": "Model",
        "metadata": {"name": "llama"},
        "spec": {
            "features": ["TextGeneration"],
            "engine": "VLLM",
            "url": "hf://meta-llama/Llama-3.3-70B-Instruct",
            "image": "example.com/vllm-openai:v0.33.0",
            "resourceProfile": "amd-gpu-mi300x:1",
            "args": ["--max-model-len=32768"],
        },
    }
    write("model.yaml", yaml.safe_dump(model))
    assert run("model.yaml", "--gpu", "h100").status == 0
    model["spec"]["resourceProfile"] = "nvidia-gpu-l4:1"  # type: ignore[index]
    write("model.yaml", yaml.safe_dump(model))
    assert "of NVIDIA L4" in run("model.yaml", "--gpu", "mi300x").out


def test_a_model_that_nothing_names_is_said_once_per_object(run: Command, write: Write) -> None:
    write("a.yaml", re.sub(" +- meta-llama.*\n", "", deployment("--tensor-parallel-size=8")))
    for options in ([], ["--gpu=h100"]):
        ran = run("a.yaml", *options)
        assert "1 not checked" in ran.out
        assert ran.out.count("model in the command line") == 1
