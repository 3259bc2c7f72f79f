"""Systems without rules of their own: their sizes, GPUs and pods are those that start an engine."""

from typing import Any

import pytest

from kthena_components.checker.manifest import check_manifest, read_manifest
from kthena_components.core.findings import Level
from kthena_components.core.values.unknown import Unknown
from tests.rules.cases import documents
from tests.support.for_each import for_each
from tests.support.peers import LATE
from tests.support.specs import REMOVED, changed

WORLD, NNODES, KIND = "world-size-equals-gpus", "nnodes-equals-group", "kind-read"
GPU = "nvidia.com/gpu"
LEADER = "spec.engineConfig.leader.runner"
WORKER = "spec.engineConfig.worker.runner"
JOB = "spec.replicatedJobs[0].template.spec"
ROLE = "spec.template.spec.roles[0]"
HEAD = "spec.template.spec.headGroupSpec.template.spec.containers[0]"
MPI = "spec.mpiReplicaSpecs"
SCRIPT = '"vllm serve m -tp 8 -pp 4 --distributed-executor-backend ray &"'


def resources(gpus: int) -> dict[str, Any]:
    return {"limits": {GPU: gpus}, "requests": {GPU: gpus}}


def body(base: str, changes: dict[str, Any]) -> dict[str, Any]:
    return changed(documents(base)[0], changes)


def told(base: str, changes: dict[str, Any], level: Level = Level.MANDATORY) -> list[str]:
    found = check_manifest(body(base, changes), "o")
    return [f"[{f.rule}] {f}" for f in found if f.level is level]


ENGINES = {
    "job-set": ("engine", 2, 8),
    "rollout": ("llama", 1, 8),
    "knative-service": ("llama", 1, 8),
    "knative-configuration": ("llama", 1, 8),
    "mpi-job": ("llama", 2, 8),
    "storm-service": ("decode", 2, 8),
    "role-set": ("decode", 2, 8),
    "ray-cluster-fleet": ("chat", 3, 8),
    "kubeai-model": ("llama", 1, 8),
    "nim-service": ("deepseek", 2, 8),
    "nim-pipeline": ("llm", 1, 4),
    "llmaz-service": ("sglang", 2, 8),
    "ome-cluster-serving-runtime": ("srt-llama-engine", 2, 8),
    "ome-serving-runtime": ("srt-llama-engine", 2, 8),
    "ome-inference-service": ("llama-engine", 1, 8),
    "replication-controller": ("llama", 1, 8),
    "pod-template": ("llama", 1, 8),
    "vllm-runtime": ("llama", 1, 8),
}


@pytest.mark.parametrize("base", ENGINES)
def test_the_engine_of_a_right_manifest(base: str) -> None:
    facts = read_manifest(documents(base)[0])
    assert facts is not None
    (engine,) = facts.engines
    assert (engine.name, engine.pods, engine.entry.gpus) == ENGINES[base]
    command, (_, pods, gpus) = engine.entry.command, ENGINES[base]
    assert command is not None
    assert command.world == pods * gpus


