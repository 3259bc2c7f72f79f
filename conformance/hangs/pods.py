"""Starts in an order that never ends, autoscalers without a target, and drains that never end."""

from http import HTTPStatus
from typing import Any

from conformance.hangs.engines import APP, ENGINE, answer, ready_pods
from conformance.hangs.pairs import (
    Body,
    Look,
    Pair,
    all_run,
    job,
    leader_worker_set,
    made,
    template,
    workload,
)
from conformance.support.cluster import Scene
from conformance.volcano.failure_domains import evict
from kthena_components.core.remedies import REMOVED

TWO = 2
_PORT, _JOIN = 30000, 5000
PROBE = {"readinessProbe": {"httpGet": {"path": "/health", "port": _PORT}}}
_INDEX = "metadata.labels['apps.kubernetes.io/pod-index']"
_ONE = {"replicas": 1, "minAvailable": 1}
"""A task. Volcano's webhook, which does not run here, writes this minimum by default."""


def engine(rank: str, first: str, **more: Any) -> Body:
    """Return the pods of an engine of two."""
    command = ["python3", "-m", "sglang.launch_server", "--model-path=m", "--tp-size=16"]
    args = ["--nnodes=2", f"--node-rank={rank}", f"--dist-init-addr={first}:{_JOIN}",
            "--host=0.0.0.0"]  # fmt: skip
    return template(command=command, args=args, image="lmsysorg/sglang:v0.5.5", **more)


def _stateful_set(**spec: Any) -> Body:
    env = [{"name": "POD_INDEX", "valueFrom": {"fieldRef": {"fieldPath": _INDEX}}}]
    pods = engine("$(POD_INDEX)", "chat-0.chat", env=env, **PROBE)
    return workload("StatefulSet", TWO, pods, spec)


def service(**spec: Any) -> Body:
    """Return the headless Service of the engine."""
    ports = [{"name": "join", "port": _JOIN}]
    stated = {"clusterIP": "None", "selector": {APP: ENGINE}, "ports": ports}
    return made("v1", "Service", {**stated, **spec})


def _waiting_workers() -> Body:
    rank, first = "$(LWS_WORKER_INDEX)", "$(LWS_LEADER_ADDRESS)"
    pods = {"leaderTemplate": engine(rank, first, **PROBE),
            "workerTemplate": engine(rank, first)}  # fmt: skip
    return leader_worker_set(TWO, pods, {"startupPolicy": "LeaderReady"})


def _waiting_task() -> Body:
    first = "chat-leader-0.chat"
    return job(
        {"name": "leader", **_ONE, "template": engine("0", first, **PROBE)},
        {"name": "worker", **_ONE, "template": engine("1", first),
         "dependsOn": {"name": ["leader"]}},
        minAvailable=1, plugins={"svc": ["--publish-not-ready-addresses=true"]},
    )  # fmt: skip


_SVC = {"svc": ["--publish-not-ready-addresses=true"]}
_ARGS = "spec.containers[0].args"


def _task_of_two(plugins: Body, first: str = "chat-serve-0.chat") -> Body:
    """Return a Volcano Job whose pods get their ranks from the plugin env."""
    pods = engine("$(VC_TASK_INDEX)", first, **PROBE)
    task = {"name": "serve", "replicas": TWO, "minAvailable": TWO, "template": pods}
    return job(task, minAvailable=TWO, plugins=plugins)


def _workers_of_kthena() -> Body:
    """Return a LeaderWorkerSet whose pods get their ranks from a variable of Kthena."""
    pods = engine("$(WORKER_INDEX)", "$(LWS_LEADER_ADDRESS)", **PROBE)
    return leader_worker_set(TWO, {"workerTemplate": pods})


def arguments(rank: str, first: str) -> list[str]:
    """Return the arguments of an engine of two pods."""
    found: list[str] = engine(rank, first)["spec"]["containers"][0]["args"]
    return found


def never_ready(pods: int) -> Look:
    """Return a check that some pods run, and that the engine never answers."""

    def waits(scene: Scene) -> bool:
        answer(scene, TWO)
        return ready_pods(scene) == 0 and len(scene.pods()) == pods

    def look(scene: Scene) -> None:
        scene.until(f"{pods} run", lambda: scene.running() == pods)
        scene.stays("no other one starts, and none of them is ready", lambda: waits(scene))

    return look


