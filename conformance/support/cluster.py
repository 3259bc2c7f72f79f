"""A cluster on which a test creates objects, observes them, and deletes them."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from conformance.report import Part
from conformance.support.waiting import PATIENCE, PERIOD, wait
from kthena_components.cluster.client import Cluster, ClusterError
from kthena_components.core import naming

NAMESPACE = "serving"
BACKENDS = ("native", "kthena")
"""The backends whose controllers run in the sandbox."""
STILL = 2.5
"""Seconds for which a condition must stay true: a dozen cycles of the scheduler."""
PODGROUP = "scheduling.volcano.sh/v1beta1"
SERVING = "workload.serving.volcano.sh/v1alpha1"
ROUTING = "networking.serving.volcano.sh/v1alpha1"
MADE = (
    (SERVING, "AutoscalingPolicy"), (ROUTING, "ModelRoute"), (ROUTING, "ModelServer"),
    (SERVING, "ModelServing"), ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"),
    ("disaggregatedset.x-k8s.io/v1", "DisaggregatedSet"), ("batch.volcano.sh/v1alpha1", "Job"),
    ("autoscaling/v2", "HorizontalPodAutoscaler"), ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"), ("v1", "Pod"), (PODGROUP, "PodGroup"),
    ("v1", "Service"), ("policy/v1", "PodDisruptionBudget"),
)  # fmt: skip
"""The kinds to delete afterwards, owners first."""
_JOBS = ("batch.volcano.sh/v1alpha1", "Job")
"""Volcano forgets a deleted Job by name, in tries that are each twice as far apart as the last one.
The last can come after a new Job has the name: then Volcano never makes the pods of the new one.
As long as the pods took to go is at least as long as the wait for the last try.

