"""One serving with `monitoring`, and what Prometheus makes of it."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from conformance.__main__ import Context
from conformance.kthena.emission import namespace
from conformance.prometheus.cluster import Body, Monitored
from conformance.prometheus.engine_metrics import Engines
from conformance.support import observe
from conformance.support.random_servings import Args
from conformance.support.serving_lives import Life
from conformance.support.waiting import wait
from kthena_components.cluster.client import ClusterError
from kthena_components.core import naming
from tests.systems.prometheus.monitored import dashboard

SETTLES = 120
"""Seconds until Prometheus has seen something. It scrapes every second."""
_WINDOW = "20s"
_GROUP_KEYS = (naming.GROUP_NAME, "leaderworkerset.sigs.k8s.io/group-key")
_LEADER = ("leaderworkerset.sigs.k8s.io/worker-index", "0")
_NO_NODE = "Pods without a node"
"""A panel that is empty as long as all pods have nodes."""


class Case:
    """One serving in a namespace of its own."""

    def __init__(
        self, context: Context, monitored: Monitored, engines: Engines, name: str, args: Args
    ) -> None:
        self.part, self.name = context.part, name
        self.monitored, self.engines = monitored, engines
        space = name.replace(" ", "-")
        self.life = Life(api=monitored.sandbox.api, space=space, args=args)
        self.compiled = self.life.compiled()

    def create(self) -> None:
        """Create the serving, and wait until nothing is wrong with it."""
        namespace(self.life.api, self.life.space)
        whole = self.life.becomes("created")
        self.check("all its pods run", holds=whole, seen=self.life.seen)
        bodies = list(self.life.held.values())
        known = self.monitored.knows(_of(bodies, "PodMonitor"), _of(bodies, "PrometheusRule"))
        self.check("the operator takes its objects", holds=known)
        self.part.count("servings")

    def is_watched(self) -> None:
        """Compare the targets, the labels, the dashboard and the alerts with the pods."""
        entries = [pod for pod in self.life.pods() if _is_entry(pod)]
        wanted = {_address(pod) for pod in entries}
        self.until("its entry pods are scraped, and no others", lambda: self.up() == wanted,
                   lambda: sorted(self.up() ^ wanted))  # fmt: skip
        others = {_address(pod) for pod in self.life.pods()} - wanted
        asked = self.engines.asked
        self.check("each engine was asked", holds=wanted <= asked, seen=sorted(wanted - asked))
        self.check("no worker was asked", holds=not asked & others, seen=sorted(asked & others))
        self._labels(entries)
        self.quiet("while all is well")
        alerts = [rule for rule in self.monitored.rules() if self._owns(rule)]
        sick = [rule for rule in alerts if rule["health"] != "ok"]
        self.check("its alerts are evaluated", holds=bool(alerts) and not sick, seen=sick)
        self.part.count("alerts", len(alerts))
        self._panels()
        answering = self.monitored.query(next(query for _, query in _queries(self.life)))
        number = sum(float(each["value"][1]) for each in answering)
        self.check("all engines answer", holds=number == len(entries), seen=answering)

    def _labels(self, entries: Sequence[observe.Pod]) -> None:
        """Require the serving and the role of each target, and one group for each real group."""
        by_name = {each["labels"]["pod"]: each["labels"] for each in self._targets()}
        groups: dict[str, str] = {}
        for pod in entries:
            labels = by_name.get(pod["metadata"]["name"], {})
            role = _role_of(pod)
            stated = (labels.get("serving"), labels.get("role"), labels.get("namespace"))
            fine = stated == (self.compiled.plan.name, role, self.life.space)
            self.check("a target has the names of its role", holds=fine, seen=stated)
            own = labels.get("group", "")
            first = groups.setdefault(group_of(pod), own)
            self.check("a target has its group", holds=own == first != "", seen=(own, first))
        distinct = len(set(groups.values())) == len(groups)
        self.check("groups have different names", holds=distinct, seen=groups)

    def _panels(self) -> None:
        """Require that each query finds something, and pods without a node nothing."""
        for panel, query in _queries(self.life):
            found = wait(partial(self._right, panel, query), SETTLES)
            self.check(f"the panel {panel} is right", holds=found, seen=query)
            self.part.count("queries of dashboards")

    def _right(self, panel: str, query: str) -> bool:
        return bool(self.monitored.query(query)) != (panel == _NO_NODE)

    def restarts(self) -> None:
        """Let a container restart twice, which is quiet, and a third time."""
        pod = self.life.pods()[0]
        _restarted(self.life, pod, 2)
        self.settle(pod["metadata"]["name"], 2)
        self.quiet("after two restarts")
        _restarted(self.life, pod, 3)
        self.until("a third restart is reported", lambda: self.names() == {"ServingPodRestarts"},
                   self.names)  # fmt: skip
        alert = self.monitored.alerts(self.life.space).get("ServingPodRestarts", {})
        fine = alert.get("state") == "firing"
        self.check("restarts fire at once", holds=fine, seen=alert)
        said = alert.get("annotations", {}).get("summary", "")
        self.check("the alert names the pod", holds=pod["metadata"]["name"] in said, seen=said)

    def settle(self, pod: str, restarts: int) -> None:
        """Wait until Prometheus knows the restarts of a pod."""
        metric = "kube_pod_container_status_restarts_total"
        query = f'{metric}{{namespace="{self.life.space}",pod="{pod}"}} == {restarts}'
        wait(lambda: self.monitored.query(query), SETTLES)

    def replaces(self) -> None:
        """Delete the pods of the last group until it has had too many."""
        before = self.names()
        self.check("no pods are replaced yet", holds="ServingPodsReplaced" not in before,
                   seen=before)  # fmt: skip
        for _ in range(4):
            self.delete_last_group()
            self.is_whole()
        self.until("replaced pods are reported", lambda: "ServingPodsReplaced" in self.names(),
                   self.names)  # fmt: skip

    def is_whole(self) -> None:
        """Wait until all pods run, and Prometheus knows each of them by its uid.

        Pods of a group that was replaced can have the names of those before, and on a loaded
        machine Prometheus would still count the old ones as ready.
        """
        pods = self.compiled.plan.pods
        running = wait(lambda: self._running() == pods, SETTLES)
        known = running and wait(lambda: self._known() == observe.identities(self.life.pods()),
                                 SETTLES)  # fmt: skip
        self.check("its pods run again", holds=known, seen=(self._running(), len(self._known())))

    def _known(self) -> set[str]:
        """Return the uids of the pods that are ready, as Prometheus knows."""
        space = f'namespace="{self.life.space}"'
        ready = f'kube_pod_status_ready{{condition="true",{space}}} == 1'
        return {each["metric"]["uid"] for each in self.monitored.query(ready)}

    def _running(self) -> int:
        return sum(map(observe.is_ready, self.life.pods()))

    def delete_last_group(self) -> tuple[int, int]:
        """Delete the pods of one group. Return their number and the number of groups."""
        pods = self.life.pods()
        last = max(map(group_of, pods))
        chosen = [pod for pod in pods if group_of(pod) == last]
        role = _role_of(chosen[0])
        alike = {group_of(pod) for pod in pods if _role_of(pod) == role}
        for pod in chosen:
            _delete(self.life, pod)
        return len(chosen), len(alike)

    def reports(self, alert: str, summary: str) -> None:
        """Require that an alert waits or fires, with this in its summary."""

        def said() -> str:
            found = self.monitored.alerts(self.life.space).get(alert, {})
            return str(found.get("annotations", {}).get("summary", ""))

        self.until(f"{alert} is reported", lambda: summary in said(),
                   lambda: (summary, said(), self.names()))  # fmt: skip

    def quiet(self, when: str) -> None:
        """Require that no alert waits or fires."""
        self.until(f"no alert {when}", lambda: not self.names(), self.names)

    def names(self) -> set[str]:
        """Return the names of the alerts that wait or fire."""
        return set(self.monitored.alerts(self.life.space))

    def _owns(self, rule: Body) -> bool:
        return f'namespace="{self.life.space}"' in rule["query"]

    def _targets(self) -> list[Body]:
        own = f"podMonitor/{self.life.space}/"
        return [each for each in self.monitored.targets() if each["scrapePool"].startswith(own)]

    def up(self) -> set[str]:
        """Return the addresses that Prometheus scrapes with success."""
        return {each["labels"]["instance"] for each in self._targets() if each["health"] == "up"}

    def until(self, what: str, ready: Callable[[], bool], seen: Callable[[], object]) -> None:
        """Check that something becomes true."""
        fine = wait(ready, SETTLES)
        self.check(what, holds=fine, seen="" if fine else seen())

    def check(self, what: str, *, holds: bool, seen: object = "") -> None:
        """Check something of this serving."""
        self.part.check(f"{self.name}: {what}", holds=holds, seen=seen)


def group_of(pod: Mapping[str, Any]) -> str:
    """Return what tells the real group of a pod from all others of its serving."""
    labels = pod["metadata"]["labels"]
    return str(next(labels[key] for key in _GROUP_KEYS if key in labels))


def _role_of(pod: Mapping[str, Any]) -> str:
    return str(pod["metadata"]["labels"][naming.ROLE])


def _address(pod: Mapping[str, Any]) -> str:
    """Return where the engine of a pod listens, as its command line says."""
    container = pod["spec"]["containers"][0]
    words = " ".join((*container.get("command", ()), *container.get("args", ())))
    stated = re.search(r"--port[ =](\d+)", words)
    return f"{pod['status']['podIP']}:{stated[1] if stated else _default_port(words)}"


def _default_port(words: str) -> int:
    return 30000 if "sglang" in words else 8000


def _is_entry(pod: Mapping[str, Any]) -> bool:
    labels = pod["metadata"]["labels"]
    return bool(labels.get(naming.ENTRY) == "true" or labels.get(_LEADER[0]) == _LEADER[1])


def _of(bodies: Sequence[Mapping[str, Any]], kind: str) -> list[Mapping[str, Any]]:
    return [body for body in bodies if body["kind"] == kind]


def _queries(life: Life) -> Iterator[tuple[str, str]]:
    """Return each query of the dashboard with its panel, as Grafana would send it."""
    for panel in dashboard(life.compiled())["panels"]:
        for target in panel.get("targets", []):
            query = target["expr"]
            for variable in ("$role", "$group"):
                query = query.replace(variable, ".*")
            yield panel["title"], query.replace("$__rate_interval", _WINDOW)


def _delete(life: Life, pod: Mapping[str, Any]) -> None:
    """Delete a pod, unless its controller did so, because another one of its group is gone."""
    try:
        life.api.delete({"apiVersion": "v1", "kind": "Pod", **pod})
    except ClusterError as error:
        if error.reason != "NotFound":
            raise


def _restarted(life: Life, pod: Mapping[str, Any], number: int) -> None:
    """Set the restarts of the first container of a pod, as a kubelet does."""
    body = life.api.get({"apiVersion": "v1", "kind": "Pod", **pod})
    body["status"]["containerStatuses"][0]["restartCount"] = number
    path = f"{life.api.path(body, named=True)}/status"
    life.api.ask("PUT", path, body)
