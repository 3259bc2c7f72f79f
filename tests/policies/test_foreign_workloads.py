"""Workloads that nobody wrote for this pack: what is refused word for word, and what is let by."""

from typing import Any

import pytest

from tests.policies.objects import (
    DEPLOYMENT,
    GPU,
    POD,
    STATEFUL_SET,
    Args,
    advice,
    container,
    pod,
    refusals,
    silent,
    vllm,
    workload,
)

ELSEWHERE = "ResourceClaim 'devices' is not among the objects that are checked"
CLAIMS = [{"name": "claim", "resourceClaimName": "devices"}]
TP_16 = (
    "spec.template.spec.containers[0].args: engine 'chat' starts tensor 16 × pipeline 1 = 16 "
    "ranks, but its pod has 8 GPUs. Set tensor to 8, or give the engine 2 pods and connect "
    "them with --nnodes 2, --node-rank and --master-addr. "
    "[world-size-equals-gpus]"
)


@pytest.mark.parametrize("gpus", [8, "8"], ids=["number", "text"])
def test_a_deployment_whose_ranks_are_its_gpus_is_let_by(gpus: object) -> None:
    assert silent(DEPLOYMENT, workload(vllm("-tp", "8", gpus=gpus)))


def test_a_deployment_with_too_many_ranks_is_refused() -> None:
    wrong = workload(vllm("--tensor-parallel-size", "16"))
    assert refusals(DEPLOYMENT, wrong) == TP_16
    assert advice(DEPLOYMENT, wrong) == ""


def test_replicas_of_a_stateful_set_are_engines_of_their_own() -> None:
    assert silent(STATEFUL_SET, workload(vllm("-tp", "8"), replicas=3))
    assert refusals(STATEFUL_SET, workload(vllm("-tp", "16"), replicas=3)) == TP_16


def test_a_pod_is_checked_where_its_containers_stand() -> None:
    assert refusals(POD, pod(vllm("-tp", "8", gpus=4))) == (
        "spec.containers[0].args: engine 'chat' starts tensor 8 × pipeline 1 = 8 ranks, but its "
        "pod has 4 GPUs. Set tensor to 4, or give each pod 8 GPUs. "
        "[world-size-equals-gpus]"
    )


@pytest.mark.parametrize(
    "command",
    [
        ["vllm", "serve", "Qwen/Qwen3-32B", "--tensor-parallel-size", "16"],
        ["python3", "-m", "vllm.entrypoints.openai.api_server", "--tensor-parallel-size=16"],
        ["sh", "-c", "exec vllm serve Qwen/Qwen3-32B --tensor-parallel-size 16"],
    ],
    ids=["words", "module", "script"],
)
def test_a_command_is_checked_whatever_starts_the_engine(command: list[str]) -> None:
    refusal = refusals(DEPLOYMENT, workload(container(command=command)))
    assert refusal == TP_16.replace(".args:", ".command:")


def test_a_flag_that_the_engine_refuses_is_refused_once() -> None:
    wrong = workload(vllm("-tp8"))
    assert refusals(DEPLOYMENT, wrong) == (
        "spec.template.spec.containers[0].args: engine 'chat': vLLM 0.33.0 has no flag '-tp8' and "
        "does not start with it. Write -tp 8. [engine-option-known]"
    )
    assert advice(DEPLOYMENT, wrong) == ""


def test_a_variable_with_a_literal_value_is_read() -> None:
    env = [{"name": "TP", "value": "16"}]
    args = ["--model", "Qwen/Qwen3-32B", "--tensor-parallel-size", "$(TP)"]
    assert refusals(DEPLOYMENT, workload(container(args=args, env=env))) == TP_16


def test_the_gpus_of_a_sidecar_are_not_the_engines() -> None:
    sidecar = container("exporter", 1, image="dcgm-exporter:4", args=["--collect"])
    assert silent(DEPLOYMENT, workload(sidecar, vllm("-tp", "8")))
    refusal = refusals(DEPLOYMENT, workload(sidecar, vllm("-tp", "9")))
    assert "but its pod has 8 GPUs" in refusal


