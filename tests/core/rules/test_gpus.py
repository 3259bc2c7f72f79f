"""Whether ranks and GPUs agree: what passes, what is said, and that the remedy is one."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kthena_components.compiler.compile import compile_serving
from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding, Level, SpecError
from kthena_components.core.findings import run_rule as run
from kthena_components.core.rules.gang_covers_engine_nodes_whole import nodes_whole
from kthena_components.core.rules.gpu_requests_vendor_visible import gpu_requests_equal_limits
from kthena_components.core.rules.leader_worker_same import leader_worker_same_gpus
from kthena_components.core.rules.world_size_equals_gpus import world_size_equals_gpus
from kthena_components.core.values.unknown import MaybeInt, Unknown
from tests.support.specs import ENGINE_RAY, changed, gpu_template
from tests.support.strategies import LATE, law

GPU_CHECKS = (
    world_size_equals_gpus,
    nodes_whole,
    gpu_requests_equal_limits,
    leader_worker_same_gpus,
)
SPLIT = (
    "so one tensor group would fill a part of a pod, and a pod would hold parts of two groups. "
    "Set tensor to {}. [nodes-whole]"
)


def engine(
    flags: str, gpus: Any = 8, pods: MaybeInt = 1, worker_gpus: int | None = None
) -> EngineFacts:
    """Give an engine whose pods run vLLM with some flags."""
    template = gpu_template(f"vllm serve m {flags}", gpus)
    worker = gpu_template("vllm serve m", gpus if worker_gpus is None else worker_gpus)
    return EngineFacts(
        path="e",
        name="e",
        pods=pods,
        replicas=1,
        entry=read_pod(template, "entry", command_path="here"),
        worker=None if pods == 1 else read_pod(worker, "worker"),
    )


def findings(facts: EngineFacts) -> list[Finding]:
    """Check one engine that Volcano places, by the rules about GPUs."""
    checked = ServingFacts(path="", name="s", engines=(facts,), gang_expected=True)
    return [finding for check in GPU_CHECKS for finding in run(check, checked)]


def said(facts: EngineFacts) -> list[str]:
    return [str(finding) for finding in findings(facts)]


RIGHT = {
    "one-gpu": engine("", 1),
    "no-gpu": engine("", 0),
    "tensor": engine("-tp 8"),
    "pipeline": engine("-tp 2 -pp 4"),
    "data": engine("-dp 8"),
    "context": engine("-tp 4 -pcp 2"),
    "decode-context": engine("-tp 8 -dcp 4"),
    "two-pods": engine("-tp 8 -pp 2", pods=2),
    "tensor-over-pods": engine("-tp 16", pods=2),
    "several-groups-in-a-pod": engine("-tp 4 -pp 4", pods=2),
    "external-copies": engine("-tp 8 -dp 4 -dpn 0", pods=1),
    "hybrid-copies": engine("-tp 2 -dp 8 -dpl 4 --data-parallel-hybrid-lb", pods=2),
    "output-that-does-not-count": engine(f"-tp 8 --seed {LATE}"),
}


@pytest.mark.parametrize("facts", RIGHT.values(), ids=RIGHT)
def test_as_many_ranks_as_gpus_are_right(facts: EngineFacts) -> None:
    assert [finding for finding in findings(facts) if finding.level is Level.MANDATORY] == []


WRONG = {
    "fewer-ranks": (
        engine("-tp 4"),
        "starts tensor 4 × pipeline 1 = 4 ranks, but its pod has 8 GPUs",
        "Set tensor to 8, or set pipeline to 2, or give each pod 4 GPUs",
    ),
    "one-rank": (
        engine("", 2),
        "starts tensor 1 × pipeline 1 = 1 rank, but its pod has 2 GPUs",
        "Set tensor to 2, or set pipeline to 2, or give each pod 1 GPU",
    ),
    "more-ranks": (
        engine("-tp 8 -pp 3", pods=2),
        "starts tensor 8 × pipeline 3 = 24 ranks, but its 2 pods × 8 GPUs hold 16",
        "Set pipeline to 2, or give the engine 3 pods",
    ),
    "one-gpu-each": (
        engine("-tp 1 -pp 3", 1, pods=2),
        "starts tensor 1 × pipeline 3 = 3 ranks, but its 2 pods × 1 GPU hold 2",
        "Set pipeline to 2, or give the engine 3 pods",
    ),
    "one-gpu": (
        engine("-pp 3", 1),
        "starts tensor 1 × pipeline 3 = 3 ranks, but its pod has 1 GPU",
        "Set pipeline to 1, or give each pod 3 GPUs",
    ),
    "pods-that-nothing-connects": (
        engine("-tp 4", 4, pods=2),
        "starts tensor 4 × pipeline 1 = 4 ranks, but its 2 pods × 4 GPUs hold 8",
        (
            "Give the engine 1 pod; or connect the pods with --nnodes 2, --node-rank and "
            "--master-addr, and set pipeline to 2 or set tensor to 8"
        ),
    ),
    "pods-that-are-connected": (
        engine("-tp 4 --nnodes 2", 4, pods=2),
        "starts tensor 4 × pipeline 1 = 4 ranks, but its 2 pods × 4 GPUs hold 8",
        "Set pipeline to 2, or set tensor to 8, or give the engine 1 pod, or give each pod 2 GPUs",
    ),
    "no-gpus": (
        engine("-tp 8", 0),
        "starts tensor 8 × pipeline 1 = 8 ranks, but its pod has 0 GPUs",
        "Give each pod 8 GPUs",
    ),
    "copies": (
        engine("-tp 2 -dp 2", pods=2),
        "starts tensor 2 × pipeline 1 × data 2 = 4 ranks, but its 2 pods × 8 GPUs hold 16",
        "Set data to 8, or set pipeline to 4, or set tensor to 8, or give each pod 2 GPUs",
    ),
    "copies-that-must-spread": (
        engine("-tp 4 -dp 2", pods=3),
        "starts tensor 4 × pipeline 1 × data 2 = 8 ranks, but its 3 pods × 8 GPUs hold 24",
        "Set data to 6, or give the engine 1 pod",
    ),
    "context": (
        engine("-tp 2 -pcp 2", 8),
        "starts tensor 2 × pipeline 1 × context 2 = 4 ranks, but its pod has 8 GPUs",
        "Set tensor to 4, or set pipeline to 2, or set context to 4, or give each pod 4 GPUs",
    ),
    "external-copies": (
        engine("-tp 4 -dp 4 -dpn 0", pods=2),
        "starts tensor 4 × pipeline 1 × 2 pods = 8 ranks, but its 2 pods × 8 GPUs hold 16",
        "Set pipeline to 2, or set tensor to 8, or give each pod 4 GPUs",
    ),
    "neither-size-divides": (
        engine("-tp 5 -pp 3", 4, pods=2),
        "starts tensor 5 × pipeline 3 = 15 ranks, but its 2 pods × 4 GPUs hold 8",
        "Set tensor to 4 and pipeline to 2",
    ),
    "one-size-divides": (
        engine("-tp 10 -pp 3", 5, pods=2),
        "starts tensor 10 × pipeline 3 = 30 ranks, but its 2 pods × 5 GPUs hold 10",
        "Set pipeline to 1, or give the engine 6 pods",
    ),
}


def test_both_sizes_are_set_to_ones_that_the_model_accepts() -> None:
    sizes, gpus = "roles[0].engine.parallelism", "roles[0].resources.gpus_per_pod"
    wrong = {f"{sizes}.tensor": 4, f"{sizes}.pipeline": 3, gpus: 3}
    with pytest.raises(SpecError) as refused:
        compile_serving(changed(ENGINE_RAY, wrong))
    remedies = {found.rule: found.remedy for found in refused.value.findings}
    assert remedies["world-size-equals-gpus"] == "set tensor to 1 and pipeline to 6"
    compile_serving(changed(ENGINE_RAY, {**wrong, f"{sizes}.tensor": 1, f"{sizes}.pipeline": 6}))


def test_copies_that_balance_outside_are_counted_by_the_pod() -> None:
    (line,) = said(engine("-tp 2 -dp 8 -dpl 2 --data-parallel-hybrid-lb", pods=2))
    assert line == (
        "here: engine 'e' starts tensor 2 × pipeline 1 × data 2 a pod × 2 pods = 8 ranks, but its "
        "2 pods × 8 GPUs hold 16. Set pipeline to 2, or set tensor to 4, or give each pod 4 GPUs. "
        "[world-size-equals-gpus]"
    )


@pytest.mark.parametrize(("facts", "seen", "remedy"), WRONG.values(), ids=WRONG)
def test_other_ranks_than_gpus_are_refused(facts: EngineFacts, seen: str, remedy: str) -> None:
    assert said(facts)[0] == f"here: engine 'e' {seen}. {remedy}. [world-size-equals-gpus]"


@pytest.mark.parametrize(
    ("facts", "because"),
    [
        (
            engine(f"-tp {LATE}"),
            "its value is a Pulumi Output, which is known only after the deployment",
        ),
        (engine("-tp 8", LATE), "the amount of nvidia.com/gpu is not known yet"),
        (engine("-tp 8", pods=Unknown("nobody says")), "nobody says"),
        (engine("-tp 2 -dp 4 --data-parallel-hybrid-lb", pods=2), "local is not stated"),
        (engine("-tp 8 --config c.yaml"), "c.yaml"),
        (engine("-tp 8 -dp 2 -dpn 0", pods=Unknown("nobody says")), "nobody says"),
    ],
    ids=["size", "gpus", "pods", "copies-in-a-pod", "config-file", "pods-of-copies"],
)
def test_what_is_not_known_is_told_and_not_refused(facts: EngineFacts, because: str) -> None:
    (finding,) = findings(facts)
    assert finding.level is Level.UNKNOWN
    assert because in str(finding)


def test_a_command_that_cannot_start_is_refused_for_its_own_reason() -> None:
    (finding,) = findings(engine("-tp 8'"))
    assert (finding.level, finding.rule) == (Level.MANDATORY, "world-size-equals-gpus")
    assert "the script ends inside a single quote" in str(finding)


def test_an_option_that_is_refused_is_another_rules_to_say() -> None:
    assert findings(engine("-tp 8 --tensor-parallel-size eight")) == []


@pytest.mark.parametrize(
    ("command", "gpus", "told"),
    [
        ("sleep infinity", 8, "no command line of a known engine was found"),
        (LATE, 8, "the command line of container 'engine' is not known yet"),
        (LATE, 0, None),
        ("bash multi-node-serving.sh worker --ray_address=x", 8, None),
    ],
    ids=["no-engine", "output", "output-without-gpus", "ray-worker"],
)
def test_gpus_without_an_engine_are_told_unless_a_ray_head_has_them(
    command: str, gpus: int, told: str | None
) -> None:
    template = gpu_template(command, gpus)
    template["spec"]["containers"][0]["image"] = "mine:v1"
    facts = EngineFacts(
        path="e", name="e", pods=1, replicas=1, entry=read_pod(template, "t"), worker=None
    )
    because = [] if told is None else [f"engine 'e' was not checked, because {told}"]
    assert [finding.seen for finding in findings(facts)] == because


@pytest.mark.parametrize(
    ("tensor", "gpus", "near"),
    [(6, 8, "4 or 8"), (3, 8, "2 or 4"), (12, 8, "8 or 16"), (5, 6, "3 or 6")],
)
def test_a_tensor_group_fills_whole_pods_or_a_whole_part(tensor: int, gpus: int, near: str) -> None:
    facts = engine(f"-tp {tensor} -pp {gpus}", gpus, pods=tensor)
    split = SPLIT.format(near)
    assert said(facts) == [f"here: engine 'e' has tensor {tensor} on pods of {gpus} GPUs, {split}"]


def test_one_pod_holds_any_tensor_group() -> None:
    assert said(engine("-tp 3 -pp 2", 6)) == []


def test_a_pod_of_very_many_gpus_is_checked_as_well() -> None:
    assert findings(engine("-tp 2147483646", 2**31 - 1, pods=2))


WORDS = {
    r"set (tensor|pipeline|data) to (\d+)": "roles[0].engine.parallelism.{}",
    r"give the (engine) (\d+) pods?(?: \(worker_replicas: \d+\))?": "roles[0].worker_replicas",
    r"give each (pod) (\d+) GPUs?": "roles[0].resources.gpus_per_pod",
}


def ways(remedy: str) -> Iterator[dict[str, int]]:
    """Read the changes that a remedy proposes, one after another."""
    for way in remedy.split(", or "):
        changes = {}
        for part in way.split(" and "):
            full = part if part.startswith(("set", "give")) else f"set {part}"
            for pattern, path in WORDS.items():
                if match := re.fullmatch(pattern, full):
                    changes[path.format(match[1])] = int(match[2]) - (match[1] == "engine")
        assert changes, way
        yield changes


@pytest.mark.property
@law
@given(
    st.fixed_dictionaries(
        {
            "roles[0].engine.parallelism.tensor": st.integers(1, 16),
            "roles[0].engine.parallelism.pipeline": st.integers(1, 4),
            "roles[0].engine.parallelism.data": st.sampled_from([1, 1, 2, 4]),
            "roles[0].worker_replicas": st.integers(0, 3),
            "roles[0].resources.gpus_per_pod": st.sampled_from([1, 2, 4, 8]),
        }
    ),
    st.sampled_from([("vllm", "ray"), ("vllm", "native"), ("sglang", "native")]),
)
def test_what_a_remedy_says_is_accepted(sizes: dict[str, Any], start: tuple[str, str]) -> None:
    kind, launcher = start
    # A private model: which sizes a known one takes, this rule does not ask.
    # Nor by which release it would be started.
    fields = {
        "kind": kind,
        "launcher": launcher,
        "model": "ours/private",
        "image": f"ours/{kind}:1",
    }
    engine_fields = {f"roles[0].engine.{name}": value for name, value in fields.items()}
    wrong = changed(ENGINE_RAY, sizes | engine_fields)
    try:
        compile_serving(wrong)
    except SpecError as refusal:
        found = {finding.rule: finding for finding in refusal.findings}
    else:
        found = {}
    assume("world-size-equals-gpus" in found)
    for changes in ways(found["world-size-equals-gpus"].remedy):
        compile_serving(changed(wrong, changes))


def test_ranks_of_chips_with_several_devices_are_not_checked() -> None:
    template = gpu_template("vllm serve m -tp 8", 4)
    template["spec"]["nodeSelector"] = {"cloud.google.com/gke-tpu-accelerator": "tpu7x"}
    entry = read_pod(template, "entry", command_path="here")
    found = findings(EngineFacts(path="e", name="e", pods=1, replicas=1, entry=entry, worker=None))
    assert [(finding.level, finding.seen) for finding in found] == [
        (
            Level.UNKNOWN,
            "engine 'e' was not checked, because each chip of TPU v7 is two devices for an engine",
        )
    ]
    assert entry.all_gpus == 4


@pytest.mark.parametrize(
    "flags", ["-tp 1 -dp 2 --enable-elastic-ep --enable-eplb", "-tp 2 --enable-elastic-ep"]
)
def test_an_elastic_engine_may_have_more_gpus_than_ranks(flags: str) -> None:
    (found,) = findings(engine(flags, 4))
    assert (found.level, found.rule) == (Level.UNKNOWN, "world-size-equals-gpus")
    assert "elastic engine" in found.seen
    (found,) = findings(engine(flags, 1))
    assert (found.level, found.rule) == (Level.MANDATORY, "world-size-equals-gpus")


def test_sglang_may_grow_too() -> None:
    start = "python3 -m sglang.launch_server --model-path m --tp-size 4"
    grows = read_pod(gpu_template(f"{start} --max-ep-size 8", 8), "e", command_path="here")
    stays = read_pod(gpu_template(start, 8), "e", command_path="here")
    facts = [
        EngineFacts(path="e", name="e", pods=1, replicas=1, entry=entry, worker=None)
        for entry in (grows, stays)
    ]
    assert [finding.level for fact in facts for finding in findings(fact)] == [
        Level.UNKNOWN,
        Level.MANDATORY,
    ]
