"""The table of a review, its headline, the budget and the demand of a kind count the same GPUs."""

import copy
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kthena_components.checker.check_cluster_objects import check_objects_together
from kthena_components.checker.manifest import read_demand
from kthena_components.checker.read_cluster_objects import read_objects
from kthena_components.cli.review.preview import parse_preview
from kthena_components.cli.review.stack import gpus_of, pairs_of
from kthena_components.compiler.compile import compile_serving
from kthena_components.core.plan.report import gpu_count, shape
from kthena_components.core.values.read import group_kind
from kthena_components.systems import EMITTERS, all_systems
from kthena_components.systems.kubernetes.rules.gpu_budget_and_type_rwx import gpus_asked
from tests.cli.previews import events, step, urn
from tests.rules.cases import bases, documents
from tests.support.for_each import for_each
from tests.support.specs import changed
from tests.support.strategies import law, watched_servings

Body = dict[str, Any]
COUNTED = {kind.group_kind: kind for s in all_systems() for kind in s.kinds if kind.facts}
BASES = {
    f"{name}-{at}": body
    for name in bases()
    for at, body in enumerate(documents(name))
    if "apiVersion" in body and group_kind(body) in COUNTED
}
NUMBERS = re.compile(
    r"replicas|parallelism|completions|size|count|slices|nodes|hosts", re.IGNORECASE
)
OTHERS = {
    "DaemonSet": "it has as many pods as there are nodes",
    "Pod": "it is one pod",
    "Playground": "its GPUs are in another object",
}
"""Kinds without a number that changes their GPUs, each with the reason."""


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """List the paths of the numbers of copies in an object."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items if isinstance(value, dict | list) else ():
        if isinstance(item, dict | list):
            yield from places(item, (*path, key))
        elif type(item) is int and isinstance(key, str) and NUMBERS.search(key):
            yield (*path, key)


def put(body: Body, path: tuple[Any, ...], number: int) -> None:
    """Set the number at a path."""
    target: Any = body
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = number


def of_the_table(before: Body | None, after: Body) -> tuple[int, int, int]:
    """Return the GPUs of a review's headline before and after, and the rows without a number."""
    of = urn(f"kubernetes:{after['apiVersion']}:{after['kind']}", "serving/it")
    op = "create" if before is None else "update"
    pairs = pairs_of(parse_preview("prod", events(step(op, of, before, after))))
    told = gpus_of(pairs)
    return told.before, told.after, told.not_known


def of_the_budget(body: Body) -> tuple[int, bool]:
    """Return the GPUs that gpu-budget counts, and whether there may be more."""
    held = read_demand(body)
    used, gap = gpus_asked(read_objects([body], [""], {} if held is None else {0: held}))
    for budget, refused in ((used, False), (used - 1, True)):
        said = check_objects_together({"it": body}, budget=budget) if budget >= 0 else []
        found = [f for f in said if f.rule == "gpu-budget" and "not checked" not in f.seen]
        assert bool(found) is (refused and budget >= 0), (budget, list(map(str, found)))
    return used, gap is not None


def agree(body: Body) -> int:
    """Hold that table and budget count the same, and return it."""
    used, open_ended = of_the_budget(body)
    before, shown, unknown = of_the_table(body, body)
    assert before == shown
    assert (unknown > 0) is open_ended, (shown, unknown, used)
    assert shown == used or (open_ended and shown < used)
    return shown


@pytest.mark.property
@law
@given(st.data())
@pytest.mark.parametrize("name", BASES)
def test_table_and_budget_count_the_same(name: str, data: st.DataObject) -> None:
    body = copy.deepcopy(BASES[name])
    for path in places(body):
        put(body, path, data.draw(st.integers(0, 4), label=".".join(map(str, path))))
    agree(body)


