"""Rules inside one role: what passes, and what is said when it does not."""

from collections.abc import Mapping
from typing import Any

import pytest

from kthena_components.core.spec.parse import parse_spec
from kthena_components.core.spec.rules.engine_overlay_and_flags import BLOCKING, ROLE_RULES
from kthena_components.core.spec.serving_spec import RoleSpec
from tests.support.for_each import for_each
from tests.support.specs import (
    DATA_PARALLEL,
    ENGINE_RAY,
    REMOVED,
    SGLANG,
    TEMPLATES_PLAIN,
    Args,
    Case,
    changed,
    template,
)

RAY, PLAIN = ENGINE_RAY["roles"][0], TEMPLATES_PLAIN["roles"][0]
OVERLAID = "overlay.spec.containers[engine]"
COUNTED = (
    "an overlay may change every field of the pod except what the package sets itself: GPUs, "
    "commands and injected variables."
)
NO_CONTAINERS = (
    "is empty or missing, so there is nothing to run. Give at least one container. "
    "[template-containers]"
)


def findings(role: Args, changes: Mapping[str, Any] | None = None) -> list[Any]:
    spec = parse_spec(RoleSpec, changed(role, changes))
    return [finding for rule in ROLE_RULES for finding in rule(spec)]


def engine(**fields: Any) -> Args:
    """Give an overlay of the engine's container."""
    return {"overlay": {"spec": {"containers": [{"name": "engine", **fields}]}}}


REFUSED = {
    "engine-and-both-templates": Case(
        RAY,
        {"entry_template": template(), "worker_template": template()},
        "role 'decode' has both an engine and entry_template and worker_template, and only one "
        "can write the pods. Remove one; overlay changes single fields of an engine's pods. "
        "[template-or-engine]",
    ),
    "resources-beside-a-template": Case(
        PLAIN,
        {"resources": {}},
        "resources: is given without an engine, and a template is passed through unchanged. Write "
        "it into the template, or use an engine. [engine-only-field]",
    ),
    "no-spec": Case(
        PLAIN, {"entry_template": {}}, f"entry_template.spec.containers: {NO_CONTAINERS}"
    ),
    "no-containers-for-workers": Case(
        PLAIN,
        {"worker_template.spec.containers": None},
        f"worker_template.spec.containers: {NO_CONTAINERS}",
    ),
    "blank-in-an-image": Case(
        PLAIN,
        {"entry_template.spec.containers[0].image": "nginx latest"},
        "entry_template.spec.containers[0].image: is 'nginx latest', but the name of an "
        "image has no spaces. Write it as registry/name:tag. [container-image]",
    ),
    "empty-image": Case(
        PLAIN,
        {"entry_template.spec.containers[0].image": ""},
        "entry_template.spec.containers[0].image: is '', but the name of an image has no spaces. "
        "Write it as registry/name:tag. [container-image]",
    ),
    "a-whole-pod": Case(
        PLAIN,
        {"entry_template.kind": "Pod"},
        "entry_template.kind: 'kind' is not a field that a pod template passes on to its pods. "
        "Remove it; known: metadata, spec. [template-parts]",
    ),
    "a-name-of-its-own": Case(
        PLAIN,
        {"entry_template.metadata": {"name": "leader", "labels": {}}},
        "entry_template.metadata.name: 'name' is not a field that a pod template passes on to its "
        "pods. Remove it; known: annotations, labels. [template-parts]",
    ),
    "key-that-is-a-number": Case(
        PLAIN,
        {"entry_template.spec.nodeSelector": {1: "x"}},
        "entry_template.spec.nodeSelector: has the key 1, and every key must be text. "
        "Put it in quotes: '1'. [template-parts]",
    ),
    "label-of-the-workers": Case(
        PLAIN,
        {"worker_template.metadata.labels": {"kthena-components/worker": "false"}},
        "worker_template.metadata.labels: label 'kthena-components/worker' is set here, but it "
        "selects the pods of a group. Remove it, or use a label of your own. "
        "[reserved-labels]",
    ),
    "overlay-takes-the-spec-away": Case(
        RAY, {"overlay.spec": None}, f"overlay.spec: {COUNTED} Remove it. [overlay-counted]"
    ),
    "overlay-takes-the-containers-away": Case(
        RAY,
        {"overlay.spec.containers": None},
        f"overlay.spec.containers: {COUNTED} Remove it. [overlay-counted]",
    ),
    "overlay-takes-the-resources-away": Case(
        RAY, engine(resources=None), f"{OVERLAID}.resources: {COUNTED} Remove it. [overlay-counted]"
    ),
    "overlay-takes-the-limits-away": Case(
        RAY,
        engine(resources={"limits": None}),
        f"{OVERLAID}.resources.limits: {COUNTED} Remove it. [overlay-counted]",
    ),
    "overlay-counts-other-devices": Case(
        RAY,
        engine(resources={"requests": {"amd.com/gpu": 8}}),
        f"{OVERLAID}.resources.requests: {COUNTED} Use resources.gpus_per_pod. [overlay-counted]",
    ),
    "overlay-has-arguments": Case(
        RAY,
        engine(args=["--seed", "1"]),
        f"{OVERLAID}.args: {COUNTED} Use engine.parallelism and engine.extra_args. "
        "[overlay-counted]",
    ),
    "overlay-injects": Case(
        RAY,
        engine(env=[{"name": "GROUP_SIZE", "value": "3"}]),
        f"{OVERLAID}.env[GROUP_SIZE]: {COUNTED} Remove it. [overlay-counted]",
    ),
    "port-of-the-ray-cluster": Case(
        RAY,
        {"engine.port": 6379},
        "engine.port: is 6379, which the pods of an engine use among themselves (Ray). Choose "
        "another port. [engine-launch]",
    ),
    "sglang-over-ray": Case(
        SGLANG["roles"][0],
        {"engine.launcher": "ray"},
        "engine.launcher: is 'ray', and the pods of SGLang join by themselves. Write 'native'. "
        "[engine-launch]",
    ),
    "copies-that-do-not-spread": Case(
        DATA_PARALLEL["roles"][0],
        {"engine.parallelism.data": 7},
        "engine.parallelism.data: is 7, which does not spread evenly over 2 pods. Set data to a "
        "multiple of 2. [data-parallel-layout]",
    ),
    "flag-by-another-name": Case(
        RAY,
        {"engine.extra_args": ["--tensor_parallel_size=4", "--max-model-len", "8k"]},
        "engine.extra_args: '--tensor_parallel_size' sets a value that the package sets itself. "
        "Remove it and use engine.parallelism, launcher, port or model. [counted-flag]",
    ),
}


