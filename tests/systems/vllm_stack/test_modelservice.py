"""Releases of the chart llm-d-modelservice: what its values contradict."""

from typing import Any

import pytest

from kthena_components.checker.manifest import check_manifest
from kthena_components.core.findings import Level
from tests.support.peers import LATE
from tests.support.specs import changed

CONTAINER = {
    "name": "vllm",
    "image": "ghcr.io/llm-d/llm-d-cuda:v0.4.0",
    "modelCommand": "vllmServe",
    "args": ["--enforce-eager"],
    "resources": {"limits": {"memory": "64Gi", "nvidia.com/gpu": "4"}},
}
FLUX = {
    "apiVersion": "helm.toolkit.fluxcd.io/v2",
    "kind": "HelmRelease",
    "metadata": {"name": "chat", "namespace": "serving"},
    "spec": {
        "chart": {"spec": {"chart": "llm-d-modelservice"}},
        "values": {
            "modelArtifacts": {"name": "Qwen/Qwen3-32B", "uri": "hf://Qwen/Qwen3-32B"},
            "decode": {"parallelism": {"tensor": 4}, "containers": [CONTAINER]},
            "prefill": {"create": False},
        },
    },
}
DECODE = "spec.values.decode"
GPUS = f"{DECODE}.containers[0].resources"
ARGS = f"{DECODE}.containers[0].args"
SIZES = f"{DECODE}.parallelism"
VERSION = "spec.chart.spec.version"
SCRIPT = (
    "exec vllm serve m --tensor-parallel-size 16 --nnodes $LWS_GROUP_SIZE "
    "--node-rank $LWS_WORKER_INDEX --master-addr $LWS_LEADER_ADDRESS"
)
NODES = {
    "spec.values.multinode": True,
    f"{DECODE}.containers[0].modelCommand": "custom",
    f"{DECODE}.containers[0].command": ["/bin/sh", "-c"],
    ARGS: [SCRIPT],
}
WIDE = {
    "spec.values.multinode": True,
    f"{SIZES}": {"tensor": 1, "data": 16, "dataLocal": 8},
    GPUS: {},
}


