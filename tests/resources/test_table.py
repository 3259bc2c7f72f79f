"""A program shows the sizes of its servings once, however many components it has."""

import pulumi

from kthena_components.core.plan.report import render_rows
from kthena_components.resources._compiled import describe_serving
from tests.resources.build import late, queue, role, serving
from tests.support.recorder import Recorded, record
from tests.support.specs import ENGINE_RAY

NAMELESS = {key: value for key, value in ENGINE_RAY.items() if key != "name"}


def tables(seen: Recorded) -> list[str]:
    return [text for _, text, _ in seen.logs if "TP × PP × DP" in text]


def test_a_program_has_one_table_of_all_its_servings() -> None:
    def program() -> None:
        serving(NAMELESS, name="one")
        serving(NAMELESS | {"namespace": late("apart")}, name="two")
        queue({"weight": 1})

    (table,) = tables(record(program, preview=True))
    made = [describe_serving({**NAMELESS, "name": name}) for name in ("one", "two")]
    rows = [row for one in made for row in one.inputs["shape"]]
    pods, gpus = (2 * made[0].outputs[key] for key in ("pod_count", "gpu_count"))
    assert table == f"2 servings, {pods} pods, {gpus} GPUs:\n{render_rows(rows)}"


def test_a_component_that_comes_later_has_a_table_with_the_totals_so_far() -> None:
    def program() -> None:
        def later(name: str) -> str:
            serving(NAMELESS, name=name)
            return name

        serving(NAMELESS, name="one")
        pulumi.Output.from_input("two").apply(later)

    first, second = tables(record(program))
    assert first.startswith("1 serving, ")
    assert second.startswith("2 servings, ")
    assert " so far:\n" in second
    assert "one " not in second


def test_a_program_without_servings_has_no_table() -> None:
    assert tables(record(lambda: queue({"weight": 1}))) == []


def test_a_standalone_role_is_counted() -> None:
    alone = {**ENGINE_RAY["roles"][0], "serving": "chat"}
    del alone["name"]
    (table,) = tables(record(lambda: role(alone)))
    assert "decode" in table