def test_the_gpus_of_an_init_container_are_free_again_when_the_engine_starts() -> None:
    warm_up = container("warm-up", 1, image="nccl-tests:2")
    assert silent(DEPLOYMENT, workload(vllm("-tp", "8"), initContainers=[warm_up]))


def test_each_engine_of_a_pod_is_checked_on_its_own_gpus() -> None:
    prefill = vllm("-tp", "4", name="prefill", gpus=4)
    assert silent(DEPLOYMENT, workload(prefill, vllm("-tp", "8", "--port", "8001", name="decode")))
    refusal = refusals(
        DEPLOYMENT, workload(prefill, vllm("-tp", "4", "--port", "8001", name="decode"))
    )
    assert refusal.startswith(
        "spec.template.spec.containers[1].args: engine 'chat' starts tensor 4"
    )


def test_a_helper_that_starts_ray_does_not_hide_the_engine() -> None:
    helper = container("ray", None, command=["ray", "start", "--address=head:6379", "--block"])
    assert refusals(DEPLOYMENT, workload(helper, vllm("-tp", "16"))) == (
        TP_16.replace("containers[0]", "containers[1]")
    )


def test_limits_alone_are_enough_where_the_api_server_fills_requests() -> None:
    assert silent(POD, pod(vllm("-tp", "8")))


def test_requests_alone_are_refused() -> None:
    wrong = vllm("-tp", "8", resources={"requests": {GPU: 8}})
    assert refusals(DEPLOYMENT, workload(wrong)) == (
        "spec.template.spec.containers[0].resources: engine 'chat', container 'main' states "
        "nvidia.com/gpu with a request of 8 and no limit, and Kubernetes requires both to be "
        "equal. Write 8 in both. [gpu-requests-equal-limits]"
    )


def test_an_engine_without_gpus_is_refused_when_it_starts_several_ranks() -> None:
    assert refusals(DEPLOYMENT, workload(vllm("-tp", "8", gpus=None))) == (
        "spec.template.spec.containers[0].args: engine 'chat' starts tensor 8 × pipeline 1 = 8 "
        "ranks, but its pod has 0 GPUs. Give each pod 8 GPUs. [world-size-equals-gpus]"
    )


def test_an_engine_of_one_rank_without_gpus_may_be_meant_for_a_cpu() -> None:
    on_cpu = workload(vllm(gpus=None))
    assert refusals(DEPLOYMENT, on_cpu) == ""
    assert advice(DEPLOYMENT, on_cpu) == (
        "spec.template.spec.containers[0].args: engine 'chat' was not checked, because it requests "
        "no GPU, like an engine on CPUs. [world-size-equals-gpus]"
    )


def test_a_workload_that_serves_no_model_is_not_spoken_of() -> None:
    assert silent(DEPLOYMENT, workload(container(gpus=None, image="nginx:1.29"), replicas=3))


def test_gpus_without_a_known_engine_give_one_line_of_advice() -> None:
    trainer = workload(container(image="trainer:3", command=["torchrun", "train.py"]))
    assert refusals(DEPLOYMENT, trainer) == ""
    assert advice(DEPLOYMENT, trainer) == (
        "spec.template.spec.containers: engine 'chat' was not checked, because no command line of "
        "a known engine was found. [world-size-equals-gpus]"
    )


