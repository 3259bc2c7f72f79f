"""Whether vLLM's pods are told how to join, and whether Ray is in their image."""

import pytest

from kthena_components.backends.compiler import compile_serving
from kthena_components.backends.readers import judge_manifest
from kthena_components.core.checks.engine_start import executor_stated, pp_with_ray, ray_in_image
from kthena_components.core.facts import EngineFacts, ServingFacts, read_pod
from kthena_components.core.findings import Finding, Level
from kthena_components.core.known import MaybeInt, Unknown
from tests.support.specs import ENGINE_RAY, NATIVE_8B, changed, gpu_template
from tests.support.strategies import LATE, SCRIPT

RAY = f"{SCRIPT} leader --ray_cluster_size=2; vllm serve m"
TWO = "-tp 8 -pp 2"
IMAGE = "vllm/vllm-openai"


def serving(
    command: str, image: str = f"{IMAGE}:v0.10.1", pods: MaybeInt = 2, gpus: int = 8
) -> ServingFacts:
    """Give an engine whose entry runs a command in an image."""
    template = changed(gpu_template(command, gpus), {"spec.containers[0].image": image})
    engine = EngineFacts(
        path="e", name="e", pods=pods, replicas=1, entry=read_pod(template, "t"), worker=None
    )
    return ServingFacts(path="", name="s", engines=(engine,))


def start(command: str, **more: MaybeInt | str) -> list[Finding]:
    return list(executor_stated(serving(command, **more)))  # type: ignore[arg-type]


def ray(command: str, image: str = f"{IMAGE}:v0.10.1") -> list[Finding]:
    return list(ray_in_image(serving(command, image)))


@pytest.mark.parametrize(
    "command",
    [
        f"{RAY} {TWO} --distributed-executor-backend ray",
        f"vllm serve m {TWO} --nnodes 2 --node-rank 0",
        f"vllm serve m {TWO} --nnodes 2 --distributed-executor-backend mp",
        "vllm serve m -tp 8 -dp 2 -dpl 1",
        "python -m sglang.launch_server --tp 16",
    ],
    ids=["ray", "nodes", "nodes-and-mp", "copies-within-pods", "sglang"],
)
def test_pods_that_know_how_to_join_are_right(command: str) -> None:
    assert start(command) == []


@pytest.mark.parametrize(
    ("tag", "level", "since"),
    [
        ("v0.11.9", Level.ADVISORY, "which vLLM refuses since 0.12"),
        (
            "v0.12.0",
            Level.MANDATORY,
            "and vLLM refuses more ranks than one pod has GPUs since 0.12",
        ),
        (
            "0.12.0rc1",
            Level.MANDATORY,
            "and vLLM refuses more ranks than one pod has GPUs since 0.12",
        ),
        ("v1.0", Level.MANDATORY, "and vLLM refuses more ranks than one pod has GPUs since 0.12"),
        ("nightly", Level.ADVISORY, "which vLLM refuses since 0.12"),
    ],
)
def test_pods_that_ray_joins_state_it_from_0_12_on(tag: str, level: Level, since: str) -> None:
    (finding,) = start(f"{RAY} {TWO}", image=f"{IMAGE}:{tag}")
    assert finding.level is level
    assert str(finding) == (
        "t.spec.containers[0].command: engine 'e' has 16 ranks in a copy and 8 GPUs in a pod, but "
        f"joins its pods with Ray and does not state the executor, {since}. Add "
        "--distributed-executor-backend ray. [executor-stated]"
    )


@pytest.mark.parametrize(("pods", "nodes"), [(2, "2"), (Unknown("nobody says"), "N")])
def test_pods_that_nothing_joins_are_told_of_both_ways(pods: MaybeInt, nodes: str) -> None:
    (finding,) = start(f"vllm serve m {TWO} --nnodes 1", pods=pods, image=f"{IMAGE}:v0.13.0")
    assert str(finding) == (
        "t.spec.containers[0].command: engine 'e' has 16 ranks in a copy and 8 GPUs in a pod, but "
        "states neither --nnodes nor an executor, and vLLM refuses more ranks than one pod has "
        f"GPUs since 0.12. Add --nnodes {nodes} with --node-rank and --master-addr, or start Ray "
        "and add --distributed-executor-backend ray. [executor-stated]"
    )


def test_the_version_of_an_image_of_anyone_else_is_not_taken_for_vllms() -> None:
    (finding,) = start(f"vllm serve m {TWO}", image="lmcache/vllm-openai:v0.13.0")
    assert finding.level is Level.ADVISORY


