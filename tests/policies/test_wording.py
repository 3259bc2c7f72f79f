"""One mistake, one sentence: the component, the StatefulSet and the ModelServing say the same."""

import re

import pytest

from kthena_components.compiler.compile import compile_serving
from kthena_components.core.findings import SpecError
from tests.policies.broken import emitted
from tests.policies.objects import GPU, Args, refusals, type_of
from tests.support.specs import ENGINE_RAY, GUIDE, SGLANG, changed

RAY_OF_3 = (
    "bash multi-node-serving.sh leader --ray_cluster_size=3; vllm serve m -tp 8 -pp 2 --port 8080"
)
COMMAND = "roles[0].entry_template.spec.containers[0].command[2]"
LIMITS = "roles[0].entry_template.spec.containers[0].resources.limits"
UNEVEN = {"gpus_per_pod": 6}, {"tensor": 4, "pipeline": 3}
BROKEN: dict[str, Args] = {
    "ranks": changed(ENGINE_RAY, {"roles[0].engine.parallelism.tensor": 16}),
    "straddling": changed(
        SGLANG, {"roles[0].resources": UNEVEN[0], "roles[0].engine.parallelism": UNEVEN[1]}
    ),
    "ray": changed(GUIDE, {COMMAND: RAY_OF_3}),
    "no-gpus": changed(GUIDE, {LIMITS: {"memory": "1Ti"}}),
    "requests": changed(GUIDE, {LIMITS.replace("limits", "requests"): {GPU: "4"}}),
}
SENTENCES = {
    "ranks": "engine 'decode' starts tensor 16 × pipeline 2 = 32 ranks, but its 2 pods × 8 GPUs "
    "hold 16. Set pipeline to 1, or set tensor to 8, or give the engine 4 pods "
    "(worker_replicas: 3). [world-size-equals-gpus]",
    "straddling": "engine 'server' has tensor 4 on pods of 6 GPUs, so one tensor group would fill "
    "a part of a pod, and a pod would hold parts of two groups. Set tensor to 2 and pipeline to 6. "
    "[nodes-whole]",
    "ray": "engine 'llama-405b' has 2 pods, but its Ray leader waits for 3 (ray_cluster_size). "
    "Write --ray_cluster_size=2, or $(GROUP_SIZE). [ray-cluster-size-equals-group]",
    "requests": "engine 'llama-405b', container 'leader' states nvidia.com/gpu with a request of 4 "
    "and a limit of 8, and Kubernetes requires both to be equal. Write 8 in both. "
    "[gpu-requests-equal-limits]",
}

FIELD = re.compile(r" \(worker_replicas: [0-9]+\)")
"""What only the component can name: the field of its own that gives an engine its pods."""


def component(args: Args, backend: str) -> list[str]:
    """Give what a component says when it refuses, without the paths."""
    with pytest.raises(SpecError) as refused:
        compile_serving({**args, "backend": backend})
    return [str(finding).removeprefix(f"{finding.path}: ") for finding in refused.value.findings]


def pack(args: Args, backend: str) -> list[str]:
    """Give what the pack says of the objects that the component would have made."""
    lines = [
        line.partition(": ")[2]
        for body in emitted(args, backend)
        for line in refusals(type_of(body), body).splitlines()
    ]
    return list(dict.fromkeys(lines))


@pytest.mark.parametrize("backend", ["native", "kthena"])
@pytest.mark.parametrize("case", SENTENCES)
def test_the_pack_says_of_an_object_what_the_component_says(case: str, backend: str) -> None:
    said = component(BROKEN[case], backend)
    assert said == [SENTENCES[case]]
    assert pack(BROKEN[case], backend) == [FIELD.sub("", line) for line in said]


def test_of_two_objects_each_says_its_part_of_what_the_component_says() -> None:
    said = component(BROKEN["no-gpus"], "kthena")
    assert pack(BROKEN["no-gpus"], "kthena") == said
    assert [line.rpartition(" ")[2] for line in said] == [
        "[world-size-equals-gpus]",
        "[leader-worker-same-gpus]",
    ]
