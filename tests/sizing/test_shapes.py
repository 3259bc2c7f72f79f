"""The shapes that are looked at: whole engines, each once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kthena_components.core.models import ModelShape, known_models
from kthena_components.sizing.question_and_shapes import Shape, pod_counts, shapes_on
from tests.support.strategies import law

NODES = st.sampled_from([1, 2, 4, 6, 8, 16])
MODELS = st.sampled_from(list(known_models()))


def shapes(pods: int, node: int, model: ModelShape, *, everything: bool = True) -> list[Shape]:
    divides = lambda size: model.heads % size == 0  # noqa: E731 - short
    found = shapes_on(pods, node, model, divides, has_data=everything, has_decode=everything)
    return list(found)


@pytest.mark.property
@law
@given(st.integers(1, 8), NODES, MODELS)
def test_each_shape_uses_all_its_gpus_and_appears_once(
    pods: int, node: int, model: ModelShape
) -> None:
    found = shapes(pods, node, model)
    assert len(set(found)) == len(found) > 0
    for shape in found:
        assert shape.tensor * shape.pipeline * shape.data == shape.gpus
        assert shape.tensor % shape.decode_context == 0
        assert not (shape.expert and model.experts == 0)
        assert shape.data == 1 or not shape.spans_pods


@pytest.mark.property
@law
@given(st.integers(2, 8), NODES, MODELS)
def test_several_pods_have_whole_nodes(pods: int, node: int, model: ModelShape) -> None:
    assert {shape.gpus_per_pod for shape in shapes(pods, node, model)} == {node}


@pytest.mark.property
@law
@given(st.integers(1, 8), NODES, MODELS)
def test_an_engine_without_them_gets_no_copies_and_no_shared_tokens(
    pods: int, node: int, model: ModelShape
) -> None:
    found = shapes(pods, node, model, everything=False)
    assert {(shape.data, shape.decode_context) for shape in found} == {(1, 1)}


def test_pods_are_counted_one_by_one_and_then_doubled() -> None:
    assert list(pod_counts(40)) == [1, 2, 3, 4, 5, 6, 7, 8, 16, 32]
    assert list(pod_counts(3)) == [1, 2, 3]
