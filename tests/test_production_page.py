"""docs/production.md: each row of its table is true of the stacks dev and prod."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from kthena_components.resources.stack import load_stack
from tests.stacks.handed import handed
from tests.support.for_each import for_each

PAGE = (Path(__file__).parent.parent / "docs" / "production.md").read_text()
ROWS = re.findall(r"^\| \[([^]]+)\]\(#", PAGE, re.MULTILINE)
GRACE = 60
Pod = Mapping[str, Any]


def engine(pod: Pod) -> Mapping[str, Any]:
    (container,) = pod["spec"]["containers"]
    return dict(container)


def serves(pod: Pod) -> bool:
    return "readinessProbe" in engine(pod)


def has_requests(pod: Pod) -> bool:
    return {"cpu", "memory"} <= set(engine(pod)["resources"]["requests"])


def drains(pod: Pod) -> bool:
    waits = engine(pod)["lifecycle"]["preStop"]["sleep"]["seconds"]
    stated = not serves(pod) or "--shutdown-timeout" in engine(pod)["command"]
    return stated and waits < pod["spec"]["terminationGracePeriodSeconds"] == GRACE


def prefers_other_zones(pod: Pod) -> bool:
    (term,) = pod["spec"]["affinity"]["podAntiAffinity"][
        "preferredDuringSchedulingIgnoredDuringExecution"
    ]
    own = pod["metadata"]["labels"]
    names = term["podAffinityTerm"]
    matches = names["labelSelector"]["matchLabels"].items() <= own.items()
    return matches and set(names["mismatchLabelKeys"]) <= set(own)


def is_labelled(pod: Pod) -> bool:
    wanted = {f"app.kubernetes.io/{key}" for key in ("name", "instance", "component")}
    return wanted <= set(pod["metadata"]["labels"])


def starts_in_time(pod: Pod) -> bool:
    probe = engine(pod).get("startupProbe")
    return probe is None or probe["periodSeconds"] * probe["failureThreshold"] == 60 * 60


def has_limited_memory_volume(pod: Pod) -> bool:
    return all(v["emptyDir"].get("sizeLimit") for v in pod["spec"]["volumes"] if "emptyDir" in v)


OF_PODS: Mapping[str, Callable[[Pod], bool]] = {
    "CPU and memory": has_requests,
    "shutdown": drains,
    "failure domains": prefers_other_zones,
    "labels": is_labelled,
    "user": lambda pod: pod["spec"]["securityContext"]["runAsUser"] == 2000,
    "/dev/shm": has_limited_memory_volume,  # noqa: S108 - NCCL's shared memory
    "start": starts_in_time,
    "weights": lambda pod: not any("HF_HOME" in str(e) for e in engine(pod).get("env", [])),
    "network": lambda pod: "NCCL_" not in str(engine(pod).get("env", [])),
    "priority": lambda pod: "priorityClassName" not in pod["spec"],
}
OF_SERVINGS = {"evictions"}


def pods_of(stack: str) -> list[Pod]:
    (serving,) = load_stack(handed(stack)).servings
    sets = [m for m in serving.manifests if m.kind == "StatefulSet"]
    return [dict(made.body["spec"]["template"]) for made in sets]


def test_every_row_is_checked() -> None:
    assert set(ROWS) == {*OF_PODS, *OF_SERVINGS}


@for_each("row", OF_PODS)
@for_each("stack", ["dev", "prod"])
def test_a_row_is_true_of_every_pod(stack: str, row: str) -> None:
    pods = pods_of(stack)
    assert any(map(serves, pods))
    assert [OF_PODS[row](pod) for pod in pods] == [True] * len(pods)


@pytest.mark.parametrize(("stack", "budgets"), [("dev", 0), ("prod", 1)])
def test_evictions_are_limited_where_two_groups_serve(stack: str, budgets: int) -> None:
    (serving,) = load_stack(handed(stack)).servings
    found = [m for m in serving.manifests if m.kind == "PodDisruptionBudget"]
    assert len(found) == budgets
    for budget in found:
        selected = budget.body["spec"]["selector"]["matchLabels"].items()
        assert all(selected <= pod["metadata"]["labels"].items() for pod in pods_of(stack))
