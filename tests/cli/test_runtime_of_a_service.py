"""A runtime of KServe is read with the InferenceService that names it, and listed only without."""

import pytest

from tests.cli.conftest import Command, Write

RUNTIME = """\
apiVersion: serving.kserve.io/v1alpha1
kind: ServingRuntime
metadata: {name: ours, namespace: serving}
spec:
  supportedModelFormats: [{name: huggingface}]
  containers:
    - name: kserve-container
      image: vllm/vllm-openai:v0.11.0
      command: [vllm, serve]
      args: [/mnt/models, --tensor-parallel-size, "2"]
"""
SERVICE = """\
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: chat, namespace: serving}
spec:
  predictor:
    model:
      runtime: RUNTIME
      modelFormat: {name: huggingface}
      storageUri: hf://Qwen/Qwen3-8B
      resources: {limits: {nvidia.com/gpu: 4}}
"""
FOUND = "tensor 2 × pipeline 1 = 2 ranks, but its pod has 4 GPUs"
UNREAD = "no rule reads an engine in the object"


def test_a_runtime_alone_is_listed(run: Command, write: Write) -> None:
    write("m/runtime.yaml", RUNTIME)
    assert UNREAD in run("m").out


def test_a_runtime_that_a_service_names_is_not(run: Command, write: Write) -> None:
    write("m/runtime.yaml", RUNTIME)
    write("m/service.yaml", SERVICE.replace("RUNTIME", "ours"))
    told = run("m").out
    assert UNREAD not in told
    assert FOUND in told


def test_a_runtime_that_another_service_does_not_name_is(run: Command, write: Write) -> None:
    write("m/runtime.yaml", RUNTIME)
    write("m/service.yaml", SERVICE.replace("RUNTIME", "theirs"))
    assert UNREAD in run("m").out


@pytest.mark.programs
@pytest.mark.on_path("kustomize")
def test_a_runtime_of_the_cluster_serves_all_kustomizations(run: Command, write: Write) -> None:
    of_cluster = RUNTIME.replace("kind: S", "kind: ClusterS").replace(", namespace: serving", "")
    write("m/apps/kustomization.yaml", "resources: [service.yaml]")
    write("m/apps/service.yaml", SERVICE.replace("RUNTIME", "ours"))
    write("m/platform/runtime.yaml", RUNTIME)
    told = run("m").out
    assert FOUND not in told
    assert UNREAD in told

    write("m/platform/runtime.yaml", of_cluster)
    told = run("m").out
    assert FOUND in told
    assert UNREAD not in told

    write("m/other/runtime.yaml", of_cluster.replace('"2"', '"4"'))
    assert FOUND not in run("m").out
