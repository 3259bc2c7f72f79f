"""Reads KubeRay's clusters: a head and groups of workers, and their GPUs as Ray counts them.

Source: ray-project/kuberay ray-operator/apis/ray/v1/raycluster_types.go,
controllers/ray/common/pod.go BuildPod, controllers/ray/utils/util.go GetWorkerGroupDesiredReplicas.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kthena_components.core.engines.files import read_file
from kthena_components.core.facts.container import SharedMemory, read_volumes
from kthena_components.core.facts.context import Context
from kthena_components.core.facts.files import PodVolumes, read_files
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.findings import join_path
from kthena_components.core.objects.object import Object
from kthena_components.core.schema.versions import has_since
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display, text_of
from kthena_components.core.values.read import (
    MAX_COUNT,
    count_or_unknown,
    inside,
    list_of_texts,
    mapping,
    sequence,
)
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import MaybeInt, Unknown, is_unresolved
from kthena_components.systems.ray.serve_config import CONFIG, Served, read_served

# The command that KubeRay gives a group's first container, also from the chart vllm-stack.
#
# Source: ray-project/kuberay ray-operator/controllers/ray/common/pod.go BuildPod.


_OVERWRITE = "ray.io/overwrite-container-cmd"
"""With this annotation KubeRay leaves the container's command as it is, which may run _START."""
_START = "KUBERAY_GEN_RAY_START_CMD"
_SHELL = ("/bin/bash", "-lc", "--")


def with_ray_start(group: object, start: str, found: Object) -> object:
    """Give a group's template with the command that KubeRay would give its first container.

    The container's own command comes first, then `ray start`: where the latter stands in it
    already, nothing is added. The annotation that keeps the command stands on the cluster or on the
    template (controllers/ray/common/pod.go).
    """
    template = inside(group, "template")
    spec = mapping(template).get("spec")
    containers = mapping(spec).get("containers")
    holders = (mapping(template).get("metadata"), found.metadata)
    if not sequence(containers) or any(map(is_unresolved, (spec, *sequence(containers)))):
        return template
    first = mapping(sequence(containers)[0])
    if any(_keeps_command(mapping(holder)) for holder in holders):
        stated = first.get("env")
        env = [*sequence(stated), {"name": _START, "value": start}]
        if is_unresolved(stated):
            return template
        return {**mapping(template), **mapping(_changed(template, {**first, "env": env}))}
    script = chart_command(first, mapping(spec), found.context)
    if script is not None:
        return with_command(template, script)
    return _changed(template, _command(first, start))


def _keeps_command(metadata: Mapping[str, Any]) -> bool:
    return str(mapping(metadata.get("annotations")).get(_OVERWRITE, "")).lower() == "true"


def with_command(template: object, command: Sequence[str]) -> object:
    """Give a template whose first container runs something else."""
    return _changed(template, {"command": list(command)})


def _changed(template: object, words: Mapping[str, Any]) -> object:
    """Give a template whose first container has the command and the args that are given, if any."""
    spec = mapping(mapping(template).get("spec"))
    containers = sequence(spec.get("containers"))
    if not containers:
        return template
    first, *rest = containers
    kept = {key: item for key, item in mapping(first).items() if key != "args" or not words}
    return {"spec": {**spec, "containers": [{**kept, **words}, *rest]}}


def _command(container: Mapping[str, Any], start: str) -> dict[str, Any]:
    """Put `ray start` behind the command of a container, as KubeRay does."""
    words = [container.get("command"), container.get("args")]
    listed = [item for part in words for item in _items(part)]
    if any(map(is_unresolved, (*words, *listed))):
        return {}
    given = " ".join(text_of(word) for word in listed)
    if "ray start" in given:
        return {}
    script = f"{given} && {start}" if given else start
    if container.get("args") is not None:
        return {"command": list(_SHELL), "args": [script]}
    return {"command": [*_SHELL, script]}


def _items(part: object) -> Sequence[object]:
    return [item for item in sequence(part) if isinstance(item, str | int | float)]


# Reads the script of the Helm chart vllm-stack, whose RayCluster has its engine in a ConfigMap.
#
# The head copies the script out of its mount and runs the copy. The script appends words to an
# array and runs it. The chart writes each line of the script from its values. Source:
# vllm-project/production-stack helm/templates/ray-cluster.yaml, chart 0.1.12.
_SCRIPT = "/entrypoint/vllm-entrypoint.sh"
_WORDS = regex(r"^\s*ARGS\+?=\(([^()]*)\)\s*$", re.MULTILINE)
_RUN = regex(r'^\s*exec "\$\{ARGS\[@\]\}"\s*$', re.MULTILINE)


def chart_command(
    container: Mapping[str, Any], spec: Mapping[str, Any], context: Context
) -> list[str] | None:
    """Return the command of the head of such a cluster; None for other containers and scripts.

    Args:
        container: The head's first container.
        context: What is known beside the object: the ConfigMap with the script.
    """
    words = list_of_texts(container.get("command"))
    if not any(f"cp {_SCRIPT} " in word for word in words):
        return None
    files, _ = read_files(container, PodVolumes(read_volumes(spec), context), "")
    text = read_file(files, _SCRIPT)
    # The reader of scripts reports why one is not at hand.
    return _engine(text) if isinstance(text, str) else ["bash", _SCRIPT]


