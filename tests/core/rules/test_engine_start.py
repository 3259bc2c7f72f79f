"""Whether an engine is in an image that contains it, and vLLM's pods are told how to join."""

import pytest

from kthena_components.checker.manifest import check_manifest
from kthena_components.compiler.compile import compile_serving
from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding, Level, SpecError, run_rule
from kthena_components.core.rules.executor_and_ray_over_pods import executor_stated
from kthena_components.core.rules.image_model_hf_token_config_map_key import engine_image
from kthena_components.core.values.unknown import MaybeInt, Unknown
from tests.support.specs import ENGINE_RAY, REMOVED, SGLANG, VLLM, changed, gpu_template
from tests.support.strategies import LATE, SCRIPT

RAY = f"{SCRIPT} leader --ray_cluster_size=2; vllm serve m"
TWO = "-tp 8 -pp 2"
IMAGE = "vllm/vllm-openai"


def serving(
    command: str, image: str = f"{IMAGE}:v0.11.0", pods: MaybeInt = 2, gpus: int = 8
) -> ServingFacts:
    """Give an engine whose entry runs a command in an image."""
    template = changed(gpu_template(command, gpus), {"spec.containers[0].image": image})
    engine = EngineFacts(
        path="e", name="e", pods=pods, replicas=1, entry=read_pod(template, "t"), worker=None
    )
    return ServingFacts(path="", name="s", engines=(engine,))


def start(command: str, **more: MaybeInt | str) -> list[Finding]:
    return run_rule(executor_stated, serving(command, **more))  # type: ignore[arg-type]


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


COMPARED_SINCE = "and vLLM rejects more ranks than one pod has GPUs since 0.11.1"


@pytest.mark.parametrize(
    ("tag", "level", "since"),
    [
        ("v0.11.0", Level.ADVISORY, "which vLLM rejects since 0.11.1"),
        ("v0.11.1", Level.MANDATORY, COMPARED_SINCE),
        ("v0.33.0", Level.MANDATORY, COMPARED_SINCE),
        ("0.12.0rc1", Level.ADVISORY, "which vLLM rejects since 0.11.1"),
        ("v1.0", Level.MANDATORY, COMPARED_SINCE),
        ("nightly", Level.ADVISORY, "which vLLM rejects since 0.11.1"),
    ],
)
def test_pods_that_ray_joins_state_it_from_0_11_1_on(tag: str, level: Level, since: str) -> None:
    (finding,) = start(f"{RAY} {TWO}", image=f"{IMAGE}:{tag}")
    assert finding.level is level
    assert str(finding) == (
        "t.spec.containers[0].command: engine 'e' has 16 ranks in each replica and 8 GPUs in each "
        "pod, but "
        f"connects its pods with Ray and does not state the executor, {since}. Add "
        "--distributed-executor-backend ray. [executor-stated]"
    )


@pytest.mark.parametrize(("pods", "nodes"), [(2, "2"), (Unknown("nobody says"), "N")])
def test_pods_that_nothing_joins_are_told_of_both_ways(pods: MaybeInt, nodes: str) -> None:
    (finding,) = start(f"vllm serve m {TWO} --nnodes 1", pods=pods, image=f"{IMAGE}:v0.13.0")
    assert str(finding) == (
        "t.spec.containers[0].command: engine 'e' has 16 ranks in each replica and 8 GPUs in each "
        "pod, but "
        "states neither --nnodes nor an executor, and vLLM rejects more ranks than one pod has "
        f"GPUs since 0.11.1. Add --nnodes {nodes} with --node-rank and --master-addr, or start Ray "
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
            "vLLM supports only mp, uni or external_launcher there. Write "
            "--distributed-executor-backend mp, or remove --nnodes, --node-rank and --master-addr. "
            "[executor-stated]"
        )
    ]


def test_an_executor_that_is_not_known_is_told() -> None:
    command = f"vllm serve m {TWO} --nnodes 2 --distributed-executor-backend {LATE}"
    (finding,) = start(command)
    assert finding.level is Level.UNKNOWN
    assert str(finding) == (
        "t.spec.containers[0].command: engine 'e' was not checked, because its value is a Pulumi "
        "Output, which is known only after the deployment. [executor-stated]"
    )


@pytest.mark.parametrize(
    "command",
    [f"vllm serve m {TWO} --distributed-executor-backend {LATE}", f"vllm serve m -tp {LATE}"],
    ids=["some-executor", "told-by-world-size"],
)
def test_what_needs_no_judgement_or_is_told_elsewhere_gives_no_line(command: str) -> None:
    assert start(command) == []


def test_a_manifest_of_anyone_is_checked() -> None:
    template = gpu_template(f"vllm serve m {TWO} --nnodes 2 --distributed-executor-backend ray")
    spec = {"template": template}
    body = {"apiVersion": "apps/v1", "kind": "StatefulSet", "spec": spec}
    assert "executor-stated" in {finding.rule for finding in check_manifest(body)}