@for_each("kind", COUNTED, ids="/".join)
def test_a_number_of_copies_counts(kind: tuple[str, str]) -> None:
    """The law above is not empty: in a base of each kind, one number changes the GPUs."""
    own = [body for body in BASES.values() if group_kind(body) == kind]
    assert own
    if COUNTED[kind].kept is None:
        assert [agree(body) for body in own] == [0 for _ in own]
        return
    found = {agree(body) for body in own}
    for body in own:
        for path in places(body):
            more = copy.deepcopy(body)
            put(more, path, 4)
            found.add(agree(more))
    by_hand = {documents(base)[0]["kind"] for base, _, _ in EXPECTED}
    assert len(found) > 1 or kind[1] in {*by_hand, *OTHERS}, found


PODS = documents("deployment")[0]["spec"]["template"]
TASKS = {"name": "wide", "template": PODS}
SCALE = "autoscaling.knative.dev"
THREE = {f"{SCALE}/min-scale": "3", f"{SCALE}/max-scale": "3"}
EXPECTED: list[tuple[str, Body, int]] = [
    ("stateful-set", {"spec.replicas": 2}, 16),
    ("stateful-set", {"spec.replicas": 4}, 32),
    ("deployment", {"spec.replicas": 0}, 0),
    ("job", {"spec.parallelism": 3}, 24),
    ("cron-job", {"spec.jobTemplate.spec.parallelism": 3}, 24),
    ("volcano-job", {"spec.tasks[0]": {**TASKS, "replicas": 2}}, 16),
    ("volcano-job", {"spec.tasks[0]": {**TASKS, "replicas": 4}}, 32),
    ("job-set", {"spec.replicatedJobs[0].replicas": 3}, 48),
    ("lws", {"spec.replicas": 3, "spec.leaderWorkerTemplate.size": 2}, 48),
    ("kthena", {"spec.replicas": 3}, 48),
    ("storm-service", {"spec.replicas": 2}, 64),
    ("ray-cluster-fleet", {"spec.replicas": 3}, 72),
    ("dynamo", {"spec.services.decode.replicas": 1}, 16),
    ("nim-service", {"spec.replicas": 2}, 32),
    ("knative-service", {"spec.template.metadata.annotations": THREE}, 24),
    ("knative-configuration", {"spec.template.metadata.annotations": THREE}, 24),
    ("llm-inference-service", {"spec.parallelism.data": 32}, 32),
    ("llm-inference-service", {"spec.replicas": 3}, 48),
    ("disaggregated-set", {"spec.roles[0].spec.leaderWorkerTemplate.workerTemplate": PODS}, 16),
    ("kaito", {"resource.count": 3, "inference": {"template": PODS}}, 24),
]
"""A base, what is changed in it, and its GPUs, counted by hand."""


@for_each(("base", "changes", "gpus"), EXPECTED)
def test_the_gpus_of_all_pods_are_shown(base: str, changes: Body, gpus: int) -> None:
    assert agree(changed(documents(base)[0], changes)) == gpus


def test_an_engine_from_two_to_four_pods_shows_both_numbers() -> None:
    before, after = (changed(documents("stateful-set")[0], {"spec.replicas": n}) for n in (2, 4))
    assert of_the_table(before, after) == (16, 32, 0)


@pytest.mark.property
@law
@given(st.data())
@pytest.mark.parametrize("backend", EMITTERS)
def test_a_component_reports_what_the_budget_counts(backend: str, data: st.DataObject) -> None:
    """The GPUs in a component's outputs are those of the objects that it writes."""
    compiled = compile_serving(data.draw(watched_servings(backend)))
    rows = shape(compiled.plan)
    bodies = [dict(manifest.body) for manifest in compiled.manifests]
    held = {i: found for i, body in enumerate(bodies) if (found := read_demand(body))}
    used, gap = gpus_asked(read_objects(bodies, [""] * len(bodies), held))
    if gap is None and all(row["gpus"] != "?" for row in rows):
        assert gpu_count(rows) == used
    alone = [of_the_table(None, body) for body in bodies]
    assert sum(after for _, after, _ in alone) == used
