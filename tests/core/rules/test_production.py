"""What the rules about production read and leave alone, and that they are asked for."""

from collections import Counter
from datetime import date
from typing import Any

import pytest

from kthena_components.checker.manifest import check_manifest, read_manifest
from kthena_components.checker.waivers import PREFIX
from kthena_components.compiler.compile import compile_serving
from kthena_components.core.facts.pod_policies_and_sharing import PodPolicies
from kthena_components.core.findings import Finding, Level
from kthena_components.core.rules.production import PRODUCTION, PRODUCTION_NAMES
from kthena_components.core.values.read import group_kind
from kthena_components.systems import all_systems, find_kind
from tests.rules.cases import bases, documents
from tests.support.for_each import for_each
from tests.support.specs import changed

TODAY = date(2026, 6, 30)
NAMES = PRODUCTION_NAMES
MANIFESTS = {
    name: documents(name)[0]
    for name in bases()
    if len(documents(name)) == 1 and "apiVersion" in documents(name)[0]
}
BARE = changed(
    MANIFESTS["production"],
    {
        "spec.template": {"spec": {"containers": [{"name": "engine"}]}},
        "spec.template.spec.containers[0].command": ["vllm", "serve", "Qwen/Qwen3-32B"],
    },
)
"""A Deployment that lacks everything but labels."""
ENGINE = {"kind": "vllm", "image": "vllm/vllm-openai:v0.33.0", "model": "Qwen/Qwen3-32B"}
SERVING: dict[str, Any] = {
    "name": "chat",
    "roles": [
        {
            "name": "server",
            "engine": {**ENGINE, "parallelism": {"tensor": 2}},
            "resources": {"gpus_per_pod": 2, "shm": "16Gi"},
        }
    ],
}


def found(body: dict[str, Any], **asked: Any) -> list[Finding]:
    findings = check_manifest(body, **{"asked": NAMES, **asked})
    return [finding for finding in findings if finding.rule in NAMES]


def starts(body: dict[str, Any]) -> bool:
    """Return whether a manifest starts an engine in a pod that it describes."""
    kind, facts = find_kind(group_kind(body)), read_manifest(body)
    commands = [e.entry.command for e in facts.engines] if facts else []
    return bool(kind and kind.pods) and any(c and c.engine for c in commands)


def test_their_names_say_what_they_are_about() -> None:
    assert all(name.startswith("production-") for name in NAMES)
    assert len(NAMES) == len(PRODUCTION)


@for_each("name", sorted(MANIFESTS))
def test_they_run_only_if_they_are_asked_for(name: str) -> None:
    assert found(MANIFESTS[name], asked=()) == []


def test_each_is_asked_for_by_its_name() -> None:
    for name in NAMES - {"production-labels"}:
        assert [finding.rule for finding in found(BARE, asked=[name])] == [name]


@for_each("name", sorted(MANIFESTS))
def test_an_object_gets_one_finding_of_each(name: str) -> None:
    counted = Counter(finding.rule for finding in found(MANIFESTS[name]))
    assert set(counted.values()) <= {1}
    assert all(f.level is Level.ADVISORY and f.remedy for f in found(MANIFESTS[name]))


@for_each("name", [name for name, body in MANIFESTS.items() if starts(body)])
def test_every_kind_is_reviewed_unless_its_controller_completes_its_pods(name: str) -> None:
    """No base states users: what is silent is a kind that is not read, or the one that is right."""
    kind = find_kind(group_kind(MANIFESTS[name]))
    assert kind is not None
    expected = "production" not in kind.without and name != "production"
    told = {finding.rule for finding in found(MANIFESTS[name])}
    assert ("production-security" in told) is expected, told


def test_the_reasons_name_rules_that_there_are() -> None:
    keys = {key for system in all_systems() for kind in system.kinds for key in kind.without}
    assert {key for key in keys if key.startswith("production-")} <= NAMES


@pytest.mark.parametrize("backend", ["native", "kthena", "lws", "matrixinfer"])
def test_what_the_package_writes_is_reviewed(backend: str) -> None:
    made = compile_serving({**SERVING, "backend": backend})
    told = [f for manifest in made.manifests for f in found(dict(manifest.body))]
    assert {f.rule for f in told} == {"production-availability", "production-cache"}


