"""What the tables of CRDs say of objects: every kind, in every release that is known."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kthena_components.systems
from kthena_components.core.findings import Level
from kthena_components.core.schema.crds import CrdTable, check_crd, load
from kthena_components.core.schema.fast_check import quick_test
from kthena_components.core.schema.language import (
    Amount,
    Fields,
    Items,
    Number,
    Text,
    Whole,
    check_shape,
)
from kthena_components.core.schema.versions import VERSIONS, is_since, known_version, read_release
from tests.support.for_each import for_each
from tests.support.strategies import json_trees

FOLDER = Path(kthena_components.systems.__file__).parent
TABLES = sorted(
    [path.parent.name for path in FOLDER.glob("*/crds.json")]
    + [path.name.removesuffix(".crds.json") for path in FOLDER.glob("*.crds.json")]
)


def table_of(system: str) -> CrdTable:
    table = load(f"kthena_components.systems.{system}")
    assert table is not None
    return table


@pytest.mark.parametrize("system", TABLES)
def test_every_kind_is_read_in_every_release(system: str) -> None:
    table = table_of(system)
    for kind, versions in table.kinds.items():
        for served in versions:
            for place in range(len(table.releases)):
                number = table.number(kind, served, place)
                if number is not None:
                    shape, surely = table.root(number, kind)
                    assert {"apiVersion", "kind", "metadata"} <= {*shape.fields}
                    assert not surely({"metadata": 5})


OPENED = """
import sys
from pathlib import Path
opened = []
def note(event, args):
    if event == "open" and str(args[0]).endswith("crds.json"):
        opened.append(Path(args[0]).parent.name)
sys.addaudithook(note)
"""
CHECKED = """
from kthena_components.checker.manifest import check_manifest
for group, kind in {kinds!r}:
    for _ in range(2):
        check_manifest({{"apiVersion": group, "kind": kind, "metadata": {{"name": "a"}}}})
