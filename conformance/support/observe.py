"""Observes one namespace: its pods, unavailable groups, and remaining objects."""

import threading
from collections import Counter
from functools import cache
from types import TracebackType
from typing import Any, Self

from kthena_components.cluster.client import Cluster, ClusterError
from kthena_components.core import naming
from kthena_components.core.objects.object import MODEL_SERVING
from kthena_components.systems.kthena.emit import API_VERSION
from kthena_components.systems.lws.view import GROUP_INDEX
from kthena_components.systems.volcano.emit import SCHEDULING

INTERVAL = 0.1
"""Seconds between two samples of the pods."""
OF_THE_CLUSTER = {
    ("ServiceAccount", "default"): "made in every namespace",
    ("ConfigMap", "kube-root-ca.crt"): "made in every namespace",
}
NEVER_OURS = {
    "Event": "a log, which expires",
    "Lease": "a heartbeat",
    "PodMetrics": "a measurement",
}
CLUSTER_WIDE = (("topology.volcano.sh/v1alpha1", "HyperNode"), (SCHEDULING, "Queue"))
Pod = dict[str, Any]


def pods(api: Cluster, namespace: str) -> list[Pod]:
    """List the pods that are not Terminating."""
    found = api.list("v1", "Pod", namespace)
    return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]


def is_ready(pod: Pod) -> bool:
    """Return whether a pod is ready."""
    conditions = (pod.get("status") or {}).get("conditions") or []
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def group_of(pod: Pod) -> str:
    """Return the ServingGroup of a pod, or the group of its LeaderWorkerSet."""
    labels = pod["metadata"]["labels"]
    return str(labels.get(naming.GROUP_NAME) or labels.get(GROUP_INDEX))


def identities(found: list[Pod]) -> set[str]:
    """Return the uids of pods."""
    return {pod["metadata"]["uid"] for pod in found}


def available(api: Cluster, namespace: str) -> list[tuple[bool, int]]:
    """Return for each ModelServing whether it is Available, and its number of available groups."""
    states = [
        body.get("status") or {} for body in api.list(API_VERSION, MODEL_SERVING[1], namespace)
    ]
    return [
        (
            any(
                c["type"] == "Available" and c["status"] == "True" for c in s.get("conditions", [])
            ),
            s.get("availableReplicas", 0),
        )
        for s in states
    ]


def tiers(api: Cluster, namespace: str) -> list[tuple[int | None, str | None]]:
    """Give number and name of every tier that the gangs and their engines stay in."""
    return [
        (topology.get("highestTierAllowed"), topology.get("highestTierName"))
        for gang in api.list(SCHEDULING, "PodGroup", namespace)
        for holder in (gang["spec"], *gang["spec"].get("subGroupPolicy", []))
        for topology in [holder.get("networkTopology") or {}]
    ]


def left(api: Cluster, namespace: str) -> set[str]:
    """List all objects in a namespace, and the cluster-scoped objects of our kinds."""
    found = {f"{kind} {body['metadata']['name']}" for version, kind in CLUSTER_WIDE
             for body in api.list(version, kind)}  # fmt: skip
    for version, kind in _namespaced(api, _versions(api)):
        for body in api.list(version, kind, namespace):
            name = str(body["metadata"]["name"])
            if (kind, name) not in OF_THE_CLUSTER:
                found.add(f"{kind} {name}")
    return found


def _versions(api: Cluster) -> tuple[str, ...]:
    """Return the preferred version of each API group."""
    groups = api.ask("GET", "/apis")["groups"]
    return ("v1", *(group["preferredVersion"]["groupVersion"] for group in groups))


@cache
def _namespaced(api: Cluster, versions: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return the kinds that the API server can list in a namespace.

    They are asked for once, and again when there is another API group: that is a request for each.
    """
    paths = {each: f"/apis/{each}" if "/" in each else f"/api/{each}" for each in versions}
    return [
        (version, item["kind"])
        for version, path in paths.items()
        for item in api.ask("GET", path)["resources"]
        if item["namespaced"] and "list" in item["verbs"] and item["kind"] not in NEVER_OURS
    ]


class Watch:
    """Observes the pods of a namespace in the background."""

    def __init__(self, api: Cluster, namespace: str, per_group: int) -> None:
        """Store the number of ready pods of an available group."""
        self._api, self._namespace, self._per_group = api, namespace, per_group
        self._groups = {group_of(pod) for pod in pods(api, namespace)}
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self.samples = 0
        self.worst = 0
        """The maximum number of groups that were unavailable at once."""
        self.trouble = ""

    def __enter__(self) -> Self:
        """Start the observation."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the observation."""
        self._done.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._done.wait(INTERVAL):
            try:
                found = pods(self._api, self._namespace)
            except ClusterError as error:
                self.trouble = str(error)
                continue
            ready = Counter(group_of(pod) for pod in found if is_ready(pod))
            up = sum(1 for number in ready.values() if number >= self._per_group)
            self.worst = max(self.worst, len(self._groups) - up)
            self.samples += 1
