"""The picture of a live cluster, from what an API server lists."""

from contextlib import contextmanager
from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from conformance.support.pictures import differences
from kthena_components.cli import status
from kthena_components.cli.main import main
from kthena_components.cluster.client import ClusterError
from kthena_components.cluster.status import Servings
from kthena_components.core.values.unknown import Unknown
from kthena_components.drawing.from_outcomes_and_servings import picture_of_servings
from kthena_components.drawing.page import draw_page
from kthena_components.drawing.picture import NodeBox, Picture
from tests.cluster.objects import hyper_node, pod, pod_group, racks, refused, tree
from tests.support.for_each import for_each

NOW = datetime(2026, 11, 26, tzinfo=UTC)


def other(name: str, node: str) -> dict[str, Any]:
    """Return a pod of somebody else."""
    body = deepcopy(dict(pod(name, node=node)))
    body["metadata"] |= {"namespace": "theirs", "labels": {}, "annotations": {}}
    body["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpu"] = "3"
    return body


RUNNING = [pod("chat-0-a", node="n-0-0"), pod("chat-0-b", node="n-0-1")]
WAITING = [pod("chat-1-a", "chat-1"), pod("chat-1-b", "chat-1")]
OTHERS = [other("x", "n-1-3"), {**other("ended", "n-1-2"), "status": {"phase": "Succeeded"}}]


def seen(**more: Any) -> Servings:
    message = "0/8 nodes are unavailable: 8 Insufficient nvidia.com/gpu."
    stated = {
        "pods": [*RUNNING, *WAITING], "hyper_nodes": tree(2), "nodes": racks(2, 4),
        "pod_groups": [pod_group(), refused(pod_group("chat-1", "Pending"), message)],
    }  # fmt: skip
    return Servings(**{**stated, **more})


def drawn(pods: Any = None, **more: Any) -> Picture:
    servings = seen(**more)
    return picture_of_servings(servings, [*servings.pods, *OTHERS] if pods is None else pods)


def nodes_of(picture: Picture) -> dict[str, NodeBox]:
    return {node.name: node for rack in picture.racks for node in rack.nodes}


def test_pods_of_servings_have_names_and_others_only_hold_gpus() -> None:
    picture = drawn()
    nodes = nodes_of(picture)
    assert [(p.name, p.engine, p.gpus, p.state) for p in nodes["n-0-0"].pods] == [
        ("chat-0-a", "serve-0", 8, "running")
    ]
    assert (nodes["n-0-0"].used, nodes["n-1-3"].used, nodes["n-1-2"].used) == (8, 3, 0)
    assert nodes["n-1-3"].pods == ()
    assert [(rack.name, rack.used, rack.gpus) for rack in picture.racks] == [
        ("r0", 16, 32), ("r1", 3, 32),
    ]  # fmt: skip
    assert picture.notes == ()


def test_groups_run_or_wait_with_their_reason() -> None:
    first, second = drawn().groups
    assert (first.title, first.serving) == ("serving/chat-0", "serving/chat")
    assert (first.verdict, first.where, first.reason) == ("runs", "r0 (tier 1), 2 nodes", "")
    assert (second.verdict, second.where, second.gpus) == ("waits", "", 16)
    assert second.reason == (
        "needs 2 pods at once; 0 of 2 pods are placed. Scheduler: 0/8 nodes are unavailable: 8 "
        "have too little nvidia.com/gpu free."
    )
    assert [box.name for box in second.unplaced] == ["chat-1-a", "chat-1-b"]


def test_pods_that_start_and_pods_that_ended() -> None:
    starting = pod("chat-0-a", node="n-0-0", ready=False)
    ended = pod("chat-0-b", node="n-0-1", phase="Succeeded")
    picture = picture_of_servings(seen(pods=[starting, ended]), [starting, ended])
    (group,) = picture.groups
    assert group.verdict == "starts"
    assert [box.state for box in nodes_of(picture)["n-0-0"].pods] == ["placed"]
    assert (nodes_of(picture)["n-0-1"].pods, nodes_of(picture)["n-0-1"].used) == ((), 0)


def test_what_cannot_be_read_is_told() -> None:
    hidden = Unknown("you may not read these")
    assert drawn(pods=hidden).notes == (
        "GPUs that other pods hold are not shown, because you may not read these.",
    )
    assert nodes_of(drawn(pods=hidden))["n-1-3"].used == 0
    blind = drawn(nodes=hidden)
    assert blind.notes[0].startswith("Nodes and their free GPUs are not shown, because you may")
    assert [(name, node.gpus, node.used) for name, node in nodes_of(blind).items()] == [
        ("n-0-0", 8, 8), ("n-0-1", 8, 8),
    ]  # fmt: skip
    flat = drawn(hyper_nodes=hidden)
    assert [rack.name for rack in flat.racks] == [""]
    assert flat.notes == ("Racks are not shown, because you may not read these.",)


