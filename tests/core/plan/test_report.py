"""Reports: rows and a table of what is deployed, and the facts read back from the rows."""

from typing import Any

import pytest
from hypothesis import given

from kthena_components.compiler.compile import compile_serving
from kthena_components.core.findings import Level
from kthena_components.core.plan.facts import facts_from_plan
from kthena_components.core.plan.report import gpu_count, read_shape, render_rows, shape
from kthena_components.core.plan.serving_plan import ServingPlan
from kthena_components.core.rules.registry import run_checks
from tests.support.specs import (
    DATA_PARALLEL,
    ENGINE_RAY,
    GUIDE,
    PREFILL_DECODE,
    SGLANG,
    TEMPLATES_PLAIN,
    Args,
    changed,
)
from tests.support.strategies import LATE, json_trees, law

TENSOR = "roles[0].entry_template.spec.containers[0].command[2]"


def plan(args: Args, changes: Args | None = None) -> ServingPlan:
    return compile_serving(changed(args, changes)).plan


def test_a_row_counts_over_all_groups() -> None:
    assert shape(plan(ENGINE_RAY)) == [
        {
            "serving": "chat",
            "namespace": "serving",
            "role": "decode",
            "backend": "native",
            "groups": 2,
            "engines": 2,
            "pods": 4,
            "gpus_per_pod": 8,
            "tensor": 8,
            "pipeline": 2,
            "data": 1,
            "world_size": 16,
            "gpus": 32,
        }
    ]


def test_what_is_not_known_is_a_question_mark() -> None:
    (row,) = shape(plan(GUIDE, {TENSOR: f"vllm serve m --port 8080 -tp {LATE} -pp 2"}))
    assert (row["tensor"], row["pipeline"], row["world_size"]) == ("?", 2, "?")
    assert row["gpus"] == 32


def test_pods_that_serve_no_model_have_no_parallelism() -> None:
    (row, _) = shape(plan(TEMPLATES_PLAIN))
    assert {row[key] for key in ("tensor", "pipeline", "data", "world_size")} == {"?"}
    assert row["gpus"] == 0


def test_gpus_that_are_not_known_are_left_out_of_the_sum() -> None:
    assert gpu_count([{"gpus": 8}, {"gpus": "?"}, {"gpus": 4}]) == 12


@pytest.mark.parametrize(
    "args",
    [ENGINE_RAY, PREFILL_DECODE, SGLANG, DATA_PARALLEL, GUIDE],
    ids=lambda args: args["name"],
)
def test_rows_read_back_as_the_facts_that_they_came_from(args: Args) -> None:
    made = plan(args)
    read = read_shape({"name": made.name, "shape": shape(made)})
    assert read.name == made.name
    for engine, own in zip(read.engines, facts_from_plan(made).engines, strict=True):
        assert (engine.name, engine.pods, engine.entry.gpus) == (own.name, own.pods, own.entry.gpus)
        assert engine.entry.command is not None
        assert own.entry.command is not None
        assert engine.entry.command.world == own.entry.command.world


def test_rows_of_what_is_right_have_nothing_against_them() -> None:
    rows = {"name": "chat", "shape": shape(plan(ENGINE_RAY))}
    assert [f for f in run_checks(read_shape(rows)) if f.level is Level.MANDATORY] == []


def test_rows_that_do_not_add_up_are_refused() -> None:
    rows = [{**row, "tensor": 4} for row in shape(plan(ENGINE_RAY))]
    (finding,) = run_checks(read_shape({"name": "chat", "shape": rows}))
    assert finding.path == "shape[0]"
    assert finding.seen == (
        "engine 'decode' starts tensor 4 × pipeline 2 = 8 ranks, but its 2 pods × 8 GPUs hold 16"
    )


def test_numbers_may_come_as_policies_see_them() -> None:
    rows = [
        {key: float(value) if isinstance(value, int) else value for key, value in row.items()}
        for row in shape(plan(ENGINE_RAY))
    ]
    read = read_shape({"name": "chat", "shape": rows})
    assert read == read_shape({"name": "chat", "shape": shape(plan(ENGINE_RAY))})


@pytest.mark.property
@law
@given(json_trees())
def test_whatever_stands_in_the_rows_is_checked(tree: Any) -> None:
    (row,) = shape(plan(ENGINE_RAY))
    run_checks(read_shape({"name": tree, "shape": tree}))
    for key in row:
        run_checks(read_shape({"shape": [{**row, key: tree}]}))


def test_the_table_has_a_line_for_each_role_and_the_total() -> None:
    table = render_rows([*shape(plan(ENGINE_RAY)), *shape(plan(PREFILL_DECODE))], "github")
    head, _, *rows = [[c.strip() for c in line.split("|")[1:-1]] for line in table.splitlines()]
    columns = "serving role groups engines pods GPUs/pod TP × PP × DP world GPUs backend"
    assert " ".join(head) == columns
    assert rows == [
        ["chat", "decode", "2", "2", "4", "8", "8 × 2 × 1", "16", "32", "native"],
        ["split", "prefill", "1", "2", "8", "8", "8 × 4 × 1", "32", "64", "native"],
        ["split", "decode", "1", "1", "3", "8", "8 × 3 × 1", "24", "24", "native"],
        ["total", "", "", "", "15", "", "", "", "120", ""],
    ]
