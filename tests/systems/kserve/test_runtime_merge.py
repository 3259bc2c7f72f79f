"""An InferenceService is checked together with the runtime that it names."""

import copy
import random
from collections.abc import Iterator
from typing import Any

import pytest

from kthena_components.checker.check_cluster_objects import check_objects_together
from kthena_components.core.facts.context import Context, ReferencedObjects
from kthena_components.core.findings import Level
from kthena_components.core.objects.object import read_object
from kthena_components.systems import COMPLETING
from kthena_components.systems.kserve.facts import facts
from kthena_components.systems.kserve.view import read_service
from tests.support.specs import REMOVED, Args, changed

SHM = {"volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}]}
RUNTIME: Args = {
    "apiVersion": "serving.kserve.io/v1alpha1",
    "kind": "ServingRuntime",
    "metadata": {"name": "vllm", "namespace": "serving"},
    "spec": {
        **SHM,
        "supportedModelFormats": [{"name": "vLLM"}],
        "containers": [
            {"name": "proxy", "image": "proxy:v1"},
            {
                "name": "kserve-container",
                "image": "vllm/vllm-openai:v0.33.0",
                "command": ["python3", "-m", "vllm.entrypoints.openai.api_server"],
                "args": ["--model=/mnt/models", "--tensor-parallel-size=2"],
                "env": [{"name": "A", "value": "runtime"}, {"name": "B", "value": "runtime"}],
                "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],  # noqa: S108
            },
        ],
    },
}
SERVICE: Args = {
    "apiVersion": "serving.kserve.io/v1beta1",
    "kind": "InferenceService",
    "metadata": {"name": "chat", "namespace": "serving"},
    "spec": {
        "predictor": {
            "model": {
                "modelFormat": {"name": "vLLM"},
                "runtime": "vllm",
                "storageUri": "pvc://models/m",
                "args": ["--max-model-len=4096"],
                "env": [{"name": "B", "value": "service"}],
                "resources": {"limits": {"nvidia.com/gpu": "1"}},
            }
        }
    },
}
MODEL = "spec.predictor.model"


def mandatory(service: Args, *others: Args) -> list[tuple[str, str]]:
    bodies = {"chat": service} | {f"o{index}": body for index, body in enumerate(others)}
    found = check_objects_together(bodies)
    return [
        (f.rule, f.path.removeprefix("chat."))
        for f in found
        if f.level is Level.MANDATORY and f.path.startswith("chat.")
    ]


WRONG = [("world-size-equals-gpus", f"{MODEL}.args")]


@pytest.mark.parametrize(
    ("service", "runtime", "seen"),
    [
        ({}, {}, WRONG),
        ({f"{MODEL}.resources": {"limits": {"nvidia.com/gpu": "2"}}}, {}, []),
        # The arguments of the service stand behind those of the runtime, and win.
        ({f"{MODEL}.args": ["--tensor-parallel-size=1"]}, {}, []),
        ({f"{MODEL}.args": REMOVED}, {}, [("world-size-equals-gpus", f"{MODEL}.runtime")]),
        (
            {f"{MODEL}.resources": REMOVED},
            {"spec.containers[1].resources": {"limits": {"nvidia.com/gpu": "4"}}},
            WRONG,
        ),
        ({}, {"kind": "ClusterServingRuntime", "metadata.namespace": REMOVED}, WRONG),
        ({"metadata.namespace": REMOVED}, {}, WRONG),
        ({}, {"metadata.namespace": "other"}, []),
        ({}, {"metadata.name": "other"}, []),
        ({f"{MODEL}.runtime": REMOVED}, {}, []),
        ({}, {"spec.containers[1].name": "engine"}, []),
    ],
)
def test_the_sizes_of_a_runtime_are_compared_with_the_gpus_of_the_service(
    service: dict[str, Any], runtime: dict[str, Any], seen: list[tuple[str, str]]
) -> None:
    assert mandatory(changed(SERVICE, service), changed(RUNTIME, runtime)) == seen


ODD: list[Any] = [
    *(None, [], {}, [[]], [{}], {"a": [1]}, 7, -1, True, "", "x", "$(A)", "{{.Name}}", [None]),
    *({1: 2}, [{"name": ["q"]}], [{"name": {"a": 1}}], float("nan")),
    [{"name": "kserve-container", "env": [{"name": []}]}],
]


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        yield (*at, key)
        if isinstance(item, dict | list):
            yield from places(item, (*at, key))


@pytest.mark.parametrize("seed", range(10))
def test_no_fields_are_a_fault(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(100):
        bodies = [copy.deepcopy(SERVICE), copy.deepcopy(RUNTIME)]
        for _ in range(rng.randint(1, 3)):
            holder = rng.choice(bodies)
            *steps, last = rng.choice(list(places(holder)))
            for step in steps:
                holder = holder[step]
            holder[last] = copy.deepcopy(rng.choice(ODD))
        found = check_objects_together(dict(zip("ab", bodies, strict=True)))
        assert not [f for f in found if f.rule == "rule-fault"], bodies


def test_two_runtimes_of_one_name_are_none() -> None:
    other = changed(RUNTIME, {"spec.containers[1].args": ["--model=/mnt/models"]})
    assert mandatory(SERVICE, RUNTIME, other) == []
    assert mandatory(SERVICE, RUNTIME, RUNTIME) == WRONG


def test_a_runtime_of_the_namespace_comes_first() -> None:
    cluster = changed(RUNTIME, {
        "kind": "ClusterServingRuntime", "metadata.namespace": REMOVED,
        "spec.containers[1].args": ["--model=/mnt/models"],
    })  # fmt: skip
    assert mandatory(SERVICE, cluster) == []
    assert mandatory(SERVICE, cluster, RUNTIME) == WRONG


def test_the_container_is_that_of_both() -> None:
    beside = ReferencedObjects(COMPLETING)
    beside.add(RUNTIME)
    view = read_service(read_object(SERVICE, context=Context(referenced=beside)))
    (engine,) = facts(view).engines
    command = engine.entry.command
    assert command is not None
    assert (command.tensor, command.model, command.max_model_len) == (2, "/mnt/models", 4096)
    assert engine.entry.own is not None
    assert engine.entry.own.shm is not None
    assert engine.entry.own.image_path == f"{MODEL}.runtime"
    assert engine.entry.gpus_path == f"{MODEL}.resources"
