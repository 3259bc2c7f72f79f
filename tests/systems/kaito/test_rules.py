"""KAITO's rules on the objects of its own examples, each of them right, and wrong in one number."""

from dataclasses import replace
from typing import Any

import pytest

from kthena_components.checker.manifest import check_manifest
from kthena_components.core.findings import Finding, Level
from kthena_components.core.memory.engine import EngineOnGpu, engines_on_gpu
from kthena_components.core.models import ModelShape
from kthena_components.core.objects.object import read_object
from kthena_components.core.values.unknown import OUTPUT_CLOSE, OUTPUT_OPEN
from kthena_components.systems.kaito.estimator import (
    SHORT_NAMES,
    Sized,
    find_preset,
    is_preset,
    minimum_gpus,
    size_of,
)
from kthena_components.systems.kaito.facts import Start, start_of
from kthena_components.systems.kaito.rules import capacity_and_instance_type as kaito_capacity
from kthena_components.systems.kaito.rules.preset_roles_name_selector import RULES
from kthena_components.systems.kaito.view import View, read_view
from tests.support.for_each import for_each

Manifest = dict[str, Any]
LATE = f"{OUTPUT_OPEN}0{OUTPUT_CLOSE}"
A100, H100, A10 = (
    "Standard_NC24ads_A100_v4",
    "Standard_NC80adis_H100_v5",
    "Standard_NV36ads_A10_v5",
)


def workspace(preset: str, instance: str | None, count: Any = None, **more: Any) -> Manifest:
    resource = {"labelSelector": {"matchLabels": {"apps": "x"}}}
    stated = {"instanceType": instance, "count": count}
    annotations = more.pop("annotations", {})
    options = {"presetOptions": {"modelAccessSecret": "hf-token"}}
    return {
        "apiVersion": "kaito.sh/v1beta1",
        "kind": "Workspace",
        "metadata": {"name": "w", "annotations": annotations},
        "resource": {**resource, **{k: v for k, v in stated.items() if v is not None}},
        "inference": {"preset": {"name": preset, **options}, **more},
    }


def inference_set(preset: str, instance: str, replicas: int, limit: int) -> Manifest:
    inner = workspace(preset, instance)
    template = {key: inner[key] for key in ("resource", "inference")}
    return {
        "apiVersion": "kaito.sh/v1beta1",
        "kind": "InferenceSet",
        "spec": {"replicas": replicas, "nodeCountLimit": limit, "template": template},
    }


def check_kaito(manifest: Manifest) -> list[Finding]:
    """Give what KAITO's own rules say, and that a rule failed."""
    return [f for f in check_manifest(manifest) if f.rule.startswith(("kaito-", "rule-fault"))]


def view_of(manifest: Manifest) -> View:
    return read_view(read_object(manifest))


def sized_of(manifest: Manifest) -> Sized:
    (model,) = view_of(manifest).models
    sized = size_of(model)
    assert isinstance(sized, Sized)
    return sized


def budget_of(sized: Sized) -> float:
    """Give the GiB that the engine may take of a GPU."""
    deployment = sized.deployment
    assert deployment is not None
    start = start_of(sized, deployment)
    assert isinstance(start, Start)
    ((_, placed),) = engines_on_gpu(start.facts)
    assert isinstance(placed, EngineOnGpu)
    return placed.budget


def found(manifest: Manifest, level: Level = Level.MANDATORY) -> list[str]:
    return [str(f) for f in check_kaito(manifest) if f.level is level]


