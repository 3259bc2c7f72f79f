"""What the differential validation found, as fixed cases, and how it compares and shrinks."""
# ruff: noqa: E501 - an object stands whole on its line

from pathlib import Path
from typing import Any

import pytest

from conformance.__main__ import Context
from conformance.report import Part
from conformance.validation.cases import KINDS, VERSIONS, as_sent
from conformance.validation.deliberate_differences import admission
from conformance.validation.part import Tally, _rules, _verdict, check_reach
from conformance.validation.shrink import shrink
from kthena_components.core.findings import Finding, Level
from tests.support.admission import own_findings
from tests.support.for_each import for_each

SCHEDULING = "scheduling.volcano.sh/v1beta1"
GROUP = {"apiVersion": SCHEDULING, "kind": "PodGroup"}
QUEUE = {"apiVersion": SCHEDULING, "kind": "Queue"}
NODE = {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode"}
NAMED = {"name": "a"}
KTHENA = "workload.serving.volcano.sh/v1alpha1"
PAIR = {"name": "a", "type": "vLLMDisaggregated", "modelURI": "hf://a/b", "replicas": 1}
POLICY = {"apiVersion": KTHENA, "kind": "AutoscalingPolicy", "metadata": NAMED}
ROLE = {"minReplicas": 1, "maxReplicas": 2}


def leader_worker_set(pod: dict[str, Any]) -> dict[str, Any]:
    """Give a LeaderWorkerSet, which its webhook reads and writes again."""
    spec = {"leaderWorkerTemplate": {"size": 1, "workerTemplate": {"spec": pod}}}
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": NAMED,
        "spec": spec,
    }


def own_set(pod: dict[str, Any]) -> list[Finding]:
    """Give what LWS must refuse too; the rules of pods are apart."""
    return [f for f in shared(leader_worker_set(pod)) if f.rule == "crd-schema"]


def booster(backend: Any) -> dict[str, Any]:
    """Give a ModelBooster."""
    return {
        "apiVersion": KTHENA,
        "kind": "ModelBooster",
        "metadata": NAMED,
        "spec": {"backend": backend},
    }


def route(limit: int) -> dict[str, Any]:
    """Give a ModelRoute with a limit of tokens."""
    spec = {"modelName": "a", "rules": [], "rateLimit": {"inputTokensPerUnit": limit}}
    return {
        "apiVersion": "networking.serving.volcano.sh/v1alpha1",
        "kind": "ModelRoute",
        "metadata": NAMED,
        "spec": spec,
    }


def policy(sources: Any) -> dict[str, Any]:
    """Give an AutoscalingPolicy of one role."""
    target = {"targetRef": NAMED, "roles": {"x": {**ROLE, "metricSources": sources}, "y": None}}
    return {
        **POLICY,
        "spec": {"metrics": [{"name": "m", "targetValue": 1}], "disaggregatedTarget": target},
    }


TWO_CAPS = {"highestTierAllowed": 2**40, "highestTierName": "rack"}


def hyper_node(selector: Any, kind: str = "Node", **more: Any) -> dict[str, Any]:
    """Give a HyperNode with one member."""
    spec = {"tier": 1, "members": [{"type": kind, "selector": selector}], **more}
    return {**NODE, "metadata": NAMED, "spec": spec}


