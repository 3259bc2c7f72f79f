"""Conversions of objects whose controllers complete their pods: engines, losses, what is unsaid.

The manifests follow public examples: Ray's docs of vLLM on KubeRay, vLLM's production-stack, the
samples of Kthena, Dynamo, KubeAI, llmaz, OME and the MPI operator.
"""

import copy
from typing import Any

import pytest

from kthena_components.convert.conversion import SAME, Changes, Conversion, Converted, Kept
from kthena_components.convert.convert import convert
from tests.rules.cases import documents
from tests.support.for_each import for_each
from tests.support.specs import Args, changed

ONE_GPU = {"limits": {"nvidia.com/gpu": 1}}
SHM = {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "64Gi"}}
MOUNT = {"name": "shm", "mountPath": "/dev/shm"}  # noqa: S108 - NCCL's memory
SERVE = (
    "vllm serve org/model --tensor-parallel-size 8 --pipeline-parallel-size 2 "
    "--distributed-executor-backend ray --max-model-len 8k --served-model-name chat"
)


def ray_pod(name: str, script: str | None = None, gpus: int = 8, **container: Any) -> Args:
    amounts = {"cpu": "32", "memory": "500Gi", **({"nvidia.com/gpu": gpus} if gpus else {})}
    started = {} if script is None else {"command": ["/bin/bash", "-c"], "args": [f'"{script}"']}
    own = {
        "name": name,
        "image": "vllm/vllm-openai:v0.25.0",
        "resources": {"limits": amounts, "requests": dict(amounts)},
        "volumeMounts": [MOUNT],
        **started,
        **container,
    }
    return {"spec": {"containers": [own], "volumes": [SHM]}}


def ray_cluster(head: Args, worker: Args, workers: int = 1, **spec: Any) -> Args:
    numbers = dict.fromkeys(("replicas", "minReplicas", "maxReplicas"), workers)
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": "chat", "namespace": "serving"},
        "spec": {
            "headGroupSpec": {"template": head},
            "workerGroupSpecs": [{"groupName": "gpus", **numbers, "template": worker}],
            **spec,
        },
    }


def run(body: Args, changes: Args | None = None, target: str = "native") -> Conversion:
    return convert([body], Changes(target=target, arguments=changes or {}))


def serving(body: Args, changes: Args | None = None, target: str = "native") -> Converted:
    result = run(body, changes, target)
    assert result.errors == ()
    (part,) = result.servings
    return part


def losses(body: Args, changes: Args | None = None) -> list[str]:
    return [str(loss) for loss in serving(body, changes).losses]


def refusals(body: Args, changes: Args | None = None) -> list[str]:
    result = run(body, changes)
    assert result.parts == ()
    return [str(finding) for error in result.errors for finding in error.findings]


SERVICE = "is not there any more: KubeRay makes it; --set expose.port=80 writes one"
USUAL = [f"Service/chat-head-svc: {SERVICE}", "spec.workerGroupSpecs[0].groupName: is not kept"]


def test_an_engine_on_a_ray_cluster_becomes_a_role_with_its_engine() -> None:
    body = ray_cluster(ray_pod("ray-head", SERVE), ray_pod("ray-worker"))
    part = serving(body)
    assert part.args["roles"] == [
        {
            "name": "serve",
            "replicas": 1,
            "worker_replicas": 1,
            "engine": {
                "kind": "vllm",
                "image": "vllm/vllm-openai:v0.25.0",
                "model": "org/model",
                "launcher": "ray",
                "parallelism": {"tensor": 8, "pipeline": 2},
                "port": 8000,
                "extra_args": ["--max-model-len", "8000", "--served-model-name", "chat"],
            },
            "resources": {"gpus_per_pod": 8, "cpu": "32", "memory": "500Gi", "shm": "64Gi"},
        }
    ]
    assert [str(loss) for loss in part.losses] == USUAL