def test_a_node_that_is_gone_is_drawn_with_its_pods() -> None:
    left = [node for node in racks(2, 4) if node["metadata"]["name"] != "n-0-0"]
    gone = nodes_of(drawn(nodes=left))["n-0-0"]
    assert (gone.closed, gone.used, len(gone.pods)) == ("not listed", 8, 1)


def listed_hyper_nodes() -> list[dict[str, Any]]:
    """Return the HyperNodes with the status that Volcano's controller writes."""
    return [{**body, "status": {"nodeCount": 4}} for body in tree(2)]


def compared(picture: Picture, pods: list[Any]) -> list[str]:
    return differences(picture, pods, [*racks(2, 4)], listed_hyper_nodes())


def test_the_comparison_finds_no_difference_in_a_true_picture() -> None:
    assert compared(drawn(), [*RUNNING, *WAITING, *OTHERS]) == []


MOVED = pod("chat-0-a", node="n-1-0")
UNTRUE = {
    "a pod is on another node": [MOVED, RUNNING[1], *WAITING, *OTHERS],
    "a pod is missing": [*RUNNING, WAITING[0], *OTHERS],
    "a pod is new": [*RUNNING, *WAITING, pod("chat-2-a", "chat-2"), *OTHERS],
    "a pod of others is gone": [*RUNNING, *WAITING],
}


@for_each("what", UNTRUE)
def test_the_comparison_finds_each_difference(what: str) -> None:
    assert compared(drawn(), UNTRUE[what])


def test_the_comparison_finds_another_rack() -> None:
    moved = [hyper_node("r0", 1), *tree(2)[1:]]
    assert "racks of r0" in "\n".join(
        compared(drawn(hyper_nodes=moved), [*RUNNING, *WAITING, *OTHERS])
    )


class Recorded:
    """Answers lists with recorded objects."""

    def __init__(self, *, pods_allowed: bool = True) -> None:
        self._pods_allowed = pods_allowed

    def serves(self, *_kind: str) -> bool:
        return True

    def list(self, _version: str, kind: str, _namespace: str | None, selector: str, _: str) -> Any:
        servings = seen()
        if kind == "Pod" and not selector and not self._pods_allowed:
            raise ClusterError(403, "Forbidden", "no")
        return {
            "Pod": servings.pods if selector else [*servings.pods, *OTHERS],
            "Node": servings.nodes, "HyperNode": servings.hyper_nodes,
            "PodGroup": servings.pod_groups,
        }.get(kind, [])  # fmt: skip


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    answer(monkeypatch, Recorded())
    return monkeypatch


def answer(monkeypatch: pytest.MonkeyPatch, cluster: Recorded) -> None:
    @contextmanager
    def opened(*_: object) -> Any:
        yield cluster, "v1.34.4"

    monkeypatch.setattr(status, "opened", opened)


def test_status_writes_the_page(
    recorded: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "status.html"
    assert main(["status"]) == 1
    before = capsys.readouterr().out
    assert main(["status", "--html", str(path), "--context", "prod"]) == 1
    assert capsys.readouterr().out == before
    page = path.read_text(encoding="utf-8")
    assert "<h1>Servings of context prod</h1>" in page
    assert "serving/chat-0 serve-0: chat-0-a (8 GPUs)" in page
    assert "chat-1-b (8 GPUs, waiting)" in page

    answer(recorded, Recorded(pods_allowed=False))
    main(["status", "--html", str(path)])
    assert "not shown, because you may not read Pods." in path.read_text(encoding="utf-8")


def test_a_page_that_cannot_be_written_is_one_sentence(
    recorded: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    del recorded
    path = tmp_path / "none" / "status.html"
    with pytest.raises(SystemExit) as ended:
        main(["status", "--html", str(path)])
    said = capsys.readouterr()
    assert (ended.value.code, said.out) == (2, "")
    assert (
        said.err
        == f"kthena-components status: --html {path} cannot be written: No such file or directory\n"
    )


def test_the_page_of_a_live_cluster_is_drawn() -> None:
    page = draw_page(picture_of_servings(seen(), OTHERS, taken=NOW, source="prod"))
    assert "Cluster: prod, read 2026-11-26 00:00 UTC" in page
