"""Values of a topology that only the deployment will know."""

from typing import Any

from kthena_components.core.findings import Level
from kthena_components.core.topology.spec import (
    HyperNodeTopologySpec,
    build_topology,
    check_topology,
)
from kthena_components.core.values.unknown import OUTPUT_CLOSE, OUTPUT_OPEN

LATE = f"{OUTPUT_OPEN}7{OUTPUT_CLOSE}"
RACK = {"name": "rack", "tier": 1, "nodes": ["n"]}


def topology(*entries: dict[str, Any]) -> HyperNodeTopologySpec:
    return HyperNodeTopologySpec.model_validate({"hyper_nodes": list(entries)})


def said(*entries: dict[str, Any]) -> str:
    return "\n".join(str(finding) for finding in check_topology(topology(*entries)))


def test_a_name_that_comes_late_is_refused() -> None:
    assert said({"name": LATE, "tier": 1, "nodes": ["n"]}) == (
        "hyper_nodes[0].name: the value is known only after the deployment, but parents list their "
        "children by name. Write it as plain text. [known-when-planned]"
    )


def test_a_child_that_comes_late_is_refused() -> None:
    assert said(RACK, {"name": "spine", "tier": 2, "children": ["rack", LATE]}) == (
        "hyper_nodes[1].children[1]: the value is known only after the deployment, but children "
        "are found by name. Write it as plain text. [known-when-planned]"
    )


def test_a_node_or_pattern_that_comes_late_is_not_checked() -> None:
    entries = (RACK | {"nodes": [LATE]}, {"name": "b", "tier": 1, "node_regex": LATE})
    assert said(*entries).splitlines() == [
        f"{path}: not checked, because the value is known only after the deployment. "
        "[hypernode-late-value]"
        for path in ("hyper_nodes[0].nodes[0]", "hyper_nodes[1].node_regex")
    ]
    assert {finding.level for finding in check_topology(topology(*entries))} == {Level.UNKNOWN}


def test_what_is_not_checked_stops_no_plan() -> None:
    plan = build_topology(topology(RACK | {"nodes": [LATE, "n"]}))
    assert plan.hyper_nodes[0].nodes == [LATE, "n"]