def test_what_the_script_does_besides_is_lost_command_by_command() -> None:
    script = (
        "ulimit -n 65536; export VLLM_LOGGING_LEVEL=DEBUG; MODEL=org/model; pip install nixl && "
        "until ray status; do sleep 5; done; ray start --head; "
        "TZ=UTC numactl -N 0 vllm serve $MODEL --tensor-parallel-size 8 --pipeline-parallel-size 2 "
        "--distributed-executor-backend ray --port 8080 > /tmp/log"
    )
    body = ray_cluster(
        ray_pod("h", args=[script]), ray_pod("w", args=["ray start --address=$RAY_IP:6379 --block"])
    )
    body["metadata"]["annotations"] = {"ray.io/overwrite-container-cmd": "true"}
    for pod in (body["spec"]["headGroupSpec"], *body["spec"]["workerGroupSpecs"]):
        pod["template"]["spec"]["containers"][0]["command"] = ["/bin/bash", "-lc"]
    at = "spec.headGroupSpec.template.spec.containers[0].args[0]"
    assert losses(body) == [
        USUAL[0],
        "metadata.annotations.ray.io/overwrite-container-cmd: is not kept",
        USUAL[1],
        f"{at}: 'ulimit -n 65536' is not kept",
        f"{at}: 'export VLLM_LOGGING_LEVEL=DEBUG' is not kept",
        f"{at}: 'pip install nixl' is not kept",
        f"{at}: 'TZ=UTC' is not kept",
        f"{at}: '-N 0' is not kept",
        f"{at}: '> /tmp/log' is not kept",
    ]
    assert serving(body).args["roles"][0]["engine"]["port"] == 8080


def test_a_long_script_is_a_loss_as_a_whole() -> None:
    script = f"{'echo waits; ' * 400}{SERVE}"
    body = ray_cluster(ray_pod("h", script), ray_pod("w"))
    told = [loss for loss in losses(body) if "args" in loss]
    at = "spec.headGroupSpec.template.spec.containers[0].args[0]"
    assert told == [f"{at}: has {len(script) + 2} characters: what it does besides is not known"]


