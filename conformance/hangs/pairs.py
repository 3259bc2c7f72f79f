"""Pairs of objects: what never starts, updates or drains, and what our remedy makes of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from conformance.hangs.engines import APP, ENGINE
from conformance.support.cluster import NAMESPACE, PODGROUP, Scene
from conformance.validation.cases import VERSIONS
from conformance.volcano.gangs import opened
from kthena_components.checker.check_cluster_objects import check_split_engines
from kthena_components.checker.cluster_rules import compare_objects
from kthena_components.checker.manifest import check_manifest
from kthena_components.checker.members import read_engine_part_of
from kthena_components.cluster.client import ClusterError
from kthena_components.core import naming
from kthena_components.core.findings import Finding, Level
from kthena_components.core.remedies import Change
from tests.support.fixes import apply

GPU = "nvidia.com/gpu"
GANG = "gang"
Body = dict[str, Any]
Look = Callable[[Scene], None]
"""Checks what the controllers made of the objects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Objects that hang, and the change that our remedy names."""

    title: str
    rule: str
    objects: Mapping[str, Body]
    hangs: Look
    ends: Look
    remedy: Mapping[str, Any] = field(default_factory=dict)
    """The values that a remedy in words asks for, by path. Empty: the finding has a fix."""
    fix: int = 0
    """Which of the fixes of the finding to try."""
    around: Sequence[Body] = ()
    """Objects of the cluster, with which the rule compares."""


def hold(scene: Scene, pair: Pair) -> None:
    """Try objects that our rule reports, and those that its remedy makes of them."""
    with scene.of(pair.title):
        found = _reported(pair, pair.objects)
        own = [each for each in found if each.rule == pair.rule]
        if not scene.check("our rule reports it", holds=bool(own), seen=[*map(str, found)]):
            return
        make(scene, pair.objects)
        pair.hangs(scene)
    stated = tuple(Change(path=path, value=value) for path, value in pair.remedy.items())
    corrected = apply(dict(pair.objects), stated or own[0].fixes[pair.fix])
    with scene.of(f"{pair.title}, corrected"):
        left = _reported(pair, corrected)
        scene.check("our rules accept it", holds=not left, seen=[*map(str, left)])
        make(scene, corrected)
        pair.ends(scene)
    scene.part.count("objects that hang, each with its correction")


def make(scene: Scene, objects: Mapping[str, Body]) -> None:
    """Create objects, the Queues first: Volcano rejects a PodGroup until its Queue is open."""
    queues = [body for body in objects.values() if body["kind"] == "Queue"]
    for queue in queues:
        scene.until("Volcano's webhook accepts the Queue", partial(_accepted, scene, queue))
    scene.until("the Queues are open", lambda: all(opened(scene, body) for body in queues))
    scene.make(body for body in objects.values() if body not in queues)


def _accepted(scene: Scene, queue: Body) -> bool:
    """Create a Queue. The webhook looks for its parent in a cache, which may not have it yet."""
    try:
        scene.make([queue])
    except ClusterError as error:
        if "not found" in str(error):
            return False
        raise
    return True


def _reported(pair: Pair, objects: Mapping[str, Body]) -> list[Finding]:
    """Return the mandatory findings in objects, alone and together, and all of the pair's rule."""
    found = [
        each
        for name, body in objects.items()
        for each in check_manifest(body, name, versions=VERSIONS)
    ]
    read = (read_engine_part_of(body, name) for name, body in objects.items())
    parts = [part for part in read if part is not None]
    found += check_split_engines(parts, objects, complete=True)
    bodies = [*objects.values(), *pair.around]
    found += compare_objects(bodies, [*objects, *("" for _ in pair.around)], versions=VERSIONS)
    return [
        each
        for each in found
        if each.level is Level.MANDATORY
        or (each.rule == pair.rule and each.level is not Level.UNKNOWN)
    ]


def made(version: str, kind: str, spec: Body, name: str = ENGINE, **metadata: Any) -> Body:
    """Return an object in the namespace of the scene."""
    return {"apiVersion": version, "kind": kind, "spec": spec,
            "metadata": {"name": name, "namespace": NAMESPACE, **metadata}}  # fmt: skip


def template(*, gpus: int = 8, gang: str = "", **container: Any) -> Body:
    """Return a template of pods that Volcano places."""
    amounts = {GPU: gpus}
    stated = {"name": "engine", "image": "example/serve:1", **container,
              "resources": {"limits": amounts, "requests": amounts}}  # fmt: skip
    notes = {"annotations": {naming.POD_GROUP: gang}} if gang else {}
    return {"metadata": {"labels": {APP: ENGINE}, **notes},
            "spec": {"schedulerName": "volcano", "containers": [stated]}}  # fmt: skip


def workload(
    kind: str, replicas: int, pods: Body, spec: Body | None = None, **metadata: Any
) -> Body:
    """Return a Deployment or a StatefulSet."""
    service = {"serviceName": ENGINE} if kind == "StatefulSet" else {}
    stated = {"replicas": replicas, "selector": {"matchLabels": {APP: ENGINE}}, "template": pods}
    return made("apps/v1", kind, {**stated, **service, **(spec or {})}, **metadata)


def leader_worker_set(
    size: int, pods: Mapping[str, Body], spec: Body | None = None, **metadata: Any
) -> Body:
    """Return a LeaderWorkerSet of one group."""
    stated = {"replicas": 1, "leaderWorkerTemplate": {"size": size, **pods}, **(spec or {})}
    return made("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", stated, **metadata)


def job(*tasks: Body, **spec: Any) -> Body:
    """Return a Volcano Job."""
    stated = {"schedulerName": "volcano", "queue": "default", **spec, "tasks": list(tasks)}
    return made("batch.volcano.sh/v1alpha1", "Job", stated)


def pod_group(minimum: int, **spec: Any) -> Body:
    """Return a PodGroup."""
    return made(PODGROUP, "PodGroup", {"minMember": minimum, **spec}, GANG)


def queue(name: str, **spec: Any) -> Body:
    """Return a Queue."""
    return {"apiVersion": PODGROUP, "kind": "Queue", "metadata": {"name": name},
            "spec": {"weight": 1, "reclaimable": False, **spec}}  # fmt: skip


def never_placed(pods: int) -> Look:
    """Return a check that the pods exist, and that Volcano says why it places none of them."""

    def look(scene: Scene) -> None:
        scene.until(f"{pods} exist", lambda: len(scene.pods()) == pods)
        scene.until("Volcano says that they wait", lambda: _said(scene))
        scene.stays("none of them has a node", lambda: not scene.bound())
        scene.check("there are no more", holds=len(scene.pods()) == pods, seen=len(scene.pods()))

    return look


def all_run(pods: int) -> Look:
    """Return a check that all pods run."""

    def look(scene: Scene) -> None:
        scene.until(f"{pods} run", lambda: scene.running() == pods)

    return look


def _said(scene: Scene) -> list[str]:
    """Return why Volcano does not take in or place the gangs: their conditions, or events."""
    groups = [*scene.api.list(PODGROUP, "PodGroup", NAMESPACE)]
    found = [text for one in groups if (text := scene.unschedulable(one["metadata"]["name"]))]
    waiting = {one["metadata"]["uid"] for one in groups if _phase(one) == "Pending"}
    return found + [
        event["message"]
        for event in scene.api.list("v1", "Event", NAMESPACE)
        if event["involvedObject"].get("uid") in waiting and event["reason"] == "Unschedulable"
    ]


def _phase(group: Body) -> str:
    return str((group.get("status") or {}).get("phase"))
