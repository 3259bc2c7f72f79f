"""Answers: their order, their memory, and what they say of shapes that do not fit."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.sizing import mistakes_of, questions
from kthena_components.compiler.compile import compile_serving
from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.hardware import Gpu, GpuFacts
from kthena_components.core.hardware.gpu_table import find_gpu
from kthena_components.core.memory.engine import EngineOnGpu, engines_on_gpu
from kthena_components.core.memory.estimate import Estimate, Verdict, estimate_of
from kthena_components.core.models import ModelShape, find_model
from kthena_components.core.plan.facts import facts_from_plan
from kthena_components.core.spec.enums import EngineKind
from kthena_components.core.values.unknown import Unknown
from kthena_components.sizing import Question, Row, find_shapes
from kthena_components.sizing.question_and_shapes import newest_image

DRAWN = list(questions(7, 60))


def question(model: str, gpu: str, **asked: object) -> Question:
    shape, found = find_model(model), find_gpu(gpu)
    assert isinstance(shape, ModelShape)
    assert isinstance(found, Gpu)
    stated = Question(
        model=shape,
        gpu=GpuFacts(name=found.name, memory_gib=found.memory_gib),
        image=newest_image(EngineKind.VLLM),
    )
    return replace(stated, **asked)  # type: ignore[arg-type]


def compiled_facts(asked: Question, row: Row) -> ServingFacts:
    facts = facts_from_plan(compile_serving(asked.args(row.shape)).plan)
    (engine,) = facts.engines
    entry = replace(engine.entry, gpu=asked.gpu, shape=asked.model)
    return replace(facts, engines=(replace(engine, entry=entry),))


def sizes(row: Row | None) -> str:
    return row.shape.title if row else "none"


@pytest.mark.property
@settings(max_examples=6, deadline=None)
@given(st.sampled_from(DRAWN))
def test_rows_are_cheapest_first_and_within_the_nodes(drawn: Question) -> None:
    answer = find_shapes(drawn)
    gpus = [row.gpus for row in answer.rows]
    assert gpus == sorted(gpus)
    for row in answer.rows:
        assert row.nodes <= drawn.nodes
        assert row.gpus <= drawn.nodes * drawn.gpus_per_node
        assert row.at_once is None or row.engines * row.at_once >= (drawn.requests or 1)
    assert bool(answer.rows) or answer.impossible
    assert answer.smallest is None or not answer.rows


STEP_ON_AMD = question(
    "stepfun-ai/Step-3.7-Flash",
    "mi325x",
    resource="amd.com/gpu",
    nodes=1,
    image=newest_image(EngineKind.VLLM, "amd.com/gpu"),
)


def cache_left(placed: EngineOnGpu) -> float:
    """Return GiB of cache: what is left, or without the doubtful terms if nothing is."""
    estimate = estimate_of(placed)
    left = placed.left or 0
    if left > 0 or isinstance(estimate, Unknown):
        return max(left, 0)
    return max(left + estimate.doubt, 0)


def test_the_memory_of_a_row_is_that_of_its_compiled_serving() -> None:
    doubtful = 0
    for asked in [*DRAWN, STEP_ON_AMD]:
        for row in find_shapes(asked).rows:
            ((_, placed),) = engines_on_gpu(compiled_facts(asked, row))
            assert isinstance(placed, EngineOnGpu)
            assert (row.weights, row.cache) == (placed.loaded, cache_left(placed))
            estimate = estimate_of(placed)
            known = isinstance(estimate, Estimate)
            if row.doubt is None and known:
                assert row.cache == placed.left
            doubtful += row.cache != placed.left and known
            assert isinstance(estimate, Unknown) or estimate.verdict is (
                Verdict.TIGHT if row.doubt else Verdict.FITS
            )
    assert doubtful


@pytest.mark.property
@settings(max_examples=4, deadline=None)
@given(st.sampled_from(DRAWN))
def test_a_larger_gpu_never_needs_more_of_them(drawn: Question) -> None:
    larger = replace(drawn, gpu=replace(drawn.gpu, memory_gib=drawn.gpu.memory_gib * 2))
    few, many = find_shapes(larger).rows, find_shapes(drawn).rows
    if many:
        assert few[0].gpus <= many[0].gpus


def test_every_row_is_what_the_compiler_and_check_accept() -> None:
    taken: Counter[str] = Counter()
    found = [
        mistake
        for drawn in questions(1, 10)
        for mistake in mistakes_of(drawn, find_shapes(drawn), taken)
    ]
    assert found == []
    assert min(taken[name] for name in ("native", "kthena", "lws", "kserve", "kaito")) > 0


def test_tensor_stays_inside_a_node_and_pipeline_spans_nodes() -> None:
    answer = find_shapes(question("meta-llama/Llama-3.1-405B-Instruct-FP8", "h100",
                                  context=32768, requests=40))  # fmt: skip
    assert sizes(answer.recommended) == "8 × 2 × 1 on 2 × 8"


def test_a_shape_in_doubt_is_shown_and_not_recommended() -> None:
    answer = find_shapes(question("meta-llama/Llama-3.3-70B-Instruct", "h100", nodes=1,
                                  context=32768))  # fmt: skip
    first = answer.rows[0]
    assert first.doubt is not None
    assert answer.recommended is not None
    assert answer.recommended.doubt is None
    assert answer.recommended.gpus > first.gpus


def test_copies_of_a_cache_are_counted() -> None:
    answer = find_shapes(question("deepseek-ai/DeepSeek-V3", "h200", nodes=1))
    copies = {row.shape.title: row.copies for row in answer.rows}
    assert copies["8 × 1 × 1 on 1 × 8"] == 8
    assert copies["8 × 1 × 1 on 1 × 8, experts whole, decode context 8"] == 1
    assert copies["1 × 1 × 8 on 1 × 8, experts whole"] == 1


def test_a_shape_that_a_rule_refuses_names_the_rule() -> None:
    sglang = {"engine": EngineKind.SGLANG, "image": newest_image(EngineKind.SGLANG)}
    model = "Qwen/Qwen3-235B-A22B-Instruct-2507-FP8"
    answer = find_shapes(question(model, "h200", nodes=1, **sglang))
    refused = {one.shape.title: one.rule for one in answer.impossible}
    assert refused["1 × 1 × 1 on 1 × 1"] == "memory-weights-fit"
    assert refused["8 × 1 × 1 on 1 × 8"] == "fp8-block-multiple"
    # Whole experts are not cut, so the same sizes fit.
    assert "8 × 1 × 1 on 1 × 8, experts whole" in {row.shape.title for row in answer.rows}


def test_a_model_that_no_single_gpu_holds_is_compared_all_the_same() -> None:
    answer = find_shapes(question("moonshotai/Kimi-K2-Instruct-0905", "gb300", gpus_per_node=4))
    assert answer.rows


def test_without_a_shape_the_smallest_engine_that_would_do_is_named() -> None:
    answer = find_shapes(question("meta-llama/Llama-3.1-405B-Instruct", "h100", nodes=1))
    assert answer.rows == ()
    assert answer.smallest is not None
    assert answer.smallest.nodes > 1
    again = find_shapes(question("meta-llama/Llama-3.1-405B-Instruct", "h100",
                                 nodes=answer.smallest.nodes))  # fmt: skip
    assert answer.smallest in again.rows


def test_requests_that_the_nodes_do_not_hold_need_more_nodes() -> None:
    asked = question("meta-llama/Llama-3.1-8B-Instruct", "l4", nodes=1, requests=100)
    answer = find_shapes(asked)
    assert answer.rows == ()
    assert any("need" in one.seen and not one.rule for one in answer.impossible)
    assert answer.smallest is not None
    assert (answer.smallest.requests or 0) >= 100


def test_a_model_without_a_size_of_its_weights_is_not_compared() -> None:
    asked = question("Qwen/Qwen3-8B", "h100")
    answer = find_shapes(replace(asked, model=replace(asked.model, weights_gib=None)))
    assert (answer.rows, answer.impossible) == ((), ())
    assert "size of the weights" in answer.not_checked


def test_a_shape_without_any_cache_is_no_row() -> None:
    """Kimi-K2 with a copy of its attention on each of 16 H100 leaves nothing for the cache."""
    answer = find_shapes(question("moonshotai/Kimi-K2-Instruct", "h100", nodes=3))
    assert all(row.cache > 0 and row.tokens for row in answer.rows)
    assert any(one.shape.data == 16 and one.rule for one in answer.impossible)


def test_where_nothing_fits_the_longest_request_is_known() -> None:
    answer = find_shapes(question("meta-llama/Llama-4-Scout-17B-16E-Instruct", "h100", nodes=1))
    longest = max(one.longest for one in answer.impossible)
    shorter = find_shapes(question("meta-llama/Llama-4-Scout-17B-16E-Instruct", "h100", nodes=1,
                                   context=longest))  # fmt: skip
    assert answer.rows == ()
    assert shorter.recommended is not None
    assert shorter.recommended.doubt is None


def test_more_requests_than_the_nodes_hold_name_the_nodes_that_would() -> None:
    asked = question("Qwen/Qwen3-8B", "h100", nodes=2, context=8192, requests=100000)
    answer = find_shapes(asked)
    assert answer.smallest is not None
    assert find_shapes(replace(asked, nodes=answer.smallest.nodes)).rows


def test_sglang_may_reject_long_requests_where_that_is_not_certain() -> None:
    """Weights in FP4 may grow on Hopper, by more than its cache has beside a request."""
    answer = find_shapes(
        question(
            "nvidia/Kimi-K2.5-NVFP4", "h200", nodes=1,
            engine=EngineKind.SGLANG, image="lmsysorg/sglang:v0.5.16",
        )
    )  # fmt: skip
    (row,) = (one for one in answer.rows if sizes(one) == "8 × 1 × 1 on 1 × 8")
    assert row.doubt is not None
    assert "may reject the longest requests" in row.doubt.seen