def test_what_all_pods_have_is_an_overlay_and_what_only_workers_have_is_lost() -> None:
    shared: Args = {
        "env": [{"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}}]
    }
    head = ray_pod("h", SERVE, **shared)
    worker = changed(ray_pod("w", **shared), {"spec.nodeSelector.pool": "gpu"})
    worker["spec"]["containers"][0]["image"] = "vllm/vllm-openai:v0.24.0"
    worker["spec"]["containers"].append({"name": "logs", "image": "fluent/fluent-bit:4.0"})
    at = "spec.workerGroupSpecs[0].template.spec"
    part = serving(ray_cluster(head, worker))
    assert part.args["roles"][0]["overlay"] == {
        "spec": {"containers": [{"name": "engine", **shared}]}
    }
    assert [str(loss) for loss in part.losses] == [
        *USUAL,
        f"{at}.containers[0].image: is not kept",
        f"{at}.containers[1]: is not kept",
        f"{at}.nodeSelector: is not kept",
    ]


def test_a_head_without_gpus_is_folded_into_the_first_pod_of_the_engine() -> None:
    body = ray_cluster(ray_pod("h", SERVE, gpus=0), ray_pod("w"), workers=2)
    part = serving(body)
    (role,) = part.compiled.plan.roles
    assert (role.pods, part.args["roles"][0]["resources"]["gpus_per_pod"]) == (2, 8)
    assert str(part.losses[0]) == (
        "spec.headGroupSpec.template: becomes no pod: it has no GPUs, and the first pod of the "
        "engine does its work"
    )


def test_pods_with_different_gpus_in_one_engine_are_refused() -> None:
    body = ray_cluster(ray_pod("h", SERVE, gpus=4), ray_pod("w", gpus=8))
    (text,) = refusals(body)
    assert text.startswith("spec: has pods of 4 and of 8 GPUs in one engine. Write the role of a ")


def test_a_service_that_is_written_is_no_loss() -> None:
    body = ray_cluster(ray_pod("h", SERVE), ray_pod("w"))
    assert losses(body, {"expose.port": 80}) == USUAL[1:]


def test_a_cluster_that_starts_no_engine_is_kept() -> None:
    (part,) = run(ray_cluster(ray_pod("h"), ray_pod("w"))).parts
    assert isinstance(part, Kept)


def test_a_job_runs_its_entrypoint_and_another_one_is_lost() -> None:
    cluster = ray_cluster(ray_pod("h"), ray_pod("w"))["spec"]
    body = {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": "chat"},
        "spec": {"entrypoint": SERVE, "rayClusterSpec": cluster},
    }
    assert serving(body).args["roles"][0]["engine"]["model"] == "org/model"
    assert not [loss for loss in losses(body) if "entrypoint" in loss]
    head = ray_pod("h", f"{SERVE} &")
    other = changed(body, {"spec.entrypoint": "python warm_up.py"})
    other["spec"]["rayClusterSpec"] = ray_cluster(head, ray_pod("w"))["spec"]
    assert "spec.entrypoint: is not kept" in losses(other)


IMAGE = {"roles[0].engine.image": "vllm/vllm-openai:v0.17.0"}
SERVED = """\
applications:
  - name: llm
    import_path: ray.serve.llm:build_openai_app
    args:
      llm_configs:
        - model_loading_config: {model_id: chat, model_source: org/model}
          deployment_config: {autoscaling_config: {min_replicas: 1, max_replicas: 2}}
          engine_kwargs: {tensor_parallel_size: 8, pipeline_parallel_size: 2, max_num_seqs: 64}
"""


def test_a_model_of_ray_serve_becomes_a_role_and_the_rest_of_its_config_is_lost() -> None:
    body = changed(documents("rayservice")[0], {"spec.serveConfigV2": SERVED})
    assert [text.partition(":")[0] for text in refusals(body)] == [*IMAGE]
    part = serving(body, IMAGE)
    engine = part.args["roles"][0]["engine"]
    assert engine["parallelism"] == {"tensor": 8, "pipeline": 2}
    assert engine["extra_args"] == ["--max-num-seqs", "64", "--served-model-name", "chat"]
    at = "spec.serveConfigV2.applications[0]"
    assert [loss.name for loss in part.losses] == [
        "spec.rayClusterConfig.headGroupSpec.template",
        "Service/deepseek-serve-svc",
        f"{at}.name",
        f"{at}.args.llm_configs[0].deployment_config.autoscaling_config.max_replicas",
        "spec.rayClusterConfig.headGroupSpec.rayStartParams",
        "spec.rayClusterConfig.workerGroupSpecs[0].groupName",
    ]


def test_replicas_of_ray_serve_that_share_a_pod_get_pods_of_their_own() -> None:
    sizes = "tensor_parallel_size: 8, pipeline_parallel_size: 2"
    text = SERVED.replace(sizes, "tensor_parallel_size: 4")
    body = changed(documents("rayservice")[0], {"spec.serveConfigV2": text})
    part = serving(body, IMAGE)
    assert part.args["roles"][0]["resources"] == {"gpus_per_pod": 4}
    at = "spec.rayClusterConfig.workerGroupSpecs[0].template.spec.containers[0].resources"
    assert f"{at}: is not kept" in losses(body, IMAGE)
    other = text.replace("tensor_parallel_size: 4", "tensor_parallel_size: 12")
    (refused,) = refusals(changed(body, {"spec.serveConfigV2": other}))
    assert "runs chat on 12 GPUs, which are no whole pods of 8 GPUs" in refused


def test_what_is_wrong_in_the_object_may_be_set_right() -> None:
    body = ray_cluster(ray_pod("h", SERVE, gpus=4), ray_pod("w", gpus=4))
    assert "world-size-equals-gpus" in refusals(body)[0]
    part = serving(body, {"roles[0].engine.parallelism.pipeline": 1})
    assert part.args["roles"][0]["engine"]["parallelism"] == {"tensor": 8, "pipeline": 1}
    named = serving(body, {"roles[0].engine.parallelism.pipeline": 1, "roles[0].name": "chat"})
    assert named.args["roles"][0]["name"] == "chat"


def test_containers_that_all_pods_of_an_engine_have_are_kept() -> None:
    load = {"name": "load", "image": "example.com/load:1.0"}
    head, worker = ray_pod("h", SERVE), ray_pod("w")
    head["spec"]["initContainers"] = [load, {"name": "only", "image": "example.com/other:1.0"}]
    worker["spec"]["initContainers"] = [load]
    part = serving(ray_cluster(head, worker))
    assert part.args["roles"][0]["overlay"] == {"spec": {"initContainers": [load]}}
    assert [str(loss) for loss in part.losses] == [
        USUAL[0],
        "spec.headGroupSpec.template.spec.initContainers[1]: is not kept",
        USUAL[1],
    ]


def test_the_command_of_workers_that_start_the_same_engine_is_no_loss() -> None:
    body = changed(documents("llmaz-service")[0])
    template = body["spec"]["workloadTemplate"]
    template["leaderTemplate"] = template["workerTemplate"]
    assert [str(loss).partition(":")[0] for loss in serving(body).losses] == ["Service/sglang-lb"]


def test_options_that_are_not_known_must_be_stated() -> None:
    key = {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}}
    body = ray_cluster(ray_pod("h", f"{SERVE} --api-key $KEY", env=[key]), ray_pod("w", env=[key]))
    (text,) = refusals(body)
    assert text == (
        "roles[0].engine.extra_args: is not in the object: the value of --api-key is not known "
        'here. State it: --set \'roles[0].engine.extra_args=["--max-model-len", "8000", '
        '"--served-model-name", "chat", "--api-key", "VALUE"]\'. [convertible]'
    )
    words = ["--max-model-len", "8000", "--served-model-name", "chat", "--api-key", "$(KEY)"]
    part = serving(body, {"roles[0].engine.extra_args": words})
    assert part.args["roles"][0]["engine"]["extra_args"] == words
    others = refusals(body, {"roles[0].engine.extra_args": words[2:]})
    assert "max_model_len would be None, and is 8000" in others[0]


def test_an_option_that_the_release_lacks_is_kept_and_refused_by_its_rule() -> None:
    body = ray_cluster(ray_pod("h", f"{SERVE} --no-such-option 3"), ray_pod("w"))
    texts = refusals(body)
    assert "--no-such-option" in texts[0]


STACK = (
    '/bin/bash -c "\ncp /entrypoint/vllm-entrypoint.sh \\$HOME/vllm-entrypoint.sh &&\n'
    'chmod +x \\$HOME/vllm-entrypoint.sh &&\n\\$HOME/vllm-entrypoint.sh &\necho \\"started\\""'
)
"""What the head of a cluster of vLLM's production-stack starts."""


def stack(*lines: str) -> list[Args]:
    """Give a cluster like that of the Helm chart, and the ConfigMap with its script."""
    script = ["#!/bin/bash", "set -e", "until python3 /scripts/wait_for_ray.py; do", "  sleep 2"]
    script += ["done", *lines, 'ARGS=(\n  "vllm"\n  "serve"\n  "org/model"\n']
    script[-1] += '  "--host" "0.0.0.0"\n  "--distributed-executor-backend" "ray"\n)'
    script += ['ARGS+=("--tensor-parallel-size" "8")', 'ARGS+=("--pipeline-parallel-size" "2")']
    script += ['ARGS+=("--max-model-len" "32768")', 'echo "${ARGS[@]}"', 'exec "${ARGS[@]}"', ""]
    volume = {"name": "script", "configMap": {"name": "chat-start"}}
    head, worker = ray_pod("head"), ray_pod("worker")
    head["spec"]["containers"][0] |= {
        "command": [STACK],
        "readinessProbe": {"httpGet": {"path": "/health", "port": 8000}},
        "volumeMounts": [MOUNT, {"name": "script", "mountPath": "/entrypoint"}],
    }
    for pod in (head, worker):
        pod["spec"]["volumes"] = [SHM, volume]
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "chat-start", "namespace": "serving"},
        "data": {"vllm-entrypoint.sh": "\n".join(script)},
    }
    return [ray_cluster(head, worker), config]