def answers(scene: Scene) -> None:
    """Check that both pods become ready."""

    def is_ready() -> bool:
        answer(scene, TWO)
        return ready_pods(scene) == TWO

    scene.until("both pods are ready", is_ready)


STARTS = (
    Pair(title="a StatefulSet that starts pod by pod", rule="start-order",
         objects={"set": _stateful_set(), "service": service(publishNotReadyAddresses=True)},
         hangs=never_ready(1), ends=answers),
    Pair(title="a LeaderWorkerSet whose workers wait for a ready leader", rule="start-order",
         objects={"set": _waiting_workers()},
         hangs=never_ready(1), ends=answers),
    Pair(title="a Volcano Job whose workers wait for a ready leader", rule="start-order",
         objects={"job": _waiting_task()},
         # The second change is the remedy of gang-covers-engine.
         remedy={"job.spec.tasks[1].dependsOn": REMOVED, "job.spec.minAvailable": TWO},
         hangs=never_ready(1), ends=answers),
    Pair(title="a Service that names ready pods only", rule="first-pod-published",
         objects={"set": _stateful_set(podManagementPolicy="Parallel"), "service": service()},
         hangs=never_ready(TWO), ends=answers),
    Pair(title="a Volcano Job without the plugin svc", rule="leader-pod-exists",
         objects={"job": _task_of_two({"env": []})},
         remedy={"job.spec.plugins": {"env": [], **_SVC}},
         hangs=never_ready(TWO), ends=answers),
    Pair(title="a Volcano Job whose plugin svc names ready pods only", rule="leader-pod-exists",
         objects={"job": _task_of_two({"env": [], "svc": []})},
         remedy={"job.spec.plugins": {"env": [], **_SVC}},
         hangs=never_ready(TWO), ends=answers),
    Pair(title="a Volcano Job that looks for a pod of no task", rule="leader-pod-exists",
         objects={"job": _task_of_two({"env": [], **_SVC}, "chat-leader-0.chat")},
         remedy={f"job.spec.tasks[0].template.{_ARGS}":
                 arguments("$(VC_TASK_INDEX)", "chat-serve-0.chat")},
         hangs=never_ready(TWO), ends=answers),
    Pair(title="a Volcano Job without the plugin env", rule="size-variables",
         objects={"job": _task_of_two(_SVC)},
         remedy={"job.spec.plugins": {"env": [], **_SVC}},
         hangs=never_ready(TWO), ends=answers),
    Pair(title="a LeaderWorkerSet with a variable of Kthena", rule="size-variables",
         objects={"set": _workers_of_kthena()},
         remedy={f"set.spec.leaderWorkerTemplate.workerTemplate.{_ARGS}":
                 arguments("$(LWS_WORKER_INDEX)", "$(LWS_LEADER_ADDRESS)")},
         hangs=never_ready(TWO), ends=answers),
)  # fmt: skip


def _scaler(version: str, kind: str) -> Body:
    target = {"apiVersion": version, "kind": kind, "name": ENGINE}
    metric = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}
    spec = {"scaleTargetRef": target, "minReplicas": TWO, "maxReplicas": 3,
            "metrics": [{"type": "Resource", "resource": metric}]}  # fmt: skip
    return made("autoscaling/v2", "HorizontalPodAutoscaler", spec)


def _never_scaled(pods: int) -> Look:
    """Return a check that the autoscaler reads no number and scales nothing."""

    def look(scene: Scene) -> None:
        scene.until(f"{pods} run", lambda: scene.running() == pods)
        scene.until("the autoscaler reads no number", lambda: _scaling(scene) == "FailedGetScale")
        scene.stays("it scales nothing", lambda: len(scene.pods()) == pods)

    return look


def _scaling(scene: Scene) -> str:
    found = scene.read(_scaler("", "")).get("status") or {}
    said = (c["reason"] for c in found.get("conditions") or () if c["type"] == "AbleToScale")
    return str(next(said, ""))


