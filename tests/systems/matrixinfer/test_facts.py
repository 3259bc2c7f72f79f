"""ModelInfer is read as the ModelServing that it became."""

import pytest

from kthena_components.checker.manifest import read_manifest
from kthena_components.core.facts.serving import GangFacts
from kthena_components.core.values.read import group_kind
from kthena_components.core.values.unknown import Blank
from kthena_components.systems import INDEX
from kthena_components.systems.kthena.emit import API_VERSION
from kthena_components.systems.matrixinfer.view import MODEL_INFERS
from tests.support.peers import GPU, MODEL_INFER, changed, refused, said_by

ROLE = "spec/template/roles/0"
AT = "spec.template.roles[0]"


SCHEDULERS = {
    f"{ROLE}/{field}Template/spec/schedulerName": "volcano" for field in ("entry", "worker")
}
"""What it takes for Volcano to place the pods: the controller passes them no scheduler."""


def test_the_guide_has_no_mandatory_finding() -> None:
    assert refused(MODEL_INFER) == []


def test_roles_are_engines_of_an_entry_and_workers() -> None:
    facts = read_manifest(changed(MODEL_INFER, SCHEDULERS))
    assert facts is not None
    (engine,) = facts.engines
    assert (engine.name, engine.pods, engine.replicas) == ("405b", 2, 2)
    assert facts.gang == GangFacts(
        path="spec.template.gangSchedule", min_member=2, minima={"405b": 1}
    )
    assert facts.gang.path == "spec.template.gangSchedule"


GANG = "spec/template/gangSchedule"
NO_GANG = (
    f"{AT}: engine '405b' has 2 pods that must start together, and nothing schedules them as a "
    "gang. Let Volcano schedule the pods: write schedulerName: volcano. [gang-covers-engine]"
)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (SCHEDULERS, []),
        ({**SCHEDULERS, GANG: None}, [NO_GANG]),
        ({GANG: None}, [NO_GANG]),
        ({**SCHEDULERS, GANG: {}}, []),
    ],
    ids=["gang", "no-gang", "neither", "empty-gang"],
)
def test_without_its_field_there_is_no_gang(changes: dict[str, object], said: list[str]) -> None:
    assert said_by("gang-covers-engine", MODEL_INFER, changes) == said


@pytest.mark.parametrize("missing", SCHEDULERS)
def test_one_finding_says_that_pods_are_outside_their_gang(missing: str) -> None:
    changes = {path: name for path, name in SCHEDULERS.items() if path != missing}
    facts = read_manifest(changed(MODEL_INFER, changes))
    assert facts is not None
    assert (facts.gang, facts.gang_expected) == (None, True)
    assert said_by("gang-covers-engine", MODEL_INFER, changes) == []
    (told,) = said_by("model-infer-scheduler", MODEL_INFER, changes)
    assert told.endswith("Write volcano. [model-infer-scheduler]")


def test_a_gang_that_is_not_known_yet_is_not_checked() -> None:
    changes = {**SCHEDULERS, GANG: Blank("${LATER}")}
    (told,) = said_by("gang-covers-engine", MODEL_INFER, changes)
    assert "was not checked" in told
    assert said_by("model-infer-scheduler", MODEL_INFER, changes) == []


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (
            f"{ROLE}/workerReplicas",
            2,
            (
                f"{AT}.entryTemplate.spec.containers[0].command: engine '405b' starts tensor 8 × "
                "pipeline 2 = 16 ranks, but its 3 pods × 8 GPUs hold 24. Set pipeline to 3, or "
                "give the engine 2 pods. [world-size-equals-gpus]"
            ),
        ),
        (
            f"{ROLE}/entryTemplate/spec/containers/0/resources",
            {"limits": {GPU: 8}, "requests": {GPU: 4}},
            (
                f"{AT}.entryTemplate.spec.containers[0].resources: engine '405b', container "
                "'leader' states nvidia.com/gpu with a request of 4 and a limit of 8, and "
                "Kubernetes requires both to be equal. Write 8 in both. [gpu-requests-equal-limits]"
            ),
        ),
    ],
)
def test_one_wrong_number_is_found(path: str, value: object, said: str) -> None:
    assert refused(MODEL_INFER, {path: value}) == [said]


def test_the_group_size_is_known_to_the_command() -> None:
    assert said_by("ray-cluster-size-equals-group", MODEL_INFER) == []
    fixed = {f"{ROLE}/workerReplicas": 2}
    assert said_by("ray-cluster-size-equals-group", MODEL_INFER, fixed) == []


@pytest.mark.parametrize("group", sorted(group for group, _ in MODEL_INFERS))
@pytest.mark.parametrize("version", ["v1alpha1", "v1"])
def test_each_group_and_any_version_is_read(group: str, version: str) -> None:
    assert read_manifest({**MODEL_INFER, "apiVersion": f"{group}/{version}"}) is not None


@pytest.mark.parametrize(
    ("api", "kind"),
    [("apps/v1", "ModelInfer"), (API_VERSION, "ModelServing"), ("v1", "ModelInfer")],
)
def test_other_kinds_are_left_alone(api: str, kind: str) -> None:
    assert INDEX.get(group_kind({**MODEL_INFER, "apiVersion": api, "kind": kind})) != "matrixinfer"


def test_the_manifest_is_not_changed() -> None:
    before = repr(MODEL_INFER)
    read_manifest(MODEL_INFER)
    assert repr(MODEL_INFER) == before
