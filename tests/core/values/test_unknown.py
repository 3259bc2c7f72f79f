"""Values that only the deployment knows: how they are told from the others."""

import pytest

from kthena_components.core.values.read import mapping, unknown_in, unknown_within
from kthena_components.core.values.unknown import Unknown, is_known, is_unresolved
from tests.support.strategies import LATE, PREVIEW_UNKNOWN


@pytest.mark.parametrize(
    "text", [LATE, f"docker.io/{LATE}:v1", PREVIEW_UNKNOWN], ids=["output", "inside", "preview"]
)
def test_an_output_is_late_wherever_it_stands_in_a_text(text: str) -> None:
    assert is_unresolved(text)


@pytest.mark.parametrize(
    "value",
    ["", "vllm", "\ue000x\ue001", "\ue0001", f"a{PREVIEW_UNKNOWN}", None, 3, [LATE], {LATE: LATE}],
    ids=["empty", "text", "no-number", "open", "longer", "null", "number", "list", "mapping"],
)
def test_nothing_else_is_late(value: object) -> None:
    assert not is_unresolved(value)


def test_an_unknown_value_says_why() -> None:
    assert is_known(0)
    assert not is_known(Unknown("it is an output"))
    assert Unknown("it is an output").because == "it is an output"


def test_a_map_that_is_not_known_is_unknown_wherever_it_is() -> None:
    late = mapping(LATE)
    assert unknown_within(late) == unknown_within({"a": [late]}) == unknown_in(LATE)
    assert unknown_within({"a": [{}]}) is None