WRONG: list[tuple[str, dict[str, Any], str, str]] = [
    # TP × 2
    ("job-set", {f"{JOB}.template.spec.containers[0].args[0]": "--tp-size=32"}, WORLD, "32 ranks"),
    ("rollout", {"spec.template.spec.containers[0].args": ["-tp", "16"]}, WORLD, "16 ranks"),
    ("knative-service", {"spec.template.spec.containers[0].args[1]": "-tp=16"}, WORLD, "16 ranks"),
    ("mpi-job", {f"{MPI}.Launcher.template.spec.containers[0].args[0]": "--tp_size=16"}, WORLD,
     "but its 2 pods × 8 GPUs hold 16"),
    ("storm-service", {f"{ROLE}.template.spec.containers[0].args[0]": "--tp-size=32"}, WORLD,
     "starts tensor 32"),
    ("ray-cluster-fleet", {f"{HEAD}.args": [SCRIPT]}, WORLD, "32 ranks"),
    ("kubeai-model", {"spec.args": ["-tp=16"]}, WORLD, "o.spec.args: engine 'llama'"),
    ("nim-service", {"spec.multiNode.parallelism.tensor": 16}, WORLD,
     "o.spec.multiNode.parallelism: engine 'deepseek' starts tensor 16 × pipeline 2 = 32 ranks"),
    ("nim-pipeline", {"spec.services[0].spec.env[0].value": "8"}, WORLD, "starts tensor 8"),
    ("ome-inference-service", {"spec.engine.runner.args": ["-tp=16"]}, WORLD,
     "o.spec.engine.runner.args: engine 'llama-engine' starts tensor 16"),
    ("ome-serving-runtime", {f"{LEADER}.args[0]": "--tp-size=32"}, WORLD,
     f"o.{LEADER}.args: engine 'srt-llama-engine' starts tensor 32"),
    # GPUs / 2
    ("job-set", {f"{JOB}.template.spec.containers[0].resources": resources(4)}, WORLD, "hold 8"),
    ("mpi-job", {f"{MPI}.Worker.template.spec.containers[0].resources": resources(4)}, WORLD,
     "2 pods × 4 GPUs hold 8"),
    ("kubeai-model", {"spec.resourceProfile": "nvidia-gpu-h100:4"}, WORLD, "its pod has 4 GPUs"),
    ("vllm-runtime", {"spec.vllmConfig.tensorParallelSize": 16}, WORLD,
     "o.spec.vllmConfig: engine 'llama' starts tensor 16"),
    ("vllm-runtime", {"spec.vllmConfig.extraArgs": ["--pipeline-parallel-size=2"]}, WORLD,
     "starts tensor 8 × pipeline 2"),
    ("vllm-runtime", {"spec.deploymentConfig.resources.gpu": "4"}, WORLD, "its pod has 4 GPUs"),
    ("vllm-runtime", {"spec.deploymentConfig.nodeSelectorTerms": [{"matchExpressions": [
        {"key": "nvidia.com/gpu.product", "operator": "In", "values": ["NVIDIA-L4"]}]}],
      "spec.model.modelURL": "meta-llama/Llama-3.1-405B-Instruct"}, "memory-weights-fit", "L4"),
    ("nim-service", {"spec.resources": resources(4)}, WORLD, "2 pods × 4 GPUs hold 8"),
    ("ome-serving-runtime",
     {f"{LEADER}.args[0]": "--tp-size=16", f"{LEADER}.resources": resources(4),
      f"{WORKER}.resources": resources(4)}, WORLD, "2 pods × 4 GPUs hold 8"),
    # one worker less
    ("job-set", {f"{JOB}.parallelism": 1}, NNODES, "has 1 pod, but is started with --nnodes 2"),
    ("mpi-job", {f"{MPI}.Worker.replicas": 1}, WORLD, "but its pod has 8 GPUs"),
    ("storm-service",
     {f"{ROLE}.podGroupSize": 1, f"{ROLE}.replicas": 1,
      f"{ROLE}.template.spec.containers[0].args[1]": "--nnodes=2"}, NNODES, "has 1 pod"),
    ("storm-service", {f"{ROLE}.podGroupSize": 4}, WORLD, "its 4 pods × 8 GPUs hold 32"),
    ("ray-cluster-fleet",
     {f"spec.template.spec.workerGroupSpecs[1].{k}": 0
      for k in ("replicas", "minReplicas", "maxReplicas")}, WORLD, "hold 16"),
    ("llmaz-service", {"spec.workloadTemplate.size": 1}, NNODES, "has 1 pod"),
]  # fmt: skip


@for_each(("base", "changes", "rule", "text"), WRONG)
def test_wrong_sizes_are_refused(base: str, changes: dict[str, Any], rule: str, text: str) -> None:
    found = told(base, changes)
    assert any(line.startswith(f"[{rule}]") and text in line for line in found), found


def test_sizes_that_follow_the_gpus_are_right() -> None:
    """OME tells its containers how many GPUs there are, and how many pods."""
    more = {"spec.engineConfig.worker.size": 3, f"{LEADER}.resources": resources(4)}
    assert told("ome-serving-runtime", {**more, f"{WORKER}.resources": resources(4)}) == []


UNKNOWN: list[tuple[str, dict[str, Any], str]] = [
    ("kubeai-model", {"spec.resourceProfile": "our-gpus:8"}, "the configuration of KubeAI says"),
    ("kubeai-model", {"spec.resourceProfile": "nvidia-gpu-h100"}, "and not <name>:<count>"),
    ("nim-service", {"spec.multiNode": REMOVED}, "the NIM chooses its profile"),
    ("nim-service", {"spec.resources": REMOVED, "spec.draResources": [{}]}, ""),
    ("ome-inference-service", {"spec.engine.runner.resources": REMOVED}, "a runtime says"),
    ("ome-inference-service", {"spec.acceleratorSelector": {"acceleratorClass": "a"}},
     "an AcceleratorClass decides"),
    ("ome-cluster-serving-runtime", {"spec.acceleratorRequirements": {}},
     "an AcceleratorClass decides"),
    ("playground", {}, "further flags are in the BackendRuntime"),
    ("vllm-runtime", {"spec.vllmConfig.tensorParallelSize": REMOVED,
                      "spec.deploymentConfig.resources": {}}, "it requests no GPU"),
    ("mpi-job", {f"{MPI}.Launcher.template.spec.containers[0].command": ["mpirun", "train"]},
     "no command line of a known engine was found"),
]  # fmt: skip