def _engine(text: str) -> list[str] | None:
    """Return the command that the chart's script runs; None for other scripts."""
    parts = _WORDS.findall(text)
    if not parts or not _RUN.search(text) or text.count("ARGS") > len(parts) + 2:
        return None
    try:
        return [word for part in parts for word in shlex.split(part)]
    except ValueError:
        return None


CLUSTERS = {"RayCluster": "", "RayService": "rayClusterConfig", "RayJob": "rayClusterSpec"}
"""Path of the cluster in the spec of each of KubeRay's kinds."""
ENTRYPOINT = "entrypoint"
_RESERVED = ("NumCpus", "NumGpus", "Resources")
"""The field of a RayJob's spec that says what runs on the cluster."""
_NOT_YET = Unknown("the groups of workers are not known yet")
_HEAD, _WORKER = "ray start --head", "ray start --address=$(FQ_RAY_IP):6379 --block"


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The head of a Ray cluster, or one group of workers."""

    path: str
    name: str
    stated: object
    """The group as written, which may be a string that is not known yet."""
    fields: Mapping[str, Any]
    template: object
    """Its pod template, with KubeRay's command in the first container."""
    pod: PodFacts
    """The facts of its pods, with paths in the object."""
    low: MaybeInt
    """Minimum number of pods."""
    high: MaybeInt
    """Maximum number of pods with an autoscaler; otherwise `low`."""
    command_at: str = ""
    """Where its command stands, in the object; empty for the template."""

    @property
    def params(self) -> Mapping[str, Any]:
        """The parameters of `ray start`."""
        return mapping(self.fields.get("rayStartParams"))

    @property
    def pod_spec(self) -> Mapping[str, Any]:
        """The pod spec of its template, as written."""
        return mapping(mapping(self.fields.get("template")).get("spec"))

    @property
    def container(self) -> Mapping[str, Any]:
        """The container of Ray, which is the first one."""
        return mapping(next(iter(sequence(self.pod_spec.get("containers"))), None))

    @property
    def ray_gpus(self) -> MaybeInt:
        """GPUs of a pod, as KubeRay counts them for `ray start`; other accelerators are ignored."""
        total = 0
        for device in self.pod.devices:
            if isinstance(device.count, Unknown):
                return device.count
            kind = device.resource.rpartition("/")[2]
            total += device.count if kind.endswith("gpu") or kind.startswith("mig-") else 0
        return total


def read_group_pod(
    template: object, at: str, params: Mapping[str, Any], context: Context
) -> PodFacts:
    """Read the pods of a group, with the shared memory that KubeRay mounts.

    It mounts memory at /dev/shm of the first container, unless something is mounted there, or the
    group states another place for Ray's objects. Source: ray-operator/controllers/ray/common/pod.go
    BuildPod, addEmptyDir.
    """
    pod = read_pod(template, at, context=context)
    own = pod.own
    if own is None or own.shm is not SharedMemory.NOTHING or "plasma-directory" in params:
        return pod
    if own.path != f"{at}.spec.containers[0]":
        return pod
    return replace(pod, own=replace(own, shm=SharedMemory.MEMORY))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A Ray cluster as KubeRay would create it."""

    path: str
    head: Group
    workers: tuple[Group, ...]

    @property
    def groups(self) -> tuple[Group, ...]:
        """The head and the workers."""
        return (self.head, *self.workers)

    @property
    def with_gpus(self) -> tuple[Group, ...]:
        """The groups of workers whose pods have GPUs, or may have."""
        return tuple(g for g in self.workers if g.pod.gpus != 0 and g.high != 0)

    @property
    def is_mixed(self) -> bool:
        """Whether groups of workers have different numbers of GPUs."""
        return len({group.pod.gpus for group in self.with_gpus}) > 1

    @property
    def starts_engine(self) -> bool:
        """Whether the head's command starts an engine. Most do not: work is submitted later."""
        command = self.head.pod.command
        return command is not None and command.engine is not None

    def total(self, *, most: bool) -> MaybeInt:
        """Add up the GPUs of all pods: their minimum or maximum."""
        total = 0
        for group in self.groups:
            pods, gpus = (group.high if most else group.low), group.pod.gpus
            if gpus == 0:
                continue
            for value in (pods, gpus):
                if isinstance(value, Unknown):
                    return value
            if isinstance(pods, int) and isinstance(gpus, int):
                total += pods * gpus
        return total


