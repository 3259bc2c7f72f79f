"""Conversions of kinds without a backend: what becomes of their pods and of their variables."""

import json
from typing import Any

import pytest

from kthena_components.checker.manifest import read_manifest
from kthena_components.convert.conversion import SAME, Changes, Conversion, Converted, Kept
from kthena_components.convert.convert import convert
from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.values.unknown import Unknown
from tests.support.specs import Args, changed, gpu_template

SERVER = "python3 -m sglang.launch_server --model-path m --tp-size 16 --nnodes 2"
BY_NAME = (
    f"{SERVER} --node-rank ${{HOSTNAME##*-}} "
    "--dist-init-addr llama-0.llama.serving.svc.cluster.local:20000"
)


def workload(kind: str, script: str, replicas: int = 1, **spec: Any) -> Args:
    pods = changed(gpu_template(script, 8), {"metadata.labels.app": "llama"})
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "llama", "namespace": "serving"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "llama"}},
            "template": pods,
            **spec,
        },
    }


def stateful(script: str, replicas: int = 2, **spec: Any) -> Args:
    return workload("StatefulSet", script, replicas, serviceName="llama", **spec)


def volcano_job(*tasks: tuple[str, int, str], **spec: Any) -> Args:
    listed = [
        {"name": name, "replicas": number, "template": gpu_template(script, 8)}
        for name, number, script in tasks
    ]
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "chat", "namespace": "serving"},
        "spec": {"plugins": {"svc": [], "env": []}, "tasks": listed, **spec},
    }


def run(*bodies: Args, target: str = "native", **changes: Any) -> Conversion:
    return convert(list(bodies), Changes(target=target, arguments=changes))


def serving(*bodies: Args, **asked: Any) -> Converted:
    result = run(*bodies, **asked)
    assert result.errors == ()
    (found,) = result.servings
    return found


def losses(*bodies: Args, **asked: Any) -> list[str]:
    return [str(loss) for part in run(*bodies, **asked).parts for loss in part.losses]


def refusals(*bodies: Args, **asked: Any) -> list[str]:
    result = run(*bodies, **asked)
    assert result.servings == []
    return [str(finding) for error in result.errors for finding in error.findings]


def ranks(part: Converted) -> list[object]:
    """Read the rank of each pod of the first engine, as its variables say it."""
    role = part.compiled.plan.roles[0]
    found: list[object] = []
    for index in range(role.pods):
        env = {"GROUP_SIZE": str(role.pods), "WORKER_INDEX": str(index)}
        pod = read_pod(role.worker if index and role.worker else role.entry, "", env)
        assert pod.command is not None
        found.append(pod.command.node_rank)
    return found


def source_ranks(body: Args) -> list[object]:
    facts = read_manifest(body)
    assert facts is not None
    assert facts.engines[0].siblings is not None
    return [command.node_rank for command in facts.engines[0].siblings.commands]


INDEX = {"fieldRef": {"fieldPath": "metadata.labels['apps.kubernetes.io/pod-index']"}}
BY_INDEX = f"{SERVER} --node-rank $(RANK) --dist-init-addr llama-0.llama:20000"


@pytest.mark.parametrize(
    "body",
    [
        stateful(BY_NAME),
        changed(
            stateful(BY_INDEX),
            {"spec.template.spec.containers[0].env": [{"name": "RANK", "valueFrom": INDEX}]},
        ),
    ],
)
@pytest.mark.parametrize("target", ["native", "kthena", "lws"])
def test_an_engine_across_a_stateful_set_keeps_its_ranks(body: Args, target: str) -> None:
    part = serving(body, target=target)
    assert ranks(part) == source_ranks(body) == [0, 1]
    assert (part.compiled.plan.groups, part.compiled.plan.roles[0].pods) == (1, 2)
    text = json.dumps([manifest.body for manifest in part.compiled.manifests])
    assert "$(ENTRY_ADDRESS):20000" in text
    assert "llama-0.llama" not in text
    assert [str(loss) for loss in part.losses] == ["spec.serviceName: is not kept"]


