"""Whether Ray can join the pods of a vLLM: its image, its script, and how it counts ranks."""

from collections.abc import Callable, Iterable

import pytest

from kthena_components.compiler.compile import compile_serving
from kthena_components.core.facts.pod import read_pod
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding, Level
from kthena_components.core.rules.ray_start import (
    pp_with_ray,
    ray_in_image,
    ray_over_pods,
    ray_script_in_image,
)
from tests.support.specs import ENGINE_RAY, NATIVE_8B, changed, gpu_template
from tests.support.strategies import LATE, SCRIPT

RAY = f"{SCRIPT} leader --ray_cluster_size=2; vllm serve m"
TWO = "-tp 8 -pp 2"
IMAGE = "vllm/vllm-openai"
Rule = Callable[[ServingFacts], Iterable[Finding]]


def judged(
    rule: Rule, command: str, image: str, *, gpus: int = 8, pods: int = 2, worker: str | None = None
) -> list[Finding]:
    """Judge an engine whose entry runs a command in an image."""
    entry, other = (
        read_pod(changed(gpu_template(text, gpus), {"spec.containers[0].image": image}), at)
        for text, at in ((command, "t"), (worker or "sleep 1", "w"))
    )
    engine = EngineFacts(path="e", name="e", pods=pods, replicas=1, entry=entry, worker=other)
    return list(rule(ServingFacts(path="", name="s", engines=(engine,))))


def ray(command: str, image: str = f"{IMAGE}:v0.11.0") -> list[Finding]:
    return judged(ray_in_image, command, image)


@pytest.mark.parametrize(
    "image",
    [f"{IMAGE}:v0.17.1", "me/vllm-with-ray:v0.18.0", f"mirror/{IMAGE}:v0.9"],
    ids=["before", "own", "mirror"],
)
def test_an_image_that_may_have_ray_is_right(image: str) -> None:
    assert ray(f"{RAY} {TWO}", image) == []


@pytest.mark.parametrize("image", [f"{IMAGE}:v0.18.0", f"mirror:5000/{IMAGE}:0.20.1-cu130"])
@pytest.mark.parametrize(
    "command", [f"{RAY} {TWO}", "vllm serve m -dp 2 -dpb ray", "ray start --head"]
)
def test_an_image_without_ray_is_worth_a_look(image: str, command: str) -> None:
    (finding,) = ray(command, image)
    assert finding.level is Level.ADVISORY
    assert str(finding) == (
        f"t.spec.containers[0].image: engine 'e' connects its pods with Ray, but '{image}' does "
        "not contain it: vLLM's image has no Ray since 0.18. Use an image with Ray in it, or "
        "connect the pods with --nnodes and --node-rank. [ray-in-image]"
    )


def test_an_engine_that_needs_no_ray_is_let_by() -> None:
    assert ray(f"vllm serve m {TWO} --nnodes 2", f"{IMAGE}:v0.18.0") == []


@pytest.mark.parametrize(
    ("image", "because"),
    [
        (
            f"{IMAGE}:nightly",
            "the tag nightly states no version of vLLM, and its image has no Ray since 0.18",
        ),
        (IMAGE, "the image states no version of vLLM, and its image has no Ray since 0.18"),
        (LATE, "the image is known only after the deployment"),
    ],
    ids=["nightly", "no-tag", "output"],
)
def test_an_image_that_states_no_version_is_told(image: str, because: str) -> None:
    (finding,) = ray(f"{RAY} {TWO}", image)
    assert finding.level is Level.UNKNOWN
    assert str(finding) == (
        f"t.spec.containers[0].image: engine 'e' was not checked, because {because}. [ray-in-image]"
    )


def test_ray_in_an_image_without_it_is_told_where_the_user_wrote_the_image() -> None:
    args = changed(ENGINE_RAY, {"roles[0].engine.image": f"{IMAGE}:v0.18.0"})
    found = {finding.rule: finding.path for finding in compile_serving(args).findings}
    assert found["ray-in-image"] == "roles[0].engine.image"
    assert compile_serving(NATIVE_8B).findings == ()


OLD = "/vllm-workspace/examples/online_serving/multi-node-serving.sh"
NEW = "/vllm-workspace/examples/ray_serving/multi-node-serving.sh"


@pytest.mark.parametrize(
    ("script", "image"),
    [
        (OLD, f"{IMAGE}:v0.8.0"),
        (OLD, f"{IMAGE}:v0.20.2"),
        (NEW, f"{IMAGE}:v0.21.0"),
        (NEW, f"{IMAGE}:latest"),
        (OLD, f"{IMAGE}:nightly"),
        (OLD, f"{IMAGE}@sha256:{'0' * 64}"),
        (OLD, "me/vllm:v0.33.0"),
        ("/opt/multi-node-serving.sh", f"{IMAGE}:v0.33.0"),
        ("$DIR/multi-node-serving.sh", f"{IMAGE}:v0.33.0"),
        (OLD, LATE),
    ],
)
def test_a_script_that_may_be_there_is_right(script: str, image: str) -> None:
    command = f"bash {script} leader --ray_cluster_size=2; vllm serve m {TWO}"
    assert judged(ray_script_in_image, command, image) == []


@pytest.mark.parametrize(
    ("script", "tag", "seen", "remedy"),
    [
        (
            OLD,
            "v0.21.0",
            "vLLM 0.21.0 has it in /vllm-workspace/examples/ray_serving/ (since 0.21.0)",
            f"Write {NEW}",
        ),
        (
            NEW,
            "v0.20.2",
            "vLLM 0.20.2 has it in /vllm-workspace/examples/online_serving/ (before 0.21.0)",
            f"Write {OLD}",
        ),
        (
            OLD,
            "v0.7.3",
            "vLLM 0.7.3 has no such script, which came with 0.8.0",
            "Use vLLM 0.8.0 or later",
        ),
        (
            OLD,
            "latest",
            "the newest vLLM has it in /vllm-workspace/examples/ray_serving/ (since 0.21.0)",
            f"Write {NEW}",
        ),
    ],
)
def test_a_script_that_is_elsewhere_is_told(script: str, tag: str, seen: str, remedy: str) -> None:
    command = f"{script} leader --ray_cluster_size=2 && vllm serve m {TWO}"
    (finding,) = judged(ray_script_in_image, command, f"{IMAGE}:{tag}")
    assert finding.level is (Level.ADVISORY if tag == "latest" else Level.MANDATORY)
    assert str(finding) == (
        f"t.spec.containers[0].command: engine 'e' runs {script}, and the image of {seen}. "
        f"{remedy}. [ray-script-in-image]"
    )


def test_the_script_of_the_workers_is_judged_too() -> None:
    join = f"bash {OLD} worker --ray_address=x"
    (finding,) = judged(ray_script_in_image, "vllm serve m", f"{IMAGE}:v0.33.0", worker=join)
    assert finding.path == "w.spec.containers[0].command"
    alone = judged(ray_script_in_image, "vllm serve m", f"{IMAGE}:v0.33.0", pods=1, worker=join)
    assert alone == []


def spread(rule: Rule, sizes: str, tag: str, gpus: int = 8, executor: str = "ray") -> list[Finding]:
    command = f"vllm serve m {sizes} --distributed-executor-backend {executor}"
    return judged(rule, command, f"{IMAGE}:{tag}", gpus=gpus)


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