@dataclass(frozen=True, slots=True, kw_only=True)
class RayView:
    """A RayCluster, RayService or RayJob."""

    object: Object
    path: str
    """Path of the cluster."""
    fields: Mapping[str, Any]
    """The fields of the cluster."""
    head: Group
    """The head, if there is one."""
    workers: tuple[Group, ...]
    """The groups of workers that are listed."""
    cluster: Cluster | None
    """The cluster; None without a head."""
    served: tuple[Served, ...] | Unknown
    """The models of its Serve config."""

    @property
    def groups(self) -> tuple[Group, ...]:
        """The head, if there is one, and the groups of workers."""
        return self.workers if self.head.stated is None else (self.head, *self.workers)

    def has_since(self, first: str) -> bool:
        """Return whether the given KubeRay is at least this release."""
        return has_since(self.object.context.versions, "ray", first)


def read_ray(found: Object) -> RayView:
    """Read the cluster and what is served on it; never raises."""
    spec, inner = found.body.get("spec"), CLUSTERS.get(found.kind, "")
    stated = inside(spec, inner) if inner else spec
    path, fields = join_path("spec", inner), mapping(stated)
    is_late = is_unresolved(stated)
    head = _head(stated if is_late else fields.get("headGroupSpec"), path, found)
    scaled, listed = fields.get("enableInTreeAutoscaling"), fields.get("workerGroupSpecs")
    workers = tuple(
        _workers(item, join_path(path, f"workerGroupSpecs[{index}]"), scaled, found)
        for index, item in enumerate([listed] if is_unresolved(listed) else sequence(listed))
    )
    return RayView(
        object=found,
        path=path,
        fields=fields,
        head=head,
        workers=() if is_unresolved(listed) else workers,
        cluster=None if head.stated is None else Cluster(path=path, head=head, workers=workers),
        served=read_served(mapping(spec).get(CONFIG)),
    )


def _head(stated: object, path: str, found: Object) -> Group:
    """Read the head. The entrypoint of a RayJob runs there, beside the head's own command.

    With its own resources, Ray places it in any pod that has them. Source: ray
    python/ray/dashboard/modules/job/job_supervisor.py, which hands it to a shell, and
    job_manager.py, _get_scheduling_strategy.
    """
    at, template = join_path(path, "headGroupSpec"), with_ray_start(stated, _HEAD, found)
    place = f"{at}.template"
    params, entrypoint = mapping(inside(stated, "rayStartParams")), found.spec.get(ENTRYPOINT)
    pod = read_group_pod(template, place, params, found.context)
    own = pod.command is not None and pod.command.engine is not None
    command_at = ""
    own = own or any(found.spec.get(f"{ENTRYPOINT}{part}") for part in _RESERVED)
    if isinstance(entrypoint, str) and stated is not None and not own and found.kind == "RayJob":
        started = with_command(template, ["sh", "-c", entrypoint])
        other = read_group_pod(started, place, params, found.context)
        if other.command is not None and other.command.engine is not None:
            command_at, template = f"spec.{ENTRYPOINT}", started
            pod = replace(other, command_path=command_at)
    return Group(
        path=at,
        name="head",
        stated=stated,
        fields=mapping(stated),
        template=template,
        pod=pod,
        low=1,
        high=1,
        command_at=command_at,
    )


def _workers(stated: object, path: str, scaled: object, found: Object) -> Group:
    """Read a group of workers, with the pods that it has at least and at most."""
    fields, template = mapping(stated), with_ray_start(stated, _WORKER, found)
    name = fields.get("groupName")
    low, high = (_NOT_YET, _NOT_YET) if is_unresolved(stated) else _range(fields, scaled)
    return Group(
        path=path,
        name=name if isinstance(name, str) and not is_unresolved(name) else "?",
        stated=stated,
        fields=fields,
        template=template,
        pod=read_group_pod(
            template, f"{path}.template", mapping(fields.get("rayStartParams")), found.context
        ),
        low=low,
        high=high,
    )


def _range(group: Mapping[str, Any], scaled: object) -> tuple[MaybeInt, MaybeInt]:
    """Return the least and the most pods of a group, hosts × replicas; both 0 if suspended."""
    if group.get("suspend") is True:
        return 0, 0
    values = (
        Unknown("suspend is not known yet") if is_unresolved(group.get("suspend")) else 0,
        count_or_unknown(group.get("numOfHosts"), "numOfHosts", 1),
        count_or_unknown(group.get("replicas"), "replicas", 0),
        count_or_unknown(group.get("minReplicas"), "minReplicas", 0),
        count_or_unknown(group.get("maxReplicas"), "maxReplicas", MAX_COUNT),
        Unknown("enableInTreeAutoscaling is not known yet") if is_unresolved(scaled) else 0,
    )
    known: list[int] = []
    for value in values:
        if isinstance(value, Unknown):
            return value, value
        known.append(value)
    _, hosts, replicas, least, most, _ = known
    if scaled is True:
        return least * hosts, max(least, most) * hosts
    fixed = least if replicas < least else min(replicas, most)
    return fixed * hosts, fixed * hosts


def pods_text(group: Group) -> str:
    """Format a group for a message: `gpu-group 2 × 8`."""
    pods = str(group.high) if group.low == group.high else f"{group.low} to {group.high}"
    return f"{display(group.name).strip(chr(39))} {pods} × {group.pod.gpus}"
