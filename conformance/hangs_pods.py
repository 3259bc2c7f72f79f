"""Starts in an order that never ends, autoscalers without a target, and drains that never end."""

from typing import Any

from conformance.apart import evict
from conformance.hangs_engines import APP, ENGINE, answer, ready_pods
from conformance.hangs_pairs import Body, Look, Pair, all_run, job, made, template, workload
from conformance.scene import Scene
from kthena_components.core.remedies import REMOVED

_PORT, _JOIN = 30000, 5000
_PROBE = {"readinessProbe": {"httpGet": {"path": "/health", "port": _PORT}}}
_INDEX = "metadata.labels['apps.kubernetes.io/pod-index']"
_TWO = 2
_ONE = {"replicas": 1, "minAvailable": 1}
"""A task. Volcano's webhook, which does not run here, writes this minimum by default."""


def _engine(rank: str, first: str, **more: Any) -> Body:
    """Return pods of an engine of two pods."""
    command = ["python3", "-m", "sglang.launch_server", "--model-path=m", "--tp-size=16"]
    args = ["--nnodes=2", f"--node-rank={rank}", f"--dist-init-addr={first}:{_JOIN}",
            "--host=0.0.0.0"]  # fmt: skip
    return template(command=command, args=args, image="lmsysorg/sglang:v0.5.5", **more)


def _in_set(**spec: Any) -> Body:
    env = [{"name": "POD_INDEX", "valueFrom": {"fieldRef": {"fieldPath": _INDEX}}}]
    pods = _engine("$(POD_INDEX)", "chat-0.chat", env=env, **_PROBE)
    return workload("StatefulSet", _TWO, pods, spec)


def _service(**spec: Any) -> Body:
    ports = [{"name": "join", "port": _JOIN}]
    return made("v1", "Service", {"clusterIP": "None", "selector": {APP: ENGINE}, "ports": ports, **spec})


def _leader_worker_set(policy: str) -> Body:
    rank, first = "$(LWS_WORKER_INDEX)", "$(LWS_LEADER_ADDRESS)"
    group = {"size": _TWO, "leaderTemplate": _engine(rank, first, **_PROBE),
             "workerTemplate": _engine(rank, first)}  # fmt: skip
    spec = {"replicas": 1, "startupPolicy": policy, "leaderWorkerTemplate": group}
    return made("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", spec)


def _job_in_order() -> Body:
    first = "chat-leader-0.chat"
    return job(
        {"name": "leader", **_ONE, "template": _engine("0", first, **_PROBE)},
        {"name": "worker", **_ONE, "template": _engine("1", first),
         "dependsOn": {"name": ["leader"]}},
        minAvailable=1, plugins={"svc": ["--publish-not-ready-addresses=true"]},
    )  # fmt: skip


def _never_ready(pods: int) -> Look:
    """Return a check that some pods run, and that the engine never answers."""

    def look(scene: Scene) -> None:
        scene.until(f"{pods} run", lambda: scene.running() == pods)

        def waits() -> bool:
            answer(scene, _TWO)
            return ready_pods(scene) == 0 and len(scene.pods()) == pods

        scene.stays("no other one starts, and none of them is ready", waits)

    return look


def _answers(scene: Scene) -> None:
    def is_ready() -> bool:
        answer(scene, _TWO)
        return ready_pods(scene) == _TWO

    scene.until("both pods are ready", is_ready)


STARTS = (
    Pair(title="a StatefulSet that starts pod by pod", rule="start-order",
         objects={"set": _in_set(), "service": _service(publishNotReadyAddresses=True)},
         hangs=_never_ready(1), ends=_answers),
    Pair(title="a LeaderWorkerSet whose workers wait for a ready leader", rule="start-order",
         objects={"set": _leader_worker_set("LeaderReady")},
         hangs=_never_ready(1), ends=_answers),
    Pair(title="a Volcano Job whose workers wait for a ready leader", rule="start-order",
         objects={"job": _job_in_order()},
         # The second one is the remedy of gang-covers-engine.
         remedy={"job.spec.tasks[1].dependsOn": REMOVED, "job.spec.minAvailable": 2},
         hangs=_never_ready(1), ends=_answers),
    Pair(title="a Service that names ready pods only", rule="first-pod-published",
         objects={"set": _in_set(podManagementPolicy="Parallel"), "service": _service()},
         hangs=_never_ready(_TWO), ends=_answers),
)  # fmt: skip