def test_a_cluster_of_the_production_stack_is_described_with_its_config_map() -> None:
    bodies = stack("pip install lmcache")
    result = convert(bodies, Changes(target="native"))
    assert result.errors == ()
    (part,) = result.servings
    (role,) = part.args["roles"]
    assert role["engine"]["extra_args"] == ["--host", "0.0.0.0", "--max-model-len", "32768"]  # noqa: S104 - in a pod
    assert [str(loss) for loss in part.losses] == [
        USUAL[0],
        "spec.headGroupSpec.template.spec.containers[0].readinessProbe: is not kept",
        USUAL[1],
        "ConfigMap/chat-start.data.vllm-entrypoint.sh: 'pip install lmcache' is not kept",
    ]


def test_without_its_config_map_its_engine_is_not_known() -> None:
    assert refusals(stack()[0])


@pytest.mark.parametrize("target", ["native", "kthena", "lws"])
def test_a_model_booster_becomes_its_workers(target: str) -> None:
    part = serving(documents("booster")[0], target=target)
    (role,) = part.args["roles"]
    assert role["name"] == "leader"
    assert role["engine"]["model"] == "Qwen/Qwen3-32B"
    assert role["cache"] == {"host_path": "/cache", "download": True}
    assert [loss.name for loss in part.losses] == [
        "ModelServer/qwen-qwen",
        "ModelRoute/qwen",
        "spec.backend.name",
    ]


