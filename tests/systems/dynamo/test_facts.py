"""Dynamo: what is read of it, what its operator adds, and where things are written."""

from typing import Any

import pytest

from kthena_components.checker.manifest import check_manifest, read_manifest
from kthena_components.core.facts.context import Context, gather
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems.dynamo.view import EXECUTOR
from tests.support import groups
from tests.support.groups import DATA, DYNAMO, DYNAMO_BETA, PIPELINE, TENSOR, service
from tests.support.peers import GONE, LATE, Manifest, changed, gpus, refused, said_by, told

WORLD = "world-size-equals-gpus"
MAIN = "spec/services/decode/extraPodSpec/mainContainer"


def engines(manifest: Manifest, changes: dict[str, Any] | None = None) -> list[tuple[object, ...]]:
    """Give the name, the pods, the replicas and the GPUs a pod of each engine."""
    facts = read_manifest(changed(manifest, changes))
    assert facts is not None
    return [
        (engine.name, engine.pods, engine.replicas, engine.entry.gpus) for engine in facts.engines
    ]


def decode(changes: dict[str, Any]) -> tuple[object, ...]:
    return engines(DYNAMO, changes)[0]


@pytest.mark.parametrize(
    ("manifest", "found"),
    [
        (DYNAMO, [("decode", 2, 1, 8), ("prefill", 4, 1, 8)]),
        (DYNAMO_BETA, [("decode", 2, 1, 8)]),
        (groups.DYNAMO_ONE, [("decode", 1, 1, 4)]),
    ],
)
def test_the_engines_of_a_guide_are_read(
    manifest: Manifest, found: list[tuple[object, ...]]
) -> None:
    assert engines(manifest) == found


@pytest.mark.parametrize(
    ("manifest", "changes", "said"),
    [
        (
            DYNAMO,
            {"spec/services/decode/multinode/nodeCount": 3},
            "starts tensor 8 × pipeline 2 = 16 ranks, but its 3 pods × 8 GPUs hold 24",
        ),
        (
            DYNAMO,
            {"spec/services/decode/multinode": GONE},
            "starts tensor 8 × pipeline 2 = 16 ranks, but its pod has 8 GPUs",
        ),
        (
            DYNAMO,
            {"spec/services/prefill/resources/limits/gpu": "4"},
            "starts tensor 4 × pipeline 1 × data 8 = 32 ranks, but its 4 pods × 4 GPUs hold 16",
        ),
        (
            DYNAMO_BETA,
            {"spec/components/1/multinode/nodeCount": 4},
            "starts tensor 16 × pipeline 1 = 16 ranks, but its 4 pods × 8 GPUs hold 32",
        ),
        (
            groups.DYNAMO_ONE,
            {"spec/resources/limits/gpu": "2"},
            "starts tensor 4 × pipeline 1 = 4 ranks, but its pod has 2 GPUs",
        ),
    ],
)
def test_one_wrong_number_is_found(manifest: Manifest, changes: dict[str, Any], said: str) -> None:
    found = [line for line in refused(manifest, changes) if WORLD in line]
    assert len(found) == 1
    assert said in found[0]


@pytest.mark.parametrize(
    ("manifest", "path"),
    [
        (DYNAMO, "spec"),
        (DYNAMO, "spec/services"),
        (DYNAMO, "spec/services/decode"),
        (DYNAMO_BETA, "spec/components"),
    ],
)
def test_late_parts_are_told_of(manifest: Manifest, path: str) -> None:
    assert refused(manifest, {path: LATE}) == []
    assert said_by(WORLD, manifest, {path: LATE}) != []


def test_the_kind_of_gpu_may_be_stated() -> None:
    limits = {"gpu": "8", "gpuType": "gpu.intel.com/xe"}
    changes = {"spec/services/decode/resources": {"limits": limits}}
    assert decode(changes) == ("decode", 2, 1, 8)


def test_two_counts_of_gpus_that_differ_are_not_checked() -> None:
    changes = {f"{MAIN}/resources": gpus("4")}
    assert isinstance(decode(changes)[3], Unknown)


def test_the_operator_joins_the_pods_so_nothing_has_to_be_stated() -> None:
    assert [line for line in told(DYNAMO) if "executor-stated" in line] == []
    facts = read_manifest(DYNAMO)
    assert facts is not None
    command = facts.engines[0].entry.command
    assert command is not None
    assert (command.nnodes, command.executor) == (2, "mp")


@pytest.mark.parametrize(
    ("annotation", "joined"),
    [({}, (2, "mp")), ({EXECUTOR: "mp"}, (2, "mp")), ({EXECUTOR: "Ray"}, (None, "ray"))],
)
def test_the_operator_joins_the_pods_of_a_command_that_states_mp(
    annotation: dict[str, str], joined: tuple[int | None, str]
) -> None:
    main = DYNAMO["spec"]["services"]["decode"]["extraPodSpec"]["mainContainer"]
    changes = {
        f"{MAIN}/args": [*main["args"], "--distributed-executor-backend", "mp"],
        "metadata/annotations": annotation,
    }
    manifest = changed(DYNAMO, changes)
    assert [line for line in told(manifest) if "pods-joined" in line] == []
    facts = read_manifest(manifest)
    assert facts is not None
    command = facts.engines[0].entry.command
    assert command is not None
    assert (command.nnodes, command.executor) == joined