REFUSED: dict[str, dict[str, Any]] = {
    "beyond-uint32": route(2**32),
    "no-tokens": route(0),
    "booster-without-workers": booster(PAIR),
    "null-source-alone": policy({"m": None}),
    "label-value": {**GROUP, "metadata": {**NAMED, "labels": {"a": "a b"}}},
    "label-key": {**GROUP, "metadata": {**NAMED, "labels": {"A/b": ""}}},
    "annotation-key": {**QUEUE, "metadata": {**NAMED, "annotations": {"a b": ""}}},
    "annotations-size": {**QUEUE, "metadata": {**NAMED, "annotations": {"a": "é" * 2**17}}},
    "labels-kind": {**QUEUE, "metadata": {**NAMED, "labels": []}},
    "stem": {**QUEUE, "metadata": {"generateName": "a."}},
    "stem-beside-name": {**QUEUE, "metadata": {**NAMED, "generateName": "A"}},
    "no-name": {**GROUP, "metadata": {"namespace": "serving"}},
    "name-kind": {**GROUP, "metadata": {"name": 5}},
    "expression": {**GROUP, "metadata": NAMED, "spec": {"minMember": 1, "subGroupPolicy": [
        {"name": "a", "matchLabelKeys": ["k"], "labelSelector": {"matchExpressions": [{"key": "a"}]}}]}},
    "two-caps": {**GROUP, "metadata": NAMED, "spec": {"minMember": 1, "networkTopology": TWO_CAPS}},
    "field-without-a-name": {**GROUP, "metadata": NAMED, "spec": {"minMember": 1, "networkTopology": {"mode": "soft", "": ""}}},
    "hidden-field-without-a-name": {**GROUP, "metadata": NAMED, "spec": {"minMember": 1, "networkTopology": {"": ""}}},
    "task-without-a-name": {**GROUP, "metadata": NAMED, "spec": {"minMember": 1, "minTaskMember": {"": ""}}},
    "queue-empty": {**GROUP, "metadata": NAMED, "spec": {"minMember": 1, "queue": ""}},
    "reclaimable": {**QUEUE, "metadata": NAMED, "spec": {"reclaimable": "true"}},
    "affinity": {**QUEUE, "metadata": NAMED, "spec": {"affinity": {"nodeGroupAffinity": []}}},
    "clusters": {**QUEUE, "metadata": NAMED, "spec": {"extendClusters": [{"weight": "1"}]}},
    "guarantee-alone": {**QUEUE, "metadata": NAMED, "spec": {"guarantee": {"resource": {"pods": 0}}}},
    "fraction": {**QUEUE, "metadata": NAMED, "spec": {"capability": {"a.b/c": "0.1n"}}},
    "tier": hyper_node({"exactMatch": NAMED}, tier=2**63),
    "labels-list": hyper_node({"labelMatch": [[]]}, "HyperNode"),
    "label-number": hyper_node({"labelMatch": {"matchLabels": {"a": 1, "b": "c"}}}),
    "empty-pattern": hyper_node({"regexMatch": {"pattern": ""}}),
    "child-pattern": hyper_node({"regexMatch": {"pattern": "^(?"}}, "HyperNode"),
    "hyper-node-stem": {**hyper_node({"exactMatch": NAMED}), "metadata": {"generateName": "A-"}},
}  # fmt: skip
TAKEN: dict[str, dict[str, Any]] = {
    "uint32": route(2**32 - 1),
    "null-type": booster({**PAIR, "type": "vLLM", "workers": [{"type": None, "pods": 1}]}),
    "null-source": policy({"m": {"pod": {}}, "n": None}),
    "annotation-key": {**QUEUE, "metadata": {**NAMED, "annotations": {"A.b/C": ""}}},
    "generated": {**QUEUE, "metadata": {"generateName": "a-", "name": ""}},
    "uncounted": {**QUEUE, "metadata": NAMED,
                  "spec": {"deserved": {"x": 9}, "capability": {"x": 1, "cpu": 1}}},
    "null-amount": {**QUEUE, "metadata": NAMED,
                    "spec": {"deserved": {"kubernetes.io/a": 1}, "capability": {"kubernetes.io/a": None}}},
    "beyond-counting": {**QUEUE, "metadata": NAMED,
                        "spec": {"guarantee": {"resource": {"memory": "99999999999E"}}}},
    "weights": {**QUEUE, "metadata": {**NAMED, "annotations": {
        "volcano.sh/hierarchy": "root/a", "volcano.sh/hierarchy-weights": "1e3/inf"}}},
    "no-selector": hyper_node(None),
}  # fmt: skip


