"""Gangs that Volcano never places."""

from typing import Any

from conformance.hangs.engines import APP, ENGINE
from conformance.hangs.pairs import (
    GANG,
    GPU,
    Body,
    Pair,
    all_run,
    job,
    leader_worker_set,
    made,
    never_placed,
    pod_group,
    queue,
    template,
    workload,
)
from conformance.support.cluster import SERVING, Scene
from kthena_components.core import naming
from sandbox.cluster import Size
from sandbox.nodes import LABEL, hyper_nodes, nodes

SIZE = Size(racks=2, nodes=2, gpus=8)
_NODES = nodes(SIZE.racks, SIZE.nodes, SIZE.gpus)


def _with_nodes(rack: Body) -> Body:
    """Return a rack that lists its Nodes: of those with a label, more may be elsewhere."""
    named = [node["metadata"]["name"] for node in _NODES
             if node["metadata"]["labels"][LABEL] == rack["metadata"]["name"]]  # fmt: skip
    members = [{"type": "Node", "selector": {"exactMatch": {"name": name}}} for name in named]
    return {**rack, "spec": {**rack["spec"], "members": members or rack["spec"]["members"]}}


RACKS = [*map(_with_nodes, hyper_nodes(SIZE.racks))]
_AROUND = (*_NODES, *RACKS)
_LEAST = {"annotations": {"scheduling.volcano.sh/group-min-member": "2"}}
_SMALL = "small"
_NAMED: Body = {"annotations": {naming.QUEUE_NAME: _SMALL}}
_LIMIT = {"capability": {GPU: 8}}
_HARD = {"mode": "hard", "highestTierAllowed": 1}
_TOPOLOGY = "leaderworkerset.sigs.k8s.io/exclusive-topology"


def _copies(number: int, gpus: int = 8, **spec: Any) -> Body:
    return workload("Deployment", number, template(gpus=gpus, gang=GANG), **spec)


def _serving(workers: int, topology: Body | None = None, gpus: int = 8, **metadata: Any) -> Body:
    roles = {"name": "serve", "replicas": 1, "entryTemplate": template(gpus=gpus),
             "workerReplicas": workers, "workerTemplate": template()}  # fmt: skip
    stated = {"networkTopology": topology} if topology else {}
    spec = {"schedulerName": "volcano", "replicas": 1, "template": {"roles": [roles], **stated}}
    return made(SERVING, "ModelServing", spec, **metadata)


def _task(name: str, **more: Any) -> Body:
    return {"name": name, "replicas": 1, "minAvailable": 1, "template": template(), **more}


def _asks(place: str, gpus: int) -> Body:
    """Return the remedy of a pod that requests too much."""
    resources = f"{place}.spec.containers[0].resources"
    return {f"{resources}.{kind}.{GPU}": gpus for kind in ("limits", "requests")}


def _job(number: int, gpus: int = 8, **spec: Any) -> Body:
    return job({"name": "serve", "replicas": number, "template": template(gpus=gpus)}, **spec)


def _in_queue(pods: Body) -> Body:
    notes = {naming.QUEUE_NAME: _SMALL}
    return {**pods, "metadata": {**pods["metadata"], "annotations": notes}}


def _rollout(scene: Scene) -> None:
    """Start the Deployment, and update it."""
    scene.until("two pods run", lambda: scene.running() == 2)
    found = scene.read(made("apps/v1", "Deployment", {}))
    found["spec"]["template"]["spec"]["containers"][0]["image"] = "example/serve:2"
    scene.api.patch(found, {"spec": {"template": found["spec"]["template"]}})


def _apart(number: int) -> Body:
    """Return pods of which no two may be in one rack."""
    pods, own = template(), {"matchLabels": {APP: ENGINE}}
    rule = {"requiredDuringSchedulingIgnoredDuringExecution":
            [{"topologyKey": LABEL, "labelSelector": own}]}  # fmt: skip
    spec = {**pods["spec"], "affinity": {"podAntiAffinity": rule}}
    return workload("Deployment", number, {**pods, "spec": spec})


def _one_waits(scene: Scene) -> None:
    scene.until(
        "two of three have a node", lambda: (len(scene.pods()), len(scene.bound())) == (3, 2)
    )
    scene.stays("the third has none", lambda: len(scene.bound()) == 2)


def _progress(scene: Scene) -> tuple[str, str]:
    status = scene.read(made("apps/v1", "Deployment", {})).get("status") or {}
    said: Body = next((c for c in status.get("conditions") or () if c["type"] == "Progressing"), {})
    return str(said.get("reason")), str(said.get("message"))


def _update_hangs(scene: Scene) -> None:
    _rollout(scene)
    scene.until("Kubernetes gives up", lambda: "DeadlineExceeded" in _progress(scene)[0])
    scene.stays("two old pods run, and a new one waits", lambda: len(scene.bound()) == 2)


def _update_ends(scene: Scene) -> None:
    _rollout(scene)
    scene.until("the update ends", lambda: "has successfully" in _progress(scene)[1])


