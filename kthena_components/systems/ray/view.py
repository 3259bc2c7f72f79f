"""How KubeRay reads a cluster: a head and groups of workers, and what Ray is told of their GPUs.

Source: ray-project/kuberay ray-operator/apis/ray/v1/raycluster_types.go, controllers/ray/common
/pod.go BuildPod, controllers/ray/utils/util.go GetWorkerGroupDesiredReplicas.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kthena_components.core.facts.pod import PodFacts, read_pod
from kthena_components.core.findings import join_path
from kthena_components.core.values.display import display, text_of
from kthena_components.core.values.read import MAX_COUNT, as_count, as_list, as_map
from kthena_components.core.values.unknown import MaybeInt, Unknown, is_unresolved

OVERWRITE = "ray.io/overwrite-container-cmd"
"""With this annotation KubeRay leaves the container's command as it is."""
_NOT_YET = Unknown("the groups of workers are not known yet")
_SHELL = ("/bin/bash", "-lc", "--")


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The head of a Ray cluster, or one group of workers."""

    path: str
    name: str
    fields: Mapping[str, Any]
    pod: PodFacts
    low: MaybeInt
    """Pods that it has at least."""
    high: MaybeInt
    """Pods that the autoscaler may make of it; `low` where there is none."""

    @property
    def ray_gpus(self) -> MaybeInt:
        """GPUs of a pod, as KubeRay counts them for `ray start`: other accelerators are apart."""
        total = 0
        for device in self.pod.devices:
            if isinstance(device.count, Unknown):
                return device.count
            kind = device.resource.rpartition("/")[2]
            total += device.count if kind.endswith("gpu") or kind.startswith("mig-") else 0
        return total


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A Ray cluster as KubeRay would make it."""

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

    def total(self, *, most: bool) -> MaybeInt:
        """Add up the GPUs of all pods, as few or as many as there may be."""
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


def read_cluster(spec: object, path: str) -> Cluster | None:
    """Read the spec of a RayCluster; None where there is none, or it is not known yet."""
    fields = as_map(spec)
    head = spec if is_unresolved(spec) else fields.get("headGroupSpec")
    if head is None:
        return None
    at = join_path(path, "headGroupSpec")
    pod = _pod(head, f"{at}.template", "ray start --head")
    scaled, listed = fields.get("enableInTreeAutoscaling"), fields.get("workerGroupSpecs")
    groups = [listed] if is_unresolved(listed) else as_list(listed)
    return Cluster(
        path=path,
        head=Group(path=at, name="head", fields=as_map(head), pod=pod, low=1, high=1),
        workers=tuple(
            _workers(item, join_path(path, f"workerGroupSpecs[{index}]"), scaled)
            for index, item in enumerate(groups)
        ),
    )


def _workers(group: object, path: str, scaled: object) -> Group:
    fields = as_map(group)
    name = fields.get("groupName")
    low, high = (_NOT_YET, _NOT_YET) if is_unresolved(group) else _range(fields, scaled)
    return Group(
        path=path,
        name=name if isinstance(name, str) and not is_unresolved(name) else "?",
        fields=fields,
        pod=_pod(group, f"{path}.template", "ray start --address=head"),
        low=low,
        high=high,
    )


def _range(group: Mapping[str, Any], scaled: object) -> tuple[MaybeInt, MaybeInt]:
    if group.get("suspend") is True:
        return 0, 0
    values = (
        as_count(group.get("numOfHosts"), "numOfHosts", 1),
        as_count(group.get("replicas"), "replicas", 0),
        as_count(group.get("minReplicas"), "minReplicas", 0),
        as_count(group.get("maxReplicas"), "maxReplicas", MAX_COUNT),
        Unknown("enableInTreeAutoscaling is not known yet") if is_unresolved(scaled) else 0,
    )
    known: list[int] = []
    for value in values:
        if isinstance(value, Unknown):
            return value, value
        known.append(value)
    hosts, replicas, least, most, _ = known
    if scaled is True:
        return least * hosts, max(least, most) * hosts
    fixed = least if replicas < least else min(replicas, most)
    return fixed * hosts, fixed * hosts


def _pod(group: object, path: str, start: str) -> PodFacts:
    """Read a group's template with the command that KubeRay would give its first container.

    The container's own command comes first, then `ray start`: where the latter stands in it
    already, nothing is added.
    """
    template = group if is_unresolved(group) else as_map(group).get("template")
    spec = as_map(template).get("spec")
    containers = as_map(spec).get("containers")
    annotations = as_map(as_map(as_map(template).get("metadata")).get("annotations"))
    own = str(annotations.get(OVERWRITE, "")).lower() == "true"
    if own or not as_list(containers) or any(map(is_unresolved, (spec, *as_list(containers)))):
        return read_pod(template, path)
    first, *rest = as_list(containers)
    started = {**as_map(first), **_command(as_map(first), start)}
    return read_pod({"spec": {**as_map(spec), "containers": [started, *rest]}}, path)


def _command(container: Mapping[str, Any], start: str) -> dict[str, Any]:
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
    return [item for item in as_list(part) if isinstance(item, str | int | float)]


def pods_text(group: Group) -> str:
    """Write a group for a message: `gpu-group 2 × 8`."""
    pods = str(group.high) if group.low == group.high else f"{group.low} to {group.high}"
    return f"{display(group.name).strip(chr(39))} {pods} × {group.pod.gpus}"