def told(changes: dict[str, Any], body: dict[str, Any] = FLUX) -> list[str]:
    found = check_manifest(changed(body, changes))
    return [str(f) for f in found if f.level is Level.MANDATORY]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({f"{SIZES}.tensor": 8}, "= 8 ranks, but its pod has 4 GPUs"),
        ({f"{GPUS}.limits": {"nvidia.com/gpu": 2}}, "= 4 ranks, but its pod has 2 GPUs"),
        ({GPUS: {}, ARGS: ["--tensor-parallel-size", "8"]}, "= 8 ranks, but its pod has 4 GPUs"),
        ({GPUS: {}, ARGS: ["-pp", "2"]}, "= 8 ranks, but its pod has 4 GPUs"),
        # The chart requests 4 × dataLocal, which is 1, and vLLM starts both of its ranks here.
        ({GPUS: {}, f"{SIZES}.data": 2}, "8 ranks, but its pod has 4 GPUs"),
        (
            {GPUS: {}, f"{SIZES}.data": 2, f"{SIZES}.dataLocal": 1},
            "8 ranks, but its pod has 4 GPUs",
        ),
        (
            {
                f"{DECODE}.containers[0].modelCommand": "custom",
                f"{DECODE}.containers[0].command": ["vllm", "serve", "x", "-tp", "8"],
                ARGS: [],
            },
            "= 8 ranks, but its pod has 4 GPUs",
        ),
        (
            {
                f"{SIZES}.tensor": 8,
                f"{DECODE}.containers[0].modelCommand": "custom",
                f"{DECODE}.containers[0].command": ["/bin/sh", "-c"],
                ARGS: ["exec vllm serve x --tensor-parallel-size $TP_SIZE"],
            },
            "= 8 ranks, but its pod has 4 GPUs",
        ),
        # 0.3.6 to 0.3.16 request tensor × dataLocal, whatever resources state.
        (
            {ARGS: ["-pp", "2"], GPUS: {"limits": {"nvidia.com/gpu": "8"}}, VERSION: "0.3.16"},
            "= 8 ranks, but its pod has 4 GPUs",
        ),
        ({ARGS: ["-tp=8"], VERSION: "0.3.5"}, "= 8 ranks, but its pod has 4 GPUs"),
        ({**NODES, f"{SIZES}.workers": 2, GPUS: {}}, "= 16 ranks, but its 2 pods × 4 GPUs hold 8"),
        ({ARGS: ["-tp=8"], VERSION: "0.3.6"}, "= 8 ranks, but its pod has 4 GPUs"),
        ({f"{SIZES}.data": 2, VERSION: "0.3.14"}, "8 ranks, but its pod has 4 GPUs"),
    ],
)
def test_a_contradiction_is_told(changes: dict[str, Any], said: str) -> None:
    (text,) = told(changes)
    assert said in text
    assert "[world-size-equals-gpus]" in text


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {GPUS: {}},
        {GPUS: {}, f"{SIZES}.tensor": 8},
        {GPUS: {}, f"{SIZES}.data": 2, f"{SIZES}.dataLocal": 2},
        {f"{SIZES}.tensor": LATE},
        {f"{SIZES}.tensor": 8, GPUS: LATE},
        {f"{SIZES}.tensor": 8, f"{DECODE}.containers[0].modelCommand": {"odd": []}},
        {SIZES: ["odd"], GPUS: ["odd"], "spec.values.accelerator": {"type": ["odd"]}},
        {f"{SIZES}.tensor": 8, ARGS: LATE},
        # The chart replaced what was stated.
        {f"{SIZES}.tensor": 8, VERSION: "v0.3.16"},
        {f"{SIZES}.tensor": 8, VERSION: "0.3.x"},
        # Without dataLocal it was data, before values.yaml stated 1.
        {f"{SIZES}.data": 2, VERSION: "0.3.13"},
        {ARGS: ["-tp=8"], VERSION: "0.2.16"},
        # Before 0.3.6 the chart requests tensor GPUs and passes no data sizes.
        {f"{SIZES}.tensor": 8, VERSION: "0.3.5"},
        {f"{SIZES}.data": 2, VERSION: "0.3.5"},
        {f"{SIZES}.tensor": 8, "spec.values.accelerator": {"dra": True}},
        {f"{SIZES}.tensor": 8, "spec.values.accelerator": {"type": "google"}},
        # 8 of the 16 copies are here, and another release may start the others.
        {**WIDE, "spec.values.multinode": False},
        {**WIDE, **dict.fromkeys([f"{SIZES}.workers"], 2)},
        {**WIDE, VERSION: "0.3.13"},
        {**NODES, f"{SIZES}.tensor": 8, f"{SIZES}.workers": 2, GPUS: {}},
        {**NODES, f"{SIZES}.tensor": 8, f"{SIZES}.data": 2, VERSION: "0.3.5"},
        {f"{SIZES}.tensor": 4, "spec.values.multinode": LATE, ARGS: ["-tp=8"]},
        {f"{SIZES}.tensor": 8, "spec.valuesFrom": [{"kind": "ConfigMap", "name": "x"}]},
        {f"{SIZES}.tensor": 8, f"{DECODE}.create": False},
        {
            f"{SIZES}.tensor": 8,
            f"{DECODE}.containers[0].image": "ghcr.io/llm-d/llm-d-inference-sim:v0.6.1",
        },
    ],
)
def test_what_the_chart_makes_consistent_is_silent(changes: dict[str, Any]) -> None:
    assert told(changes) == []


def test_both_halves_are_pods_of_their_own() -> None:
    shm = {"name": "shm", "mountPath": "/dev/shm"}  # noqa: S108 - NCCL's memory
    half = {
        "parallelism": {"tensor": 4},
        "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}],
        "containers": [{**CONTAINER, "volumeMounts": [shm]}],
    }
    assert check_manifest(changed(FLUX, {DECODE: half, "spec.values.prefill": half})) == []


def test_prefill_is_read_as_decode() -> None:
    half = {"parallelism": {"tensor": 8}, "containers": [CONTAINER]}
    (text,) = told({"spec.values.prefill": half})
    assert text.startswith("spec.values.prefill.")


def test_a_parameter_of_argo_is_where_the_size_is() -> None:
    argo = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": "chat"},
        "spec": {
            "source": {
                "chart": "llm-d-modelservice",
                "helm": {
                    "valuesObject": FLUX["spec"]["values"],  # type: ignore[index]
                    "parameters": [{"name": "decode.parallelism.tensor", "value": "8"}],
                },
            }
        },
    }
    (text,) = told({}, argo)
    assert text.startswith("spec.source.helm.parameters[0].value: engine 'decode' starts tensor 8")


def test_the_version_of_a_helm_chart_of_k3s_is_that_of_its_chart() -> None:
    spec: dict[str, Any] = FLUX["spec"]  # type: ignore[assignment]
    k3s = {
        "apiVersion": "helm.cattle.io/v1",
        "kind": "HelmChart",
        "metadata": FLUX["metadata"],
        "spec": {"chart": "llm-d-modelservice", "values": spec["values"]},
    }
    assert told({f"{SIZES}.tensor": 8}, k3s)
    assert told({f"{SIZES}.tensor": 8, "spec.version": "0.3.16"}, k3s) == []
