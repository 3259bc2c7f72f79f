"""What a review says of an inventory: whether the pods of a stack fit, before and after."""

from pathlib import Path
from typing import Any

import yaml

from tests.cli.conftest import Review
from tests.cli.previews import cells, events, step, urn
from tests.cli.test_fit import INVENTORY, serving

KIND = "kubernetes:workload.serving.volcano.sh/v1alpha1:ModelServing"
TAKEN = "2026-11-20T12:00:00Z"


def inventory(folder: Path, **fields: Any) -> str:
    path = folder / "cluster.yaml"
    path.write_text(yaml.safe_dump({**INVENTORY, "taken": TAKEN, **fields}))
    return str(path)


def change(name: str, old: dict[str, Any] | None, new: dict[str, Any] | None) -> dict[str, Any]:
    op = "create" if old is None else "delete" if new is None else "update"
    return step(op, urn(KIND, name), old, new)


def test_a_change_that_no_longer_fits_is_shown_before_and_after(
    review: Review, tmp_path: Path
) -> None:
    told = events(
        change("chat", serving(), serving(workers=2)), change("new", None, serving("new"))
    )
    ran = review("--inventory", f"prod={inventory(tmp_path)}", prod=told)
    assert ran.status == 0, ran.err
    (head,) = [line for line in ran.lines if line.startswith("Placement on ")]
    assert head.endswith("cluster.yaml (snapshot of 2026-11-20): 2 groups: 1 fits, 1 never fits.")
    assert cells(ran.out, "serving/chat-0")[1] == "fits → never fits" or (
        cells(ran.out, "serving/chat-0")[1] == "fits → never"
    )
    assert cells(ran.out, "serving/new-0")[1:3] == ["new → fits", "rack-2 (tier 1)"]
    assert "```mermaid" in ran.out


def test_what_does_not_change_is_only_counted(review: Review, tmp_path: Path) -> None:
    told = events(change("chat", serving(), serving()))
    ran = review("--inventory", f"prod={inventory(tmp_path)}", prod=told)
    assert any(line.endswith(": 1 group: 1 fits.") for line in ran.lines)
    assert "serving/chat-0" not in ran.out


def test_an_inventory_that_cannot_be_read_is_told(review: Review, tmp_path: Path) -> None:
    path = inventory(tmp_path, gpu=8)
    ran = review("--inventory", f"prod={path}", prod=events(change("a", None, serving())))
    assert ran.status == 2
    assert "there is no field 'gpu' here: write 'gpus'" in ran.err
    assert "the inventory of stack prod cannot be read" in ran.out


def test_hostile_names_do_not_leave_their_cells(review: Review, tmp_path: Path) -> None:
    bad = serving("x|y\n<script>`")
    ran = review("--inventory", f"prod={inventory(tmp_path)}", prod=events(change("a", None, bad)))
    assert "<script>" not in ran.out