EXAMPLES = [
    workspace("phi-4-mini-instruct", A100),
    workspace("deepseek-r1-distill-qwen-14b", A100),
    workspace("gemma-3-27b-instruct", A100),
    workspace("gemma-3-4b-instruct", A10),
    workspace("gpt-oss-120b", A100, config="gpt-oss-120b-inference-config"),
    workspace("gpt-oss-20b", A10, config="inference-params"),
    workspace("llama-3.1-8b-instruct", "Standard_NC96ads_A100_v4"),
    workspace("llama-3.3-70b-instruct", "Standard_NC48ads_A100_v4", 2, config="params"),
    workspace("deepseek-r1-0528", H100, 6),
    workspace("deepseek-v3-0324", H100, 6),
    workspace("mistral-large-3-675b-instruct", H100, 6),
    workspace("qwen2.5-coder-32b-instruct", A100),
    workspace("llama-3.1-8b-instruct", None, partition={"mode": "accelerator", "count": 2}),
    workspace("deepseek-r1-distill-llama-8b", "<your-vm-sku>"),
    inference_set("llama-3.1-8b-instruct", A100, 2, 10),
    inference_set("mistral-7b-instruct", A100, 1, 5),
]


@pytest.mark.parametrize("manifest", EXAMPLES, ids=str)
def test_examples_have_nothing_wrong(manifest: Manifest) -> None:
    assert found(manifest) == []


WRONG = {
    "is 1, but KAITO counts at least 3 GPUs for the 131.42 GiB": workspace(
        "llama-3.3-70b-instruct", "Standard_NC48ads_A100_v4", 1, config="params"
    ),
    "is 4, but KAITO counts 9 GPUs for the 641.3 GiB": workspace("deepseek-r1-0528", H100, 4),
    "is 'p5.49xlarge', which KAITO does not know, and rejects": workspace(
        "deepseek-v3-0324", "p5.49xlarge", 6
    ),
    "is '1.0', but vLLM does not support strengths of adapters": workspace(
        "phi-4", A100, adapters=[{"source": {"name": "a"}, "strength": "1.0"}]
    ),
    "is 'gpt-oss-130b', which is neither": workspace("gpt-oss-130b", A100),
    "makes KAITO start tensor 6 × pipeline 1, where engine 'Qwen/Qwen3-32B' splits 64": workspace(
        "Qwen/Qwen3-32B", "inf2.24xlarge"
    ),
    "splits 71 attention heads over tensor 2, which leaves a remainder of 1": workspace(
        "tiiuae/falcon-7b", "Standard_NV72ads_A10_v5"
    ),
}


@pytest.mark.parametrize("says", WRONG)
def test_one_wrong_number_is_found_and_named(says: str) -> None:
    messages = found(WRONG[says])
    assert len(messages) == 1
    assert says in messages[0]


TOLD = {
    "is 6, but KAITO counts 9 GPUs for the 641.3 GiB": workspace("deepseek-r1-0528", H100, 6),
    "116335 tokens, and not for the model's 294912": workspace(
        "mistral-large-3-675b-instruct", H100
    ),
    "on 11 nodes of 1 GPU of 80 GiB: weights take about 62.9 GiB of the fullest GPU, and nothing": (
        workspace("deepseek-ai/DeepSeek-V3", A100)
    ),
    "is 6, but 3 replicas of 3 nodes each need 9. Write 9 or more": inference_set(
        "llama-3.3-70b-instruct", A100, 3, 6
    ),
    "is 'Standard_NC80adis_H100_v6', which KAITO does not know, so it": workspace(
        "deepseek-v3-0324", "Standard_NC80adis_H100_v6", 6
    ),
}


@pytest.mark.parametrize("says", TOLD)
def test_what_works_but_not_as_written_is_told(says: str) -> None:
    assert found(TOLD[says]) == []
    assert says in "\n".join(found(TOLD[says], Level.ADVISORY))


# The engine takes its share of what the driver reports, 22.49 of 24 GiB, 93.58 of 94, 140.4 of 141.
LEFT = [
    ("microsoft/phi-4", "g6.12xlarge", 0.84 * 22.49),
    ("gemma-3-4b-instruct", A10, 0.82 * 22.49),
    ("deepseek-r1-0528", H100, 0.84 * 93.58),
    ("meta-llama/Llama-3.1-405B-Instruct", "p5en.48xlarge", 0.84 * 140.4),
    ("microsoft/phi-4", "inf2.24xlarge", 0.84 * 32),
]


@pytest.mark.parametrize(("preset", "instance", "budget"), LEFT)
def test_the_engine_has_the_memory_that_the_driver_reports(
    preset: str, instance: str, budget: float
) -> None:
    assert budget_of(sized_of(workspace(preset, instance))) == pytest.approx(budget)


