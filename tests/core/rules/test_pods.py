"""Tokens in what a user writes of an engine. What manifests hold is in cases/."""

import pytest

from kthena_components.compiler.compile import compile_serving
from kthena_components.core.findings import SpecError
from tests.support.specs import ENGINE_RAY, Args, changed

TOKEN = "hf_" + "aB3" * 11


@pytest.mark.parametrize(
    ("overlay", "path"),
    [
        (
            {"spec": {"containers": [{"name": "engine", "env": [{"name": "X", "value": TOKEN}]}]}},
            "roles[0].overlay",
        ),
        (None, "roles[0].engine.extra_args"),
    ],
    ids=["overlay", "extra-args"],
)
def test_a_token_of_an_engine_is_refused_where_the_user_wrote_it(
    overlay: Args | None, path: str
) -> None:
    change = {"roles[0].overlay": overlay} if overlay else {}
    words = [] if overlay else ["--hf-token", TOKEN]
    args = changed(ENGINE_RAY, {**change, "roles[0].engine.extra_args": words})
    with pytest.raises(SpecError) as refused:
        compile_serving(args)
    (finding,) = refused.value.findings
    assert (finding.path, finding.rule) == (path, "hf-token-from-secret")
    assert TOKEN not in str(refused.value)