def test_the_router_objects_of_a_model_booster_are_no_loss_where_they_are_written() -> None:
    options: Args = {"backend_options.model_server": {}, "backend_options.model_route": {}}
    part = serving(documents("booster")[0], options, target="kthena")
    assert [loss.name for loss in part.losses] == ["spec.backend.name"]
    kinds = {manifest.body["kind"] for manifest in part.compiled.manifests}
    assert kinds >= {"ModelServing", "ModelServer", "ModelRoute"}


def test_what_kthena_installs_in_the_pods_of_a_model_booster_is_a_loss() -> None:
    config = {"kv-transfer-config": '{"kv_connector": "NixlConnector", "kv_role": "kv_both"}'}
    body = changed(documents("booster")[0], {"spec.backend.workers[0].config": config})
    body["spec"]["backend"]["workers"][0] |= {"pods": 1, "resources": ONE_GPU}
    told = "nixl: is not there any more: Kthena installs it when the pods start; choose an image "
    assert f"{told}that has it" in losses(body)
    body["spec"]["backend"]["env"] = [
        {"name": "KTHENA_SKIP_ENGINE_DEPENDENCY_INSTALL", "value": "1"}
    ]
    assert not [loss for loss in losses(body) if loss.startswith("nixl")]


def test_the_copies_of_a_model_booster_are_groups() -> None:
    body = changed(documents("booster")[0], {"spec.backend.replicas": 3})
    assert serving(body).compiled.plan.groups == 3


def test_a_model_that_is_downloaded_from_elsewhere_must_be_named() -> None:
    body = changed(documents("booster")[0], {"spec.backend.modelURI": "s3://bucket/model"})
    (text,) = refusals(body)
    assert text.startswith(
        "roles[0].engine.model: is not in the object: Kthena's downloader writes "
    )
    part = serving(body, {"roles[0].engine.model": "/cache/model"})
    (role,) = part.args["roles"]
    assert role["engine"]["model"] == "/cache/model"
    assert role["cache"] == {"host_path": "/cache", "mount_path": "/cache"}