def test_a_waiver_of_a_rule_that_does_not_run_is_not_unused() -> None:
    waived = changed(BARE, {"metadata.annotations": {}})
    waived["metadata"]["annotations"][f"{PREFIX}production-cache"] = "2026-12-31 a cache comes"
    asked = check_manifest(waived, today=TODAY, asked=NAMES)
    assert [f.level for f in asked if f.rule == "production-cache"] == [Level.WAIVED]
    for names in (NAMES, ()):
        assert "waiver" not in {f.rule for f in check_manifest(waived, today=TODAY, asked=names)}


def test_the_waiver_of_a_component_is_on_the_objects_with_the_finding() -> None:
    made = compile_serving(
        {**SERVING, "waivers": {"production-cache": "2026-12-31 a cache comes"}}, today=TODAY
    )
    assert [f for f in made.findings if f.rule == "waiver"] == []
    bodies = [manifest.body for manifest in made.manifests]
    key = f"{PREFIX}production-cache"
    holding = {b["kind"] for b in bodies if key in b["metadata"].get("annotations", {})}
    assert holding == {"StatefulSet"}


@pytest.mark.parametrize(
    ("selector", "more", "limited"),
    [
        # Verdicts of LabelSelectorAsSelector: an empty selector matches all, a missing one nothing.
        ({}, False, True),
        (None, False, False),
        ({"matchLabels": {"app": "chat"}}, False, True),
        ({"matchLabels": {"app": "llama"}}, True, False),
        ({"matchLabels": {"role": "entry"}}, False, False),
        ({"matchLabels": {"role": "entry"}}, True, True),
        (
            {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["chat"]}]},
            False,
            False,
        ),
        (
            {"matchExpressions": [{"key": "role", "operator": "NotIn", "values": ["x"]}]},
            False,
            True,
        ),
        ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, False, True),
        ({"matchExpressions": [{"key": "role", "operator": "Exists"}]}, False, False),
        ({"matchExpressions": [{"key": ["a"], "operator": ["b"], "values": 3}]}, False, True),
    ],
)
def test_a_budget_selects_pods_by_their_labels(selector: Any, more: bool, limited: bool) -> None:
    around = PodPolicies(complete=True)
    spec = {} if selector is None else {"selector": selector}
    around.add({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "spec": spec})
    assert around.evictions_limited("default", {"app": "chat"}, more=more) is limited
    around.complete = False
    assert around.evictions_limited("default", {"app": "chat"}, more=more)


@pytest.mark.parametrize("privileged", [[], {}, "true", 1])
def test_no_value_of_privileged_makes_a_rule_fail(privileged: object) -> None:
    own = {"spec.template.spec.containers[0].securityContext": {"privileged": privileged}}
    assert "rule-fault" not in {finding.rule for finding in found(changed(BARE, own))}


@pytest.mark.parametrize("backend", ["kthena", "native", "lws", "matrixinfer"])
def test_engines_of_several_pods_are_reviewed(backend: str) -> None:
    """The README's first program: 405B on two pods, without a cache."""
    engine = {
        "kind": "vllm",
        "image": "vllm/vllm-openai:v0.33.0",
        "model": "meta-llama/Llama-3.1-405B-Instruct-FP8",
        "parallelism": {"tensor": 8, "pipeline": 2},
    }
    role = {"name": "serve", "worker_replicas": 1, "resources": {"gpus_per_pod": 8}}
    args = {"name": "chat", "backend": backend, "roles": [{**role, "engine": engine}]}
    made = compile_serving(args, today=TODAY).manifests
    found = [f for m in made for f in check_manifest(m.body, today=TODAY, asked=NAMES)]
    (line,) = (f for f in found if f.rule == "production-cache")
    assert "loads 'meta-llama/Llama-3.1-405B-Instruct-FP8' from the hub" in line.seen
    assert [f for f in found if f.rule == "production-lifecycle"] == []
    bare = [_bare(m.body) for m in made]
    told = {f.rule for body in bare for f in check_manifest(body, today=TODAY, asked=NAMES)}
    assert "production-lifecycle" in told


def _bare(value: Any) -> Any:
    """Give an object without what the package writes for the life of a pod."""
    written = {"lifecycle", "readinessProbe", "terminationGracePeriodSeconds"}
    if isinstance(value, list):
        return [_bare(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: _bare(item) for key, item in value.items() if key not in written}