_DISAGGREGATED = "disaggregatedset.x-k8s.io/v1"
_BATCH = "batch.volcano.sh/v1alpha1"
_ROLE = leader_worker_set(1, {"workerTemplate": template(gpus=1)})["spec"]
_ROLES = {"roles": [{"name": name, "spec": _ROLE} for name in ("prefill", "decode")]}
_ROLES_OF_TWO = {f"set.spec.roles[{i}].spec.replicas": TWO for i in range(2)}
SCALED = (
    Pair(title="an autoscaler of a DisaggregatedSet", rule="autoscaler-conflict",
         objects={"set": made(_DISAGGREGATED, "DisaggregatedSet", _ROLES),
                  "scaler": _scaler(_DISAGGREGATED, "DisaggregatedSet")},
         remedy={"scaler": REMOVED, **_ROLES_OF_TWO},
         hangs=_never_scaled(2), ends=all_run(4)),
    Pair(title="an autoscaler of a Volcano Job", rule="autoscaler-conflict",
         objects={"job": job({"name": "serve", **_ONE, "template": template()}, minAvailable=1),
                  "scaler": _scaler(_BATCH, "Job")},
         remedy={"scaler": REMOVED, "job.spec.tasks[0].replicas": TWO},
         hangs=_never_scaled(1), ends=all_run(TWO)),
)  # fmt: skip


def _budget(**spec: Any) -> Body:
    selector = {"matchLabels": {APP: ENGINE}}
    return made("policy/v1", "PodDisruptionBudget", {"selector": selector, **spec})


def _pod(name: str) -> Body:
    found = template()
    return made("v1", "Pod", found["spec"], name, labels=found["metadata"]["labels"])


def _allowed(scene: Scene) -> int:
    """Return how many evictions Kubernetes allows; -1 before it has looked at the budget.

    If it cannot count the pods that there should be, it only writes the condition SyncFailed.
    Source: kubernetes v1.34 pkg/controller/disruption/disruption.go failSafe.
    """
    found = scene.read(_budget())
    status = found.get("status") or {}
    failed = any(each.get("reason") == "SyncFailed" for each in status.get("conditions") or ())
    seen = failed or status.get("observedGeneration") == found["metadata"]["generation"]
    return int(status.get("disruptionsAllowed", -1)) if seen else -1


def _drain_hangs(scene: Scene) -> None:
    scene.until("two pods run", lambda: scene.running() == TWO)
    scene.until("Kubernetes has looked at the budget", lambda: _allowed(scene) == 0)
    scene.stays("it allows no eviction", lambda: _allowed(scene) == 0)
    code = evict(scene, scene.pods()[0])
    scene.check("it rejects one", holds=code == HTTPStatus.TOO_MANY_REQUESTS, seen=code)


def _drain_ends(scene: Scene) -> None:
    scene.until("two pods run", lambda: scene.running() == TWO)
    scene.until("an eviction is allowed", lambda: _allowed(scene) > 0)
    code = evict(scene, scene.pods()[0])
    scene.check("it takes place", holds=code == HTTPStatus.CREATED, seen=code)


def _drain(title: str, pods: dict[str, Body], remedy: Body | None = None, **budget: Any) -> Pair:
    return Pair(title=title, rule="disruption-budget", remedy=remedy or {},
                objects={**pods, "budget": _budget(**budget)},
                hangs=_drain_hangs, ends=_drain_ends)  # fmt: skip


_COPIES = {"deployment": workload("Deployment", TWO, template())}
_BARE = {name: _pod(name) for name in ("chat-0", "chat-1")}
_JOB = {"job": job({"name": "serve", "replicas": TWO, "template": template()}, minAvailable=2)}
_ONE_LESS = {"budget.spec.minAvailable": 1}
_INSTEAD = {"budget.spec.maxUnavailable": REMOVED, **_ONE_LESS}
DRAINS = (
    _drain("maxUnavailable 0", _COPIES, maxUnavailable=0),
    _drain("minAvailable of all pods", _COPIES, minAvailable=TWO),
    _drain("minAvailable 51% of two pods", _COPIES, minAvailable="51%"),
    _drain("maxUnavailable of pods without a controller", _BARE, _INSTEAD, maxUnavailable=1),
    _drain("minAvailable 50% of pods without a controller", _BARE, _ONE_LESS, minAvailable="50%"),
    _drain("maxUnavailable of a Volcano Job", _JOB, _INSTEAD, maxUnavailable=1),
)