def test_pods_that_are_not_whole_engines_are_refused() -> None:
    (text,) = refusals(stateful(BY_NAME, 3))
    assert text == (
        "spec.template: makes 3 pods, which are not 1 engine of 2 pods. State as many pods as its "
        "command line does. [convertible]"
    )


def test_each_engine_of_one_pod_becomes_a_group() -> None:
    body = workload("Deployment", "vllm serve m --tensor-parallel-size 8", 3)
    part = serving(body)
    assert (part.compiled.plan.groups, part.compiled.plan.roles[0].replicas) == (3, 1)
    assert part.losses == ()


def test_fields_that_only_its_controller_has_are_losses() -> None:
    more = {"revisionHistoryLimit": 3, "strategy": {"type": "Recreate"}, "paused": False}
    body = workload("Deployment", "vllm serve m --tensor-parallel-size 8")
    body["spec"] |= more
    assert losses(body) == [
        "spec.revisionHistoryLimit: is not kept",
        "spec.strategy.type: is not kept",
        "spec.paused: is not kept",
    ]


def test_templates_without_pods_are_a_loss_where_nothing_is_written_for_them() -> None:
    body = workload("Deployment", "vllm serve m --tensor-parallel-size 8", 0)
    assert losses(body) == ["roles[0]: has no pods, and native writes nothing for it"]
    assert losses(body, target="kthena") == []


RAY = "vllm serve m --tensor-parallel-size 8 --pipeline-parallel-size 3"
HEAD = f"ray start --head && {RAY} --distributed-executor-backend ray"


def test_a_volcano_job_becomes_a_leader_with_workers() -> None:
    worker = "ray start --block --address=$VC_HEAD_HOSTS:6379"
    part = serving(volcano_job(("head", 1, HEAD), ("worker", 2, worker), minAvailable=3))
    (role,) = part.compiled.plan.roles
    assert (role.name, role.pods, part.compiled.plan.scheduler) == ("head", 3, "volcano")
    assert role.worker is not None
    command = role.worker["spec"]["containers"][0]["command"]
    assert command[-1] == "ray start --block --address=$(ENTRY_ADDRESS):6379"
    assert [loss.name for loss in part.losses] == [
        "spec.plugins.svc",
        "spec.plugins.env",
        "spec.tasks[1].name",
    ]


def test_the_number_of_a_worker_counts_from_the_leader() -> None:
    own = f"{SERVER} --dist-init-addr chat-head-0.chat:20000"
    part = serving(
        volcano_job(
            ("head", 1, f"{own} --node-rank 0"),
            ("worker", 1, f"{own} --node-rank $((VC_TASK_INDEX + 1))"),
        )
    )
    assert ranks(part) == [0, 1]


def test_the_rank_that_volcanos_plugin_pytorch_gives_is_that_of_the_pod() -> None:
    own = f"{SERVER} --dist-init-addr $MASTER_ADDR:20000 --node-rank $RANK"
    tasks = ("master", 1, own), ("worker", 1, own)
    assert ranks(serving(volcano_job(*tasks, plugins={"pytorch": []}))) == [0, 1]
    late = own.replace("20000", "$MASTER_PORT")
    (text,) = refusals(volcano_job(("master", 1, late), tasks[1], plugins={"pytorch": []}))
    assert "uses MASTER_PORT, which only the controller of the object gives to its pods" in text


def test_a_variable_of_the_old_controller_is_never_left_unset() -> None:
    other = "ray start --block --address=$VC_WORKER_HOSTS:6379"
    (text,) = refusals(volcano_job(("head", 1, HEAD), ("worker", 2, other)))
    assert text == (
        "roles[0].worker_template.spec.containers[0]: uses VC_WORKER_HOSTS, which only the "
        "controller of the object gives to its pods. Write it with GROUP_SIZE, ENTRY_ADDRESS or "
        "WORKER_INDEX, or as a value. [convertible]"
    )


def test_an_unknown_number_is_refused_with_its_reason() -> None:
    body = workload("Deployment", "vllm serve m --tensor-parallel-size 8")
    body["spec"]["replicas"] = "${REPLICAS}"
    (text,) = refusals(body)
    assert text.startswith("spec.template: does not show how many pods it makes: ")


