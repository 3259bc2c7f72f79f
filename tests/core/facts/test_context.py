"""What travels with the pods of an object, and how it is found again."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kthena_components.checker.manifest import check_manifest, read_manifest
from kthena_components.core.facts.context import (
    MODEL_CONFIG,
    NO_CONTEXT,
    Context,
    gather,
    in_object,
)
from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.models import ModelShape
from kthena_components.core.values.unknown import OUTPUT_CLOSE, OUTPUT_OPEN
from tests.support.specs import ALL
from tests.support.strategies import damaged
from tests.systems.test_reader_laws import GOOD

Json = dict[str, Any]
CONFIG = {"num_attention_heads": 6, "num_hidden_layers": 4, "intermediate_size": 100}
SHAPE = ModelShape(name="own", heads=6, kv_heads=6, layers=4, experts=0, source="a test")
MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"TP": "8"}}
AROUND = Context(config_maps=gather([MAP]), shapes={"own": SHAPE})
HEADS = "splits 6 attention heads over tensor 8"


def deployment(model: str = "own", on: str = "", pods: str = "") -> Json:
    def noted(text: str) -> Json:
        return {"name": "a", "annotations": {MODEL_CONFIG: text}} if text else {"name": "a"}

    engine = {"name": "e", "command": ["vllm", "serve", model, "-tp", "8"]}
    template = {"metadata": noted(pods), "spec": {"containers": [engine]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": noted(on),
        "spec": {"template": template},
    }


def heads(body: Json, around: Context = AROUND) -> str:
    found = check_manifest(body, context=around)
    return "; ".join(f.seen for f in found if f.rule == "tp-divides-heads")


@pytest.mark.parametrize(
    "body",
    [
        deployment(),
        deployment("other", on=json.dumps(CONFIG)),
        deployment("other", pods=json.dumps(CONFIG)),
        deployment("meta-llama/Llama-3.1-8B", pods=json.dumps(CONFIG)),
        deployment("other", on=json.dumps({"num_hidden_layers": 1}), pods=json.dumps(CONFIG)),
    ],
)
def test_a_stated_shape_is_checked(body: Json) -> None:
    assert HEADS in heads(body)


@pytest.mark.parametrize(
    ("text", "because"),
    [
        ("{", f"its annotation {MODEL_CONFIG} is not a JSON object"),
        ("[]", f"its annotation {MODEL_CONFIG} is not a JSON object"),
        ("[" * 99999, f"its annotation {MODEL_CONFIG} is not a JSON object"),
        ("{}", "its config.json states no num_attention_heads"),
        (f"{OUTPUT_OPEN}1{OUTPUT_CLOSE}", f"its annotation {MODEL_CONFIG} is not known yet"),
    ],
    ids=["broken", "list", "deep", "empty", "late"],
)
def test_a_shape_that_cannot_be_read_says_why(text: str, because: str) -> None:
    assert heads(deployment(on=text)) == f"engine 'a' was not checked, because {because}"


def test_every_kind_with_pods_is_given_the_shape_of_its_object() -> None:
    for body in GOOD:
        metadata = {**body.get("metadata", {}), "annotations": {MODEL_CONFIG: json.dumps(CONFIG)}}
        facts = read_manifest({**body, "metadata": metadata})
        assert facts is None or all(e.entry.shape is not None for e in facts.engines), body["kind"]


def test_nothing_is_added_where_nothing_would_be_looked_up() -> None:
    assert in_object(NO_CONTEXT, deployment()) is NO_CONTEXT
    assert in_object(AROUND, {"metadata": {"namespace": "serving"}}).namespace == "serving"


def test_an_object_is_not_changed_and_says_the_same() -> None:
    for body in GOOD:
        before = copy.deepcopy(body)
        assert read_manifest(body, context=AROUND) == read_manifest(body)
        assert check_manifest(body, context=AROUND) == check_manifest(body)
        assert body == before


@pytest.mark.property
@given(st.sampled_from(GOOD), st.data())
def test_any_damage_is_checked_with_surroundings(body: Json, data: st.DataObject) -> None:
    broken = data.draw(damaged(body))
    assert check_manifest(broken, context=AROUND) == check_manifest(broken)


def test_a_serving_says_the_shape_that_its_engine_was_given() -> None:
    from kthena_components.compiler.compile import compile_serving  # noqa: PLC0415

    args = copy.deepcopy(dict(ALL["engine-ray"]))
    args["roles"][0]["engine"] |= {
        "hf_config": {**CONFIG, "num_attention_heads": 64, "intermediate_size": 128, "x": 1}
    }
    compiled = compile_serving({**args, "backend": "kthena"})
    assert not [f for f in compiled.findings if "not in the table" in f.seen]
    (facts,) = (f for m in compiled.manifests if (f := read_manifest(m.body)) is not None)
    assert isinstance(facts, ServingFacts)
    shape = facts.engines[0].entry.shape
    assert isinstance(shape, ModelShape)
    assert (shape.heads, shape.layers, shape.ffn) == (64, 4, 128)