def _budget(**spec: Any) -> Body:
    return made("policy/v1", "PodDisruptionBudget", {"selector": {"matchLabels": {APP: ENGINE}}, **spec})


def _pods(number: int) -> dict[str, Body]:
    """Return pods without a controller."""
    return {f"pod-{i}": {**made("v1", "Pod", template()["spec"], f"{ENGINE}-{i}"),
            "metadata": {**template()["metadata"], "name": f"{ENGINE}-{i}", "namespace": "serving"}}
            for i in range(number)}  # fmt: skip


def _allowed(scene: Scene) -> int:
    """Return how many evictions Kubernetes allows; -1 before it has looked at the pods."""
    found = scene.read(_budget())
    status = found.get("status") or {}
    seen = status.get("observedGeneration") == found["metadata"]["generation"]
    return int(status.get("disruptionsAllowed", -1)) if seen else -1


def _drain(code: int) -> Look:
    def look(scene: Scene) -> None:
        scene.until("two pods run", lambda: scene.running() == _TWO)
        if code == 201:
            scene.until("an eviction is allowed", lambda: _allowed(scene) > 0)
        else:
            scene.until("Kubernetes has looked at them", lambda: _allowed(scene) == 0)
            scene.stays("no eviction is allowed", lambda: _allowed(scene) == 0)
        seen = evict(scene, scene.pods()[0])
        scene.check(f"an eviction ends with {code}", holds=seen == code, seen=seen)

    return look


def _drains(title: str, budget: Body, pods: dict[str, Body], **more: Any) -> Pair:
    return Pair(title=title, rule="disruption-budget", objects={**pods, "budget": budget},
                hangs=_drain(429), ends=_drain(201), **more)  # fmt: skip


_COPIES = {"deployment": workload("Deployment", _TWO, template())}
_JOB = {"job": job({"name": "serve", "replicas": 2, "template": template()}, minAvailable=2)}
_ONE_LESS = {"budget.spec.minAvailable": 1}
DRAINS = (
    _drains("maxUnavailable 0", _budget(maxUnavailable=0), _COPIES),
    _drains("minAvailable of all pods", _budget(minAvailable=2), _COPIES),
    _drains("minAvailable 51% of two", _budget(minAvailable="51%"), _COPIES),
    _drains("maxUnavailable of pods without a controller", _budget(maxUnavailable=1), _pods(2),
            remedy={"budget.spec.maxUnavailable": REMOVED, **_ONE_LESS}),
    _drains("minAvailable 50% of pods without a controller", _budget(minAvailable="50%"), _pods(2),
            remedy=_ONE_LESS),
    _drains("maxUnavailable of a Volcano Job", _budget(maxUnavailable=1), _JOB,
            remedy={"budget.spec.maxUnavailable": REMOVED, **_ONE_LESS}),
)


def _scaler(version: str, kind: str) -> Body:
    target = {"apiVersion": version, "kind": kind, "name": ENGINE}
    metric = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}
    spec = {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 3,
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
    said = [c["reason"] for c in found.get("conditions") or () if c["type"] == "AbleToScale"]
    return str(*said)


def _sets(replicas: int) -> Body:
    group = {"size": 1, "workerTemplate": template(gpus=1)}
    spec = {"replicas": replicas, "leaderWorkerTemplate": group}
    roles = [{"name": name, "spec": spec} for name in ("prefill", "decode")]
    return made("disaggregatedset.x-k8s.io/v1", "DisaggregatedSet", {"roles": roles})


_SET, _WIDE = ("disaggregatedset.x-k8s.io/v1", "DisaggregatedSet"), ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet")
SCALED = (
    Pair(title="an autoscaler of a DisaggregatedSet", rule="autoscaler-conflict",
         objects={"set": _sets(1), "scaler": _scaler(*_SET)},
         remedy={"scaler": REMOVED, **{f"set.spec.roles[{i}].spec.replicas": 2 for i in range(2)}},
         hangs=_never_scaled(2), ends=all_run(4)),
    Pair(title="an autoscaler of a Volcano Job", rule="autoscaler-conflict",
         objects={"job": job({"name": "serve", "replicas": 1, "template": template()}, minAvailable=1),
                  "scaler": _scaler("batch.volcano.sh/v1alpha1", "Job")},
         remedy={"scaler": REMOVED, "job.spec.tasks[0].replicas": 2},
         hangs=_never_scaled(1), ends=all_run(2)),
)  # fmt: skip