@for_each("multi_node", [{"size": 2, "gpusPerPod": 8}, {}])
def test_sizes_of_ranks_as_no_release_of_the_nim_operator_takes_them_are_not_checked(
    multi_node: dict[str, Any],
) -> None:
    changes = {"spec.multiNode": multi_node}
    assert all(each.startswith("[crd-schema]") for each in told("nim-service", changes))
    assert "states no parallelism" in "\n".join(told("nim-service", changes, Level.UNKNOWN))


@pytest.mark.parametrize(("base", "changes", "text"), UNKNOWN)
def test_what_is_in_another_object_is_not_checked(
    base: str, changes: dict[str, Any], text: str
) -> None:
    assert told(base, changes) == []
    assert text in "\n".join(told(base, changes, Level.UNKNOWN))


SILENT: list[tuple[str, dict[str, Any]]] = [
    ("kubeai-model", {"spec.engine": "OLlama", "spec.args": REMOVED,
                      "spec.resourceProfile": "cpu:2"}),
    ("nim-service", {"spec.resources": REMOVED, "spec.multiNode": REMOVED}),
    ("nim-pipeline", {"spec.services[0].enabled": False}),
    ("playground", {"spec.backendRuntimeConfig": REMOVED}),
    ("ome-inference-service", {"spec.engine": {"minReplicas": 1}}),
    ("mpi-job", {"spec.mpiReplicaSpecs": {}}),
    ("rollout", {"spec.template": REMOVED,
                 "spec.workloadRef": {"kind": "Deployment", "name": "a"}}),
]  # fmt: skip


@pytest.mark.parametrize(("base", "changes"), SILENT)
def test_an_object_without_an_engine_is_not_spoken_of(base: str, changes: dict[str, Any]) -> None:
    assert check_manifest(body(base, changes)) == []


@pytest.mark.parametrize("base", [*ENGINES, "playground"])
def test_late_values_refuse_nothing(base: str) -> None:
    for field in (key for key in documents(base)[0] if key not in {"apiVersion", "kind"}):
        assert told(base, {field: LATE}) == []
    spec = documents(base)[0].get("spec", {})
    for field in spec:
        assert told(base, {f"spec.{field}": LATE}) == [], field


def test_a_launcher_that_takes_part_is_a_pod_of_the_engine() -> None:
    """With runLauncherAsWorker the launcher stands in the host file."""
    launcher = f"{MPI}.Launcher.template.spec.containers[0]"
    part = {"spec.runLauncherAsWorker": True, f"{MPI}.Worker.replicas": 1}
    assert "its 2 pods (entry 0, workers 8 GPUs) hold 8" in "".join(told("mpi-job", part))
    facts = read_manifest(body("mpi-job", {**part, f"{launcher}.resources": resources(8)}))
    assert facts is not None
    assert (facts.engines[0].pods, facts.engines[0].entry.gpus) == (2, 8)


def test_pods_of_a_job_that_are_whole_engines_are_engines() -> None:
    rank = {f"{JOB}.template.spec.containers[0].args[2]": "--node-rank=$(POD_RANK)"}
    four = {f"{JOB}.parallelism": 4, f"{JOB}.completions": 4}
    assert told("job-set", {**four, **rank}) == []
    (wrong,) = told("job-set", four)
    assert "has 4 pods with --node-rank 0, 1, 2, 3, but --nnodes 2 needs 2 pods with 0, 1" in wrong
    (*_, extra) = told("job-set", {f"{JOB}.parallelism": 3, f"{JOB}.completions": 3, **rank})
    assert "has 3 pods, but is started with --nnodes 2" in extra
    ranked = {
        f"{JOB}.parallelism": 1,
        f"{JOB}.template.spec.containers[0].args[2]": "--node-rank=0",
    }
    assert told("job-set", ranked) == [], "rank 1 may be in another JobSet"


def test_a_job_of_several_templates_joins_them() -> None:
    leader = documents("job-set")[0]["spec"]["replicatedJobs"][0]
    args = f"{JOB.removeprefix('spec.replicatedJobs[0].')}.template.spec.containers[0].args[2]"
    first = changed(leader, {"name": "first", args: "--node-rank=0",
                             "template.spec.parallelism": 1})  # fmt: skip
    rest = changed(leader, {"name": "rest", args: "--node-rank=1",
                            "template.spec.parallelism": 1})  # fmt: skip
    facts = read_manifest(body("job-set", {"spec.replicatedJobs": [first, rest]}))
    assert facts is not None
    assert [(e.name, e.pods) for e in facts.engines] == [("first", 2)]


def test_knative_decides_how_many_pods_there_are() -> None:
    from kthena_components.core.objects.object import read_object  # noqa: PLC0415
    from kthena_components.systems.knative import pods  # noqa: PLC0415

    def counts(changes: dict[str, Any]) -> list[object]:
        return [one.count for one in pods(read_object(body("knative-service", changes)))]

    assert counts({}) == [2]
    (open_end,) = counts({"spec.template.metadata.annotations": {}})
    assert isinstance(open_end, Unknown)
