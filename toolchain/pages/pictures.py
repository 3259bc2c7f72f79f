"""Writes docs/pictures.md and its picture from a made-up cluster. `make pictures` runs it."""

from decimal import Decimal
from pathlib import Path

from kthena_components.core.topology.domains import Domain
from kthena_components.drawing.from_outcomes_and_servings import picture_of
from kthena_components.drawing.picture import Picture
from kthena_components.drawing.rows_and_mermaid import draw_mermaid, draw_rows
from kthena_components.drawing.svg import draw_svg
from kthena_components.placement.model import (
    Cause,
    Change,
    Cluster,
    Node,
    Obstacle,
    Outcome,
    Placement,
    PodGroup,
    PodSet,
    Running,
    SubGroupPolicy,
    Verdict,
)

ROOT = Path(__file__).parents[2]
PAGE, PICTURE = ROOT / "docs" / "pictures.md", ROOT / "docs" / "fit-picture.svg"
_BEGIN = "<!-- `make pictures` writes what follows. -->\n"
_END = "<!-- It ends here. -->\n"
_GPU = "nvidia.com/gpu"
_RACKS, _NODES, _GPUS = 3, 4, 8
_USED = {"node-1-0": 8, "node-1-1": 4, "node-1-2": 8, "node-2-0": 5, "node-2-1": 4}


def render() -> str:
    """Return the page with the forms of the example."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(_BEGIN)
    _, _, after = rest.partition(_END)
    rows = "\n".join(draw_rows(example(), width=80))
    block = draw_mermaid(example())
    return f"{before}{_BEGIN}\n```\n{rows}\n```\n\n{block}\n{_END}{after}"


def draw() -> str:
    """Return the picture of the example."""
    return draw_svg(example(), columns=_RACKS)


def example() -> Picture:
    """Return three racks: `old` runs, `chat` fits, and `code` waits."""
    old = Running(group=_group("old-0", 1), nodes=("node-1-0",) * 2 + ("node-1-1",))
    nodes = [
        _node(name, _USED.get(name, 0))
        for rack in range(_RACKS)
        for name in (f"node-{rack}-{number}" for number in range(_NODES))
    ]
    racks = [
        Domain(
            name=f"rack-{rack}", tier=1, tier_name=None,
            nodes=frozenset(f"node-{rack}-{number}" for number in range(_NODES)),
        )
        for rack in range(_RACKS)
    ]  # fmt: skip
    everything = frozenset(node.name for node in nodes)
    spine = Domain(name="spine", tier=2, tier_name=None, nodes=everything)
    there = Cluster(nodes=nodes, domains=[*racks, spine], running=[old], source="cluster.yaml")
    before = picture_of(there, [])
    chat = (
        Placement(nodes=("node-0-0",) * 2 + ("node-0-1",) * 2 + ("node-0-2",), domain=racks[0]),
        Placement(nodes=("node-2-2",) * 2 + ("node-2-3",) * 2 + ("node-2-1",), domain=racks[2]),
    )
    fits = [
        Outcome(group=_group(f"chat-{index}", 2), verdict=Verdict.FITS, placement=placement)
        for index, placement in enumerate(chat)
    ]
    text = "12 GPUs are free in rack-0, 12 in rack-1 and 3 in rack-2; tier 1 needs 20 in one rack"
    obstacle = Obstacle(cause=Cause.TIER, text=text, changes=(Change(text="Allow tier 2"),))
    waits = Outcome(group=_group("code-0", 2), verdict=Verdict.WAITS, obstacles=(obstacle,))
    return picture_of(there, [*fits, waits], title="Placement on cluster.yaml", before=before)


def _node(name: str, used: int) -> Node:
    return Node(
        name=name, body={"status": {"conditions": [{"type": "Ready", "status": "True"}]}},
        allocatable={_GPU: Decimal(_GPUS)}, used={_GPU: Decimal(used)},
    )  # fmt: skip


def _group(name: str, prefill: int) -> PodGroup:
    """Return a group with prefill engines of two pods and one decode engine."""
    labels = {"role": "prefill"}
    four = {_GPU: Decimal(4)}
    pods = (
        PodSet(name="prefill", count=2 * prefill, requests=four, labels=labels),
        PodSet(name="decode", count=1, requests=four),
    )
    engine = SubGroupPolicy(name="prefill", match_labels={"matchLabels": labels}, size=2)
    return PodGroup(
        namespace="serving", name=name, owner=f"ModelServing serving/{name.rpartition('-')[0]}",
        pods=pods, minimum=2 * prefill + 1, subgroups=(engine,),
    )  # fmt: skip


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
    PICTURE.write_text(draw(), encoding="utf-8")
