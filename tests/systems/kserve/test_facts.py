"""KServe's services and runtimes: what is read, and what the checks say of it."""

from typing import Any

import pytest

from kthena_components.checker.manifest import check_manifest, read_manifest
from kthena_components.core.facts.container import SHM_PATH
from kthena_components.core.findings import Level
from kthena_components.core.values.read import group_kind
from kthena_components.core.values.unknown import Blank, Unknown
from kthena_components.systems import find_kind
from kthena_components.systems.kserve.system import SYSTEM
from tests.support.peers import (
    GONE,
    GPU,
    ISVC,
    LATE,
    RUNTIME,
    Manifest,
    changed,
    gpus,
    isvc,
    llm,
    refused,
    said_by,
    told,
)

P, AT = "spec/predictor", "spec.predictor"
KINDS = SYSTEM.kinds
WORLD = "world-size-equals-gpus"
SINGLE = changed(
    ISVC,
    {
        f"{P}/workerSpec": GONE,
        f"{P}/model/runtime": GONE,
        f"{P}/model/args": ["--tensor-parallel-size=8"],
        f"{P}/model/resources": gpus("8", both=False),
    },
)
TP_4 = "starts tensor 4 × pipeline 1 = 4 ranks, but its pod has 8 GPUs. Set tensor to 8, or set "
TP_4 += f"pipeline to 2, or give each pod 4 GPUs. [{WORLD}]"
ONE_STAGE = TP_4.replace("or set pipeline to 2, ", "")
"""The same where KServe ignores a pipeline: of a preset without a worker."""
SPREAD = llm({"tensor": 1, "data": 16, "dataLocal": 8}, worker=True)


def engine_of(manifest: Manifest, changes: dict[str, Any] | None = None) -> Any:
    body = changed(manifest, changes)
    facts = read_manifest(body)
    assert facts is not None
    return facts.engines[0]


@pytest.mark.parametrize(
    "manifest",
    [
        ISVC,
        RUNTIME,
        SINGLE,
        isvc(8, 2, 8),
        isvc(8, 2, 8, 8),
        isvc(8, 1, 8),
        llm({"tensor": 8}),
        llm({"tensor": 8, "pipeline": 2}, worker=True),
        SPREAD,
    ],
)
def test_a_guide_has_no_mandatory_finding(manifest: Manifest) -> None:
    assert refused(manifest) == []


def test_the_pods_are_those_that_kserve_makes() -> None:
    engine = engine_of(isvc(8, 2, 8))
    assert (engine.pods, engine.entry.gpus, engine.worker.gpus) == (2, 8, 8)
    assert (engine.entry.command.tensor, engine.entry.command.pipeline) == (8, 2)
    alone = engine_of(isvc(8, 1, 8))
    assert (alone.pods, alone.entry.gpus, alone.worker) == (1, 8, None)


def test_the_sizes_are_not_read_from_the_command() -> None:
    changes = {"spec/workerSpec/tensorParallelSize": 4, "spec/containers/0/args": ["vllm -tp 9"]}
    assert engine_of(RUNTIME, changes).entry.command.tensor == 4


@pytest.mark.parametrize(
    ("manifest", "rules"),
    [
        (isvc(8, 2, None, 8), ["leader-worker-same-gpus", "kserve-node-arithmetic"]),
        (isvc(8, 2, 8, 4), ["kserve-node-arithmetic"]),
        (isvc(8, 2, 4, 8), [WORLD, "leader-worker-same-gpus", "kserve-node-arithmetic"]),
        (isvc(0, 2, 8, 8), ["kserve-multinode"]),
        (llm({"tensor": 8, "data": 16, "dataLocal": 8}, worker=True), [WORLD]),
    ],
)
def test_one_wrong_number_is_found(manifest: Manifest, rules: list[str]) -> None:
    assert [line.rpartition("[")[2].rstrip("]") for line in refused(manifest)] == rules


