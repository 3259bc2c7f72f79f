"""Starts that wait for a name, or for a server, that never comes."""

import subprocess
from collections.abc import Mapping
from typing import Any

from conformance.hangs.engines import APP, ENGINE, addresses, make_ready, ready_pods
from conformance.hangs.pairs import Body, Look, Pair, made, template, workload
from conformance.hangs.pods import PROBE, TWO, answers, arguments, engine, never_ready, service
from conformance.support.cluster import SERVING, Scene
from kthena_components.core.remedies import REMOVED

_PART = "part"
_HTTP = 8000
_HTTP_PROBE: Body = {"readinessProbe": {"httpGet": {"path": "/health", "port": _HTTP}}}
_SECONDS = "0.5"
_STUBS = """
known() { case " $NAMES " in *" $1 "*) ;; *) return 1 ;; esac; }
nc() { known "$2"; }
nslookup() { known "$1"; }
curl() { return 7; }
sleep() { command sleep 0.1; }
vllm() { exit 0; }
"""
"""Programs that ask the names of the cluster. No server listens where nothing has started one."""


def _kthena(first: str) -> Body:
    """Return a ModelServing of one engine with two pods."""
    pods = engine("$(WORKER_INDEX)", first, **PROBE)
    role = {"name": "serve", "replicas": 1, "entryTemplate": pods,
            "workerReplicas": 1, "workerTemplate": pods}  # fmt: skip
    spec = {"schedulerName": "volcano", "replicas": 1, "template": {"roles": [role]}}
    return made(SERVING, "ModelServing", spec)


_ENTRY = "chat-0-serve-0-0"
_ROLE = "serving.spec.template.roles[0]"
_RIGHT_ENTRY = {f"{_ROLE}.{kind}.spec.containers[0].args": arguments("$(WORKER_INDEX)", _ENTRY)
                for kind in ("entryTemplate", "workerTemplate")}  # fmt: skip
ENTRIES = tuple(
    Pair(title=f"a ModelServing that looks for {what}", rule="kthena-entry-names",
         objects={"serving": _kthena(name)}, remedy=_RIGHT_ENTRY,
         hangs=never_ready(TWO), ends=answers)
    for what, name in (("a pod of no role", "chat-0-server-0-0"),
                       ("a group that it does not have", "chat-1-serve-0-0"),
                       ("an instance that its role does not have", "chat-0-serve-1-0"),
                       ("a worker", "chat-0-serve-0-1"),
                       ("a name without the group", "chat-serve-0-0"),
                       ("the right pod in another namespace", f"{_ENTRY}.default"))
)  # fmt: skip


def _of(part: str, kind: str, rank: str, first: str, **spec: Any) -> Body:
    """Return the first pods, or the workers, in an object of their own."""
    pods = engine(rank, first, **PROBE)
    labels = {APP: ENGINE, _PART: part}
    stated = {"selector": {"matchLabels": labels}, **spec}
    body = {**pods, "metadata": {**pods["metadata"], "labels": labels}}
    return workload(kind, spec.get("replicas", 1), body, stated, name=part)


def _named(name: str, selected: str) -> Body:
    found = service(publishNotReadyAddresses=True, selector={APP: ENGINE, _PART: selected})
    return {**found, "metadata": {**found["metadata"], "name": name}}


def _split(kind: str, first: str, **spec: Any) -> dict[str, Body]:
    return {"head": _of("head", kind, "0", first, **spec),
            "worker": _of("worker", "Deployment", "1", first)}  # fmt: skip


def _two_first(scene: Scene) -> None:
    scene.until("three pods run", lambda: scene.running() == TWO + 1)

    def leads_to_two() -> bool:
        pods = addresses(scene).get("head") or ()
        return len(pods) == TWO and all(name.startswith("head-") for name in pods)

    scene.until("the address leads to both first pods", leads_to_two)
    scene.stays("there is one worker for both", lambda: scene.running(f"{_PART}=worker") == 1)


_ASKED = "spec.template.spec.containers[0].args"
LEADERS = (
    Pair(title="a StatefulSet below another Service than in the address", rule="leader-selected",
         objects={**_split("StatefulSet", "head-0.head", serviceName="heads"),
                  "service": _named("head", "head"), "other": _named("heads", "head")},
         remedy={f"head.{_ASKED}": arguments("0", "head-0.heads"),
                 f"worker.{_ASKED}": arguments("1", "head-0.heads")},
         hangs=never_ready(TWO), ends=answers),
    Pair(title="a Service that selects the workers", rule="leader-selected",
         objects={**_split("Deployment", "head"), "service": _named("head", "worker")},
         remedy={"service.spec.selector": {APP: ENGINE, _PART: "head"}},
         hangs=never_ready(TWO), ends=answers),
    Pair(title="an address without a Service", rule="leader-selected",
         objects={**_split("Deployment", "heads"), "service": _named("head", "head")},
         remedy={f"head.{_ASKED}": arguments("0", "head"),
                 f"worker.{_ASKED}": arguments("1", "head")},
         hangs=never_ready(TWO), ends=answers),
    Pair(title="two first pods at one address", rule="pod-ranks",
         objects={**_split("Deployment", "head", replicas=TWO), "service": _named("head", "head")},
         remedy={"head.spec.replicas": 1}, hangs=_two_first, ends=answers),
)  # fmt: skip