"""


@pytest.mark.parametrize(
    ("code", "tables"),
    [
        ("import kthena_components; kthena_components.ModelServing", []),
        ("import kthena_components.cli.main", []),
        (CHECKED.format(kinds=[("v1", "Pod"), ("v1", "ConfigMap")]), []),
        (
            CHECKED.format(
                kinds=[
                    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"),
                    ("v1", "Service"),
                    ("ray.io/v1", "RayCluster"),
                ]
            ),
            ["lws", "kubernetes", "ray"],
        ),
    ],
    ids=["import", "check", "no table", "three systems"],
)
def test_a_table_is_read_once_and_only_for_its_own_kinds(code: str, tables: list[str]) -> None:
    script = f"{OPENED}\n{code}\nprint(*opened)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (done.stdout.split(), done.stderr) == (tables, "")


@pytest.mark.parametrize("system", ["native", "kai"])
def test_a_package_or_module_without_a_table_has_none(system: str) -> None:
    assert load(f"kthena_components.systems.{system}") is None


@pytest.mark.parametrize("system", VERSIONS)
def test_the_versions_that_may_be_asked_for_are_those_of_the_table(system: str) -> None:
    releases = [".".join(map(str, release[:2])) for release in table_of(system).releases]
    assert tuple(releases) == VERSIONS[system]


def told(body: dict[str, Any], system: str, asked: str | None = None) -> list[str]:
    release = None if asked is None else read_release(asked)
    found = check_crd(body, body["kind"], table_of(system), release)
    return [str(finding) for finding, _ in found if finding.level is Level.MANDATORY]


def workspace(**fields: Any) -> dict[str, Any]:
    resource = {"labelSelector": {"matchLabels": {"a": "b"}}, **fields}
    body = {"apiVersion": "kaito.sh/v1beta1", "kind": "Workspace", "metadata": {"name": "w"}}
    return {**body, "resource": resource, "inference": {"preset": {"name": "phi-4"}}}


def test_a_field_of_a_newer_release_names_it() -> None:
    body = workspace(partition={"mode": "mig"})
    assert told(body, "kaito") == []
    assert told(body, "kaito", "0.11") == [
        (
            "resource.partition: is not a field of Workspace in KAITO 0.11, which server-side "
            "apply and kubectl reject; 0.12 has it. Remove it, or use KAITO 0.12. [crd-schema]"
        )
    ]


def test_a_part_of_a_field_that_is_new_is_told_once() -> None:
    found = told(workspace(partition={"mode": "mig", "x": 1}), "kaito", "0.11")
    assert [line.partition(":")[0] for line in found] == ["resource.partition"]


def test_a_kind_that_a_release_does_not_serve_names_the_first_that_does() -> None:
    body = {"apiVersion": "disaggregatedset.x-k8s.io/v1", "kind": "DisaggregatedSet", "spec": {}}
    assert told(body, "lws", "0.8") == [
        (
            "apiVersion: is 'disaggregatedset.x-k8s.io/v1', in which LWS 0.8 serves no "
            "DisaggregatedSet. Use LWS 0.9. [crd-schema]"
        )
    ]


def test_a_kind_that_was_removed_names_the_last_release_that_serves_it() -> None:
    body = {"apiVersion": "workload.serving.volcano.sh/v1alpha1", "spec": {}}
    found = told({**body, "kind": "AutoscalingPolicyBinding"}, "kthena", "1.0")
    assert found == [
        (
            "apiVersion: is 'workload.serving.volcano.sh/v1alpha1', in which Kthena 1.0 serves no "
            "AutoscalingPolicyBinding. Use Kthena 0.4. [crd-schema]"
        )
    ]


def test_what_a_webhook_fills_in_may_be_missing() -> None:
    name = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet"}
    pod = {"spec": {"containers": [{"image": "a", "resources": {"limits": {"cpu": 0.5}}}]}}
    spec = {"leaderWorkerTemplate": {"workerTemplate": pod}, "networkConfig": {}}
    assert told({**name, "spec": spec}, "lws") == []
    assert told({**name, "spec": {"leaderWorkerTemplate": {}}}, "lws") == [
        (
            "spec.leaderWorkerTemplate.workerTemplate: is missing, and it has no default. "
            "Add workerTemplate. [crd-schema]"
        )
    ]


@pytest.mark.parametrize(
    ("version", "first", "since"),
    [
        ("1.14.1", "1.14.2", False),
        ("1.14.2", "1.14.2", True),
        ("v1.14.4", "1.14.2", True),
        ("1.14", "1.14.2", True),
        ("1.13", "1.14.2", False),
        ("1.15", "1.14.2", True),
    ],
)
def test_a_version_without_a_patch_is_the_newest_patch(
    version: str, first: str, since: bool
) -> None:
    assert is_since(version, first) is since


@pytest.mark.parametrize(
    ("asked", "known"), [("v1.15.1", "1.15"), ("1.14", "1.14"), ("1.13", None), ("main", None)]
)
def test_a_version_of_volcano_is_of_a_minor_release(asked: str, known: str | None) -> None:
    assert known_version(asked, "volcano") == known


LIMITED = [
    (Text(shortest=2, longest=3), ["ab", "abc"], ["a", "abcd"]),
    (Text(pattern="^a$"), ["a"], ["a\n", "b", "ba"]),
    (Text(pattern=r"^\d+[.]?$"), ["12", "1."], ["\u0661", ""]),
    (Text(pattern="b"), ["abc"], ["a"]),
    (Whole(least=1, most=3), [1, 3, 2.0], [0, 4]),
    (Number(), [1, 0.5, -2], [True, "1"]),
    (Amount(fractions=True), [0.5, "1Gi", 2], ["x", True]),
    (Items(of=Text(), fewest=1, most=2), [["a"], ["a", "b"]], [[], ["a", "b", "c"]]),
    (Items(of=Text(), is_set=True), [["a", "b"]], [["a", "a"]]),
    (
        Fields(fields={"a": Text()}),
        [{}, {"a": "x"}, {"a": None}],
        [{"b": 1}, {"b": None}, {"a": 1}],
    ),
]


@pytest.mark.parametrize(("shape", "right", "wrong"), LIMITED)
def test_limits_are_held(shape: Any, right: list[Any], wrong: list[Any]) -> None:
    for value in right:
        assert [*check_shape(value, shape)] == []
    sure = quick_test(shape)
    for value in wrong:
        assert [*check_shape(value, shape)]
        assert not sure(value)


@pytest.mark.property
@given(tree=json_trees(), system=st.sampled_from(TABLES), data=st.data())
def test_the_quick_test_is_never_sure_of_what_the_walk_refuses(
    tree: Any, system: str, data: st.DataObject
) -> None:
    table = table_of(system)
    kind = data.draw(st.sampled_from(sorted(table.kinds)))
    served = data.draw(st.sampled_from(sorted(table.kinds[kind])))
    places = (table.number(kind, served, place) for place in reversed(range(len(table.releases))))
    number = next(number for number in places if number is not None)
    shape, surely = table.root(number, kind)
    body = {"apiVersion": served, "kind": kind, "spec": tree}
    json.dumps(body, default=str)
    if surely(body):
        assert [f for f in check_shape(body, shape) if f.level is Level.MANDATORY] == []


def picked(name: str, version: str = "", **reference: object) -> list[tuple[str, Level, str]]:
    """Return what the CRD says of the endpoint picker of an LLMInferenceService."""
    picker = {"name": "epp", **reference}
    pool = {"selector": {"app": "chat"}, "targetPortNumber": 8000, name: picker}
    body = {
        "apiVersion": "serving.kserve.io/v1alpha1",
        "kind": "LLMInferenceService",
        "metadata": {"name": "chat"},
        "spec": {
            "model": {"uri": "hf://Qwen/Qwen3-8B"},
            "router": {"scheduler": {"pool": {"spec": pool}}},
        },
    }
    asked = read_release(version) if version else None
    found = check_crd(body, "LLMInferenceService", table_of("kserve"), asked)
    return [(each.path, each.level, each.seen) for each, _ in found]


def test_a_field_that_lost_its_default_is_advice_unless_the_release_is_stated() -> None:
    """KServe 0.16 to 0.19 fill in failureMode; v1alpha1 of 0.20 requires it."""
    assert picked("extensionRef", failureMode="FailOpen") == []
    assert picked("extensionRef", "0.19") == []
    ((path, level, seen),) = picked("extensionRef")
    assert path == "spec.router.scheduler.pool.spec.extensionRef.failureMode"
    assert level is Level.ADVISORY
    assert seen == "is missing, and it has no default in KServe 0.20; 0.19 accepts it"
    ((path, level, seen),) = picked("extensionRef", "0.20")
    assert level is Level.MANDATORY
    assert seen.endswith("0.19 accepts it")


def rejected(system: str, served: str, kind: str, spec: dict[str, Any]) -> list[str]:
    """Return what the newest CRD rejects, without fields that are missing."""
    body = {"apiVersion": served, "kind": kind, "metadata": {"name": "a"}, "spec": spec}
    found = check_crd(body, kind, table_of(system), None)
    return [f"{f.path} {f.seen}" for f, _ in found if "is missing" not in f.seen]


@for_each(
    ("system", "served", "kind", "spec", "said"),
    [
        ("argo_rollouts", "argoproj.io/v1alpha1", "Rollout", {"restartAt": "now"},
         "spec.restartAt is 'now', which is not a date and time with a time zone"),
        ("argo_rollouts", "argoproj.io/v1alpha1", "Rollout",
         {"restartAt": "2026-01-31T12:00:00Z"}, ""),
        ("argo_rollouts", "argoproj.io/v1alpha1", "Rollout", {"replicas": -1},
         "spec.replicas is -1, but must be at least 0"),
        ("argo_rollouts", "argoproj.io/v1alpha1", "Rollout", {"replicas": 0}, ""),
        ("aibrix", "orchestration.aibrix.ai/v1alpha1", "RoleSet",
         {"schedulingStrategy": {"volcanoSchedulingStrategy": {},
                                 "coschedulingSchedulingStrategy": {}}},
         "spec.schedulingStrategy has 2 fields, but may have 1"),
        ("aibrix", "orchestration.aibrix.ai/v1alpha1", "RoleSet",
         {"schedulingStrategy": {"volcanoSchedulingStrategy": {}}}, ""),
        ("kaito", "kaito.sh/v1beta1", "InferenceSet",
         {"template": {"resource": {"partition": {"mode": "mps"}}}},
         "spec.template.resource.partition.mode is 'mps', but must be 'mig' or 'accelerator'"),
        ("kubernetes", "v1", "PersistentVolumeClaim", {"accessModes": ["RWX"]},
         ("spec.accessModes[0] is 'RWX', but must be 'ReadOnlyMany' or 'ReadWriteMany' or "
          "'ReadWriteOnce' or 'ReadWriteOncePod'")),
        ("kubernetes", "v1", "Service", {"ipFamilyPolicy": "Dual"},
         ("spec.ipFamilyPolicy is 'Dual', but must be 'SingleStack' or 'PreferDualStack' or "
          "'RequireDualStack'")),
        ("kubernetes", "autoscaling/v2", "HorizontalPodAutoscaler",
         {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 9999}}},
         "spec.behavior.scaleDown.stabilizationWindowSeconds is 9999, but may be at most 3600"),
        ("kubernetes", "networking.k8s.io/v1", "Ingress", {"rules": [{"http": {"paths": []}}]},
         "spec.rules[0].http.paths has 0 items, but must have at least 1"),
        ("kthena", "workload.serving.volcano.sh/v1alpha1", "AutoscalingPolicy",
         {"disaggregatedTarget": {"roles": {}}},
         "spec.disaggregatedTarget.roles has 0 keys, but must have at least 1"),
    ],
)  # fmt: skip
def test_limits_that_crds_state(
    system: str, served: str, kind: str, spec: dict[str, Any], said: str
) -> None:
    assert " and ".join(rejected(system, served, kind, spec)).partition(" in ")[0] == said


def test_an_address_has_a_scheme() -> None:
    def spec(url: str) -> dict[str, Any]:
        source = {"prometheus": {"serverURL": url, "query": "up"}}
        return {"homogeneousTarget": {"target": {"metricSources": {"a": source}}}}

    kind = "workload.serving.volcano.sh/v1alpha1", "AutoscalingPolicy"
    (said,) = rejected("kthena", *kind, spec("prometheus.monitoring"))
    assert "serverURL is 'prometheus.monitoring', which is not a URI" in said
    assert rejected("kthena", *kind, spec("http://prometheus.monitoring:9090")) == []


def test_a_number_is_one_of_a_few() -> None:
    redirect = {"type": "RequestRedirect", "requestRedirect": {"statusCode": 404}}
    spec = {"router": {"route": {"http": {"spec": {"rules": [{"filters": [redirect]}]}}}}}
    kind = "serving.kserve.io/v1alpha2", "LLMInferenceService"
    (said,) = rejected("kserve", *kind, spec)
    assert "statusCode is 404, but must be 301 or 302" in said
