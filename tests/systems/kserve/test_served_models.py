"""The model of a KServe object is the one that its container serves from a folder."""

from typing import Any

import pytest

from kthena_components.checker.manifest import read_manifest
from kthena_components.core.facts.context import Context, ReferencedObjects
from kthena_components.core.hardware import GpuFacts
from kthena_components.core.memory.sharding import model_shape
from kthena_components.core.models import ModelShape, find_model
from kthena_components.core.values.unknown import Blank, Unknown
from kthena_components.systems import COMPLETING
from tests.support.for_each import for_each
from tests.support.peers import LATE, Manifest, changed, gpus, llm

NAME = "Qwen/Qwen3-32B"
HUB = f"hf://{NAME}"
BLANK = f"s3://${{bucket}}/{NAME}"
MODEL = "spec/predictor/model"
SERVED: Manifest = {
    "apiVersion": "serving.kserve.io/v1beta1",
    "kind": "InferenceService",
    "metadata": {"name": "qwen"},
    "spec": {
        "predictor": {
            "model": {
                "modelFormat": {"name": "huggingface"},
                "storageUri": HUB,
                "args": ["--tensor-parallel-size=8"],
                "resources": gpus("8", both=False),
            }
        }
    },
}
OWN: Manifest = {
    **SERVED,
    "spec": {
        "predictor": {
            "containers": [
                {
                    "name": "kserve-container",
                    "image": "vllm/vllm-openai:v0.11.0",
                    "command": ["vllm", "serve", "/mnt/models", "-tp=8"],
                    "env": [{"name": "STORAGE_URI", "value": HUB}],
                    "resources": gpus("8", both=False),
                }
            ]
        }
    },
}
BUCKET = "s3://bucket/Qwen/Qwen3-32B"
CONTAINER = "spec/predictor/containers/0"
LLM = changed(llm({"tensor": 8}), {"spec/model": {"uri": HUB, "name": "m"}})


def model_of(body: Any, context: Context | None = None) -> object:
    facts = read_manifest(body, context=context or Context())
    assert facts is not None
    (engine,) = facts.engines
    assert engine.entry.command is not None
    return engine.entry.command.model


ROWS: dict[str, tuple[Manifest, dict[str, Any], str | None]] = {
    "KServe's own server, by its default": (SERVED, {}, NAME),
    "by its option": (SERVED, {f"{MODEL}/args": ["--model_dir=/mnt/models"]}, NAME),
    "with a revision": (SERVED, {f"{MODEL}/storageUri": f"{HUB}:9216db5"}, NAME),
    "its option names another model": (SERVED, {f"{MODEL}/args": ["--model_id=a/b"]}, "a/b"),
    "another folder": (SERVED, {f"{MODEL}/args": ["--model_dir=/other"]}, "/other"),
    "a claim": (SERVED, {f"{MODEL}/storageUri": "pvc://claim/qwen"}, None),
    "a bucket": (SERVED, {f"{MODEL}/storageUri": "s3://bucket/mine"}, None),
    "a bucket with a model's name": (SERVED, {f"{MODEL}/storageUri": BUCKET}, BUCKET),
    "a bucket to be filled in": (SERVED, {f"{MODEL}/storageUri": Blank(BLANK)}, BLANK),
    "a name to be filled in": (SERVED, {f"{MODEL}/storageUri": Blank("hf://<a>/Qwen3-32B")}, None),
    "no owner": (SERVED, {f"{MODEL}/storageUri": "hf://Qwen3-32B"}, None),
    "too many parts": (SERVED, {f"{MODEL}/storageUri": f"{HUB}/tree/main"}, None),
    "not known yet": (SERVED, {f"{MODEL}/storageUri": LATE}, None),
    "no string": (SERVED, {f"{MODEL}/storageUri": [HUB]}, None),
    "a container of one's own": (OWN, {}, NAME),
    "with a slash at the end": (
        OWN,
        {f"{CONTAINER}/command": ["vllm", "serve", "/mnt/models/", "-tp=8"]},
        NAME,
    ),
    "a folder inside": (
        OWN,
        {f"{CONTAINER}/command": ["vllm", "serve", "/mnt/models/a", "-tp=8"]},
        "/mnt/models/a",
    ),
    "another variable": (OWN, {f"{CONTAINER}/env/0/name": "OTHER"}, "/mnt/models"),
    "several URIs in folders": (
        OWN,
        {f"{CONTAINER}/env": [], "spec/predictor/storageUris": [{"uri": HUB}, {"uri": HUB}]},
        "/mnt/models",
    ),
    "one URI in its folder": (
        OWN,
        {
            f"{CONTAINER}/command": ["vllm", "serve", "/models", "-tp=8"],
            "spec/predictor/storageUris": [{"uri": HUB, "mountPath": "/models"}],
        },
        NAME,
    ),
    "an LLMInferenceService": (LLM, {}, NAME),
    "one that downloads nothing": (
        LLM,
        {"spec/storageInitializer": {"enabled": False}},
        "/mnt/models",
    ),
    "one with a claim that has a model's name": (
        LLM,
        {"spec/model/uri": "pvc://claim/Qwen3-32B"},
        "pvc://claim/Qwen3-32B",
    ),
    "one with a claim": (LLM, {"spec/model/uri": "pvc://claim/qwen"}, "/mnt/models"),
    "one with a model that is not a map": (LLM, {"spec/model": HUB}, "/mnt/models"),
}