def _script(container: Mapping[str, Any]) -> str:
    words = [*container.get("command", ()), *container.get("args", ())]
    return str(words[2]) if words[1:2] == ["-c"] else "exit 0"


def _ends(script: str, names: str) -> bool:
    """Return whether a real bash comes to the end of a script."""
    command = ["timeout", _SECONDS, "bash", "-c", f"{_STUBS}\n{script}"]
    ran = subprocess.run(command, env={"NAMES": names, "PATH": "/usr/bin:/bin"},
                         capture_output=True, check=False)  # fmt: skip
    return ran.returncode == 0


def _start(scene: Scene) -> None:
    """Run the scripts of the pods with the names of the cluster, and let the others be ready."""
    names = " ".join(addresses(scene))
    for pod in scene.pods(f"{APP}={ENGINE}"):
        spec = pod["spec"]
        scripts = map(_script, (*spec.get("initContainers", ()), *spec["containers"]))
        if pod["status"].get("phase") == "Running" and all(_ends(each, names) for each in scripts):
            make_ready(scene, pod)


def _waits(pods: int) -> Look:
    def look(scene: Scene) -> None:
        def waiting() -> bool:
            _start(scene)
            return ready_pods(scene) == 0 and len(scene.pods()) == pods

        scene.until(f"{pods} run", lambda: scene.running() == pods)
        scene.stays("none of them is ready, and no other one comes", waiting)

    return look


def _serves(pods: int) -> Look:
    def look(scene: Scene) -> None:
        def ready() -> bool:
            _start(scene)
            return ready_pods(scene) == pods

        scene.until(f"{pods} are ready", ready)

    return look


def _wait(condition: str) -> str:
    return f"until {condition}; do sleep 1; done"


def _waiting(kind: str, replicas: int, script: str) -> Body:
    """Return an engine whose pods have an init container with a script."""
    command = ["vllm", "serve", "m", "-tp=8"]
    pods = template(image="vllm/vllm-openai:v0.20.0", command=command, **_HTTP_PROBE)
    wait = {"name": "wait", "image": "busybox:1.36", "command": ["sh", "-c", script]}
    return workload(kind, replicas, {**pods, "spec": {**pods["spec"], "initContainers": [wait]}})


def _serving_script(before: str) -> Body:
    command = ["bash", "-c", f"{before}vllm serve m -tp 8"]
    pods = template(image="vllm/vllm-openai:v0.20.0", command=command, **_HTTP_PROBE)
    return workload("Deployment", 1, pods)


_OPEN = [{"name": "http", "port": _HTTP}]
_INIT = "spec.template.spec.initContainers"
_TRIES = f"for i in 1 2 3; do nc -z chat {_HTTP} && break; sleep 1; done; true"
WAITS = (
    *(
        Pair(title=f"an init container that waits for its own Service, {what}", rule="wait-ends",
             objects={"set": _waiting("Deployment", 1, _wait(f"nc -z chat {_HTTP}")),
                      "service": service(ports=_OPEN)},
             remedy=remedy, hangs=_waits(1), ends=_serves(1))
        for what, remedy in (("removed", {f"set.{_INIT}": REMOVED}),
                             ("with tries", {f"set.{_INIT}[0].command": ["sh", "-c", _TRIES]}))
    ),
    Pair(title="a pod of a StatefulSet that waits for a later one", rule="wait-ends",
         objects={"set": _waiting("StatefulSet", TWO, _wait("nslookup chat-1.chat")),
                  "service": service(ports=_OPEN, publishNotReadyAddresses=True)},
         remedy={f"set.{_INIT}": REMOVED}, hangs=_waits(1), ends=_serves(TWO)),
    Pair(title="pods of a StatefulSet that wait until a Service names them", rule="wait-ends",
         objects={"set": {**(found := _waiting("StatefulSet", TWO, _wait("nslookup chat-0.chat"))),
                          "spec": {**found["spec"], "podManagementPolicy": "Parallel"}},
                  "service": service(ports=_OPEN)},
         remedy={f"set.{_INIT}": REMOVED}, hangs=_waits(TWO), ends=_serves(TWO)),
    Pair(title="a script that waits for the server which it starts later", rule="wait-ends",
         objects={"set": _serving_script(f"{_wait(f'curl localhost:{_HTTP}/health')}; ")},
         remedy={"set.spec.template.spec.containers[0].command":
                 _serving_script("")["spec"]["template"]["spec"]["containers"][0]["command"]},
         hangs=_waits(1), ends=_serves(1)),
)  # fmt: skip
