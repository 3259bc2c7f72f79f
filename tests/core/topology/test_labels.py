"""Labels in a topology: those of a HyperNode, and those by which it finds its nodes."""

from typing import Any

import pytest

from kthena_components.core.findings import SpecError
from kthena_components.core.spec.parse import parse_spec
from kthena_components.core.topology.spec import HyperNodeTopologySpec, TopologyPlan, build_topology
from kthena_components.core.values.unknown import OUTPUT_CLOSE, OUTPUT_OPEN

LATE = f"{OUTPUT_OPEN}7{OUTPUT_CLOSE}"
FIELDS = ("labels", "node_labels")


def planned(field: str, value: str) -> TopologyPlan:
    entry: dict[str, Any] = {"name": "rack", "tier": 1, "node_labels": {"rack": "a"}}
    data = {"hyper_nodes": [entry | {field: {"rack": value}}]}
    return build_topology(parse_spec(HyperNodeTopologySpec, data))


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("value", ["", "a", "A_b.c-1", "v" * 63, LATE, f"rack-{LATE}"])
def test_a_label_value_may_be_legal_or_come_late(field: str, value: str) -> None:
    (entry,) = planned(field, value).hyper_nodes
    assert getattr(entry, field) == {"rack": value}


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("value", ["a b", "-a", "a.", "a/b"])
def test_a_label_value_that_no_object_can_have_is_refused(field: str, value: str) -> None:
    with pytest.raises(SpecError) as caught:
        planned(field, value)
    assert str(caught.value) == (
        f"hyper_nodes[0].{field}.rack: is '{value}', but must be letters, digits, '-', '_' and "
        "'.', with a letter or digit at both ends. Write such a value. [pattern]"
    )


@pytest.mark.parametrize("field", FIELDS)
def test_a_label_value_of_64_characters_is_refused(field: str) -> None:
    with pytest.raises(SpecError, match=r"is 64 characters long; at most 63 are allowed"):
        planned(field, "v" * 64)
