"""Reads one pod template: whether it serves or joins an engine, and the number of pods."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from kthena_components.core import naming
from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.container import SHM_PATH, ContainerFacts
from kthena_components.core.facts.context import NO_CONTEXT, Context
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.pod_template import read_pod, read_pods
from kthena_components.core.facts.ports import ProbeFacts, relocated_ports
from kthena_components.core.facts.serving import EngineFacts
from kthena_components.core.values.dataclass import replace
from kthena_components.core.values.quantity import is_accelerator
from kthena_components.core.values.read import (
    count_or_unknown,
    group_kind,
    inside,
    mapping,
    sequence,
)
from kthena_components.core.values.unknown import MaybeBool, MaybeInt, Unknown, is_unresolved

NOT_STATED = Unknown("this object does not state how many pods form one engine")

ELSEWHERE = Unknown("the engine is started by another object")

NO_SCHEDULER = Unknown("the scheduler is not known yet")

_LONGEST_SIZE = 6
"""Maximum digits of a GROUP_SIZE that is read."""

_SERVING_PORT = 8080
"""Where KServe and Knative send requests, if a container states no port."""


_POD, _JOB = ("", "Pod"), ("batch", "Job")
_COUNTS = {
    **dict.fromkeys(
        (("apps", "StatefulSet"), ("apps", "Deployment"), ("apps", "ReplicaSet")), "replicas"
    ),
    _JOB: "parallelism",
}
"""The field with the number of pods, by kind."""


class OnlyTemplate(NamedTuple):
    """The only pod template of an object, its path there, and the number of its pods."""

    body: Mapping[str, Any]
    path: str
    number: MaybeInt


def only_template(body: Mapping[str, Any]) -> OnlyTemplate | None:
    """Return the only template of a kind that may have a part of an engine; None for others."""
    kind, spec = group_kind(body), mapping(body.get("spec"))
    if kind == _POD:
        return OnlyTemplate(body, "", 1)
    if kind not in _COUNTS:
        return None
    count = count_or_unknown(spec.get(_COUNTS[kind]), _COUNTS[kind], 1)
    return OnlyTemplate(mapping(spec.get("template")), "spec.template", count)


def label_pairs(stated: object) -> set[tuple[str, str]]:
    """Return labels as pairs of strings, for comparisons."""
    return {(str(key), str(value)) for key, value in mapping(stated).items()}


def may_have_ranks(made: OnlyTemplate) -> bool:
    """Return whether the pods of a template may be ranks of an engine."""
    spec = mapping(made.body.get("spec"))
    containers = [mapping(each) for each in sequence(spec.get("containers"))]
    asked = [mapping(mapping(each.get("resources")).get("limits")) for each in containers]
    return not containers or any(is_accelerator(str(name)) for each in asked for name in each)


def may_hold_ranks(value: object) -> bool:
    """Return whether any pods in an object may be ranks of an engine."""
    if isinstance(value, Mapping):
        below: Iterable[object] = value.values()
        if "containers" in value and may_have_ranks(OnlyTemplate({"spec": value}, "", 1)):
            return True
    else:
        below = value if isinstance(value, list | tuple) else ()
    return any(map(may_hold_ranks, below))


def read_template(
    template: object, path: str, name: str, spec: object, context: Context = NO_CONTEXT
) -> list[EngineFacts]:
    """Read the engines of a pod template; spec states how many pods are made of it."""
    return engines_in(pods_of_template(template, path, context), template, path, name, spec)


def engines_in(
    pods: Iterable[PodFacts], template: object, path: str, name: str, spec: object
) -> list[EngineFacts]:
    """Return the engines of the pods of a template, as they were read."""
    size, made = group_size(mapping(template)), mapping(spec)
    return [
        engine_of(name, pod, template, size=size, path=path, spec=made)
        for pod in pods
        if is_serving(pod)
    ]


def admitted_together(metadata: object) -> MaybeBool:
    """Return whether Kueue admits the pods of an object once there is room for all of them.

    Source: kubernetes-sigs/kueue pkg/controller/constants.
    """
    labels = inside(metadata, "labels")
    if is_unresolved(labels) or any(map(is_unresolved, mapping(labels))):
        return Unknown("the labels of the object are not known yet")
    return "kueue.x-k8s.io/queue-name" in mapping(labels)


def labels_of(template: object) -> Mapping[str, Any]:
    """Return the labels of a pod template, or of an object."""
    return mapping(mapping(mapping(template).get("metadata")).get("labels"))


def pods_of_template(template: object, path: str, context: Context = NO_CONTEXT) -> list[PodFacts]:
    """Read a pod template of a workload, with requests defaulted from limits by the API server.

    Source: kubernetes pkg/apis/core/v1/defaults.go SetDefaults_Pod.
    """
    return [fill_requests(pod) for pod in read_pods(template, path, context=context)]


def fill_requests(pod: PodFacts) -> PodFacts:
    """Return the facts of a pod whose requests were defaulted from its limits."""
    if all(device.request is not None for device in pod.devices):
        return pod
    devices = (replace(d, request=d.limit) if d.request is None else d for d in pod.devices)
    return replace(pod, devices=tuple(devices))


def is_serving(pod: PodFacts) -> bool:
    """Return whether a pod is relevant for checks: most workloads serve no model."""
    starts = pod.command is not None and pod.command.engine is not None
    hidden = pod.gap is not None and isinstance(pod.all_gpus, Unknown)
    blocks = any(other.serves for other in pod.others)
    return starts or pod.asks_for_gpus or hidden or blocks


def engine_of(
    name: str,
    pod: PodFacts,
    template: object,
    *,
    size: MaybeInt | None,
    path: str,
    spec: Mapping[str, Any],
) -> EngineFacts:
    """Return the engine of a pod. `spec` states its copies; `size` is its GROUP_SIZE."""
    joins = _joins(pod.command, labels_of(template))
    pods = ELSEWHERE if joins else pods_of(size, pod.command)
    return EngineFacts(
        path=path,
        name=name,
        pods=pods,
        replicas=1 if pods != 1 else count_or_unknown(spec.get("replicas"), "replicas", 1),
        entry=replace(pod, command=_joining(pod.command), joined=pod.command) if joins else pod,
        worker=None,
    )


def _joins(command: CommandFacts | None, labels: Mapping[str, Any]) -> bool:
    """Return whether a pod only joins an engine: by our label, or by its command.

    A headless pod with --nnodes can stand for its entry: both have the same share.
    """
    if naming.WORKER in labels:
        return True
    if command is None:
        return False
    alone = command.engine is None and command.ray_role == "worker"
    return alone or (command.headless is True and command.nnodes is None)


def pods_of(size: MaybeInt | None, command: CommandFacts | None) -> MaybeInt:
    """Count the pods of one engine, or return why it is unknown; size is GROUP_SIZE."""
    if command is None or isinstance(size, int):
        return 1 if size is None else size
    for stated in (command.ray_cluster_size, command.nnodes, size):
        if stated is not None:
            return stated
    if command.mpi_ranks is not None or command.ray_role is not None:
        return NOT_STATED
    for launcher in (command.executor, command.data_backend):
        if isinstance(launcher, Unknown):
            return launcher
        if launcher == "ray":
            return NOT_STATED
    return _pods_of_copies(command)


def group_size(template: Mapping[str, Any]) -> MaybeInt | None:
    """Read GROUP_SIZE, which a controller or this package puts into every container."""
    for container in sequence(mapping(template.get("spec")).get("containers")):
        for item in sequence(mapping(container).get("env")):
            entry = mapping(item)
            value = entry.get("value")
            if entry.get("name") != naming.GROUP_SIZE:
                continue
            if isinstance(value, str) and len(value) <= _LONGEST_SIZE and value.isdecimal():
                return int(value) or None
            return Unknown(f"the value of {naming.GROUP_SIZE} is not in the manifest")
    return None


def _pods_of_copies(command: CommandFacts) -> MaybeInt:
    """Count the pods of an engine whose data-parallel copies each fit in a pod.

    With external load balancing, each pod is a separate engine (vllm/engine/arg_utils.py).
    """
    data, local = command.data, command.data_local
    if command.data_mode != "internal" or local is None or local == data:
        return 1
    for value in (data, local):
        if isinstance(value, Unknown):
            return value
    if isinstance(data, int) and isinstance(local, int) and local and data % local == 0:
        return data // local
    return NOT_STATED


def _joining(command: CommandFacts | None) -> CommandFacts:
    """Return the facts of a pod that joins an engine, without the sizes, which are the entry's.

    Headless means that it joins without Ray.
    """
    if command is None:
        return CommandFacts(ray_role="worker", headless=True)
    by_ray = command.engine is None and command.ray_role is not None
    joins = CommandFacts(ray_role="worker", headless=not by_ray)
    return replace(
        joins, ray_script=command.ray_script, ray_gpus=command.ray_gpus, problems=command.problems
    )


def relocated(pod: PodFacts, place: Callable[[str], str]) -> PodFacts:
    """Give the same facts with every path replaced.

    Args:
        pod: Facts with paths in a pod template.
        place: Gives the path in the object for a path in the template.
    """

    def container(own: ContainerFacts) -> ContainerFacts:
        """Move all paths of a container's facts to where its fields are written."""
        return replace(
            own,
            path=place(own.path),
            image_path=place(own.image_path),
            shm_path=own.shm_path and place(own.shm_path),
            tokens=tuple(replace(token, path=place(token.path)) for token in own.tokens),
            ports=relocated_ports(own.ports, place),
        )

    return replace(
        pod,
        gpus_path=place(pod.gpus_path),
        command_path=place(pod.command_path),
        devices=tuple(replace(device, path=place(device.path)) for device in pod.devices),
        missing=tuple(replace(key, path=place(key.path)) for key in pod.missing),
        own=container(pod.own) if pod.own is not None else None,
        others=tuple(map(container, pod.others)),
        variables={
            name: replace(variable, path=place(variable.path))
            for name, variable in pod.variables.items()
        },
    )


