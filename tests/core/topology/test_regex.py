"""Node patterns: Volcano looks for them anywhere in a node's name."""

import pytest

from kthena_components.core.findings import Finding, Level
from kthena_components.core.topology.spec import HyperNodeTopologySpec, check_topology


def findings(pattern: str) -> list[Finding]:
    entry = {"name": "rack", "tier": 1, "node_regex": pattern}
    return check_topology(HyperNodeTopologySpec.model_validate({"hyper_nodes": [entry]}))


@pytest.mark.parametrize(
    "pattern",
    [
        "^gpu-a-[0-9]+$",
        "^(?:a|b)$",
        "^a$|^b$",
        "^gpu-[a|b]$",
        "^a\\|b$",
        "^(x(y|z)|w)-[[:digit:]]$",
        "^gpu-[^]|]$",
    ],
)
def test_a_pattern_with_anchors_around_every_alternative_is_accepted(pattern: str) -> None:
    assert findings(pattern) == []


@pytest.mark.parametrize(
    ("pattern", "better"),
    [
        ("gpu-a-", "^gpu-a-$"),
        ("^gpu-a-", "^gpu-a-$"),
        ("gpu-a$", "^gpu-a$"),
        ("^a|b$", "^(?:a|b)$"),
        ("^gpu\\$", "^gpu\\$$"),
        ("^gpu[$]", "^gpu[$]$"),
    ],
    ids=["bare", "no-end", "no-start", "anchors-of-halves", "escaped-end", "end-in-a-class"],
)
def test_a_pattern_without_anchors_is_refused(pattern: str, better: str) -> None:
    assert "\n".join(map(str, findings(pattern))) == (
        f"hyper_nodes[0].node_regex: '{pattern}' does not reach from ^ to $ in every alternative, "
        f"but Volcano finds a pattern anywhere in a node's name. Write '{better}', with .* where "
        "any string may be. [hypernode-node-regex]"
    )
    assert findings(better) == []


@pytest.mark.parametrize(
    ("pattern", "part"),
    [("^(?!gpu-0)gpu-.*$", "(?!"), ("^(?<=a)b$", "(?<="), ("^(a|b)-\\1$", "\\1")],
    ids=["look-ahead", "look-behind", "back-reference"],
)
def test_a_pattern_that_go_does_not_have_is_refused(pattern: str, part: str) -> None:
    assert "\n".join(map(str, findings(pattern))) == (
        f"hyper_nodes[0].node_regex: '{pattern}' contains '{part}': Go has no look-around and no "
        "back-references. Write the pattern without it, or list the nodes. [hypernode-node-regex]"
    )


def test_a_pattern_that_only_python_cannot_read_gets_advice() -> None:
    (finding,) = findings("^gpu-\\pN$")
    assert finding.level is Level.ADVISORY
    assert str(finding) == (
        "hyper_nodes[0].node_regex: Go reads '^gpu-\\pN$' and Python does not (bad escape \\p at "
        "position 5), so its nodes are not checked. Write it so that both can read it, or list the "
        "nodes. [hypernode-node-regex]"
    )