def test_an_mpi_job_becomes_its_workers() -> None:
    part = serving(documents("mpi-job")[0])
    (role,) = part.compiled.plan.roles
    assert (role.pods, role.engine and str(role.engine.kind)) == (2, "trtllm")
    assert part.losses == ()


def test_components_without_engines_are_lost_as_a_whole() -> None:
    names = [loss.name for loss in serving(documents("dynamo")[0]).losses]
    assert names[0] == "spec.services.Frontend"
    assert not [name for name in names if name.startswith("spec.services.Frontend.")]


def test_what_a_configuration_or_a_catalogue_says_is_an_error_with_its_argument() -> None:
    body = changed(
        documents("kubeai-model")[0], {"spec.resourceProfile": "ours:8", "spec.maxReplicas": 3}
    )
    del body["spec"]["image"]
    arguments = ["replicas", "roles[0].engine.image", "roles[0].resources.gpus_per_pod"]
    assert [text.partition(":")[0] for text in refusals(body)] == arguments
    values = dict(zip(arguments, (2, "vllm/vllm-openai:v0.33.0", 8), strict=True))
    part = serving(body, values)
    assert part.compiled.plan.groups == 2


def test_a_playground_is_described_with_what_its_runtime_says() -> None:
    values = {
        "roles[0].engine.image": "vllm/vllm-openai:v0.33.0",
        "roles[0].engine.model": "meta-llama/Meta-Llama-3-70B-Instruct",
        "roles[0].engine.parallelism": {"tensor": 8},
        "roles[0].resources.gpus_per_pod": 8,
    }
    assert len(refusals(documents("playground")[0])) == len(values) + 1
    assert serving(documents("playground")[0], values).args["roles"][0]["engine"]["image"]


def test_an_engine_without_commands_of_the_package_is_refused() -> None:
    other = {"spec.engine": "OLlama", "spec.resourceProfile": "ours:1"}
    body = changed(documents("kubeai-model")[0], other)
    (text,) = refusals(body)
    assert text.startswith("spec: shows no engine: its command starts another program. Write the ")


@pytest.mark.parametrize("name", ["nim-service", "nim-pipeline"])
def test_a_nim_is_refused_with_the_reason(name: str) -> None:
    (text,) = refusals(documents(name)[0])
    assert "its image starts a program of NVIDIA's own, for which the package writes no" in text


def test_without_a_backend_the_target_must_be_chosen() -> None:
    (text,) = refusals_of_same(documents("booster")[0])
    assert text.startswith("kind: is ModelBooster, for which there is no backend")


def refusals_of_same(body: Args) -> list[str]:
    result = convert([body], Changes(target=SAME))
    return [str(finding) for error in result.errors for finding in error.findings]


def test_a_knative_service_becomes_its_pods() -> None:
    timeout = {"spec.template.spec.timeoutSeconds": 600}
    body = copy.deepcopy(changed(documents("knative-service")[0], timeout))
    part = serving(body)
    assert part.compiled.plan.groups == 2
    assert [loss.name for loss in part.losses] == ["spec.template.spec.timeoutSeconds"]
    annotations = body["spec"]["template"]["metadata"]["annotations"]
    annotations["autoscaling.knative.dev/max-scale"] = "5"
    (text,) = refusals(body)
    assert text.endswith("State the number: --set replicas=1. [convertible]")
    assert serving(body, {"replicas": 3}).compiled.plan.groups == 3


def test_a_cluster_keeps_its_queue_its_priority_and_its_topology() -> None:
    labels = {
        "volcano.sh/queue-name": "team",
        "ray.io/priority-class-name": "high",
        "volcano.sh/network-topology-mode": "hard",
        "volcano.sh/network-topology-highest-tier-allowed": "2",
    }
    body = ray_cluster(ray_pod("h", SERVE), ray_pod("w"))
    body["metadata"]["labels"] = labels
    args = serving(body).args
    assert (args["queue"], args["priority_class"], args["labels"]) == ("team", "high", labels)
    assert args["network_topology"] == {"group_policy": {"mode": "hard", "highest_tier_allowed": 2}}
    assert losses(body) == USUAL