@for_each("case", REFUSED.values(), ids=REFUSED)
def test_a_role_that_cannot_be_is_refused(case: Case) -> None:
    assert [str(finding) for finding in findings(case.args, case.changes)] == [case.message]


ACCEPTED: dict[str, tuple[Args, Args]] = {
    "templates": (PLAIN, {}),
    "engine": (RAY, {}),
    "no-workers-and-no-template": (PLAIN, {"worker_replicas": 0, "worker_template": REMOVED}),
    "template-of-no-workers": (PLAIN, {"worker_replicas": 0, "worker_template": {}}),
    "no-image": (PLAIN, {"entry_template.spec.containers[0].image": REMOVED}),
    "empty-metadata": (PLAIN, {"entry_template.metadata": {"labels": None, "annotations": None}}),
    "labels-of-the-user": (PLAIN, {"entry_template.metadata.labels": {"team": "chat"}}),
    "overlay-of-other-amounts": (RAY, engine(resources={"limits": {"rdma/ib": 1}})),
    "overlay-of-another-container": (
        RAY,
        {"overlay": {"spec": {"containers": [{"name": "proxy", "image": "x", "args": ["x"]}]}}},
    ),
    "overlay-of-everything-else": (
        RAY,
        {
            **engine(env=[{"name": "TZ", "value": "UTC"}], livenessProbe=None, image="mine:v1"),
            "overlay.metadata.annotations": {"a": "b"},
            "overlay.spec.nodeSelector": {"disk": "fast"},
        },
    ),
    "flags-of-the-user": (RAY, {"engine.extra_args": ["--max-model-len", "8k", "--seed=1"]}),
}


@pytest.mark.parametrize(("role", "changes"), ACCEPTED.values(), ids=ACCEPTED)
def test_a_role_that_can_be_is_taken(role: Args, changes: Args) -> None:
    assert findings(role, changes) == []


def test_no_plan_is_made_from_what_cannot_be_planned() -> None:
    cases = (REFUSED["no-spec"], REFUSED["sglang-over-ray"], REFUSED["key-that-is-a-number"])
    rules = [f.rule for case in cases for f in findings(case.args, case.changes)]
    assert set(rules) <= BLOCKING


@pytest.mark.parametrize("rule", ROLE_RULES, ids=lambda rule: rule.__name__)
def test_a_rule_says_what_it_is_about(rule: Any) -> None:
    assert rule.__doc__.strip().endswith(".")
