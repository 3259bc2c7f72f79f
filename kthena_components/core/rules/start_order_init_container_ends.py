"""Rules of the start and end of containers: order, init containers, and servers in background."""

import re
from collections.abc import Iterator

from kthena_components.core.facts.container import ContainerFacts
from kthena_components.core.facts.listening import DEFAULT_PORTS, listening
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.ports import DECIDING, ProbeFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding, count_of
from kthena_components.core.remedies import either, write
from kthena_components.core.rules.support.engine_pods import meeting_of
from kthena_components.core.rules.support.messages import title
from kthena_components.core.values.display import display
from kthena_components.core.values.read import require_known
from kthena_components.core.values.regex import regex

_TWO = 2
_INIT = ".initContainers["
_OF_LEADER = regex(r"\$[({]?[A-Z_]*(?:LEADER|ENTRY|MASTER|HEAD)[A-Z_]*[)}]?", re.ASCII)
"""The host that a controller's variable names."""
_OF_HEAD = regex(r"[\w-]+-head-svc(?:\.[\w.-]+)?|\$[({]?(?:FQ_)?RAY_IP[)}]?", re.ASCII)
"""The head of a Ray cluster: kuberay ray-operator/controllers/ray/utils/util.go
GenerateHeadServiceName, and the variables of its workers in common/pod.go."""


def start_order(facts: ServingFacts) -> Iterator[Finding]:
    """The other pods of an engine do not wait until its first pod answers requests.

    An engine over several pods answers requests when all of them have joined it. So its first pod
    never becomes ready if it has a readinessProbe or a startupProbe on the port of the server, and
    the others start only when it is ready. The same applies to a script of theirs, also in an init
    container, that waits for that port. In each pod, the containers start when the startupProbes of
    the sidecars have passed, so no such startupProbe asks the port of the engine, unless the
    sidecar states the same port, and none asks a port by a name that the sidecar does not have.

    Pass: LeaderReady and a leader without probes; LeaderCreated with a readinessProbe; an init
    container that waits for Ray's port 6379.
    Fail: startupPolicy LeaderReady, or the OrderedReady of a StatefulSet, and a readinessProbe on
    the port of an engine with --nnodes 2; `until curl $LWS_LEADER_ADDRESS:8000/health` in an init
    container of its workers, and the same with the host of their --master-addr, or with
    CLUSTER-head-svc; a sidecar (restartPolicy Always) with a startupProbe on the engine's port.
    Level: mandatory.
    Source: kubernetes-sigs/lws pkg/controllers/pod_controller.go; kubernetes
    pkg/controller/statefulset/stateful_set_control.go and pkg/kubelet/kuberuntime/
    kuberuntime_container.go computeInitContainerActions; ai-dynamo/grove operator/initc; Volcano
    pkg/controllers/job/job_controller_actions.go; vllm/v1/engine/utils.py
    wait_for_engine_startup; sglang/srt/entrypoints/engine.py _launch_subprocesses.
    """
    for engine in facts.engines:
        port = _port(engine)
        yield from _by_sidecar(engine, port)
        if port is None or not _needs_others(engine):
            continue
        yield from _by_controller(engine, port)
        yield from _by_script(engine, port)


def _needs_others(engine: EngineFacts) -> bool:
    """Return whether the first pod of an engine answers only when other pods have joined it."""
    command, gpus, pods = engine.entry.command, engine.entry.gpus, engine.pods
    copies = 0 if engine.siblings is None else engine.siblings.count
    if engine.worker is None and copies < _TWO:
        return False
    if command is None or command.hidden or not isinstance(pods, int) or pods < _TWO:
        return False
    if isinstance(command.nnodes, int) and command.nnodes > 1:
        return True
    joined = command.engine == "vllm" and command.data_mode == "internal"
    world = command.world if joined else command.per_rank_world
    return isinstance(world, int) and isinstance(gpus, int) and 0 < gpus < world


def _port(engine: EngineFacts) -> int | None:
    """Return the port on which the first pod answers requests; None if it is unclear."""
    command = engine.entry.command
    if command is None or command.engine not in DEFAULT_PORTS:
        return None
    found = listening(engine.entry, first=True)
    stated = command.options.get("--port", DEFAULT_PORTS[command.engine])
    port = stated if found is None else found.answers
    return port if isinstance(port, int) else None


def _by_controller(engine: EngineFacts, port: int) -> Iterator[Finding]:
    """Report a controller that starts workers after a probe of a port which needs the workers."""
    order, own = engine.order, engine.entry.own
    if order is None or own is None:
        return
    probes = (*own.ports.probes, *own.ports.of_first)
    probe = next((p for p in probes if p.kind in DECIDING and p.port == port), None)
    if probe is None:
        return
    yield Finding(
        path=order.path,
        seen=f"{order.why}, but {_never(engine, port)}, and its {_described(probe)} waits for that",
        remedy=order.remedy,
    )


def _described(probe: ProbeFacts) -> str:
    return f"{probe.kind} (port {probe.port})"