@pytest.mark.parametrize(
    ("resources", "because"),
    [
        (
            {"claims": [{"name": "claim"}]},
            f"container 'main' gets devices by resource claims, and {ELSEWHERE}",
        ),
        (
            {"limits": {"volcano.sh/vgpu-number": 8}},
            "it is unknown which devices volcano.sh/vgpu-number provides",
        ),
        ({"limits": {"GPU_RESOURCE": 8}}, "it is unknown which devices GPU_RESOURCE provides"),
        (
            {"limits": {"aws.amazon.com/neuron": 1}},
            "one aws.amazon.com/neuron has several cores, as many as its kind says",
        ),
    ],
    ids=["claims", "shared-gpus", "placeholder", "neuron"],
)
def test_devices_that_cannot_be_counted_are_not_guessed(resources: Args, because: str) -> None:
    uncounted = workload(vllm("-tp", "8", resources=resources), resourceClaims=CLAIMS)
    assert refusals(DEPLOYMENT, uncounted) == ""
    assert advice(DEPLOYMENT, uncounted) == (
        "spec.template.spec.containers[0].args: engine 'chat' was not checked, because "
        f"{because}. [world-size-equals-gpus]"
    )


def test_claims_beside_the_gpus_may_add_some_and_take_none() -> None:
    resources = {"limits": {GPU: 8, "rdma/ib": 1}, "claims": [{"name": "claim"}]}
    assert silent(
        DEPLOYMENT, workload(vllm("-tp", "8", resources=resources), resourceClaims=CLAIMS)
    )
    more = workload(vllm("-tp", "16", resources=resources), resourceClaims=CLAIMS)
    assert refusals(DEPLOYMENT, more) == ""
    assert "container 'main' may get more GPUs by resource claims" in advice(DEPLOYMENT, more)
    fewer = workload(vllm("-tp", "4", resources=resources), resourceClaims=CLAIMS)
    assert "= 4 ranks, but" in refusals(DEPLOYMENT, fewer)


NATIVE = ("-tp", "8", "-pp", "2", "--nnodes", "2", "--node-rank", "0", "--master-addr", "head")
GANG = (
    "spec.template: engine 'chat' has 2 pods that must start together, and nothing schedules them "
    "as a gang. Let Volcano schedule the pods: create a PodGroup with minMember 2, and write "
    "schedulerName: volcano and the annotation scheduling.k8s.io/group-name with the name of the "
    "PodGroup in the pod templates of all objects of the engine. [gang-covers-engine]"
)


def test_an_engine_over_several_objects_is_checked_by_the_pods_that_it_states() -> None:
    placed: Args = {"schedulerName": "volcano"}
    assert silent(STATEFUL_SET, workload(vllm(*NATIVE), **placed))
    assert refusals(STATEFUL_SET, workload(vllm(*NATIVE, gpus=4), **placed)) == (
        "spec.template.spec.containers[0].args: engine 'chat' starts tensor 8 × pipeline 2 = 16 "
        "ranks, but its 2 pods × 4 GPUs hold 8. Set pipeline to 1, or set tensor to 4, or give the "
        "engine 4 pods, or give each pod 8 GPUs. [world-size-equals-gpus]"
    )


def test_pods_that_must_start_together_and_are_no_gang_are_worth_a_look() -> None:
    assert advice(STATEFUL_SET, workload(vllm(*NATIVE))) == GANG


def test_a_headless_pod_of_a_native_launch_holds_the_same_share() -> None:
    refusal = refusals(STATEFUL_SET, workload(vllm(*NATIVE, "--headless", gpus=4)))
    assert "its 2 pods × 4 GPUs hold 8" in refusal


@pytest.mark.parametrize(
    "worker",
    [
        container(command=["ray", "start", "--address=head:6379", "--block"]),
        vllm("-tp", "4", "-dp", "4", "-dpl", "2", "--headless", "--data-parallel-start-rank", "2"),
    ],
    ids=["ray", "data-parallel"],
)
def test_a_pod_that_only_joins_an_engine_is_not_checked_alone(worker: Args) -> None:
    assert silent(STATEFUL_SET, workload(worker))


