"""A cluster on which something is set up, watched, and cleared away again."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from conformance.report import Part
from conformance.waiting import PATIENCE, PERIOD, wait
from kthena_components.cluster.client import Cluster, ClusterError
from kthena_components.core import naming

NAMESPACE = "serving"
STILL = 2.5
"""Seconds for which something must hold: a dozen rounds of the sandbox's scheduler."""
PODGROUP = "scheduling.volcano.sh/v1beta1"
SERVING = "workload.serving.volcano.sh/v1alpha1"
MADE = (
    (SERVING, "ModelServing"), ("apps/v1", "StatefulSet"), ("v1", "Pod"), (PODGROUP, "PodGroup"),
    ("v1", "Service"),
)  # fmt: skip
"""What is in the namespace afterwards, owners first."""
Body = Mapping[str, Any]


@dataclass(slots=True)
class Scene:
    """One cluster, and the part that looks at it."""

    api: Cluster
    part: Part
    about: str = ""
    """What is tried just now: every check begins with it."""
    _shared: list[Body] = field(default_factory=list)
    """Made objects of the whole cluster."""

    @contextmanager
    def of(self, about: str) -> Iterator[None]:
        """Try one thing, and clear the cluster afterwards."""
        self.about = about
        began = time.monotonic()
        try:
            yield
        finally:
            self.clear()
            self.part.say(f"{about}: {time.monotonic() - began:.1f} s")

    def make(self, bodies: Iterable[Body]) -> None:
        """Create objects; those of the whole cluster are kept in mind."""
        for body in bodies:
            self.api.create(body)
            if "namespace" not in body["metadata"]:
                self._shared.append(body)

    def settle(self) -> None:
        """Let the scheduler hear of changed nodes: it watches each kind by itself."""
        time.sleep(STILL)

    def pods(self, selector: str = "") -> list[dict[str, Any]]:
        """List the pods that are not on their way out."""
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
        """Count the pods that run."""
        return sum(pod["status"].get("phase") == "Running" for pod in self.pods(selector))

    def pod_group(self, name: str) -> dict[str, Any]:
        """Read a PodGroup; empty when it is not there."""
        metadata = {"name": name, "namespace": NAMESPACE}
        return self.read({"apiVersion": PODGROUP, "kind": "PodGroup", "metadata": metadata})

    def read(self, body: Body) -> dict[str, Any]:
        """Read an object; empty when it is not there."""
        try:
            found: dict[str, Any] = self.api.get(body)
        except ClusterError as error:
            if error.reason != "NotFound":
                raise
            return {}
        return found

    def unschedulable(self, name: str) -> str:
        """Return what Volcano says of a gang that waits; empty when it says nothing."""
        conditions = (self.pod_group(name).get("status") or {}).get("conditions") or []
        latest = conditions[-1] if conditions else {}
        return str(latest.get("message")) if latest.get("type") == "Unschedulable" else ""

    def until(self, what: str, ready: Callable[[], object]) -> bool:
        """Check that something comes true."""
        came = wait(ready)
        seen = "" if came else f"not after {PATIENCE:g} s: {self._state()}"
        return self.check(what, holds=came, seen=seen)

    def stays(self, what: str, holds: Callable[[], object], seconds: float = STILL) -> bool:
        """Check that something goes on being true."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if not holds():
                return self.check(what, holds=False, seen=self._state())
            time.sleep(PERIOD)
        return self.check(what, holds=True)

    def waits(self, what: str, gang: str, selector: str = "", pods: int = 0) -> bool:
        """Check that a gang waits whole: Volcano says so, and none of its pods has a node."""
        chosen = selector or group_selector(gang)

        def judged() -> bool:
            group = self.pod_group(gang)
            phase = (group.get("status") or {}).get("phase")
            return phase in {"Pending", "Inqueue"} and len(self.pods(chosen)) >= max(pods, 1)

        return (
            self.until(f"{what}: its pods are there and its PodGroup waits", judged)
            and self.stays(f"{what}: none of its pods has a node", lambda: not self.bound(chosen))
            and self.check(f"{what}: its PodGroup still waits", holds=judged())
        )

    def check(self, what: str, *, holds: bool, seen: object = "") -> bool:
        """Check something of what is tried."""
        return self.part.check(f"{self.about}: {what}", holds=holds, seen=seen)

    def clear(self) -> None:
        """Delete everything that was made, and wait until it is gone."""
        for version, kind in MADE:
            place = {"apiVersion": version, "kind": kind, "metadata": {"namespace": NAMESPACE}}
            self.api.ask("DELETE", self.api.path(place, named=False))
        self._gone()
        for body in reversed(self._shared):
            if self.read(body):
                self.api.delete(body)
        self._shared.clear()

    def _gone(self) -> None:
        def left() -> list[str]:
            return [f"{kind}/{item['metadata']['name']}" for version, kind in MADE
                    for item in self.api.list(version, kind, NAMESPACE)]  # fmt: skip

        if not wait(lambda: not left()):
            raise TimeoutError(f"{self.about}: still there after {PATIENCE:g} s: {left()}")

    def _state(self) -> str:
        """Say where the pods are, and what Volcano says."""
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
    """Select the pods of one ServingGroup."""
    return f"{naming.GROUP_NAME}={name}"


def rack(node: str) -> str:
    """Return the rack of one of the sandbox's nodes."""
    return node.partition("-node-")[0]
