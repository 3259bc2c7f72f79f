"""Options that do not fit, and sizes that KAITO does not start, for its presets."""

from typing import Any

from tests.support.for_each import for_each
from tests.support.refusals import assert_refused
from tests.support.specs import Args, changed
from tests.systems.kaito.servings import ENGINE, LLAMA, OPTION, PHI, PRESET, TEMPLATE, existing

REFUSED: dict[str, tuple[Args, dict[str, Any], str]] = {
    "unknown-option": (
        LLAMA,
        {f"{OPTION}.instance_typ": "x"},
        (
            "backend_options.instance_typ: there is no field 'instance_typ' here. Remove it, "
            "because instance_type is stated, too. [unknown-field]"
        ),
    ),
    "no-nodes": (
        TEMPLATE,
        {OPTION: {}},
        (
            "backend_options: states no nodes. Write instance_type, for nodes that KAITO "
            "creates, or "
            "label_selector, for existing ones. [backend-options]"
        ),
    ),
    "unknown-type": (
        TEMPLATE,
        {OPTION: {"instance_type": "p5.49xlarge"}},
        (
            "backend_options.instance_type: is 'p5.49xlarge', which KAITO does not know. Write "
            "'p5.48xlarge'. [backend-options]"
        ),
    ),
    "type-of-another-maker": (
        PRESET,
        {f"{OPTION}.instance_type": "g4ad.xlarge"},
        (
            "backend_options.instance_type: is 'g4ad.xlarge' with 1 AMD Radeon Pro V520, but the "
            "pods "
            "of a preset request nvidia.com/gpu. Choose an instance type with NVIDIA GPUs."
        ),
    ),
    "own-label": (
        TEMPLATE,
        {f"{OPTION}.label_selector": {"kaito.sh/workspace": "a"}},
        (
            "backend_options.label_selector.kaito.sh/workspace: is a label that KAITO gives its "
            "own "
            "nodes, and ignores here. Write a label of your own. [backend-options]"
        ),
    ),
    "label": (
        TEMPLATE,
        {f"{OPTION}.label_selector": {"team": "a b"}},
        "backend_options.label_selector.team: is 'a b', but must be letters, digits, '-', '_'",
    ),
    "benchmark-of-a-template": (
        TEMPLATE,
        {f"{OPTION}.benchmark": False},
        "backend_options.benchmark: is given without a preset. Write preset, or remove it.",
    ),
    "adapters-of-a-template": (
        TEMPLATE,
        {f"{OPTION}.adapters": {"a": {"image": "a"}}},
        "backend_options.adapters: is given without a preset. Write preset, or remove it.",
    ),
    "adapters": (
        PRESET,
        {f"{OPTION}.adapters": {f"a{i}": {"image": "a"} for i in range(12)}},
        "backend_options.adapters: has 12 adapters, and KAITO accepts at most 10. Remove 2.",
    ),
    "nodes-without-gpus": (
        PRESET,
        existing({"team": "a"}),
        (
            "backend_options.label_selector.nvidia.com/gpu.product: is not stated; KAITO counts "
            "the "
            "nodes of a preset by the GPUs of existing nodes. Write the product of the nodes' "
            "GPUs, "
            "such as NVIDIA-H100-80GB-HBM3. [backend-options]"
        ),
    ),
    "unknown-gpus": (
        PRESET,
        existing({"nvidia.com/gpu.product": "H1000"}),
        "nvidia.com/gpu.product: is 'H1000': 'H1000' is not in the table of GPUs; KAITO counts",
    ),
    "other-number-of-gpus": (
        PRESET,
        existing({"nvidia.com/gpu.product": "NVIDIA-H200", "nvidia.com/gpu.count": "4"}),
        (
            "backend_options.label_selector.nvidia.com/gpu.count: is '4', but "
            "resources.gpus_per_pod is "
            "8, and each pod uses all GPUs of its node. Remove it, or change one of them."
        ),
    ),
    "unknown-preset": (
        PRESET,
        {f"{OPTION}.preset": "llama-3.3-70b"},
        (
            "backend_options.preset: is 'llama-3.3-70b', which is neither organisation/name nor "
            "a short "
            "name of KAITO. Write 'llama-3.3-70b-instruct'. [backend-options]"
        ),
    ),
    "preset-of-another-model": (
        PRESET,
        {f"{OPTION}.preset": "llama-3.3-70b-instruct"},
        (
            "backend_options.preset: is 'llama-3.3-70b-instruct', but the engine's model is "
            "'meta-llama/Llama-3.1-405B-Instruct'. Write engine.model: "
            "meta-llama/Llama-3.3-70B-Instruct, or another preset. [backend-options]"
        ),
    ),
    "preset-of-unknown-size": (
        PRESET,
        {f"{OPTION}.preset": "org/m", f"{ENGINE}.model": "org/m"},
        (
            "backend_options.preset: is 'org/m', and KAITO's nodes cannot be calculated: 'org/m' "
            "is not "
            "in the table of models. Choose a model of the table, or write backend: native"
        ),
    ),
    "cache-in-host-memory": (
        PHI,
        {f"{OPTION}.kv_cache_cpu_memory_utilization": 0.5},
        "backend_options.kv_cache_cpu_memory_utilization: is 0.5, but KAITO ignores it for data 8.",
    ),
    "tensor": (
        LLAMA,
        {f"{ENGINE}.parallelism": {"tensor": 4}},
        (
            f"{ENGINE}.parallelism: is tensor 4 × pipeline 1 on 2 pods of 2 GPUs, but KAITO starts "
            "tensor 2 × pipeline 2 on 2 pods of 2 GPUs: KAITO counts 3 GPUs of 80 GiB for the "
            "131.42 "
            "GiB of meta-llama/Llama-3.3-70B-Instruct and requests of 2048 tokens, and uses all "
            "GPUs "
            "of its nodes. Write tensor: 2, pipeline: 2, data: 1, worker_replicas: 1 and "
            "gpus_per_pod: 2, or choose other nodes. [backend-loss]"
        ),
    ),
    "pods": (
        LLAMA,
        {f"{ENGINE}.parallelism.pipeline": 3, "roles[0].worker_replicas": 2},
        "is tensor 2 × pipeline 3 on 3 pods of 2 GPUs, but KAITO starts tensor 2 × pipeline 2 on 2",
    ),
    "gpus-of-a-node": (
        LLAMA,
        {f"{ENGINE}.parallelism.tensor": 1, "roles[0].resources.gpus_per_pod": 1},
        "is tensor 1 × pipeline 2 on 2 pods of 1 GPU, but KAITO starts tensor 2 × pipeline 2 on 2",
    ),
    "copies": (
        PHI,
        {f"{ENGINE}.parallelism": {"tensor": 8}},
        "is tensor 8 × pipeline 1 on 1 pod of 8 GPUs, but KAITO starts data 8 on 1 pod of 8 GPUs",
    ),
    "longer-requests": (
        changed(LLAMA, {f"{ENGINE}.extra_args": ["--max-model-len=100000"]}),
        {f"{OPTION}.instance_type": "Standard_NV72ads_A10_v5"},
        "backend_options.preset: needs 28 nodes of Standard_NV72ads_A10_v5: KAITO counts",
    ),
    "too-many-nodes": (
        PRESET,
        {f"{OPTION}.instance_type": "Standard_NC48ads_A100_v4"},
        (
            "backend_options.preset: needs 7 nodes of Standard_NC48ads_A100_v4: KAITO counts 13 "
            "GPUs "
            "of 80 GiB for the 755.96 GiB of meta-llama/Llama-3.1-405B-Instruct and requests of "
            "2048 "
            "tokens, and KAITO 0.11 starts at most 3 nodes. Choose nodes with more GPU memory, "
            "or a "
            "shorter --max-model-len. [backend-loss]"
        ),
    ),
    "small-gpus": (
        LLAMA,
        {
            f"{OPTION}.instance_type": "g6.xlarge",
            f"{ENGINE}.extra_args": ["--max-model-len=131072"],
        },
        (
            "backend_options.preset: needs 42.3 GiB of each GPU before any weights are loaded, "
            "but vLLM "
            "may use 20.2 GiB on g6.xlarge. Choose GPUs with more memory, or a shorter "
            "--max-model-len."
        ),
    ),
}


@for_each("case", REFUSED)
def test_what_kaito_cannot_do_is_an_error(case: str) -> None:
    assert_refused(*REFUSED[case])