def test_a_kind_without_a_backend_needs_one() -> None:
    (text,) = refusals(workload("Deployment", "vllm serve m"), target=SAME)
    assert text.startswith("kind: is Deployment, for which there is no backend. Choose one with")


def test_a_change_of_a_role_is_not_a_difference() -> None:
    body = workload("Deployment", "vllm serve m --tensor-parallel-size 8", 2)
    part = serving(body, **{"roles[0].name": "chat", "replicas": 1})
    assert (part.compiled.plan.groups, part.compiled.plan.roles[0].name) == (1, "chat")


def service(**selector: str) -> Args:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "llama", "namespace": "serving"},
        "spec": {"clusterIP": "None", "selector": selector, "ports": [{"port": 8000}]},
    }


def test_a_service_by_labels_of_the_template_is_kept() -> None:
    result = run(stateful(BY_NAME), service(app="llama"))
    assert [part.losses for part in result.parts if isinstance(part, Kept)] == [()]


def test_a_service_by_labels_of_the_controller_is_a_loss() -> None:
    key = "statefulset.kubernetes.io/pod-name"
    assert losses(stateful(BY_NAME), service(**{"app": "llama", key: "llama-0"})) == [
        "spec.serviceName: is not kept",
        f"Service/llama: selects by {key}: llama-0, which no pod has with native",
    ]


def test_a_budget_by_labels_of_the_controller_is_a_loss() -> None:
    key = "controller.example.com/set"
    budget: Args = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "llama", "namespace": "serving"},
        "spec": {"selector": {"matchLabels": {key: "llama"}}},
    }
    assert losses(stateful(BY_NAME), budget)[1:] == [
        f"PodDisruptionBudget/llama: selects by {key}: llama, which no pod has with native"
    ]
    budget["spec"]["selector"]["matchLabels"] = {"app": "llama"}
    assert losses(stateful(BY_NAME), budget)[1:] == []


def test_an_autoscaler_of_a_converted_object_is_a_loss() -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llama"}
    scaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "scale", "namespace": "serving"},
        "spec": {"scaleTargetRef": target, "maxReplicas": 3},
    }
    assert losses(workload("Deployment", "vllm serve m --tensor-parallel-size 8"), scaler) == [
        "HorizontalPodAutoscaler/scale: refers to Deployment llama, which is converted"
    ]


def test_a_volume_of_a_claim_template_is_refused() -> None:
    claim = {"metadata": {"name": "weights"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    body = stateful("vllm serve m --tensor-parallel-size 8", 1, volumeClaimTemplates=[claim])
    mounts = body["spec"]["template"]["spec"]["containers"][0]["volumeMounts"]
    mounts.append({"name": "weights", "mountPath": "/models"})
    (text,) = refusals(body)
    assert text.startswith(
        "roles[0].entry_template.spec.containers[0].volumeMounts: mounts 'weights', which is not a "
        "volume of the template."
    )


def test_what_is_not_known_of_both_is_alike() -> None:
    """A rank is not known before the pods exist, whatever names it."""
    part = serving(stateful(BY_NAME))
    pod = read_pod(part.compiled.plan.roles[0].entry, "")
    assert pod.command is not None
    assert isinstance(pod.command.node_rank, Unknown)


@pytest.mark.parametrize("target", ["native", "kthena"])
def test_a_job_keeps_its_queue_its_priority_and_its_topology(target: str) -> None:
    script = f"{SERVER} --node-rank ${{VC_TASK_INDEX}} --dist-init-addr chat-serve-0.chat:20000"
    body = volcano_job(
        ("serve", 2, script),
        minAvailable=2,
        schedulerName="volcano",
        queue="team",
        priorityClassName="high",
        networkTopology={"highestTierAllowed": 2},
    )
    part = serving(body, target=target)
    assert part.args["queue"] == "team"
    assert part.args["priority_class"] == "high"
    assert part.args["network_topology"] == {
        "group_policy": {"mode": "hard", "highest_tier_allowed": 2}
    }
    assert not [loss for loss in part.losses if "opology" in loss.name or "queue" in loss.name]
    texts = json.dumps([manifest.body for manifest in part.compiled.manifests])
    assert all(word in texts for word in ('"team"', '"high"', '"highestTierAllowed": 2'))
