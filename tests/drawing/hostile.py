"""Names that no cluster has, and that an inventory written by somebody else may have."""

from dataclasses import replace

from kthena_components.drawing.from_outcomes_and_servings import picture_of
from kthena_components.drawing.picture import Picture
from kthena_components.placement.model import Cluster, Outcome, Placement, Verdict
from tests.support.pictured import group, node, waiting

NAMES = (
    "<script>alert(1)</script>",
    "\"]; click r0 href 'javascript:1'",
    "```\n</details>\n# free",
    "%%{init: {}}%%",
    "&lt;b&gt; &amp; #35;",
    "end\nsubgraph x",
    "$$\\frac{a}{b}$$",
    "`**bold**` [a](http://x.y)",
    "@somebody #1 https://x.y/z",
    "</title></svg><img src=x>",
    "モデル-サーバー",
    "\u05d0\u05d1 4/8",
    "\u0301x\u200b\u202e\u3164",
)
"""Shorter than a label of Mermaid, so that it shows them whole."""
LONG = "n" * 253


def hostile() -> Picture:
    """Return a picture with each name as one of a node and of a group."""
    nodes = [node(name) for name in (*NAMES, LONG)]
    asked = [
        replace(group(name, namespace="x"), owner=f"ModelServing {name}") for name in (*NAMES, LONG)
    ]
    outcomes = [
        Outcome(
            group=one, verdict=Verdict.FITS, note=one.name,
            placement=Placement(nodes=(nodes[index].name,) * one.size, domain=None),
        )
        for index, one in enumerate(asked)
    ]  # fmt: skip
    there = Cluster(nodes=nodes, source="<b>file</b>")
    return picture_of(there, [*outcomes, waiting(group(LONG), 3)], title="<i>Placement</i>")
