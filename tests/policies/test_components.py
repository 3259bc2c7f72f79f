"""Our components: the rows that they register are checked as the pods below them are."""

from typing import Any

import pytest

from kthena_components.compiler.compile import compile_serving
from kthena_components.core.plan.report import shape
from tests.policies.objects import (
    COMPONENT,
    UNKNOWN,
    Args,
    advice,
    container,
    pod,
    refusals,
    silent,
)
from tests.support.specs import ALL, ENGINE_RAY, changed

KINDS = ("ModelServing", "ServingGroup", "Role")


def rows(args: Args) -> Args:
    """Give what a component registers, as far as the pack looks at it."""
    return {"name": args["name"], "shape": shape(compile_serving(args).plan)}


def row(**changes: Any) -> Args:
    """Give a component of one role: two engines of 2 pods × 8 GPUs with tensor 8 × pipeline 2."""
    return {"name": "chat", "shape": [{**rows(ENGINE_RAY)["shape"][0], **changes}]}


@pytest.mark.parametrize("backend", ["native", "kthena"])
@pytest.mark.parametrize("example", [name for name in ALL if not name.startswith(("temp", "gang"))])
def test_a_component_that_was_let_by_is_let_by_again(example: str, backend: str) -> None:
    assert silent(COMPONENT, rows(changed(ALL[example], {"backend": backend})))


def test_roles_that_serve_no_model_are_not_spoken_of() -> None:
    assert silent(COMPONENT, rows(ALL["templates-plain"]))


@pytest.mark.parametrize("kind", KINDS)
def test_rows_whose_ranks_are_not_their_gpus_are_refused(kind: str) -> None:
    assert refusals(f"kthena:index:{kind}", row(tensor=16, world_size=32)) == (
        "shape[0]: engine 'decode' starts tensor 16 × pipeline 2 = 32 ranks, but its 2 pods × 8 "
        "GPUs hold 16. Set pipeline to 1, or set tensor to 8, or give the engine 4 pods. "
        "[world-size-equals-gpus]"
    )


def test_rows_whose_tensor_groups_straddle_pods_are_refused() -> None:
    assert refusals(COMPONENT, row(gpus_per_pod=6, tensor=4, pipeline=3)) == (
        "shape[0]: engine 'decode' has tensor 4 on pods of 6 GPUs, so one tensor group would fill "
        "a part of a pod, and a pod would hold parts of two groups. Set tensor to 3 or 6. "
        "[nodes-whole]"
    )


@pytest.mark.parametrize("field", ["tensor", "pipeline", "data", "gpus_per_pod", "engines", "pods"])
@pytest.mark.parametrize("unknown", ["?", UNKNOWN], ids=["not-read", "preview"])
def test_a_row_with_an_unknown_number_gives_one_line_of_advice(field: str, unknown: str) -> None:
    props = row(**{field: unknown})
    assert refusals(COMPONENT, props) == ""
    said = "known yet" if unknown == UNKNOWN else "known"
    assert advice(COMPONENT, props) == (
        f"shape[0]: engine 'decode' was not checked, because {field} is not {said}. "
        "[world-size-equals-gpus]"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_component_without_rows_or_engines_has_nothing_to_check(kind: str) -> None:
    token = f"kthena:index:{kind}"
    assert silent(token, {})
    assert silent(token, {"shape": []})
    assert silent(token, row(engines=0, pods=0, gpus=0))


def test_other_components_are_not_spoken_of() -> None:
    assert silent("kthena:index:Queue", row(tensor=16))


@pytest.mark.parametrize(
    "command",
    [
        "vllm serve m -tp 4 --prefill-context-parallel-size 2",
        "vllm serve m -tp 8 -dp 4 --data-parallel-rank 1",
        "vllm serve m -tp 2 -dp 4",
    ],
    ids=["context", "copies-elsewhere", "copies"],
)
def test_what_a_template_adds_to_tensor_and_pipeline_is_in_the_rows(command: str) -> None:
    engine = container(gpus="8", command=["sh", "-c", command])
    exporter = container("exporter", gpus="1", image="exporter:1")
    role = {"name": "decode", "entry_template": {"spec": pod(engine, exporter)["spec"]}}
    props = rows({"name": "chat", "roles": [role]})
    assert silent(COMPONENT, props)
    (only,) = props["shape"]
    assert (only["gpus_per_pod"], only["world_size"], only["gpus"]) == (8, 8, 9)