def test_kaito_itself_reckons_with_the_nominal_memory() -> None:
    """DeepSeek-R1 takes 9 GPUs of 94 GiB: its estimator does not ask the driver."""
    sized = sized_of(workspace("deepseek-r1-0528", H100))
    assert budget_of(sized) < 0.84 * sized.instance.memory_gib
    assert sized.gpus == minimum_gpus(sized.instance, sized.files, 70_272) == 9


@pytest.mark.parametrize(
    ("preset", "instance", "count"),
    [
        ("meta-llama/Llama-3.1-405B-Instruct", "Standard_ND96isr_H100_v5", 2),
        ("meta-llama/Llama-3.1-405B-Instruct", "p5en.48xlarge", 1),
        ("llama-3.3-70b-instruct", "Standard_ND96isr_H100_v5", 1),
        ("deepseek-r1-0528", "Standard_ND96isr_H100_v5", 2),
    ],
)
def test_a_count_that_is_kaitos_own_is_not_spoken_of(
    preset: str, instance: str, count: int
) -> None:
    assert check_kaito(workspace(preset, instance, count)) == []
    fewer, more = workspace(preset, instance, count - 1), workspace(preset, instance, count + 1)
    assert f"resource.count: is {count - 1}, but KAITO counts" in found(fewer)[0]
    assert f"resource.count: is {count + 1}, but KAITO" in found(more, Level.ADVISORY)[0]


def test_a_request_for_which_no_gpu_has_room_is_refused() -> None:
    """Only a ConfigMap can ask for it, which is an object of its own."""
    sized = sized_of(workspace("microsoft/Phi-3-mini-128k-instruct", "g4ad.xlarge"))
    long = replace(sized, tokens=131_072)
    view = view_of(workspace("phi-4", A10))
    (finding,) = kaito_capacity._nodes(long, view)
    assert "vLLM may use 6.7 GiB, but 50.3 GiB are used before any weights" in str(finding)


def test_the_transformers_runtime_counts_no_nodes() -> None:
    runtime = {"kaito.sh/runtime": "transformers"}
    small = workspace("phi-4", A10, 4, annotations=runtime)
    assert (
        "is 1 GPU of 24 GiB, which have 24 GiB, but the files of phi-4 are 27.31"
        in (found(small)[0])
    )
    assert check_kaito(workspace("phi-4", A100, 4, annotations=runtime)) == []


def test_tuning_runs_on_one_node() -> None:
    tuning = workspace("phi-4", A100, 2)
    tuning["tuning"] = tuning.pop("inference")
    (message,) = found(tuning)
    assert message.startswith("resource.count: is 2, but tuning runs on one node. Write 1")


@for_each("name", SHORT_NAMES)
def test_a_short_name_stands_for_a_model_in_the_table(name: str) -> None:
    assert is_preset(name)
    assert is_preset(name.upper())
    shape = find_preset(name)
    assert isinstance(shape, ModelShape)
    assert shape.weights_gib
    assert len(SHORT_NAMES) == 25


@pytest.mark.parametrize("path", ["resource", "inference", "metadata", "kind"])
def test_a_part_that_is_not_known_fails_nothing(path: str) -> None:
    value: Any
    for value in (LATE, {"preset": LATE}, {"annotations": LATE}, None, 10**400, [LATE], {"": {}}):
        checked = check_kaito({**workspace("phi-4", A100), path: value})
        assert all(str(finding) for finding in checked)
        if value == LATE:
            assert [f for f in checked if f.level is not Level.UNKNOWN] == []


def test_every_rule_says_once_that_it_does_not_know() -> None:
    late = workspace(LATE, LATE, LATE)
    rules = [finding.rule for finding in check_kaito(late)]
    assert sorted(rules) == [
        "kaito-capacity", "kaito-instance-type", "kaito-parallelism", "kaito-preset",
        "kaito-runtime",
    ]  # fmt: skip
    assert len(RULES) == 13