# Reads kinds whose spec is one container (image, args, env).


_CONTAINER = "spec.containers[0]"
SHARED_MEMORY: Mapping[str, Any] = {"name": "dshm", "emptyDir": {"medium": "Memory"}}
"""The volume that some controllers always add, mounted at /dev/shm (MOUNTED)."""
MOUNTED: Mapping[str, Any] = {"name": "dshm", "mountPath": SHM_PATH}


def read_single(
    container: Mapping[str, Any],
    places: Mapping[str, str],
    at: Callable[[str], str],
    *,
    volumes: Sequence[object] = (),
    context: Context = NO_CONTEXT,
) -> PodFacts:
    """Read the pod that a controller makes of one container.

    Args:
        container: The container as the controller writes it.
        places: Path of each of its fields in the object, and of the rest under an empty key.
        at: Returns the path in the caller's input for a path in the object.
    """

    def place(path: str) -> str:
        """Translate a path in the composed pod to the place of that field in the object."""
        if not path.startswith(_CONTAINER):
            return at(places.get("", ""))
        inner = path.removeprefix(_CONTAINER).removeprefix(".")
        field = next((f for f in places if f and inner.startswith(f)), "")
        rest = inner.removeprefix(field)
        to = places.get(field, "")
        joined = f"{to}.{rest}" if to and rest and not rest.startswith((".", "[")) else to + rest
        return at(joined)

    template = {"spec": {"containers": [container], "volumes": list(volumes)}}
    return fill_requests(relocated(read_pod(template, "", context=context), place))


def with_default_probe(pod: PodFacts, ports: object, action: str) -> PodFacts:
    """Add the readinessProbe that KServe or Knative gives an engine's container.

    It asks the first port of the container, or 8080 if that states none.

    Args:
        ports: The ports of the container, as stated.
        action: BY_KSERVE or BY_KNATIVE.
    """
    own, listed = pod.own, sequence(ports)
    port = mapping(listed[0]).get("containerPort") if listed else _SERVING_PORT
    if own is None or is_unresolved(ports) or not isinstance(port, int):
        return pod
    probe = ProbeFacts(path=f"{own.path}.ports", action=action, kind="readinessProbe", port=port)
    probed = replace(own.ports, probes=(*own.ports.probes, probe))
    return replace(pod, own=replace(own, ports=probed))