Source: Volcano v1.14.1 pkg/controllers/cache/cache.go, processCleanupJob and DeletePod.
"""
Body = Mapping[str, Any]


@dataclass(slots=True)
class Scene:
    """One cluster, and the part that uses it."""

    api: Cluster
    part: Part
    about: str = ""
    """The current case. It is the prefix of every check."""
    _shared: list[Body] = field(default_factory=list)
    """Created cluster-scoped objects."""

    @contextmanager
    def of(self, about: str) -> Iterator[None]:
        """Run one case, and delete its objects afterwards."""
        self.about = about
        began = time.monotonic()
        try:
            yield
        finally:
            self.clear()
            self.part.say(f"{about}: {time.monotonic() - began:.1f} s")

    def make(self, bodies: Iterable[Body]) -> None:
        """Create objects, and remember the cluster-scoped ones."""
        for body in bodies:
            self.api.create(body)
            if "namespace" not in body["metadata"]:
                self._shared.append(body)

    def settle(self) -> None:
        """Wait until the scheduler has seen changed nodes: it watches each kind separately."""
        time.sleep(STILL)

    def pods(self, selector: str = "") -> list[dict[str, Any]]:
        """List the pods that are not being deleted."""
        found = self.api.list("v1", "Pod", NAMESPACE, selector)
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def bound(self, selector: str = "") -> dict[str, str]:
        """Return the node of each pod that has one, by the pod's name."""
        return {
            pod["metadata"]["name"]: pod["spec"]["nodeName"]
            for pod in self.pods(selector)
            if pod["spec"].get("nodeName")
        }

    def running(self, selector: str = "") -> int:
        """Return the number of running pods."""
        return sum(pod["status"].get("phase") == "Running" for pod in self.pods(selector))

    def pod_group(self, name: str) -> dict[str, Any]:
        """Read a PodGroup. The result is empty if it does not exist."""
        metadata = {"name": name, "namespace": NAMESPACE}
        return self.read({"apiVersion": PODGROUP, "kind": "PodGroup", "metadata": metadata})

    def read(self, body: Body) -> dict[str, Any]:
        """Read an object. The result is empty if it does not exist."""
        try:
            found: dict[str, Any] = self.api.get(body)
        except ClusterError as error:
            if error.reason != "NotFound":
                raise
            return {}
        return found

    def unschedulable(self, name: str) -> str:
        """Return Volcano's reason for a waiting gang, or an empty string."""
        conditions = (self.pod_group(name).get("status") or {}).get("conditions") or []
        latest = conditions[-1] if conditions else {}
        return str(latest.get("message")) if latest.get("type") == "Unschedulable" else ""

    def until(self, what: str, ready: Callable[[], object]) -> bool:
        """Check that a condition becomes true."""
        came = wait(ready)
        seen = "" if came else f"not after {PATIENCE:g} s: {self._state()}"
        return self.check(what, holds=came, seen=seen)

    def stays(self, what: str, holds: Callable[[], object], seconds: float = STILL) -> bool:
        """Check that a condition stays true."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if not holds():
                return self.check(what, holds=False, seen=self._state())
            time.sleep(PERIOD)
        return self.check(what, holds=True)

    def waits(self, what: str, gang: str, selector: str = "", pods: int = 0) -> bool:
        """Check that a whole gang waits: Volcano reports it, and none of its pods has a node."""
        chosen = selector or group_selector(gang)

        def checked() -> bool:
            group = self.pod_group(gang)
            phase = (group.get("status") or {}).get("phase")
            return phase in {"Pending", "Inqueue"} and len(self.pods(chosen)) >= max(pods, 1)

        return (
            self.until(f"{what}: its pods are there and its PodGroup waits", checked)
            and self.stays(f"{what}: none of its pods has a node", lambda: not self.bound(chosen))
            and self.check(f"{what}: its PodGroup still waits", holds=checked())
        )

    def check(self, what: str, *, holds: bool, seen: object = "") -> bool:
        """Check something in the current case."""
        return self.part.check(f"{self.about}: {what}", holds=holds, seen=seen)

    def clear(self) -> None:
        """Delete all created objects, and wait until they are gone, also for Volcano."""
        jobs, began = [*self.api.list(*_JOBS, NAMESPACE)], time.monotonic()
        for version, kind in MADE:
            place = {"apiVersion": version, "kind": kind, "metadata": {"namespace": NAMESPACE}}
            self.api.ask("DELETE", self.api.path(place, named=False))
        self._gone()
        if jobs:
            time.sleep(time.monotonic() - began)
        for body in reversed(self._shared):
            if not wait(partial(self._deleted, body)):
                raise TimeoutError(f"{self.about}: {body['kind']} has children for {PATIENCE:g} s")
        self._shared.clear()

    def _deleted(self, body: Body) -> bool:
        """Delete an object. The webhook counts the children of a Queue in a cache.

        The cache may still have a child that is gone.
        """
        try:
            if self.read(body):
                self.api.delete(body)
        except ClusterError as error:
            if "can not be deleted because it has" not in str(error):
                raise
            return False
        return True

    def _gone(self) -> None:
        def left() -> list[str]:
            return [f"{kind}/{item['metadata']['name']}" for version, kind in MADE
                    for item in self.api.list(version, kind, NAMESPACE)]  # fmt: skip

        if not wait(lambda: not left()):
            raise TimeoutError(f"{self.about}: still there after {PATIENCE:g} s: {left()}")

    def _state(self) -> str:
        """Describe the nodes of the pods, and the state of the gangs."""
        pods = {
            p["metadata"]["name"]: p["spec"].get("nodeName", p["status"].get("phase"))
            for p in self.pods()
        }
        groups = {
            g["metadata"]["name"]: (
                (g.get("status") or {}).get("phase"), self.unschedulable(g["metadata"]["name"])
            )
            for g in self.api.list(PODGROUP, "PodGroup", NAMESPACE)
        }  # fmt: skip
        return f"pods {pods}, gangs {groups}"


def group_selector(name: str) -> str:
    """Return the label selector for the pods of one ServingGroup."""
    return f"{naming.GROUP_NAME}={name}"


def rack(node: str) -> str:
    """Return the rack of one of the sandbox's nodes."""
    return node.partition("-node-")[0]


def said_by_webhook(api: Cluster, body: Mapping[str, Any]) -> str:
    """Return why a webhook rejects an object; empty if it accepts it."""
    try:
        api.create(body, dry_run=True)
    except ClusterError as error:
        return str(error)
    return ""