def _never(engine: EngineFacts, port: int) -> str:
    return (
        f"the first pod of {title(engine)} answers on {port} only when all of its "
        f"{count_of(engine.pods, 'pod') if isinstance(engine.pods, int) else 'pods'} have joined"
    )


def _by_sidecar(engine: EngineFacts, port: int | None) -> Iterator[Finding]:
    """Report sidecars that start only when a container answers that starts after them."""
    for pod in filter(None, (engine.entry, engine.worker)):
        if pod.own is None or _INIT in pod.own.path:
            continue
        open_ended = pod.command is None or pod.command.hidden is not None
        own = port if pod is engine.entry and not open_ended else None
        for sidecar in (each for each in pod.others if each.stays):
            for probe in sidecar.ports.probes:
                seen = _never_passes(engine, sidecar, probe, own)
                if seen:
                    yield Finding(
                        path=probe.path,
                        seen=f"{seen}, but the pod's other containers start only after this "
                        "startupProbe of a sidecar has passed, so it never passes",
                        remedy="write a port of the sidecar itself, or remove the startupProbe",
                    )


def _never_passes(
    engine: EngineFacts, sidecar: ContainerFacts, probe: ProbeFacts, port: int | None
) -> str:
    """Return what a startupProbe of a sidecar asks that is not there; empty if it may be."""
    if probe.kind != "startupProbe":
        return ""
    if probe.port is None:
        name = display(probe.name)
        return f"names the port {name}, which container {display(sidecar.name)} does not have"
    itself = sidecar.ports.stated | sidecar.ports.mentioned
    if port is None or probe.port != port or port in itself:
        return ""
    require_known(probe.path, sidecar.unread)
    return f"asks port {port}, on which {title(engine)} answers"


def _by_script(engine: EngineFacts, port: int) -> Iterator[Finding]:
    """Report workers whose script or init container waits for a port which needs the workers."""
    worker = engine.worker
    if worker is None:
        return
    containers = [each for each in worker.others if _INIT in each.path]
    if (own := worker.own) is not None and own.ports.alone and not own.ports.on_host:
        containers.append(own)
    for container in containers:
        if any(at == port and _is_first(worker, host) for host, at in container.waits):
            yield Finding(
                path=container.path,
                seen=f"container '{container.name}' of the workers waits until port {port} of the "
                f"first pod answers, but {_never(engine, port)}",
                remedy="wait for the port at which they join, or remove the loop: engines wait for "
                "each other",
            )


def _is_first(worker: PodFacts, host: str) -> bool:
    """Return whether a host is the first pod of the engine that a worker joins."""
    if _OF_LEADER.fullmatch(host) or _OF_HEAD.fullmatch(host):
        return True
    command = worker.command
    meeting = None if command is None else meeting_of(command)
    shown = meeting.shown if meeting is not None else command.ray_written if command else ""
    return host == shown.partition(":")[0]


def init_container_ends(facts: ServingFacts) -> Iterator[Finding]:
    """No init container runs an engine's server, unless it is a sidecar.

    Kubernetes starts the other containers when each init container has ended, and a server does not
    end. With restartPolicy Always it is a sidecar, which runs beside them. Servers that a shell or
    a program such as timeout starts are not reported: it may end them.

    Pass: initContainers[0] with vllm serve and restartPolicy: Always.
    Fail: initContainers[0] with vllm serve and no restartPolicy.
    Level: mandatory.
    Source: kubernetes pkg/kubelet/kuberuntime/kuberuntime_container.go
        computeInitContainerActions; KEP-753, Sidecar containers.
    """
    for engine in facts.engines:
        for pod in filter(None, (engine.entry, engine.worker)):
            for container in pod.others:
                if container.serves:
                    yield Finding(
                        path=container.path,
                        seen=f"{title(engine)} has an init container '{container.name}' that runs "
                        "an engine's server, which does not end, so the pod's other containers "
                        "never start",
                        remedy=either(
                            write(
                                "Always",
                                "write restartPolicy: Always in it",
                                at=f"{container.path}.restartPolicy",
                            ),
                            "move it to containers",
                        ),
                    )


def container_outlives_server(facts: ServingFacts) -> Iterator[Finding]:
    """The script of an engine's container does not end while the server runs in the background.

    A container stops when its first process ends, and all others are killed. Nothing is reported
    where a controller adds commands to the script, as KubeRay does.

    Pass: `vllm serve m -tp 8 & wait`; `vllm serve m -tp 8 &`, then a loop.
    Fail: `vllm serve m -tp 8 &` at the end of the script; the same with nohup.
    Level: mandatory.
    Source: pid_namespaces(7); Kubernetes documentation, Pod Lifecycle, Container states.
    """
    for engine in facts.engines:
        command = engine.entry.command
        if command is None or not command.ends_before_engine or command.hidden is not None:
            continue
        if not engine.ray_started:
            yield Finding(
                path=engine.entry.command_path,
                seen=f"{title(engine)} runs its server in the background, and its script ends, so "
                "the container stops, and the server with it",
                remedy="remove the & after the server, or write `wait` at the end of the script",
            )