def test_reserved_gpus_are_named() -> None:
    assert said_by(WORLD, isvc(8, 2, 4, 8)) == [
        (
            "spec.predictor.workerSpec: engine 'huggingface-llama3' starts tensor 8 × pipeline 2 = "
            "16 ranks, but its 4 pods (entry 8, workers 4 GPUs) hold 20. Give each pod 4 GPUs. "
            f"[{WORLD}]"
        )
    ]


def test_what_a_foreign_runtime_may_state_is_open() -> None:
    engine = engine_of(isvc(8, 2, 8), {f"{P}/model/runtime": "mine"})
    assert engine.pods == Unknown("its runtime mine may state what is missing here")
    assert engine_of(isvc(8, 2, 8, 8), {f"{P}/model/runtime": "mine"}).pods == 2


def test_one_node_is_read_like_a_pod() -> None:
    wrong = {f"{P}/model/args": ["--tensor-parallel-size=4"]}
    assert told(SINGLE) == []
    assert told(SINGLE, wrong) == [f"{AT}.model.args: engine 'huggingface-llama3' {TP_4}"]


def test_own_containers_are_read_where_they_stand() -> None:
    container = {
        "name": "main",
        "command": ["vllm", "serve", "m", "-tp", "4"],
        "resources": gpus(8),
    }
    custom = {P: {"containers": [container]}}
    assert told(SINGLE, custom) == [
        f"{AT}.containers[0].command: engine 'huggingface-llama3' {TP_4}"
    ]


def test_gpus_that_a_runtime_may_state_are_open() -> None:
    assert told(SINGLE, {f"{P}/model/resources": GONE}) == [
        (
            f"{AT}.model.args: engine 'huggingface-llama3' was not checked, because its runtime "
            f"may state the GPUs. [{WORLD}]"
        )
    ]


def test_a_model_of_another_kind_is_silent() -> None:
    model = {"modelFormat": {"name": "sklearn"}, "storageUri": "s3://models/iris"}
    assert told(SINGLE, {f"{P}/model": model}) == []


def test_a_runtime_for_one_node_that_states_no_gpus_is_not_checked() -> None:
    (only,) = told(RUNTIME, {"spec/workerSpec": GONE})
    assert only.startswith("spec.containers[0].args: not checked, because no rule reads an engine")
    assert only.endswith("[kind-read]")


def test_a_runtime_for_one_node_that_states_gpus_is_read() -> None:
    serve = ["vllm", "serve", "m", "-tp", "4"]
    container = {"name": "kserve-container", "args": serve, "resources": gpus(8)}
    line, *rest = told(RUNTIME, {"spec/workerSpec": GONE, "spec/containers": [container]})
    assert all("an InferenceService adds its arguments" in each for each in rest)
    assert line == f"spec.containers[0].args: engine '{RUNTIME['metadata']['name']}' {TP_4}"


def test_data_parallel_pods_hold_data_local_copies() -> None:
    engine = engine_of(SPREAD)
    assert (engine.pods, engine.entry.gpus, engine.worker.gpus) == (2, 8, 8)
    assert engine.entry.command.world == 16


def test_tensor_beyond_the_gpus_is_found() -> None:
    assert refused(llm({"tensor": 2, "data": 16, "dataLocal": 8}, worker=True)) == [
        (
            "spec.parallelism: engine 'deepseek' starts tensor 2 × pipeline 1 × data 16 = 32 "
            "ranks, but its 2 pods × 8 GPUs hold 16. Set tensor to 1, or give the engine "
            f"4 pods. [{WORLD}]"
        )
    ]


def test_a_pipeline_that_is_ignored_leaves_gpus_idle() -> None:
    assert refused(llm({"tensor": 4, "pipeline": 2})) == [
        f"spec.parallelism: engine 'deepseek' {ONE_STAGE}"
    ]


def test_a_command_of_its_own_wins_over_parallelism() -> None:
    own = {"spec/template/containers/0/command": ["vllm", "serve", "m", "-tp", "8"]}
    assert refused(llm({"tensor": 4}), own) == []
    added = {"name": "VLLM_ADDITIONAL_ARGS", "value": "--tensor-parallel-size 4"}
    (line,) = refused(llm(None), {"spec/template/containers/0/env": [added]})
    assert ONE_STAGE in line


