"""Compares what Prometheus scrapes and reports with the pods of servings that have `monitoring`.

The operator, kube-state-metrics and Prometheus are real; the engines only serve metrics by the
names of their releases. The tests with promtool prove how long an alert waits until it fires.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from ipaddress import IPv4Network
from typing import Final

from conformance.__main__ import Context
from conformance.isolated_network import take_addresses
from conformance.prometheus.cluster import Monitored, start
from conformance.prometheus.engine_metrics import serving
from conformance.prometheus.monitored_serving import Case
from conformance.support.random_servings import Args
from conformance.support.waiting import wait
from kthena_components.cluster.client import Cluster
from sandbox.cluster import Size
from tests.support.specs import changed
from tests.systems.prometheus.monitored import MONITORED

ROOM = Size(racks=6, nodes=12, gpus=8)
_PODS = IPv4Network("10.0.0.0/8")
"""KWOK gives pods addresses of this network."""
_TWO = {"replicas": 2}
CASES: Final[Mapping[str, Args]] = {
    "native": changed(MONITORED["native"], _TWO),
    "native sglang": changed(MONITORED["native sglang"], _TWO),
    "kthena": MONITORED["kthena"],
    "kthena autoscaled": MONITORED["kthena autoscaled"],
    "lws": MONITORED["lws"],
    "lws roles": MONITORED["lws roles"],
}
"""Servings of two groups or more, for the controllers of the sandbox."""
_CONTROLLERS = ("kube-controller-manager", "kthena-controller-manager", "lws")
_WRONG_PORT = 9999


def run(context: Context) -> None:
    """Watch healthy servings, and then each trouble that an alert is for."""
    take_addresses(_PODS)
    monitored = start(context, ROOM)
    try:
        with serving() as engines:
            cases = [Case(context, monitored, engines, *each) for each in CASES.items()]
            for step in (
                _create, _watch, _undeclared_port, _without_room, _restart, _replace,
                _without_controllers,
            ):  # fmt: skip
                began = time.monotonic()
                step(monitored, cases)
                context.part.say(f"{step.__name__[1:]}: {time.monotonic() - began:.0f} s")
    finally:
        monitored.sandbox.processes.stop_all()


def _create(_: Monitored, cases: Sequence[Case]) -> None:
    for case in cases:
        case.create()


def _watch(_: Monitored, cases: Sequence[Case]) -> None:
    for case in cases:
        case.is_watched()


def _undeclared_port(monitored: Monitored, cases: Sequence[Case]) -> None:
    """Watch a port that no container declares: it must not be scraped, so the rule is right."""
    case = cases[0]
    monitor = next(body for body in case.life.held.values() if body["kind"] == "PodMonitor")
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    metadata = {**monitor["metadata"], "name": "undeclared"}
    spec = {**monitor["spec"], "podMetricsEndpoints": [{**endpoint, "portNumber": _WRONG_PORT}]}
    body = {**monitor, "metadata": metadata, "spec": spec}
    monitored.sandbox.api.create(body)
    case.check("the operator takes another PodMonitor", holds=monitored.knows([body], []))
    pods = len(case.life.pods())
    seen = wait(lambda: monitored.dropped(body) >= pods)
    case.check("Prometheus leaves out all its pods", holds=seen, seen=monitored.dropped(body))
    pool = f"podMonitor/{case.life.space}/undeclared/0"
    found = [each["scrapeUrl"] for each in monitored.targets() if each["scrapePool"] == pool]
    case.check("a port that no container declares is not scraped", holds=not found, seen=found)
    monitored.sandbox.api.delete(body)


def _restart(_: Monitored, cases: Sequence[Case]) -> None:
    """Restart a container. The controllers of the other backends replace its pod instead."""
    for case in cases:
        if case.compiled.plan.backend == "native":
            case.restarts()


def _replace(_: Monitored, cases: Sequence[Case]) -> None:
    """Replace a group again and again."""
    for case in cases:
        case.replaces()


def _without_room(monitored: Monitored, cases: Sequence[Case]) -> None:
    """Delete a group while no node takes pods: its gang waits, until nodes take pods again."""
    with _cordoned(monitored.sandbox.api):
        deleted = [case.delete_last_group() for case in cases]
        for case, (pods, _) in zip(cases, deleted, strict=True):
            case.reports("ServingGangWaiting", f"{pods} pods of ")
            case.reports("ServingGroupNotWhole", "are ready")
    for case in cases:
        case.is_whole()
        case.quiet("after nodes take pods again")


@contextmanager
def _cordoned(api: Cluster) -> Iterator[None]:
    nodes = list(api.list("v1", "Node"))
    for node in nodes:
        api.patch({"apiVersion": "v1", "kind": "Node", **node}, {"spec": {"unschedulable": True}})
    yield
    for node in nodes:
        api.patch({"apiVersion": "v1", "kind": "Node", **node}, {"spec": {"unschedulable": None}})


def _without_controllers(monitored: Monitored, cases: Sequence[Case]) -> None:
    """Delete a group that nobody creates again."""
    for name in _CONTROLLERS:
        monitored.sandbox.processes.stop(name)
    deleted = [case.delete_last_group() for case in cases]
    for case, (_, groups) in zip(cases, deleted, strict=True):
        if not case.compiled.plan.autoscaled:
            case.reports("ServingGroupMissing", f"only {groups - 1} of {groups} groups")
    for case in cases:  # only now, when Prometheus knows that the groups are gone
        if case.compiled.plan.autoscaled:
            case.check("an autoscaler may remove a group",
                       holds="ServingGroupMissing" not in case.names())  # fmt: skip