def dynamo(*args: str, **fields: Any) -> Args:
    body = copy.deepcopy(documents("dynamo-beta")[0])
    worker = body["spec"]["components"][1]
    container = worker["podTemplate"]["spec"]["containers"][0]
    container |= {"command": ["python3", "-m", args[0]], "args": list(args[1:])}
    worker |= fields
    return body


def test_variables_of_a_graph_and_short_names_for_its_components() -> None:
    body = dynamo(
        "dynamo.sglang", "--model-path", "m", "--tp-size", "16", name="SglangDecodeWorker"
    )
    body["spec"]["env"] = [{"name": "NCCL_DEBUG", "value": "INFO"}]
    (role,) = serving(body).args["roles"]
    assert role["name"] == "decode"
    assert role["overlay"]["spec"]["containers"][0]["env"] == body["spec"]["env"]


def test_options_of_another_program_must_be_replaced() -> None:
    body = dynamo(
        *("dynamo.vllm", "--model", "m", "--tensor-parallel-size", "8", "--pipeline-parallel-size"),
        *("2", "--disaggregation-mode", "decode", "--max-model-len", "8192"),
    )
    (text,) = refusals(body)
    assert "no known vllm has the option --disaggregation-mode. State it: --set " in text
    assert """'roles[0].engine.extra_args=["--max-model-len", "8192"]'""" in text
    words = ["--max-model-len", "8192"]
    part = serving(body, {"roles[0].engine.extra_args": words})
    assert part.args["roles"][0]["engine"]["extra_args"] == words


CLAIMED = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "h100s", "namespace": "serving"},
    "spec": {
        "spec": {
            "devices": {
                "requests": [
                    {"name": "g", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": 8}}
                ]
            }
        }
    },
}


def claiming(pod: Args, **reference: Any) -> Args:
    """Let a pod get its GPUs by a resource claim."""
    made = copy.deepcopy(pod)
    (container,) = made["spec"]["containers"]
    for amounts in list(container["resources"].values()):
        amounts.pop("nvidia.com/gpu")
    container["resources"]["claims"] = [{"name": "gpus", **reference.pop("used", {})}]
    made["spec"]["resourceClaims"] = [
        {"name": "gpus", **(reference or {"resourceClaimTemplateName": "h100s"})}
    ]
    return made


def claiming_cluster(**reference: Any) -> Args:
    pods = (ray_pod("head", SERVE), ray_pod("worker"))
    head, worker = (claiming(pod, **copy.deepcopy(reference)) for pod in pods)
    return ray_cluster(head, worker)


def test_gpus_of_a_claim_stay_a_claim() -> None:
    result = convert([claiming_cluster(), CLAIMED], Changes(target="native"))
    assert result.errors == ()
    (part,) = result.servings
    (role,) = part.args["roles"]
    assert role["resources"]["gpus_per_pod"] == 8
    assert role["resources"]["claims"] == [{"name": "gpus", "template": "h100s"}]
    assert "overlay" not in role
    assert [str(loss) for loss in part.losses] == USUAL


def test_a_claim_without_its_template_leaves_the_number_to_the_user() -> None:
    result = run(claiming_cluster(), {"roles[0].resources.gpus_per_pod": 8})
    assert result.errors == ()
    (role,) = result.servings[0].args["roles"]
    assert role["resources"] == {
        "gpus_per_pod": 8,
        "claims": [{"name": "gpus", "template": "h100s"}],
        "cpu": "32",
        "memory": "500Gi",
        "shm": "64Gi",
    }


@for_each("reference", [{"resourceClaimName": "shared"}, {"used": {"request": "g"}}])
def test_a_shared_claim_and_a_single_request_have_no_argument(reference: Args) -> None:
    found = refusals(claiming_cluster(**reference))
    assert any(
        "has a resource claim that pods share, or single requests of one" in f for f in found
    )
