"""One running cluster that takes the shape of each case, and the scheduler's answer.

The scheduler only looks on (its actions are `backfill`) while a case is created. Then all gangs are
released to it at once, so that it decides about all of them in one cycle.
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from conformance.fit.as_created import as_created
from conformance.fit.other_objects import (
    SCHEDULING,
    create_volumes,
    delete_volumes,
    lose_queue,
    open_queue,
    queue,
    until,
)
from conformance.fit.random_clusters import LOST, PROBE, QUEUES, Case, probe, probe_node
from conformance.fit.random_gangs import CLASSES
from conformance.fit.random_impossible import claim
from conformance.support.cluster import NAMESPACE, PODGROUP
from conformance.support.waiting import wait
from kthena_components.cluster.client import Cluster, ClusterError
from kthena_components.cluster.fetch_servings_and_inventory import fetch_inventory
from kthena_components.cluster.objects import annotations_of, labels_of, name_of, status_of
from kthena_components.core import naming
from sandbox.cluster import Sandbox
from sandbox.commands import SCHEDULER

TOPOLOGY = "topology.volcano.sh/v1alpha1"
NOW = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0,
       "propagationPolicy": "Background"}  # fmt: skip
OWNERS = (
    ("workload.serving.volcano.sh/v1alpha1", "ModelServing"), ("apps/v1", "StatefulSet"),
    ("apps/v1", "Deployment"), ("policy/v1", "PodDisruptionBudget"), ("v1", "Service"),
)  # fmt: skip
ACTIONS = "enqueue, allocate, backfill"
"""The scheduler's actions in the sandbox: see sandbox/commands.py."""
USUAL = SCHEDULER.replace(
    "- {name: predicates}", "- {name: overcommit}\n  - {name: drf}\n  - {name: predicates}"
)
"""The scheduler's config with the plugins that Volcano's usual one has, too."""
CYCLES = 3
"""Cycles that the scheduler gets: it breaks ties at random, so that a later one may succeed."""
MORE_CYCLES = 13
"""Further ones, which make as many as the choices that the model tries."""
SEEN = 0.4
"""Seconds after which the scheduler has seen what was created."""
_CONFIG = {"name": "volcano-scheduler-configmap", "namespace": "volcano-system"}
Body = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the cluster had before the decision, and what the scheduler decided."""

    objects: list[Body]
    """Everything, as `kubectl get -o yaml` prints it, before the scheduler acts."""
    bound: dict[str, str]
    """The node of each placed pod."""
    groups: dict[str, Body]
    """The status of each PodGroup afterwards."""


@dataclass(slots=True)
class DrivenCluster:
    """A sandbox with the nodes of one case at a time."""

    sandbox: Sandbox
    _api: Cluster = field(init=False)
    _nodes: dict[str, Body] = field(default_factory=dict)
    _hyper_nodes: dict[str, Body] = field(default_factory=dict)
    _owners: bool = False
    _volumes: bool = False
    _probes: int = 0
    _config: str = SCHEDULER

    def __post_init__(self) -> None:
        """Remove the sandbox's nodes, and create what all cases share."""
        api = self.sandbox.api
        self._api = api
        for version, kind in ((TOPOLOGY, "HyperNode"), ("v1", "Node")):
            for body in list(api.list(version, kind)):
                api.delete(body)
        for name, value in CLASSES.items():
            api.create({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
                        "metadata": {"name": name}, "value": value})  # fmt: skip
        for name in (*QUEUES, PROBE):
            api.create(queue(name))
        api.create(probe_node())
        until("the queues are open", lambda: all(
            status_of(one).get("state") == "Open" for one in api.list(SCHEDULING, "Queue")
            if name_of(one) != "root"))  # fmt: skip

    def ask(self, case: Case, look: Callable[[list[Body]], object] = list) -> Answer:
        """Create a case, and return the scheduler's answer. The objects stay until `clear`.

        Args:
            case: What to create.
            look: Is called with all objects before the scheduler acts.
        """
        self.create(case)
        objects = self.objects()
        look(objects)
        self.release()
        self.cycles(CYCLES)
        return Answer(objects=objects, bound=self.bound(), groups=self.groups())

    def later(self, answer: Answer) -> Answer:
        """Return the answer to the same case after further cycles, each with other choices."""
        self.cycles(MORE_CYCLES)
        return replace(answer, bound=self.bound(), groups=self.groups())

    def create(self, case: Case) -> None:
        """Create a case, while the scheduler only looks on."""
        self._configure(USUAL if case.usual else SCHEDULER)
        self._shape(case)
        for name, spec in case.queues.items():
            self.patch_queue(name, spec)
        self._all(self._api.create, case.fillers)
        create_volumes(self._api, case.volumes)
        self._volumes = bool(case.volumes)
        if case.lost_queue:
            open_queue(self._api, LOST)
        for gang in case.gangs:
            first, *others = gang.bodies
            self._api.create(first)
            self._all(self._api.create, others)
            self._owners |= gang.kind != "written"
        if case.lost_queue:
            lose_queue(self._api, LOST, case.lost_queue)
        self.settle(sum(gang.pods for gang in case.gangs))

    def _configure(self, config: str) -> None:
        """Choose the plugins, and let the scheduler only look on."""
        if config != self._config:
            place = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _CONFIG}
            self._api.patch(place, {"data": {"volcano-scheduler.conf": config}})
        self._config = config
        self._act("backfill")

    def release(self) -> None:
        """Let the scheduler act."""
        self._act(ACTIONS)

    def settle(self, pods: int) -> None:
        """Wait until all pods exist, and the scheduler has seen them."""
        until(f"{pods} pods exist", lambda: len(self.pods()) == pods)

        def seen() -> bool:
            listed = self._api.list(PODGROUP, "PodGroup", NAMESPACE)
            return all(status_of(group).get("phase") for group in listed)

        wait(seen, 3)
        time.sleep(SEEN)

    def cycles(self, number: int) -> None:
        """Wait until the scheduler has finished some cycles, each of which places one probe."""
        for _ in range(number):
            self._probes += 1
            group, pod = probe(f"probe-{self._probes}")
            self._all(self._api.create, [group, pod])
            until("a probe is placed", partial(self._is_placed, pod))

    def _is_placed(self, pod: Body) -> bool:
        return bool(self._api.get(pod)["spec"].get("nodeName"))

    def pods(self) -> list[Body]:
        """List the pods that Volcano places, without probes."""
        return [
            pod for pod in self._api.list("v1", "Pod", NAMESPACE)
            if pod["spec"].get("schedulerName") == "volcano" and PROBE not in labels_of(pod)
        ]  # fmt: skip

    def bound(self) -> dict[str, str]:
        """Return the node of each placed pod."""
        named = ((name_of(pod), pod["spec"].get("nodeName")) for pod in self.pods())
        return {name: str(node) for name, node in named if node}

    def groups(self) -> dict[str, Body]:
        """Return the status of each PodGroup."""
        listed = self._api.list(PODGROUP, "PodGroup", NAMESPACE)
        return {name_of(g): dict(status_of(g)) for g in listed if PROBE not in labels_of(g)}

    def objects(self) -> list[Body]:
        """List everything that decides about a placement, as `inventory` reads it."""
        found = [dict(body) for body in fetch_inventory(self._api).objects]
        for body in found:
            body["metadata"].pop("managedFields", None)
        return [body for body in found if not _is_probe(body)]

    def clear(self) -> None:
        """Delete everything except the nodes, HyperNodes and queues."""
        kinds = ((*OWNERS,) if self._owners else ()) + ((PODGROUP, "PodGroup"), ("v1", "Pod"))
        for version, kind in kinds:
            place = self._api.path({**_named(version, kind, ""), "metadata":
                                    {"namespace": NAMESPACE}}, named=False)  # fmt: skip
            self._api.ask("DELETE", place, NOW)
        self._owners = False

        def gone() -> bool:
            return not any(True for version, kind in kinds
                           for _ in self._api.list(version, kind, NAMESPACE))  # fmt: skip

        while not wait(gone, 5):  # a controller may have created some again
            for version, kind in kinds[-2:]:
                for body in list(self._api.list(version, kind, NAMESPACE)):
                    self.delete(body)
        if self._volumes:
            delete_volumes(self._api)

    def change_nodes(self, nodes: Sequence[Body]) -> None:
        """Give the cluster other nodes."""
        wanted = {name_of(body): body for body in nodes}
        old = [body for name, body in self._nodes.items()
               if name not in wanted or _frame(body) != _frame(wanted[name])]  # fmt: skip
        self._all(self.delete, old)
        kept = {name_of(body) for body in old}
        left = {name: body for name, body in self._nodes.items() if name not in kept}
        self._all(self._api.create, [b for name, b in wanted.items() if name not in left])
        changed = [body for name, body in wanted.items() if name in left and left[name] != body]
        self._all(self._patch, changed)
        self._nodes = wanted
        until("every node is ready", lambda: all(
            map(_settled, self._api.list("v1", "Node"))))  # fmt: skip

    def add_nodes(self, nodes: Sequence[Body]) -> None:
        """Add nodes to the present ones."""
        added = [as_created(body) for body in nodes]
        self.change_nodes([*self._nodes.values(), *added])

    def uncordon(self, names: Collection[str]) -> None:
        """Uncordon some nodes."""
        self.change_nodes([
            {**body, "spec": {**body.get("spec", {}), "unschedulable": None}}
            if name in names else body for name, body in self._nodes.items()
        ])  # fmt: skip

    def change_hyper_nodes(self, bodies: Sequence[Body]) -> None:
        """Give HyperNodes other members, and delete those that are not listed."""
        wanted = {name_of(body): body for body in bodies}
        for name, own in list(self._hyper_nodes.items()):
            if name not in wanted:
                self.delete(self._hyper_nodes.pop(name))
            elif own["spec"] != wanted[name]["spec"]:
                self._api.patch(own, {"spec": wanted[name]["spec"]})
                self._hyper_nodes[name] = {**own, "spec": wanted[name]["spec"]}

    def patch_queue(self, name: str, spec: Body) -> None:
        """Change the limits of a queue."""
        self._api.patch(_named(SCHEDULING, "Queue", name), {"spec": spec})

    def open_queue(self, name: str) -> None:
        """Open a queue, or create it."""
        open_queue(self._api, name)

    def exchange_volumes(self, bodies: Sequence[Body]) -> None:
        """Delete the claim and its volume, and bind another claim of its name to another volume."""
        delete_volumes(self._api)
        create_volumes(self._api, [one for body in bodies for one in (body, claim(body))])

    def write_again(
        self, group: str, spec: Body, change: Callable[[Body], Body],
        between: Callable[[], object] = object,
    ) -> None:  # fmt: skip
        """Change a PodGroup, and create its pods again with a change, after something else."""
        own = [pod for pod in self.pods() if group_of(pod) == group]
        self._all(self.delete, own)
        place = {**_named(PODGROUP, "PodGroup", group),
                 "metadata": {"name": group, "namespace": NAMESPACE}}  # fmt: skip
        self._api.patch(place, {"spec": spec})
        between()
        self._all(self._api.create, [change(as_created(pod)) for pod in own])

    def _shape(self, case: Case) -> None:
        wanted = {name_of(body): body for body in case.hyper_nodes}
        gone = [b for name, b in self._hyper_nodes.items() if wanted.get(name) != b]
        for body in reversed(gone):
            self.delete(body)
        self.change_nodes(case.nodes)
        for name, body in wanted.items():
            if self._hyper_nodes.get(name) != body:
                self._api.create(body)
        self._hyper_nodes = wanted

    def _patch(self, body: Body) -> None:
        spec = body.get("spec", {})
        change = {"taints": spec.get("taints"), "unschedulable": spec.get("unschedulable")}
        self._api.patch(body, {"spec": change})

    def delete(self, body: Body) -> None:
        """Delete an object at once, if it is still there."""
        try:
            self._api.ask("DELETE", self._api.path(body), NOW)
        except ClusterError as error:
            if error.reason != "NotFound":
                raise

    def _act(self, actions: str) -> None:
        """Set the actions of the scheduler, which reads its config again at once."""
        text = self._config.replace(ACTIONS, actions)
        (self.sandbox.layout.folder / "scheduler.yaml").write_text(text)

    def _all(self, act: Callable[[Body], object], bodies: Iterable[Body]) -> None:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(act, bodies))


def _frame(body: Body) -> Body:
    """Return what cannot be changed on a node without side effects."""
    return {key: value for key, value in body.items() if key != "spec"}


def _settled(node: Mapping[str, Any]) -> bool:
    """Return whether the taints of a node show its state: Kubernetes adds and removes them."""
    spec = node.get("spec") or {}
    own = {taint["key"] for taint in spec.get("taints") or () if "kubernetes.io" in taint["key"]}
    wanted = {"node.kubernetes.io/unschedulable"} if spec.get("unschedulable") else set()
    ready = any(c["type"] == "Ready" and c["status"] == "True"
                for c in status_of(node).get("conditions") or ())  # fmt: skip
    return ready and own == wanted


def _is_probe(body: Body) -> bool:
    return PROBE in labels_of(body) and body["kind"] != "Node"


def _named(version: str, kind: str, name: str) -> Body:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}}


def group_of(pod: Mapping[str, Any]) -> str:
    """Return the name of a pod's PodGroup."""
    return str(annotations_of(pod).get(naming.POD_GROUP, ""))