@pytest.mark.parametrize(("tensor", "count"), [(8, 0), (9, 1)])
def test_a_copy_that_fits_one_pod_needs_no_executor(tensor: int, count: int) -> None:
    assert len(start(f"vllm serve m -tp {tensor}")) == count


def test_one_pod_is_left_to_the_rule_about_its_gpus() -> None:
    assert start(f"vllm serve m {TWO}", pods=1) == []


def test_nodes_of_vllms_own_are_not_joined_by_ray() -> None:
    command = f"vllm serve m {TWO} --nnodes 2 --distributed-executor-backend ray"
    assert [str(finding) for finding in start(command)] == [
        (
            "t.spec.containers[0].command: engine 'e' has --nnodes 2 with the executor ray, and "
            "vLLM joins such nodes with mp, uni or external_launcher only. Write "
            "--distributed-executor-backend mp, or remove --nnodes, --node-rank and --master-addr. "
            "[executor-stated]"
        )
    ]


def test_an_executor_that_is_not_known_is_told() -> None:
    command = f"vllm serve m {TWO} --nnodes 2 --distributed-executor-backend {LATE}"
    (finding,) = start(command)
    assert finding.level is Level.UNKNOWN
    assert str(finding) == (
        "t.spec.containers[0].command: engine 'e' was not checked, because it is an output that "
        "only the deployment knows. [executor-stated]"
    )


@pytest.mark.parametrize(
    "command",
    [f"vllm serve m {TWO} --distributed-executor-backend {LATE}", f"vllm serve m -tp {LATE}"],
    ids=["some-executor", "told-by-world-size"],
)
def test_what_needs_no_judgement_or_is_told_elsewhere_gives_no_line(command: str) -> None:
    assert start(command) == []


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
        f"t.spec.containers[0].image: engine 'e' joins its pods with Ray, but '{image}' does not "
        "contain it: vLLM's image has no Ray since 0.18. Use an image with Ray in it, or join the "
        "pods with --nnodes and --node-rank. [ray-in-image]"
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


def test_a_manifest_of_anyone_is_judged() -> None:
    template = gpu_template(f"vllm serve m {TWO} --nnodes 2 --distributed-executor-backend ray")
    spec = {"template": template}
    body = {"apiVersion": "apps/v1", "kind": "StatefulSet", "spec": spec}
    assert "executor-stated" in {finding.rule for finding in judge_manifest(body)}


@pytest.mark.parametrize("launcher", ["ray", "native"])
def test_what_the_package_writes_states_it(launcher: str) -> None:
    args = changed(ENGINE_RAY, {"roles[0].engine.launcher": launcher})
    assert compile_serving(args).findings == ()


def test_ray_in_an_image_without_it_is_told_where_the_user_wrote_the_image() -> None:
    args = changed(ENGINE_RAY, {"roles[0].engine.image": f"{IMAGE}:v0.18.0"})
    (finding,) = compile_serving(args).findings
    assert (finding.path, finding.rule) == ("roles[0].engine.image", "ray-in-image")
    assert compile_serving(NATIVE_8B).findings == ()


def stages(count: object, tag: str, executor: str = "ray") -> list[Finding]:
    command = f"vllm serve m -tp 8 -pp {count} --distributed-executor-backend {executor}"
    return list(pp_with_ray(serving(command, f"{IMAGE}:{tag}", pods=4)))


@pytest.mark.parametrize(
    ("count", "tag", "executor"),
    [
        (3, "v0.19.1", "ray"),
        (4, "v0.11.2", "ray"),
        (4, "v0.21.0", "ray"),
        (8, "v1.0.0", "ray"),
        (4, "v0.19.1", "mp"),
        (4, "nightly", "ray"),
    ],
)
def test_few_stages_other_versions_and_other_executors_are_right(
    count: int, tag: str, executor: str
) -> None:
    assert stages(count, tag, executor) == []


@pytest.mark.parametrize("tag", ["v0.12.0", "v0.19.1", "v0.20.2-cu130"])
def test_many_stages_that_ray_joins_are_told(tag: str) -> None:
    (finding,) = stages(4, tag)
    assert finding.level is Level.ADVISORY
    assert str(finding) == (
        "t.spec.containers[0].command: engine 'e' has 4 pipeline stages that Ray joins, and vLLM "
        f"{tag[1:5]} mixes up the layers of more than 3. Use vLLM 0.21 or later, or join the pods "
        "with --nnodes and --node-rank. [pp-with-ray]"
    )


def test_stages_that_are_not_known_are_told_once() -> None:
    """world-size-equals-gpus says it already."""
    assert stages(LATE, "v0.19.1") == []