def test_a_ray_head_that_does_not_say_its_size_is_not_guessed() -> None:
    script = "ray start --head; vllm serve Qwen/Qwen3-32B -tp 16 --distributed-executor-backend ray"
    head = workload(container(command=["sh", "-c", script]))
    assert refusals(STATEFUL_SET, head) == ""
    assert advice(STATEFUL_SET, head) == (
        "spec.template.spec.containers[0].command: engine 'chat' was not checked, because this "
        "object does not state how many pods form one engine. [world-size-equals-gpus]"
    )


@pytest.mark.parametrize(
    ("flags", "fits"),
    [
        (("-dp", "2", "-tp", "4"), True),
        (("-dp", "4", "-tp", "4"), False),
        (("-dp", "4", "-dpl", "2", "-tp", "4"), True),
        (("-dp", "4", "-dpl", "2", "-tp", "2"), False),
        (("-dp", "4", "--data-parallel-rank", "1", "-tp", "8"), True),
        (("-dp", "4", "--data-parallel-rank", "1", "-tp", "4"), False),
        (("-dp", "4", "-dpl", "2", "--data-parallel-hybrid-lb", "-tp", "4"), True),
    ],
    ids=["one-pod", "too-many", "two-pods", "half", "external", "external-half", "hybrid"],
)
def test_copies_of_a_model_are_counted_as_the_engine_spreads_them(
    flags: tuple[str, ...], fits: bool
) -> None:
    # vLLM balances copies from outside for models with experts only.
    engine = container(args=["--model", "Qwen/Qwen3-30B-A3B", *flags])
    found = refusals(DEPLOYMENT, workload(engine))
    assert (found == "") is fits


def test_a_stateful_set_with_a_name_too_long_for_its_pods_is_refused() -> None:
    name = "llama-405b-instruct-of-the-team-that-likes-long-names"
    assert refusals(STATEFUL_SET, workload(vllm("-tp", "8"), name=name)) == (
        f"metadata.name: gives the StatefulSet name '{name}', 53 characters; at most 52 are "
        "allowed. Shorten it by 1. [name-fits]"
    )
    assert refusals(DEPLOYMENT, workload(vllm("-tp", "8"), name=name)) == ""


@pytest.mark.parametrize(
    "resource_type",
    [
        "kubernetes:yaml/v2:ConfigGroup",
        "kubernetes:helm.sh/v4:Chart",
        "kubernetes:apps/v1",
        "kubernetes",
        "pulumi:pulumi:Stack",
        "aws:ec2:Instance",
        "",
    ],
)
def test_other_types_are_not_spoken_of(resource_type: str) -> None:
    wrong: dict[str, Any] = workload(vllm("-tp", "16"))
    assert silent(resource_type, wrong)


@pytest.mark.parametrize(
    ("resource_type", "kind"),
    [
        ("kubernetes:apps/v1:DeploymentPatch", "DeploymentPatch (apps/v1)"),
        ("kubernetes:kubeflow.org/v1:PyTorchJob", "PyTorchJob (kubeflow.org/v1)"),
    ],
)
def test_an_engine_in_an_object_that_nobody_reads_is_told_and_refuses_nothing(
    resource_type: str, kind: str
) -> None:
    props: dict[str, Any] = workload(vllm("-tp", "16"))
    assert refusals(resource_type, props) == ""
    assert f"not checked, because no rule reads objects of kind {kind}; this one" in advice(
        resource_type, props
    )
    assert silent(resource_type, workload(container(gpus=1, command=["sleep", "1"])))


def test_an_engine_in_a_sidecar_is_one_of_the_pods() -> None:
    """Kubernetes runs an init container with restartPolicy Always beside the others."""
    client = container("client", 0, image="example.com/client:1", command=["work"])
    engine = vllm("-tp", "16", restartPolicy="Always")
    refused = refusals(DEPLOYMENT, workload(client, initContainers=[engine]))
    assert refused.startswith("spec.template.spec.initContainers[0].args: engine 'chat' starts")
    engine["restartPolicy"] = "Never"
    assert refusals(DEPLOYMENT, workload(client, initContainers=[engine])) == ""
