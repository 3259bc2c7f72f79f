"""Whether Ray can join the pods of a vLLM: its image, its script, and how it counts ranks."""

from collections.abc import Callable, Iterable

import pytest

from kthena_components.compiler.compile import compile_serving
from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding, Level, run_rule
from kthena_components.core.rules.executor_and_ray_over_pods import pp_with_ray, ray_over_pods
from tests.support.specs import ENGINE_RAY, NATIVE_8B, changed, gpu_template
from tests.support.strategies import LATE

TWO = "-tp 8 -pp 2"
IMAGE = "vllm/vllm-openai"
Rule = Callable[[ServingFacts], Iterable[Finding]]


def test_ray_in_an_image_without_it_is_told_where_the_user_wrote_the_image() -> None:
    args = changed(ENGINE_RAY, {"roles[0].engine.image": f"{IMAGE}:v0.18.0"})
    found = {finding.rule: finding.path for finding in compile_serving(args).findings}
    assert found["ray-in-image"] == "roles[0].engine.image"
    assert compile_serving(NATIVE_8B).findings == ()


def spread(rule: Rule, sizes: str, tag: str, gpus: int = 8, executor: str = "ray") -> list[Finding]:
    """Check an engine of two pods, whose entry runs a release of vLLM."""
    command = f"vllm serve m {sizes} --distributed-executor-backend {executor}"
    entry, worker = (
        read_pod(
            changed(gpu_template(text, gpus), {"spec.containers[0].image": f"{IMAGE}:{tag}"}), at
        )
        for text, at in ((command, "t"), ("sleep 1", "w"))
    )
    engine = EngineFacts(path="e", name="e", pods=2, replicas=1, entry=entry, worker=worker)
    return list(run_rule(rule, ServingFacts(path="", name="s", engines=(engine,))))


@pytest.mark.parametrize(("tag", "count"), [("v0.11.0", 0), ("v0.11.1", 1), ("v0.11.2", 0)])
def test_one_release_ends_where_ray_spreads_a_copy(tag: str, count: int) -> None:
    found = spread(ray_over_pods, TWO, tag)
    assert [str(finding) for finding in found] == count * [
        (
            "t.spec.containers[0].command: engine 'e' has a copy of 16 ranks, which Ray spreads "
            "over pods of 8 GPUs, and every worker of vLLM 0.11.1 exits when its pod has fewer "
            "GPUs than the copy has ranks. Use vLLM 0.11.0, or 0.11.2 or later, or connect the "
            "pods with --nnodes and --node-rank. [ray-over-pods]"
        )
    ]


@pytest.mark.parametrize(
    ("sizes", "executor"),
    [("-tp 8 -dp 2 -dpb ray", "ray"), (TWO, "mp"), (f"{TWO} -q {LATE}", "mp")],
)
def test_that_release_starts_what_is_not_spread(sizes: str, executor: str) -> None:
    assert spread(ray_over_pods, sizes, "v0.11.1", executor=executor) == []


@pytest.mark.parametrize(
    ("sizes", "gpus", "tag"),
    [
        ("-pp 2", 1, "v0.19.1"),
        ("-tp 16", 8, "v0.19.1"),
        ("-tp 4 -pp 2", 8, "v0.19.1"),
        ("-pp 4", 1, "v0.11.0"),
        ("-pp 4", 1, "v0.11.1"),
        ("-pp 4", 1, "v0.21.0"),
        ("-pp 4", 1, "nightly"),
        (TWO, 8, "v1.0.0"),
    ],
)
def test_stages_that_cannot_be_mixed_up_are_right(sizes: str, gpus: int, tag: str) -> None:
    assert spread(pp_with_ray, sizes, tag, gpus) == []


@pytest.mark.parametrize(
    ("sizes", "gpus", "tag", "stages", "copy"),
    [
        ("-pp 3", 1, "v0.11.2", 3, 3),
        ("-pp 3", 1, "v0.20.2-cu130", 3, 3),
        (TWO, 8, "v0.19.1", 2, 16),
        ("-tp 2 -pp 2", 1, "v0.19.1", 2, 4),
        ("-tp 8 -pp 4", 8, "v0.12.0", 4, 32),
    ],
)
def test_stages_that_can_be_mixed_up_are_told(
    sizes: str, gpus: int, tag: str, stages: int, copy: int
) -> None:
    (finding,) = spread(pp_with_ray, sizes, tag, gpus)
    assert finding.level is Level.ADVISORY
    assert str(finding) == (
        f"t.spec.containers[0].command: engine 'e' has {stages} pipeline stages in a copy of "
        f"{copy} ranks, which Ray spreads over pods of {gpus} GPU{'s' if gpus > 1 else ''}, and in "
        f"vLLM {tag[1:].partition('-')[0]} a rank that Ray places out of order can get the KV "
        "cache layout of another stage. Connect the pods with --nnodes and --node-rank, or use "
        "vLLM 0.21.0 or later. [pp-with-ray]"
    )
    assert spread(pp_with_ray, sizes, tag, gpus, executor="mp") == []


@pytest.mark.parametrize("rule", [pp_with_ray, ray_over_pods])
def test_stages_that_are_not_known_are_told_once(rule: Rule) -> None:
    """world-size-equals-gpus says it already."""
    tag = "v0.19.1" if rule is pp_with_ray else "v0.11.1"
    assert spread(rule, f"-pp {LATE}", tag) == []
