"""The values in pods: what controllers add, and random templates with hidden parts."""

import random
from typing import Any

import pytest

from conformance.kubernetes.pod_values import checked, components, deployment, draw_template
from kthena_components.checker.manifest import check_manifest
from kthena_components.core.findings import Level
from kthena_components.core.schema.pod_values import check_values
from kthena_components.core.schema.pod_volumes import Added
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems import all_systems
from tests.rules.cases import documents
from tests.support.hiding import hidings
from tests.support.specs import changed
from tests.toughness.corpus import places, put

Body = dict[str, Any]
TEMPLATES = 60
KINDS = [kind for system in all_systems() for kind in system.kinds if kind.adds_volumes]


def mounting(name: str, **annotations: str) -> Body:
    """Make a template with a mount of a volume that it does not have."""
    mounts = [{"name": name, "mountPath": "/data"}]
    container = {"name": "engine", "image": "a", "volumeMounts": mounts}
    return {"metadata": {"annotations": annotations}, "spec": {"containers": [container]}}


def levels(template: Body, **added: Any) -> list[Level]:
    return [f.level for f in check_values(template, "", Added(bodies=(template,), **added))]


def told(body: Body) -> list[str]:
    """Give the findings about the values, of any level, and failures of rules."""
    return [str(f) for f in check_manifest(body) if f.rule in {"pod-values", "rule-fault"}]


def drawn(seed: str) -> list[Body]:
    """Draw Deployments without findings."""
    every = (draw_template(random.Random(f"{seed} {i}")) for i in range(TEMPLATES))
    return [body for body in map(deployment, every) if not told(body)]


def test_a_mount_needs_its_volume_unless_something_adds_it() -> None:
    assert levels(mounting("cache")) == [Level.MANDATORY]
    assert levels(mounting("cache"), claims=frozenset({"cache"})) == []
    assert levels(mounting("job-ssh"), names=("*-ssh",)) == []
    assert levels(mounting("cache"), names=("*-ssh",)) == [Level.ADVISORY]


@pytest.mark.parametrize(
    ("key", "value", "level"),
    [
        ("vault.hashicorp.com/agent-inject", "true", Level.ADVISORY),
        ("sidecar.istio.io/inject", "true", Level.ADVISORY),
        ("sidecar.istio.io/inject", "false", Level.MANDATORY),
        ("linkerd.io/inject", "disabled", Level.MANDATORY),
        ("model.aibrix.ai/sidecar-injection", "true", Level.ADVISORY),
        ("gke-gcsfuse/volumes", "true", Level.ADVISORY),
        ("example.com/team", "true", Level.MANDATORY),
    ],
)
def test_a_webhook_may_add_the_volume(key: str, value: str, level: Level) -> None:
    assert levels(mounting("cache", **{key: value})) == [level]


def test_the_mpi_operator_adds_its_files() -> None:
    (body,) = documents("mpi-job")
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in ("mpi-job-config", "ssh-auth")]
    wait = {"name": "wait", "image": "busybox:1.37", "volumeMounts": mounts}
    at = "spec.mpiReplicaSpecs.Launcher.template.spec.initContainers"
    assert told(changed(body, {at: [wait]})) == []
    wait["volumeMounts"] = [{"name": "models", "mountPath": "/models"}]
    (found,) = told(changed(body, {at: [wait]}))
    assert "adds only mpi-job-config, ssh-auth, mpi-job-kubectl. Add the volume" in found


def test_only_kinds_with_templates_get_volumes() -> None:
    assert {kind.name for kind in KINDS} >= {"RayCluster", "MPIJob", "Job", "RoleBasedGroup"}
    assert all(kind.templates or kind.own_templates for kind in KINDS)


def test_an_unknown_field_of_a_volume_is_no_source() -> None:
    volume = {"name": "a", "emptyDir": {}, "readinessProbe": {}}
    template: Body = {"spec": {"containers": [], "volumes": [volume]}}
    assert levels(template) == []
    volume["hostPath"] = {"path": "/a"}
    assert levels(template) == [Level.MANDATORY]


def test_the_drawn_templates_are_good_and_bad() -> None:
    found = [bool(checked(draw_template(random.Random(f"mixed {i}")))) for i in range(TEMPLATES)]
    assert {True, False} == set(found)


def test_the_component_finds_the_same() -> None:
    for index in range(TEMPLATES):
        template = draw_template(random.Random(f"same {index}"))
        template["spec"].pop("restartPolicy", None)  # a Deployment requires one of them
        template["spec"].pop("activeDeadlineSeconds", None)
        assert bool(checked(template)) == bool(components(template)), template


@pytest.mark.property
def test_hiding_a_part_adds_no_finding() -> None:
    tried = 0
    for body in drawn("hidden"):
        parts = [hiding.of(body) for hiding in hidings(body)]
        parts += [put(body, place, Unknown("not known")) for place in places(body) if place[1:]]
        for hidden in random.Random(0).sample(parts, 12):
            tried += 1
            assert told(hidden) == []
    assert tried > TEMPLATES


@pytest.mark.property
@pytest.mark.parametrize("odd", [{"a": 1}, ["a"], 0, -1.5, True, "", "x y", None])
def test_values_of_any_type_raise_nothing(odd: object) -> None:
    """pod-schema reports wrong types; this rule leaves them out."""
    for index in range(TEMPLATES):
        body = deployment(draw_template(random.Random(f"odd {index}")))
        every = [place for place in places(body) if place[2:]]
        for place in random.Random(index).sample(every, 6):
            found = check_manifest(put(body, place, odd))
            assert [str(f) for f in found if f.rule == "rule-fault"] == [], place
