"""Volcano's webhooks read caches, which follow a moment later than what was created or deleted."""

from collections.abc import Mapping
from typing import Any

import pytest

from conformance.report import Part
from conformance.support.cluster import Scene
from conformance.volcano.gangs import opened
from kthena_components.cluster.client import ClusterError

QUEUE = {"kind": "Queue", "metadata": {"name": "small"}, "spec": {}}
NOT_FOUND = 'denied: unable to find queue: queue.scheduling.volcano.sh "small" not found'
NOT_OPEN = "denied: can only submit PodGroup to queue with state `Open`"
NOT_A_LEAF = "denied: it has children"
CHILDREN = "denied: queue parent can not be deleted because it has 1 child queues: small"


class Api:
    """Answers as the API server does, with errors of a webhook until these are used up."""

    def __init__(self, *errors: str, state: str = "Open") -> None:
        self.errors, self.state, self.asked = [*errors], state, list[str]()

    def get(self, _body: Mapping[str, Any]) -> Any:
        return {**QUEUE, "status": {"state": self.state}}

    def create(self, _body: Mapping[str, Any], *, dry_run: bool) -> None:
        assert dry_run
        self._answer("create")

    def delete(self, _body: Mapping[str, Any]) -> None:
        self._answer("delete")

    def list(self, *_: object) -> list[Any]:
        return []

    def path(self, *_: object, **__: object) -> str:
        return ""

    def ask(self, *_: object) -> None:
        """Delete all of a kind."""

    def _answer(self, verb: str) -> None:
        self.asked.append(verb)
        if self.errors:
            raise ClusterError(403, "Forbidden", self.errors.pop(0))


def scene(api: Any) -> Scene:
    return Scene(api=api, part=Part(name="late"))


@pytest.mark.parametrize("late", [NOT_FOUND, NOT_OPEN])
def test_a_queue_is_open_when_the_webhook_knows_it(late: str) -> None:
    at = scene(Api(late))
    assert not opened(at, QUEUE)
    assert opened(at, QUEUE)


def test_a_queue_that_takes_no_pod_group_for_another_reason_is_open() -> None:
    assert opened(scene(Api(NOT_A_LEAF)), QUEUE)


def test_a_queue_without_the_state_is_not_open() -> None:
    api = Api(state="")
    assert not opened(scene(api), QUEUE)
    assert api.asked == []


def test_a_parent_is_deleted_when_the_webhook_knows_that_its_child_is_gone() -> None:
    api = Api(CHILDREN, CHILDREN)
    at = scene(api)
    at._shared.append(QUEUE)
    at.clear()
    assert api.asked == ["delete"] * 3
    assert not at._shared


def test_another_refusal_to_delete_is_an_error() -> None:
    at = scene(Api("denied: the default queue can not be deleted"))
    at._shared.append(QUEUE)
    with pytest.raises(ClusterError, match="default"):
        at.clear()