ORDERED = (
    Pair(title="a PodGroup and an ordered StatefulSet", rule="gang-starts",
         objects={"gang": pod_group(2), "set": workload("StatefulSet", 2, template(gang=GANG))},
         hangs=never_placed(1), ends=all_run(2)),
    Pair(title="a StatefulSet with a minimum", rule="gang-starts",
         objects={"set": workload("StatefulSet", 2, template(), **_LEAST)},
         hangs=never_placed(1), ends=all_run(2)),
    *(
        Pair(title=f"a task that waits for another one, {what}", rule="gang-starts",
             objects={"job": job(_task("leader"), _task("worker", dependsOn={"name": ["leader"]}),
                                 minAvailable=2)},
             hangs=never_placed(1), ends=all_run(2), fix=number)
        for number, what in enumerate(("dependsOn", "minAvailable"))
    ),
    *(
        Pair(title=f"an update of a Deployment with a minimum, {what}", rule="gang-rollout",
             objects={"deployment": workload("Deployment", 2, template(gpus=4),
                                             {"progressDeadlineSeconds": 5}, **_LEAST)},
             hangs=_update_hangs, ends=_update_ends, fix=number)
        for number, what in enumerate(("maxSurge", "Recreate"))
    ),
)  # fmt: skip
QUEUED = (
    Pair(title="a gang with minResources above its queue", rule="gang-within-queue",
         objects={"queue": queue(_SMALL, **_LIMIT), "pods": _copies(2),
                  "gang": pod_group(2, queue=_SMALL, minResources={GPU: 16})},
         hangs=never_placed(2), ends=all_run(2)),
    Pair(title="a gang without minResources above its queue", rule="gang-within-queue",
         objects={"queue": queue(_SMALL, **_LIMIT), "pods": _copies(2),
                  "gang": pod_group(2, queue=_SMALL)},
         hangs=never_placed(2), ends=all_run(2)),
    Pair(title="a ModelServing above its queue", rule="gang-within-queue",
         objects={"queue": queue(_SMALL, **_LIMIT), "serving": _serving(1, **_NAMED)},
         hangs=never_placed(2), ends=all_run(2)),
    Pair(title="a LeaderWorkerSet above its queue", rule="gang-within-queue",
         objects={"queue": queue(_SMALL, **_LIMIT),
                  "set": leader_worker_set(2, {"workerTemplate": template()}, **_NAMED)},
         hangs=never_placed(2), ends=all_run(2)),
    Pair(title="a Volcano Job above its queue", rule="gang-within-queue",
         objects={"queue": queue(_SMALL, **_LIMIT),
                  "job": _job(2, queue=_SMALL, minAvailable=2)},
         hangs=never_placed(0), ends=all_run(2)),
    Pair(title="a pod above its queue", rule="gang-within-queue",
         objects={"queue": queue(_SMALL, capability={GPU: 4}),
                  "pods": workload("Deployment", 1, _in_queue(template()))},
         hangs=never_placed(1), ends=all_run(1)),
)  # fmt: skip
_FAMILY = {"parent": queue("parent", **_LIMIT), "queue": queue(_SMALL, parent="parent")}
BELOW = (
    Pair(title="a gang above the parent of its queue", rule="gang-within-queue",
         objects={**_FAMILY, "pods": _copies(2), "gang": pod_group(2, queue=_SMALL)},
         hangs=never_placed(2), ends=all_run(2)),
    Pair(title="a ModelServing above the parent of its queue", rule="gang-within-queue",
         objects={**_FAMILY, "serving": _serving(1, **_NAMED)},
         hangs=never_placed(2), ends=all_run(2)),
)  # fmt: skip
"""For the plugin capacity, which alone compares a gang with the parents of its queue."""
PLACED = (
    Pair(title="a gang larger than its rack", rule="gang-fits-hypernode",
         objects={"pods": _copies(3), "gang": pod_group(3, networkTopology=_HARD)},
         around=_AROUND, remedy={"gang.spec.networkTopology.highestTierAllowed": 2},
         hangs=never_placed(3), ends=all_run(3)),
    Pair(title="a Volcano Job larger than its rack", rule="gang-fits-hypernode",
         objects={"job": _job(3, minAvailable=3, networkTopology=_HARD)},
         around=_AROUND, remedy={"job.spec.networkTopology.highestTierAllowed": 2},
         hangs=never_placed(3), ends=all_run(3)),
    Pair(title="a ServingGroup larger than its rack", rule="gang-fits-hypernode",
         objects={"serving": _serving(2, {"groupPolicy": _HARD})},
         around=_AROUND,
         remedy={"serving.spec.template.networkTopology.groupPolicy.highestTierAllowed": 2},
         hangs=never_placed(3), ends=all_run(3)),
    Pair(title="an engine larger than its rack", rule="gang-fits-hypernode",
         objects={"serving": _serving(2, {"rolePolicy": _HARD})},
         around=_AROUND,
         remedy={"serving.spec.template.networkTopology.rolePolicy.highestTierAllowed": 2},
         hangs=never_placed(3), ends=all_run(3)),
    Pair(title="a pod larger than a node", rule="pod-fits-node",
         objects={"pods": workload("Deployment", 1, template(gpus=16))},
         around=_AROUND, remedy=_asks("pods.spec.template", 8),
         hangs=never_placed(1), ends=all_run(1)),
    Pair(title="pods of a ModelServing larger than a node", rule="pod-fits-node",
         objects={"serving": _serving(0, gpus=16)},
         around=_AROUND, remedy=_asks("serving.spec.template.roles[0].entryTemplate", 8),
         hangs=never_placed(1), ends=all_run(1)),
    Pair(title="more pods apart than racks", rule="pods-apart-fit",
         objects={"pods": _apart(3)}, around=_AROUND, remedy={"pods.spec.replicas": 2},
         hangs=_one_waits, ends=all_run(2)),
    Pair(title="a gang whose workers come after its leader has a node", rule="lws-gang-startup",
         objects={"set": leader_worker_set(2, {"workerTemplate": template()},
                                           annotations={_TOPOLOGY: LABEL})},
         hangs=never_placed(1), ends=all_run(2)),
)  # fmt: skip
