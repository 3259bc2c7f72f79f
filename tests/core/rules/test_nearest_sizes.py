"""The sizes that remedies name: a rank for each GPU, and weights that fit."""

import re

from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Level
from kthena_components.core.rules.registry import run_checks
from tests.support.for_each import for_each

LLAMA = "meta-llama/Llama-3.1-405B-Instruct-FP8"
SIZES = {
    "idle GPUs": (LLAMA, 6, 1, 8),
    "weights that need all GPUs": (LLAMA, 3, 1, 8),
    "weights that need more than one GPU": (LLAMA, 1, 1, 8),
    "more ranks than GPUs": ("meta-llama/Llama-3.3-70B-Instruct", 24, 1, 8),
    "as many ranks as GPUs": ("meta-llama/Llama-3.3-70B-Instruct", 6, 1, 6),
    "FP8 blocks": ("Qwen/Qwen3-32B-FP8", 16, 1, 8),
}
NAMED = re.compile(r"set tensor to (\d+)(?: and pipeline to (\d+))?")
ABOUT_SIZES = {"world-size-equals-gpus", "tp-divides-heads", "tp-divides-kv-heads", "ffn-divisible"}


def found(model: str, tensor: int, pipeline: int, gpus: int) -> dict[str, str]:
    command = f"vllm serve {model} -tp {tensor} -pp {pipeline} --max-model-len 4096"
    template = {
        "spec": {
            "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
            "containers": [
                {
                    "name": "engine",
                    "image": "vllm/vllm-openai:v0.26.0",
                    "command": command.split(),
                    "resources": {"limits": {"nvidia.com/gpu": str(gpus)}},
                }
            ],
        }
    }
    entry = read_pod(template, "here")
    engine = EngineFacts(path="here", name="e", pods=1, replicas=1, entry=entry, worker=None)
    facts = ServingFacts(path="", name="e", engines=(engine,))
    return {f.rule: f.remedy for f in run_checks(facts) if f.level is Level.MANDATORY}


@for_each("name", SIZES)
def test_the_sizes_of_a_remedy_pass_every_rule(name: str) -> None:
    model, tensor, pipeline, gpus = SIZES[name]
    remedies = found(model, tensor, pipeline, gpus)
    assert ABOUT_SIZES.intersection(remedies)
    named = [pair for rule in ABOUT_SIZES for pair in NAMED.findall(remedies.get(rule, ""))]
    assert named
    for size, stages in named:
        assert found(model, int(size), int(stages or pipeline), gpus) == {}


def test_more_gpus_are_no_remedy_for_sizes_that_are_refused() -> None:
    remedies = found(LLAMA, 6, 1, 8)
    assert remedies["world-size-equals-gpus"] == "set tensor to 8"
    kept = found("meta-llama/Llama-3.3-70B-Instruct", 4, 1, 8)
    assert kept["world-size-equals-gpus"] == (
        "set tensor to 8, or set pipeline to 2, or give each pod 4 GPUs"
    )
