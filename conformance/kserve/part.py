"""Compares our rules and plans with the real KServe: its webhooks, and what its programs create."""

from typing import Any

from conformance.__main__ import Context
from conformance.kserve import random_inference_services, random_llm_services
from conformance.kserve.cluster import start
from conformance.kserve.created_objects import compare_created
from conformance.kserve.worker_spec_effects import compare_modes, define_knative
from conformance.validation import part
from conformance.validation.cases import Kind
from conformance.validation.deliberate_differences import Differences, Stricter
from kthena_components.cluster.client import Cluster, ClusterError
from kthena_components.systems.kserve.view import GROUP, SERVICE

Body = dict[str, Any]
_PATH = "/apis/serving.kserve.io/{}/namespaces/serving/{}"
_FILLED = (
    Stricter(
        "crd-schema", "is missing, and it has no default", "KServe's webhook adds it", either=True
    ),
)
_SERVICES = Differences(
    stricter=(
        Stricter("kserve-node-arithmetic", "", "KServe creates other pods, or none"),
        Stricter("kserve-multinode-mode", "", "KServe creates the head alone, or nothing"),
        Stricter("kserve-one-gpu-type", "", "KServe creates pods of both types"),
        *_FILLED,
    ),
    silent={},
    elsewhere=(),
)
_LLMS = Differences(
    stricter=(
        Stricter("kserve-llm-parallelism", "does not divide it", "KServe drops the remainder"),
        Stricter(
            "crd-schema", "is null, but must be a", "KServe's webhook fills it in", either=True
        ),
        *_FILLED,
    ),
    silent={},
    elsewhere=(),
)
KINDS = (
    Kind(
        name=SERVICE,
        path=_PATH.format("v1beta1", "inferenceservices"),
        number=2_000,
        draw=random_inference_services.inference_service,
        changes=random_inference_services.CHANGES,
        anywhere=(random_inference_services.damage_service,),
        of=(GROUP, SERVICE),
        differences=_SERVICES,
    ),
    Kind(
        name="LLMInferenceService",
        path=_PATH.format("v1alpha2", "llminferenceservices"),
        number=2_000,
        draw=random_llm_services.llm_service,
        changes=random_llm_services.CHANGES,
        anywhere=(random_llm_services.damage_workload,),
        of=(GROUP, "LLMInferenceService"),
        differences=_LLMS,
    ),
)


def run(context: Context) -> None:
    """Start KServe, and compare verdicts and created objects."""
    sandbox = context.sandbox()
    try:
        define_knative(sandbox)
        start(sandbox)
        _refuses(context, sandbox.api)
        tally = part.compare(context, KINDS, sandbox.layout.programs)
        part.check_reach(context, KINDS, tally)
        compare_created(context.part, sandbox.api)
        compare_modes(context.part, sandbox.api)
        sandbox.processes.check()
    finally:
        sandbox.processes.stop_all()


def _refuses(context: Context, api: Cluster) -> None:
    """Check that the webhooks answer, with objects that only they reject."""
    wrong: dict[str, Body] = {
        SERVICE: {"predictor": {"model": {"modelFormat": {"name": "huggingface"},
                                          "storageUri": "hf://org/m"}, "workerSpec": {}}},
        "LLMInferenceService": {"model": {"uri": "hf://org/m"}, "parallelism": {"data": 2}},
    }  # fmt: skip
    for kind in KINDS:
        version = kind.path.split("/")[3]
        body = {
            "apiVersion": f"{GROUP}/{version}",
            "kind": kind.name,
            "metadata": {"name": "wrong", "namespace": "serving"},
            "spec": wrong[kind.name],
        }
        said = ""
        try:
            api.create(body, dry_run=True)
        except ClusterError as error:
            said = str(error)
        context.part.check(f"a wrong {kind.name} is rejected", holds="denied" in said, seen=said)
