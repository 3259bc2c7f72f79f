"""What warnings say where conditions say nothing, and `status` as data and while it watches."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from kthena_components.cli import status as command
from kthena_components.cli.main import main
from kthena_components.cluster import connect, fetch_servings_and_inventory
from kthena_components.cluster.status import (
    Servings,
    describe_status,
    newest_warnings,
    render_status,
    waits,
)
from kthena_components.core.values.unknown import Unknown
from tests.cluster.objects import Body, pod, pod_group, racks, tree

FORBIDDEN = "pods 'chat-0-serve-0-0' is forbidden: no PriorityClass with name urgent was found"


def event(kind: str, name: str, reason: str, message: str, **more: Any) -> Body:
    about = {"kind": kind, "namespace": "serving", "name": name}
    own = {"type": "Warning", "lastTimestamp": "2026-01-02T12:00:00Z"}
    return {"involvedObject": about, "reason": reason, "message": message, **own, **more}


def seen(*events: Body, **more: Any) -> Servings:
    stated = {"pods": [], "pod_groups": [], "hyper_nodes": tree(1), "nodes": racks(1, 2)}
    return Servings(**{**stated, **more}, events=events)


def stateful_set(name: str) -> Body:
    labels = {"modelserving.volcano.sh/name": "chat"}
    metadata = {"name": name, "namespace": "serving", "labels": labels}
    return {"metadata": metadata, "spec": {"replicas": 2}, "status": {"replicas": 0}}


def test_a_missing_priority_class_is_named_where_no_pod_was_created() -> None:
    events = [
        event("StatefulSet", "chat-0-serve-0", "FailedCreate", FORBIDDEN),
        event("StatefulSet", "other", "FailedCreate", "something else"),
    ]
    found = dict(waits(seen(*events, stateful_sets=[stateful_set("chat-0-serve-0")])))
    assert found == {
        "serving/chat-0-serve-0": (
            "this StatefulSet has created 0 of 2 pods: FailedCreate: " + FORBIDDEN
        )
    }


def test_a_volume_that_is_not_there_is_named_while_containers_are_created() -> None:
    waiting: Any = {"containerStatuses": [{"name": "e", "state": {"waiting": {
        "reason": "ContainerCreating"}}}]}  # fmt: skip
    held = pod("chat-0-a", node="n-0-0", phase="Pending", ready=False, **waiting)
    mount = event("Pod", "chat-0-a", "FailedMount", 'secret "hf-token"\nnot found')
    for events, why in (
        ((mount,), 'FailedMount: secret "hf-token" not found'),
        ((), "is ContainerCreating"),
        # The conditions of the pod and of its PodGroup say this better.
        ((event("Pod", "chat-0-a", "FailedScheduling", "0/2 nodes"),), "is ContainerCreating"),
    ):
        found = dict(waits(seen(*events, pods=[held], pod_groups=[pod_group(least=1)])))
        assert found == {"serving/chat-0-a": why}


def test_a_controller_that_warns_is_quoted() -> None:
    serving = {"metadata": {"name": "chat", "namespace": "serving"}, "spec": {"replicas": 1}}
    warned = event("ModelServing", "chat", "FailedCreate", "quota exceeded")
    ((_, why),) = waits(seen(warned, model_servings=[serving]))
    assert why.endswith("has no pods; its controller warns: FailedCreate: quota exceeded")


@pytest.mark.parametrize(
    "times",
    [
        ({"lastTimestamp": "2026-01-02T11:00:00Z"}, {"lastTimestamp": "2026-01-02T12:00:00Z"}),
        (
            {"lastTimestamp": None, "eventTime": "2026-01-02T11:00:00.5Z"},
            {"lastTimestamp": None, "series": {"lastObservedTime": "2026-01-02T12:00:00.5Z"}},
        ),
        ({"lastTimestamp": None}, {"lastTimestamp": "2026-01-02T12:00:00Z"}),
    ],
    ids=["core", "events.k8s.io", "no time"],
)
@pytest.mark.parametrize("turned", [False, True])
def test_the_newest_warning_counts(times: tuple[Body, Body], turned: bool) -> None:
    older, newer = (
        event("Pod", "a", "Failed", text, **time)
        for text, time in zip(("old", "new"), times, strict=True)
    )
    events = [newer, older] if turned else [older, newer]
    assert newest_warnings(events) == {("Pod", "serving", "a"): "Failed: new"}


def test_an_event_that_is_no_warning_says_nothing() -> None:
    assert newest_warnings([event("Pod", "a", "Pulled", "done", type="Normal")]) == {}


def test_broken_events_are_read_as_far_as_they_go() -> None:
    broken: list[Body] = [
        {"type": "Warning"},
        {"type": "Warning", "involvedObject": 3, "reason": None},
    ]
    assert set(newest_warnings(broken).values()) <= {""}


def test_events_that_may_not_be_read_are_told() -> None:
    unread = Unknown("you may not read Events")
    short = [stateful_set("chat-0-serve-0")]
    hidden = Servings(pods=[], pod_groups=[], stateful_sets=short, events=unread)
    assert render_status(hidden).endswith("events: unknown, because you may not read Events.")
    assert render_status(replace(hidden, stateful_sets=[])) == ""


RUNS = Servings(
    pods=[pod("chat-0-a", node="n-0-0")],
    pod_groups=[pod_group(least=1)],
    hyper_nodes=tree(1),
    nodes=racks(1, 2),
)
ROW = {
    "serving": "serving/chat", "group": "0", "role": "serve-0", "pod": "chat-0-a",
    "state": "Running", "node": "n-0-0", "rack": "r0", "tier": "1", "PodGroup": "Running",
}  # fmt: skip


def test_the_status_as_data() -> None:
    assert describe_status(RUNS) == {"pods": [ROW], "waiting": [], "unknown": []}


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Servings]]:
    """Answers in turn, and then a Ctrl-C."""
    answers: list[Servings] = []

    def look(_cluster: object, _namespace: object) -> Servings:
        if not answers:
            raise KeyboardInterrupt
        return answers.pop(0)

    monkeypatch.setattr(connect, "open_cluster", lambda *_: (object(), "v1.34"))
    monkeypatch.setattr(fetch_servings_and_inventory, "look_at_servings", look)
    monkeypatch.setattr(command, "_PERIOD", 0)
    yield answers
    assert answers == []


def test_json_is_one_line(looks: list[Servings], capsys: pytest.CaptureFixture[str]) -> None:
    looks.append(RUNS)
    assert main(["status", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["pods"] == [ROW]


@pytest.mark.parametrize("form", ["table", "json"])
def test_watching_writes_each_change_and_ends_with_the_last_status(
    looks: list[Servings], form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = Servings(pods=[], pod_groups=[])
    looks += [empty, empty, RUNS, RUNS, RUNS]
    assert main(["status", "--watch", "-o", form]) == 0
    shown = capsys.readouterr().out
    if form == "json":
        assert [len(json.loads(line)["pods"]) for line in shown.splitlines()] == [0, 1]
    else:
        assert shown.startswith(
            "There is no serving in this cluster. If `pulumi up` says that it is unchanged, the "
            "state is of another cluster: run `pulumi up --refresh`.\n\nserving "
        )
        assert shown.count("chat-0-a") == 1
