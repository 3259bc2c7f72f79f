"""Engines of several pods that KServe would not create as planned, and how that is refused."""

import pytest

from tests.support.specs import (
    DATA_PARALLEL,
    KSERVE_ENGINE,
    TEMPLATES_PLAIN,
    Args,
    changed,
    gpu_template,
)
from tests.systems.kserve.samples import ENGINE, FIRST, HEAD, PORTS, TEMPLATES, WORKER, said

REFUSED: dict[str, tuple[Args, Args, str]] = {
    "workers-are-deleted": (
        ENGINE,
        {"backend_options.keeps_workers": False},
        (
            "backend_options.keeps_workers: is false, and KServe 0.20.0 deletes the 1 worker of "
            "an engine again and again (issue 6113). Install a KServe with pull request 5899 and "
            "write true, or write backend: native, kthena or lws. [backend-options]"
        ),
    ),
    "no-storage": (
        ENGINE,
        {"backend_options": {"keeps_workers": True}},
        (
            "backend_options.storage_uri: is missing, but KServe accepts an engine of 2 pods "
            "only with a model from a volume or an image. Write pvc://claim/path, with a claim "
            "that is ReadWriteMany, or oci://image. [backend-options]"
        ),
    ),
    "storage-of-another-kind": (
        ENGINE,
        {"backend_options.storage_uri": "hf://org/m"},
        (
            "backend_options.storage_uri: is 'hf://org/m', but must be pvc://claim/path or "
            "oci://image. Write such a value. [value]"
        ),
    ),
    "unknown-option": (
        ENGINE,
        {"backend_options.storage_url": "pvc://a/b"},
        (
            "backend_options.storage_url: there is no field 'storage_url' here. Remove it, "
            "because storage_uri is stated, too. [unknown-field]"
        ),
    ),
    "several-groups": (
        ENGINE,
        {"replicas": 2},
        (
            "replicas: gives 2 engines of 2 pods, but an InferenceService with workers is one "
            "engine. Write 1, and one ModelServing for each engine, or write backend: native, "
            "kthena or lws. [backend-loss]"
        ),
    ),
    "several-engines": (
        ENGINE,
        {"roles[0].replicas": 3},
        (
            "roles[0].replicas: gives 3 engines of 2 pods, but an InferenceService with workers "
            "is one engine. Write 1, and one ModelServing for each engine, or write backend: "
            "native, kthena or lws. [backend-loss]"
        ),
    ),
    "no-engine": (
        ENGINE,
        {"replicas": 0},
        (
            "replicas: gives 0 engines of 2 pods, but an InferenceService with workers is one "
            "engine. Write 1, and one ModelServing for each engine, or write backend: native, "
            "kthena or lws. [backend-loss]"
        ),
    ),
    "no-gpus": (
        changed(
            TEMPLATES_PLAIN,
            {
                "backend": "kserve",
                "roles": TEMPLATES_PLAIN["roles"][:1],
                "backend_options": KSERVE_ENGINE,
            },
        ),
        {f"{HEAD}.{FIRST}.ports": PORTS},
        (
            "roles[0].entry_template: must request GPUs in the head and in the workers, of one "
            "of the types nvidia.com/gpu, amd.com/gpu, intel.com/gpu, habana.ai/gaudi: KServe "
            "calculates the 4 pods from them. Request them, or write backend: native, kthena or "
            "lws. [backend-loss]"
        ),
    ),
    "uneven": (
        TEMPLATES,
        {HEAD: gpu_template("serve-it", 4, ports=PORTS)},
        (
            "roles[0].entry_template: has 4 GPUs in the head and 8 in each worker, but KServe "
            "starts an engine that is divided evenly. Request the same in both, or write "
            "backend: native, kthena or lws. [backend-loss]"
        ),
    ),
    "data-parallel": (
        changed(DATA_PARALLEL, {"backend": "kserve", "backend_options": KSERVE_ENGINE}),
        {},
        (
            "roles[0].engine.parallelism: starts tensor 2 × pipeline 1, for which KServe creates "
            "1 pod, not 2: it divides tensor × pipeline by the GPUs of a worker, 8. Divide the "
            "engine by tensor and pipeline alone, or write backend: native, kthena or lws. "
            "[backend-loss]"
        ),
    ),
    "no-index": (
        ENGINE,
        {"roles[0].worker_replicas": 2, "roles[0].engine.parallelism.pipeline": 3},
        (
            "roles[0].engine.launcher: uses WORKER_INDEX, but KServe does not number the 2 "
            "workers of an engine. Write launcher: ray, whose workers need no number, or write "
            "backend: native, kthena or lws. [backend-loss]"
        ),
    ),
    "no-index-in-a-template": (
        TEMPLATES,
        {f"{WORKER}.{FIRST}.command[2]": "join-it $(WORKER_INDEX)"},
        (
            "roles[0].worker_template: uses WORKER_INDEX, but KServe does not number the 2 "
            "workers of an engine. Write backend: native, kthena or lws. [backend-loss]"
        ),
    ),
    "address-before-start": (
        TEMPLATES,
        {
            f"{WORKER}.spec.initContainers": [
                {"name": "wait", "image": "a:1", "command": ["ping", "$(ENTRY_ADDRESS)"]}
            ]
        },
        (
            "roles[0].worker_template.spec.initContainers: uses ENTRY_ADDRESS, but KServe sets "
            "the head's address only in the container of the engine. Connect from that "
            "container, or write backend: native, kthena or lws. [backend-loss]"
        ),
    ),
    "role-predictor": (
        ENGINE,
        {"roles[0].name": "predictor"},
        (
            "roles[0].name: is predictor, and KServe then looks for the head under another name "
            "than its Service. Rename the role. [backend-loss]"
        ),
    ),
    "role-with-predictor": (
        ENGINE,
        {"roles[0].name": "a-predictor"},
        (
            "roles[0].name: is a-predictor, and KServe then looks for the head under another name "
            "than its Service. Rename the role. [backend-loss]"
        ),
    ),
    "braces": (
        TEMPLATES,
        {f"{HEAD}.{FIRST}.command[2]": "serve-it --chat-template '{{ messages }}'"},
        (
            "roles[0].entry_template: contains '{{', which KServe expands as a "
            "template of its own. Put the text into a ConfigMap and mount it, or "
            "write backend: native, kthena or lws. [backend-loss]"
        ),
    ),
    "two-containers-in-a-worker": (
        TEMPLATES,
        {f"{WORKER}.spec.containers[1]": {"name": "log", "image": "a:1"}},
        (
            "roles[0].worker_template.spec.containers: has 2 containers, but KServe accepts one "
            "in a worker. Make the others initContainers with restartPolicy: Always, or write "
            "backend: native, kthena or lws. [backend-loss]"
        ),
    ),
    "other-resource": (
        TEMPLATES,
        {
            f"{HEAD}.{FIRST}.resources.limits.rdma/ib": "1",
            f"{HEAD}.{FIRST}.resources.requests.rdma/ib": "1",
        },
        (
            "roles[0].entry_template.spec.containers[0].resources: names rdma/ib, but with "
            "workers KServe accepts cpu, ephemeral-storage, memory, storage and nvidia.com/gpu, "
            "amd.com/gpu, intel.com/gpu, habana.ai/gaudi. Remove it, or write backend: native, "
            "kthena or lws. [backend-loss]"
        ),
    ),
    "executor": (
        TEMPLATES,
        {f"{HEAD}.metadata": {"annotations": {"multinode/executor-backend": "mp"}}},
        (
            "roles[0].entry_template.metadata.annotations: has multinode/executor-backend, with "
            "which KServe calculates other numbers of pods. Remove it. [backend-loss]"
        ),
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_an_engine_that_kserve_would_not_create_is_refused(case: str) -> None:
    args, changes, message = REFUSED[case]
    assert said(args, changes) == message
