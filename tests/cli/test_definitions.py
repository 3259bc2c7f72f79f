"""CRDs among the files: with which schema the objects of a repository are checked."""

from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from tests.cli.conftest import Command, Write

LWS = """apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: a}
spec:
  replicas: 2
  tomorrow: 5
  leaderWorkerTemplate: {size: 1, workerTemplate: {spec: {containers: [{name: a, image: busybox}]}}}
"""
TEMPLATE: dict[str, Any] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
FIELDS: dict[str, Any] = {"replicas": {"type": "integer"}, "leaderWorkerTemplate": TEMPLATE}
POLICY = """apiVersion: workload.serving.volcano.sh/v1alpha1
kind: AutoscalingPolicy
metadata: {name: a}
spec: {metrics: [{metricName: load, targetValue: 10}]}
"""
TOLD = "checked with the CRDs in"


def crd(fields: Mapping[str, Any] = FIELDS, version: str = "v1", **more: object) -> str:
    """Write a CRD of LeaderWorkerSets whose spec has some fields."""
    return definition(
        "leaderworkerset.x-k8s.io", "LeaderWorkerSet", version, {"properties": fields, **more}
    )


def definition(group: str, kind: str, version: str, spec: Mapping[str, Any]) -> str:
    schema = {"type": "object", "properties": {"spec": {"type": "object", **spec}}}
    served = {"name": version, "served": True, "schema": {"openAPIV3Schema": schema}}
    return yaml.safe_dump(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "a"},
            "spec": {"group": group, "names": {"kind": kind}, "versions": [served]},
        }
    )


@pytest.fixture
def told(run: Command, write: Write) -> Any:
    """Check a LeaderWorkerSet beside some CRDs, and return the findings of crd-schema."""

    def command(*crds: str, options: tuple[str, ...] = (), text: str = LWS) -> str:
        write("examples/a.yaml", text)
        for number, each in enumerate(crds):
            write(f"config/crd/bases/{number}.yaml", each)
        done = run(".", *options)
        found = [line for line in done.lines if "-schema]" in line or "rule-fault" in line]
        return "\n".join([*found, done.err])

    return command


def test_a_field_that_the_crd_of_the_files_has_is_right(told: Any) -> None:
    known = told(crd({**FIELDS, "tomorrow": {"type": "integer"}}))

    assert known == (
        "LeaderWorkerSet: checked with the CRDs in config/crd/bases/0.yaml;"
        " --release takes the CRDs of a release instead\n"
    )


def test_a_field_of_no_schema_is_refused_by_the_crd_of_the_files(told: Any) -> None:
    found = told(crd())

    assert (
        "spec.tomorrow: is not a field of LeaderWorkerSet in config/crd/bases/0.yaml, which"
        " server-side apply and kubectl reject. " in found
    )
    assert "mandatory" in found


def test_limits_are_those_of_the_crd_of_the_files(told: Any) -> None:
    tomorrow = {"type": "integer", "minimum": 6}

    assert "spec.tomorrow: is 5, but must be at least 6" in told(
        crd({**FIELDS, "tomorrow": tomorrow}, required=["later"])
    )
    assert "spec.later: is missing" in told(crd(FIELDS, required=["later"]))


def test_what_a_release_accepts_is_advice(told: Any) -> None:
    fields = {"tomorrow": {"type": "integer"}, "leaderWorkerTemplate": TEMPLATE}
    found = told(crd(fields))

    assert "advisory: LeaderWorkerSet a: spec.replicas: is not a field of LeaderWorkerSet" in found
    assert "; LWS 0.10 accepts it. " in found


def test_a_stated_release_counts_more_than_the_files(told: Any) -> None:
    known = crd({**FIELDS, "tomorrow": {"type": "integer"}})
    found = told(known, options=("--release", "lws=0.10"))

    assert "spec.tomorrow: is not a field of LeaderWorkerSet in LWS 0.10" in found
    assert TOLD not in found


def test_one_of_several_crds_must_accept_an_object(told: Any) -> None:
    known = crd({**FIELDS, "tomorrow": {"type": "integer"}})

    assert "spec.tomorrow" not in told(crd(), known)


@pytest.mark.parametrize(
    "broken",
    [
        "kind: CustomResourceDefinition\nkind: LeaderWorkerSet leaderworkerset.x-k8s.io\n",
        crd({"replicas": {"type": "integer", "minimum": "few"}}),
        crd({"replicas": {"type": "string", "enum": [1, "a"]}}),
        crd({"replicas": {"type": "tree"}}),
        crd({"replicas": {"type": "array"}}),
        crd({1: {"type": "integer"}}),  # type: ignore[dict-item]
        crd({"replicas": 5}),
        crd(version=["v1"]),  # type: ignore[arg-type]
        crd(required=[["a"]]),
        crd().replace("versions", "version"),
    ],
)
def test_a_crd_that_cannot_be_read_is_left_out(told: Any, broken: str) -> None:
    found = told(broken)

    assert "spec.tomorrow: is not a field of LeaderWorkerSet in LWS 0.10" in found
    assert TOLD not in found
    assert "rule-fault" not in found


def test_a_pattern_of_the_files_is_never_run(told: Any) -> None:
    slow = {"type": "string", "pattern": "^(a+)+$"}
    text = LWS.replace("tomorrow: 5", f"tomorrow: {'a' * 60}b")

    assert "spec.tomorrow" not in told(crd({**FIELDS, "tomorrow": slow}), text=text)


def test_rules_between_fields_are_those_of_the_release_that_a_crd_is_like(
    run: Command, write: Write
) -> None:
    write("a.yaml", POLICY)
    group, kind = "workload.serving.volcano.sh", "AutoscalingPolicy"
    # In the first releases, another kind has the target.
    metrics = {"type": "array", "items": TEMPLATE}
    spec = {"properties": {"metrics": metrics, "behavior": TEMPLATE, "tolerancePercent": TEMPLATE}}

    assert "kthena-autoscaling-target" in run(".").out

    write("crds/policy.yaml", definition(group, kind, "v1alpha1", spec))

    assert "kthena-autoscaling-target" not in run(".").out
