"""Queues that come and go, and volumes with their claims, in the driven cluster."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from conformance.support.cluster import NAMESPACE
from conformance.support.waiting import wait
from kthena_components.cluster.client import Cluster
from kthena_components.cluster.objects import name_of, status_of

SCHEDULING = "scheduling.volcano.sh/v1beta1"
VOLUME, CLAIM = "PersistentVolume", "PersistentVolumeClaim"
Body = dict[str, Any]


def queue(name: str) -> Body:
    """Return a Queue without limits."""
    return {"apiVersion": SCHEDULING, "kind": "Queue", "metadata": {"name": name},
            "spec": {"weight": 1}}  # fmt: skip


def open_queue(api: Cluster, name: str) -> None:
    """Open a Queue, and create it first if it does not exist. It is what `vcctl` does."""
    states = _states(api)
    if name not in states:
        api.create(queue(name))
    elif states[name] != "Open":
        api.patch(queue(name), {"status": {"state": "Open"}}, "status")
    until(f"the queue {name} is open", lambda: _states(api).get(name) == "Open")


def lose_queue(api: Cluster, name: str, how: str) -> None:
    """Close or delete a Queue."""
    if how == "deleted":
        api.delete(queue(name))
    else:
        api.patch(queue(name), {"status": {"state": "Closed"}}, "status")
    gone = None if how == "deleted" else "Closed"
    until(f"the queue {name} is {how}", lambda: _states(api).get(name) == gone)


def _states(api: Cluster) -> dict[str, str]:
    listed = api.list(SCHEDULING, "Queue")
    return {name_of(body): str(status_of(body).get("state")) for body in listed}


def create_volumes(api: Cluster, bodies: Sequence[Body]) -> None:
    """Create volumes and claims, and wait until each claim is bound."""
    for body in bodies:
        api.create(body)

    def bound() -> bool:
        return all(status_of(body).get("phase") == "Bound"
                   for body in api.list("v1", CLAIM, NAMESPACE))  # fmt: skip

    until("the claims are bound", bound)


def delete_volumes(api: Cluster) -> None:
    """Delete all claims, which no pod may name any more, and their volumes."""
    for kind in (CLAIM, VOLUME):
        for body in list(api.list("v1", kind)):
            api.delete(dict(body))
        until(f"no {kind} is left", partial(_has_none, api, kind))


def _has_none(api: Cluster, kind: str) -> bool:
    return not any(True for _ in api.list("v1", kind))


def until(what: str, ready: Callable[[], object]) -> None:
    """Wait until something holds.

    Raises:
        TimeoutError: It takes too long.
    """
    if not wait(ready, 120):
        raise TimeoutError(f"not after 120 s: {what}")