@for_each("name", ROWS)
def test_the_uri_names_the_model_of_its_folder(name: str) -> None:
    body, changes, model = ROWS[name]
    assert model_of(changed(body, changes)) == model


def test_both_pods_of_an_engine_serve_it() -> None:
    body = changed(llm({"tensor": 1, "data": 16, "dataLocal": 8}, worker=True), {})
    body = changed(body, {"spec/model": {"uri": HUB, "name": "m"}})
    facts = read_manifest(body)
    assert facts is not None
    (engine,) = facts.engines
    assert engine.worker is not None
    pods = engine.entry, engine.worker
    assert [pod.command.model for pod in pods if pod.command] == [NAME, NAME]


@pytest.mark.parametrize("body", [SERVED, OWN, LLM], ids=["served", "own", "llm"])
def test_a_stated_shape_overrides_the_table(body: Manifest) -> None:
    other = find_model("meta-llama/Llama-3.1-8B-Instruct")
    assert isinstance(other, ModelShape)
    for context, name in (
        (Context(), NAME),
        (Context(shapes={NAME.casefold(): other}), other.name),
    ):
        facts = read_manifest(body, context=context)
        assert facts is not None
        entry = facts.engines[0].entry
        assert entry.command is not None
        shape = model_shape(entry.command, entry.shape)
        assert not isinstance(shape, Unknown)
        assert shape.name == name


def test_the_command_of_a_runtime_serves_the_model_of_the_service() -> None:
    beside = ReferencedObjects(COMPLETING)
    container = {"name": "kserve-container", "command": ["vllm", "serve", "/mnt/models"]}
    runtime = {"kind": "ServingRuntime", "metadata": {"name": "vllm"}}
    spec = {"supportedModelFormats": [{"name": "vLLM"}], "containers": [container]}
    version = {"apiVersion": "serving.kserve.io/v1alpha1"}
    beside.add({**version, **runtime, "spec": spec})
    named = changed(SERVED, {f"{MODEL}/runtime": "vllm", f"{MODEL}/modelFormat": {"name": "vLLM"}})
    assert model_of(named, Context(referenced=beside)) == NAME


ADDED = "VLLM_ADDITIONAL_ARGS"
SERVES = "--served-model-name"
NAMES: dict[str, tuple[dict[str, Any], object]] = {
    "the preset's name": ({}, "m"),
    "an option": (
        {"spec/template/containers/0/env": [{"name": ADDED, "value": f"{SERVES} mine"}]},
        ("mine",),
    ),
    "a command of its own": (
        {"spec/template/containers/0/command": ["vllm", "serve", "a/b"]},
        None,
    ),
    "no name": ({"spec/model": {"uri": HUB}}, None),
    "a name that is not known yet": ({"spec/model/name": LATE}, None),
}


@for_each("name", NAMES)
def test_a_preset_serves_the_model_under_its_name(name: str) -> None:
    changes, served = NAMES[name]
    facts = read_manifest(changed(LLM, changes))
    assert facts is not None
    command = facts.engines[0].entry.command
    assert command is not None
    assert command.options.get(SERVES) == served


PREDICTOR = "spec/predictor"
NODES: dict[str, tuple[Manifest, dict[str, Any]]] = {
    f"{kind}, {field}": (body, {f"{PREDICTOR}/{field}": stated})
    for kind, body in {"a model": SERVED, "a container": OWN}.items()
    for field, stated in {
        "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-H200"},
        "annotations": {"kthena-components/gpu": "h200"},
    }.items()
}


@for_each("name", NODES)
def test_the_predictor_names_the_gpu_of_its_pods(name: str) -> None:
    facts = read_manifest(changed(*NODES[name]))
    assert facts is not None
    gpu = facts.engines[0].entry.gpu
    assert isinstance(gpu, GpuFacts)
    assert gpu.name == "NVIDIA H200"