def test_an_annotation_asks_for_ray() -> None:
    facts = read_manifest(groups.DYNAMO_RICH)
    assert facts is not None
    command = facts.engines[0].entry.command
    assert command is not None
    assert (command.nnodes, command.executor) == (None, "ray")


@pytest.mark.parametrize(
    ("args", "nodes", "gpu", "found"),
    [
        ((TENSOR, "8", DATA, "4"), 4, "8", []),
        ((TENSOR, "8", DATA, "3"), 4, "8", ["tensor 8 × pipeline 1 × data 3 = 24 ranks"]),
        ((TENSOR, "8", DATA, "4", "--data-parallel-hybrid-lb"), 4, "8", []),
        ((TENSOR, "8"), 2, "8", ["tensor 8 × pipeline 1 = 8 ranks, but its 2 pods"]),
        ((TENSOR, "8", PIPELINE, "2"), 2, "8", []),
        ((TENSOR, "1", DATA, "8", "--enable-elastic-ep"), 2, "8", []),
    ],
)
def test_copies_over_nodes_are_counted(
    args: tuple[str, ...], nodes: int, gpu: str, found: list[str]
) -> None:
    changes = {"spec/services": {"decode": service(gpu, *args, nodes=nodes)}}
    lines = [line for line in refused(DYNAMO, changes) if WORLD in line]
    assert len(lines) == len(found)
    assert all(part in line for part, line in zip(found, lines, strict=True))


def test_the_operator_states_the_copies_of_a_pod() -> None:
    stated = service("8", TENSOR, "1", DATA, "16", "--data-parallel-hybrid-lb", nodes=2)
    assert refused(DYNAMO, {"spec/services": {"decode": stated}}) == []


def test_shared_memory_is_there_unless_it_is_turned_off() -> None:
    assert said_by("shm-present", DYNAMO) == []
    changes = {"spec/services/decode/sharedMemory": {"disabled": True}}
    assert len(said_by("shm-present", DYNAMO, changes)) == 1
    assert said_by("shm-present", DYNAMO_BETA) == []
    assert (
        len(said_by("shm-present", DYNAMO_BETA, {"spec/components/1/sharedMemorySize": "0"})) == 1
    )


def test_a_token_is_found_where_it_is_written() -> None:
    token = [{"name": "HF_TOKEN", "value": "secret"}]
    (line,) = said_by("hf-token-from-secret", DYNAMO, {f"{MAIN}/env": token})
    at = "spec.services.decode.extraPodSpec.mainContainer.env[0].value: "
    assert line.startswith(at)
    (line,) = said_by("hf-token-from-secret", groups.DYNAMO_RICH, {"spec/envs": token})
    assert line.startswith("spec.envs[0].value: ")
    changes = {"spec/services/decode/envs": token}
    (line,) = said_by("hf-token-from-secret", groups.DYNAMO_RICH, changes)
    assert line.startswith("spec.services.decode.envs[0].value: ")


def test_containers_beside_the_main_one_are_found_where_they_are_written() -> None:
    token = {"name": "a", "image": "r:1", "env": [{"name": "HF_TOKEN", "value": "secret"}]}
    extra = "spec/services/decode/extraPodSpec"
    for field in ("containers", "initContainers"):
        changes = {f"{extra}/{field}": [token]}
        (line,) = said_by("hf-token-from-secret", DYNAMO, changes)
        assert line.startswith(f"spec.services.decode.extraPodSpec.{field}[0].env[0].value: ")


def test_a_variable_of_the_component_stands_for_that_of_the_graph() -> None:
    args = {f"{MAIN}/args": ["--model", "m", TENSOR, "$(TP)", PIPELINE, "2"]}
    shared = {"spec/envs": [{"name": "TP", "value": "4"}]}
    own = {"spec/services/decode/envs": [{"name": "TP", "value": "8"}]}
    world = "starts tensor 4 × pipeline 2 = 8 ranks"
    assert world in "".join(refused(DYNAMO, {**args, **shared}))
    assert refused(DYNAMO, {**args, **shared, **own}) == []


def test_what_config_maps_hold_is_read() -> None:
    of_map = {"name": "TP", "valueFrom": {"configMapKeyRef": {"name": "sizes", "key": "tp"}}}
    changes = {f"{MAIN}/env": [of_map], f"{MAIN}/args": ["--model", "m", TENSOR, "$(TP)"]}
    sizes = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "sizes"}}

    def told_with(**data: str) -> list[tuple[str, str]]:
        context = Context(config_maps=gather([{**sizes, "data": data}]))
        found = check_manifest(changed(DYNAMO, changes), "graph", context=context)
        return [(f.rule, f.path) for f in found if f.rule in {WORLD, "config-map-key-exists"}]

    at = "graph.spec.services.decode.extraPodSpec.mainContainer"
    assert told_with(tp="16") == []
    assert told_with(tp="8") == [(WORLD, f"{at}.args")]
    assert ("config-map-key-exists", f"{at}.env[0].valueFrom.configMapKeyRef.key") in told_with()
