"""Laws of the readers of other systems: nothing that a manifest holds makes one raise."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kthena_components.checker.manifest import check_manifest, read_manifest
from tests.rules.cases import documents
from tests.support import groups
from tests.support.for_each import for_each
from tests.support.peers import (
    ISVC,
    LWS_SGLANG,
    LWS_VLLM,
    MODEL_INFER,
    RUNTIME,
    disaggregated,
    ds_role,
    gpus,
    isvc,
    llm,
)
from tests.support.strategies import damaged, json_trees

GOOD = (
    LWS_VLLM,
    LWS_SGLANG,
    disaggregated(ds_role("prefill"), ds_role("decode"), slices=2),
    MODEL_INFER,
    ISVC,
    isvc(8, 2, 8, 8),
    isvc(8, 2, changes={"spec/predictor/model/resources": gpus(8)}),
    RUNTIME,
    llm({"tensor": 8}),
    *(documents(name)[0] for name in ("raycluster", "rayservice", "booster", "release")),
    llm({"tensor": 1, "data": 16, "dataLocal": 8}, worker=True, prefill={"parallelism": {}}),
    *groups.GOOD,
)
fuzz = settings(max_examples=150, deadline=None)


def judge(body: dict[str, Any]) -> None:
    for finding in check_manifest(body):
        assert str(finding)


@pytest.mark.property
@fuzz
@given(st.sampled_from(GOOD), st.data())
def test_any_damage_is_checked(body: dict[str, Any], data: st.DataObject) -> None:
    judge(data.draw(damaged(body)))


@pytest.mark.property
@fuzz
@given(
    st.sampled_from(GOOD),
    st.fixed_dictionaries({}, optional=dict.fromkeys(("metadata", "spec", "values"), json_trees())),
)
def test_any_tree_under_these_kinds_is_checked(body: dict[str, Any], tree: dict[str, Any]) -> None:
    judge({"apiVersion": body["apiVersion"], "kind": body["kind"], **tree})


@for_each("body", GOOD)
def test_one_reader_takes_a_kind(body: dict[str, Any]) -> None:
    identity = {key: body[key] for key in ("apiVersion", "kind")}
    assert read_manifest(identity) is not None
    assert read_manifest(body) is not None
