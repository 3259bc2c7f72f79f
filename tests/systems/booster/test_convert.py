"""A ModelBooster is read back: what `convert` writes for the same backend is the same object."""

import pytest

from kthena_components.compiler.compile import compile_serving
from kthena_components.convert.conversion import Changes
from kthena_components.convert.convert import convert
from tests.support.specs import Args, changed, example_for

ONE, RAY = example_for("booster", "native-8b"), example_for("booster", "engine-ray")
PAIR = example_for("booster", "prefill-decode")
TOKEN = changed(ONE, {"roles[0].hugging_face_token": {"name": "hf"}})
NODES = changed(ONE, {"roles[0].cache": {"host_path": "/models", "download": True}})
WORDS = {"spec": {"containers": [{"name": "engine", "env": [
    {"name": "HF_ENDPOINT", "value": "https://hub.example.com"},
    {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
]}]}}  # fmt: skip
ENV = changed(ONE, {"roles[0].overlay": WORDS})
LMCACHE = changed(
    PAIR, {f"roles[{number}].engine.kv_transfer.connector": "lmcache" for number in (0, 1)}
)
PORT = changed(PAIR, {f"roles[{number}].engine.kv_transfer.port": 7000 for number in (0, 1)})
ARGS = {
    "one": ONE, "ray": RAY, "token": TOKEN, "nodes": NODES, "variables": ENV,
    "pair": PAIR, "lmcache": LMCACHE, "port": PORT,
}  # fmt: skip


@pytest.mark.parametrize("args", ARGS.values(), ids=list(ARGS))
def test_what_is_written_comes_back(args: Args) -> None:
    body = compile_serving(args).manifests[0].body
    (part,) = convert([body], Changes(target="booster")).servings
    assert part.compiled.manifests[0].body == body


def test_the_keys_of_a_secret_are_lost_for_another_backend() -> None:
    body = compile_serving(TOKEN).manifests[0].body
    (part,) = convert([body], Changes(target="kthena")).servings
    assert "Secret/hf" in {loss.name for loss in part.losses}
    (role,) = part.args["roles"]
    assert role["hugging_face_token"] == {"name": "hf"}
    assert role["cache"] == {"claim": "models", "download": True}


@pytest.mark.parametrize("args", [PAIR, LMCACHE, PORT], ids=["nixl", "lmcache", "port"])
def test_the_connector_of_a_pair_becomes_an_argument(args: Args) -> None:
    body = compile_serving(args).manifests[0].body
    (part,) = convert([body], Changes(target="kthena")).servings
    found = {role["name"]: role["engine"] for role in part.args["roles"]}
    for role in args["roles"]:
        assert found[role["name"]]["kv_transfer"] == role["engine"]["kv_transfer"]
        assert "--kv-transfer-config" not in found[role["name"]].get("extra_args", [])