@pytest.mark.parametrize(("image", "launcher"), [(None, "ray"), (VLLM, "native"), (VLLM, None)])
def test_what_the_package_writes_states_it(image: str | None, launcher: str | None) -> None:
    changes: dict[str, object] = {"roles[0].engine.launcher": launcher or REMOVED}
    changes |= {"roles[0].engine.image": image} if image else {}
    assert compile_serving(changed(ENGINE_RAY, changes)).findings == ()


NODES = f"vllm serve m {TWO} --nnodes 2 --distributed-executor-backend"


@pytest.mark.parametrize(
    ("executor", "tag"),
    [
        ("mp", "v0.11.1"),
        ("mp", "v0.33.0"),
        ("uni", "v0.12.0"),
        ("external_launcher", "v0.13.0"),
        ("external_launcher", "latest"),
    ],
)
def test_an_executor_that_goes_with_nodes_is_right(executor: str, tag: str) -> None:
    assert start(f"{NODES} {executor}", image=f"{IMAGE}:{tag}") == []


@pytest.mark.parametrize(
    ("executor", "tag", "seen"),
    [
        ("uni", "v0.11.2", "vLLM 0.11.2 supports only mp there"),
        ("external_launcher", "v0.12.0", "vLLM 0.12.0 supports only mp or uni there"),
    ],
)
def test_an_executor_that_came_later_is_refused(executor: str, tag: str, seen: str) -> None:
    (finding,) = start(f"{NODES} {executor}", image=f"{IMAGE}:{tag}")
    assert str(finding) == (
        f"t.spec.containers[0].command: engine 'e' has --nnodes 2 with the executor {executor}, "
        f"and {seen}. Write --distributed-executor-backend mp, or use vLLM 0.13.0 or later. "
        "[executor-stated]"
    )


@pytest.mark.parametrize("tag", ["v0.11.1", "v0.33.0", "latest"])
def test_ray_never_goes_with_nodes(tag: str) -> None:
    (finding,) = start(f"{NODES} ray", image=f"{IMAGE}:{tag}")
    assert finding.level is Level.MANDATORY
    assert finding.seen.startswith("engine 'e' has --nnodes 2 with the executor ray, and vLLM")


@pytest.mark.parametrize(("tag", "count"), [("v0.11.1", 1), ("v0.11.2", 1), ("v0.12.0", 0)])
def test_copies_of_one_gpu_over_nodes_state_it_where_uni_is_chosen(tag: str, count: int) -> None:
    found = start("vllm serve m -dp 2 --nnodes 2", image=f"{IMAGE}:{tag}", gpus=1)
    assert [str(finding) for finding in found] == count * [
        (
            "t.spec.containers[0].command: engine 'e' has --nnodes 2 and states no executor, and "
            f"vLLM {tag[1:]} chooses uni for a copy of 1 rank, which it rejects over several "
            "nodes. Add --distributed-executor-backend mp, or use vLLM 0.12.0 or later. "
            "[executor-stated]"
        )
    ]
    assert start("vllm serve m -tp 2 --nnodes 2", image=f"{IMAGE}:{tag}", gpus=1) == []


@pytest.mark.parametrize(
    ("command", "image"),
    [
        ("vllm serve m", f"{IMAGE}:v0.33.0"),
        ("vllm serve m", "me/sglang:v0.5.23"),
        ("vllm serve m", "lmsysorg/sglang:v0.4.9.post2-rocm630"),
        ("python -m sglang.launch_server --tp 8", "mirror/lmsysorg/sglang:v0.5.23"),
        ("ray start --head", "lmsysorg/sglang:v0.5.23"),
        ("vllm serve m", LATE),
    ],
)
def test_an_image_that_may_hold_the_engine_is_right(command: str, image: str) -> None:
    assert run_rule(engine_image, serving(command, image)) == []


@pytest.mark.parametrize(
    ("command", "image", "started", "holds", "kind"),
    [
        ("vllm serve m", "lmsysorg/sglang:v0.4.9.post3", "vLLM", "SGLang", "sglang"),
        ("vllm serve m", "lmsysorg/sglang", "vLLM", "SGLang", "sglang"),
        ("python -m sglang.launch_server", f"{IMAGE}:v0.33.0", "SGLang", "vLLM", "vllm"),
        ("trtllm-serve m", f"{IMAGE}:v0.33.0", "TensorRT-LLM", "vLLM", "vllm"),
    ],
)
def test_the_image_of_another_engine_is_refused(
    command: str, image: str, started: str, holds: str, kind: str
) -> None:
    (finding,) = run_rule(engine_image, serving(command, image))
    assert str(finding) == (
        f"t.spec.containers[0].image: engine 'e' starts {started}, but '{image}' is {holds}'s own "
        f"image, which does not contain it. Use an image of {started}, or start {holds} (kind: "
        f"{kind} in a component). [engine-image]"
    )


def test_the_image_of_another_engine_is_told_where_the_user_wrote_it() -> None:
    args = changed(SGLANG, {"roles[0].engine.image": VLLM})
    with pytest.raises(SpecError) as refusal:
        compile_serving(args)
    (finding,) = refusal.value.findings
    assert (finding.path, finding.rule) == ("roles[0].engine.image", "engine-image")
