"""What a review says of an inventory: whether the pods of a stack fit, before and after."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from tests.cli.conftest import Review
from tests.cli.previews import cells, events, step, urn
from tests.cli.test_fit import INVENTORY, serving

KIND = "kubernetes:workload.serving.volcano.sh/v1alpha1:ModelServing"
TAKEN = datetime.now(UTC).replace(microsecond=0).isoformat()


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
    assert ran.status == 1, ran.err
    (finding,) = [line for line in ran.lines if line.endswith("[placement-fits]")]
    assert finding.startswith("- serving/chat-0 never fits on prod: ")
    (head,) = [line for line in ran.lines if line.startswith("Placement on ")]
    assert head == (
        f"Placement on prod (snapshot of {TAKEN[:10]}): 2 groups: 1 fits, 1 never fits."
    )
    assert cells(ran.out, "serving/chat-0")[1] == "fits → never"
    assert cells(ran.out, "serving/new-0")[1:3] == ["new → fits", "rack-2 (tier 1)"]
    assert "```mermaid" in ran.out
    assert (
        review("--inventory", f"prod={tmp_path}/cluster.yaml", "--level", "dev", prod=told).status
        == 0
    )


def test_what_is_there_already_keeps_its_place_in_whatever_order_a_preview_tells_it(
    review: Review, tmp_path: Path
) -> None:
    new, old = change("a-new", None, serving("a-new")), change("chat", serving(), serving())
    for told in (events(new, old), events(old, new)):
        ran = review("--inventory", f"prod={inventory(tmp_path)}", prod=told)
        assert cells(ran.out, "serving/a-new-0")[1] == "new → waits"
        assert "serving/chat-0 |" not in ran.out


def test_what_did_not_fit_before_is_no_finding_and_an_old_snapshot_is_advice(
    review: Review, tmp_path: Path
) -> None:
    told = events(change("chat", serving(workers=2), serving(workers=3)))
    ran = review("--inventory", f"prod={inventory(tmp_path)}", prod=told)
    assert ran.status == 0
    assert "[placement-fits]" not in ran.out
    old = inventory(tmp_path, taken="2020-01-01T00:00:00Z")
    ran = review("--inventory", f"prod={old}", "--level", "prod", prod=told)
    assert ran.status == 0
    (finding,) = [line for line in ran.lines if line.endswith("[placement-fits]")]
    assert "days old, and may be out of date after 7" in finding


def test_what_does_not_change_is_only_counted(review: Review, tmp_path: Path) -> None:
    told = events(change("chat", serving(), serving()))
    ran = review("--inventory", f"prod={inventory(tmp_path)}", prod=told)
    assert any(line.endswith(": 1 group: 1 fits.") for line in ran.lines)
    assert "serving/chat-0" not in ran.out


def test_an_inventory_that_cannot_be_read_is_told(review: Review, tmp_path: Path) -> None:
    path = inventory(tmp_path, gpu=8)
    ran = review("--inventory", f"prod={path}", prod=events(change("a", None, serving())))
    assert ran.status == 2
    assert "there is no field 'gpu' here: remove it, because gpus is stated, too" in ran.err
    assert "the inventory of stack prod cannot be read" in ran.out


def test_hostile_names_do_not_leave_their_cells(review: Review, tmp_path: Path) -> None:
    bad = serving("x|y\n<script>`")
    ran = review("--inventory", f"prod={inventory(tmp_path)}", prod=events(change("a", None, bad)))
    assert "<script>" not in ran.out