@pytest.mark.parametrize(
    ("value", "tensor"),
    [
        ("""--kv-transfer-config '{"kv_role": "kv_both"}' -tp 4""", 4),
        ("--tensor-parallel-size='4'", 4),
        ("--seed $SEED -tp 4", 4),
        (Blank("-tp {{ size }}"), Unknown("<output> may contain any flag")),
    ],
)
def test_additional_arguments_are_read_by_a_shell(value: str, tensor: object) -> None:
    added = {"spec/template/containers/0/env": [{"name": "VLLM_ADDITIONAL_ARGS", "value": value}]}
    facts = read_manifest(changed(llm(None), added))
    assert facts is not None
    command = facts.engines[0].entry.command
    assert command is not None
    assert (command.tensor, command.problems) == (tensor, ())


def test_prefill_is_an_engine_of_its_own() -> None:
    pod = {"containers": [{"name": "main", "resources": {"limits": {GPU: 8}}}]}
    (line,) = refused(llm({"tensor": 8}, prefill={"parallelism": {"tensor": 4}, "template": pod}))
    assert line == f"spec.prefill.parallelism: engine 'deepseek-prefill' {ONE_STAGE}"


def test_presets_mount_shared_memory_unless_the_object_mounts_something_else() -> None:
    main = {"name": "main", "resources": {"limits": {GPU: 8}}}
    own = {"volumeMounts": [{"name": "disk", "mountPath": f"{SHM_PATH}/"}]}
    assert said_by("shm-present", llm({"tensor": 8}, template={"containers": [main]})) == []
    pod = {"containers": [{**main, **own}], "volumes": [{"name": "disk", "emptyDir": {}}]}
    (line,) = said_by("shm-present", llm({"tensor": 8}, template=pod))
    assert "has a volume at /dev/shm that is not in memory" in line


def test_gpus_of_a_base_are_open() -> None:
    based = llm({"tensor": 8}, template=None, baseRefs=[{"name": "base"}])
    assert told(based) == [
        (
            "spec.parallelism: engine 'deepseek' was not checked, because a preset or a base may "
            f"state the GPUs. [{WORLD}]"
        )
    ]


@pytest.mark.parametrize("sizes", [{"tensor": LATE}, LATE])
def test_late_sizes_are_not_checked(sizes: object) -> None:
    found = told(llm(sizes, worker=True))
    assert found != []
    assert refused(llm(sizes)) == []


@pytest.mark.parametrize(
    ("api", "kind"),
    [
        ("serving.kserve.io/v1beta1", "InferenceGraph"),
        ("apps/v1", "InferenceService"),
        ("serving.kserve.io/v1alpha1", "LLMInferenceServiceConfig"),
        ("v1", "Pod"),
    ],
)
def test_other_kinds_are_left_alone(api: str, kind: str) -> None:
    assert find_kind(group_kind({**ISVC, "apiVersion": api, "kind": kind})) not in KINDS


@pytest.mark.parametrize("version", ["v1", "v1alpha1", "v1beta1"])
def test_any_version_is_read(version: str) -> None:
    for manifest in (ISVC, RUNTIME, SPREAD):
        found = told({**manifest, "apiVersion": f"serving.kserve.io/{version}"})
        assert [line for line in found if "[crd-schema]" not in line] == told(manifest)


def test_options_that_an_inference_service_may_add_to_a_runtime_are_not_missing() -> None:
    """KServe appends the arguments of the model, such as `--tool-call-parser hermes`."""
    container = {
        "name": "kserve-container",
        "image": "vllm/vllm-openai:v0.27.1",
        "args": ["$(MODEL_ID)", "--enable-auto-tool-choice"],
        "resources": {"limits": {"nvidia.com/gpu": 2}},
    }
    body = {
        "apiVersion": "serving.kserve.io/v1alpha1",
        "kind": "ServingRuntime",
        "metadata": {"name": "chat"},
        "spec": {"containers": [container]},
    }
    rules = {"options-agree", "world-size-equals-gpus"}
    found = [each for each in check_manifest(body) if each.rule in rules]
    assert [str(each) for each in found if each.level is Level.MANDATORY] == []
