"""A ModelBooster is read back: what `convert` writes for the same backend is the same object."""

import pytest

from kthena_components.compiler.changes import Changes
from kthena_components.compiler.compile import compile_serving
from kthena_components.compiler.convert import convert
from tests.support.specs import Args, changed, example_for

ONE, RAY = example_for("booster", "native-8b"), example_for("booster", "engine-ray")
TOKEN = changed(ONE, {"roles[0].hugging_face_token": {"name": "hf"}})
NODES = changed(ONE, {"roles[0].cache": {"host_path": "/models", "download": True}})


@pytest.mark.parametrize("args", [ONE, RAY, TOKEN, NODES], ids=["one", "ray", "token", "nodes"])
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