def shared(body: dict[str, Any]) -> list[Finding]:
    """Give what the cluster must refuse too."""
    return admission(
        f for f in own_findings(body, volcano=VERSIONS["volcano"]) if f.level is Level.MANDATORY
    )


@for_each("body", REFUSED.values(), ids=REFUSED)
def test_what_the_cluster_refuses_is_refused(body: dict[str, Any]) -> None:
    assert shared(body)


@pytest.mark.parametrize("body", TAKEN.values(), ids=TAKEN)
def test_what_the_cluster_takes_is_taken(body: dict[str, Any]) -> None:
    assert shared(body) == []


@pytest.mark.parametrize(
    "pod",
    [
        {
            "affinity": {
                "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}
            }
        },
        {"containers": [{"name": "a", "lifecycle": {"preStop": {"tcpSocket": {}}}}]},
        {"containers": [{"name": "a", "resources": {"limits": {"nvidia.com/gpu": 10**40}}}]},
    ],
    ids=("preference", "port", "amount"),
)
def test_what_the_webhook_of_a_set_fills_in_is_taken(pod: dict[str, Any]) -> None:
    assert own_set({"containers": [{"name": "a"}], **pod}) == []


def test_a_set_has_no_doubles() -> None:
    rule = {"action": "Restart", "exitCodes": {"operator": "In", "values": [1, 1]}}
    container = {"name": "e", "restartPolicyRules": [rule]}
    role = {
        "name": "a",
        "workerReplicas": 0,
        "entryTemplate": {"spec": {"containers": [container]}},
    }
    body = {
        "apiVersion": "workload.serving.volcano.sh/v1alpha1",
        "kind": "ModelServing",
        "metadata": NAMED,
        "spec": {"template": {"roles": [role]}},
    }
    (finding,) = own_findings(body)
    assert str(finding).endswith(
        "restartPolicyRules[0].exitCodes.values[1]: 1 is already in the list, and the API server rejects duplicates here. Remove it. [kthena-schema]"
    )


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_same_seed_draws_the_same_object(kind: Any) -> None:
    assert kind.body(1, 7) == kind.body(1, 7)
    assert kind.body(1, 7) != kind.body(2, 7)


def test_a_disagreement_is_no_verdict() -> None:
    refused = Finding(path="a", seen="b", remedy="c", rule="queue-weight")
    strict = Finding(path="a", seen="b", remedy="c", rule="topology-cap-stated")
    assert _verdict([refused], None) == _verdict([], "no") == _verdict([strict], "no") == ""
    assert _verdict([refused], "no") == "rejected by both"
    assert _verdict([strict], None) == "rejected only by us, deliberately"
    assert _verdict([], None) == "accepted by both"
    assert (
        _verdict([], "unable to find queue: x")
        == "rejected because of another object of the cluster"
    )


def test_an_object_is_shrunk_to_what_matters() -> None:
    body = {"kind": "Queue", "spec": {"a": [1, {"b": "x" * 40}], "c": {"d": 1}}, "metadata": {}}
    assert shrink(body, lambda b: len(str(b.get("spec", {}).get("a"))) > 20) == {
        "kind": "Queue",
        "spec": {"a": [{"b": "x" * 10}]},
    }


def test_every_rule_of_admission_must_be_reached() -> None:
    assert {"kthena-image", "queue-weight", "hypernode-shape", "topology-one-cap"} <= _rules()
    assert {"kthena-schema", "kthena-max-surge"} <= _rules()
    assert not {"kthena-version", "subgroup-minimum"} & _rules()


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_only_a_whole_run_must_reach_every_rule(scale: float, tmp_path: Path) -> None:
    part = Part(name="validation")
    check_reach(Context(part=part, folder=tmp_path, seed=1, scale=scale), KINDS, Tally())
    assert bool(part.failures) is (scale >= 1)
    assert set(part.counts.values()) == {0}


def test_whole_numbers_are_sent_without_a_point() -> None:
    assert repr(as_sent({"a": [1.0, 1.5, True, 1e30]})) == "{'a': [1, 1.5, True, 1e+30]}"
