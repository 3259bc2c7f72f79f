"""One object of a stack, and the pods that it makes.

MAKERS is the one list of the kinds that hold pod templates of their own. What other kinds make of
their fields, such as an InferenceService, the caller reads and hands over as Held.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kthena_components.core import naming
from kthena_components.core.checks.kthena_reading import count, mapping, text
from kthena_components.core.checks.lws_reading import DISAGGREGATED_GROUP, read_sets
from kthena_components.core.checks.volcano_reading import JOB, MODEL_SERVING, items
from kthena_components.core.findings import join_path
from kthena_components.core.known import MaybeInt, MaybeText, Unknown

Kind = tuple[str, str]
"""API group and kind."""
LWS: Kind = ("leaderworkerset.x-k8s.io", "LeaderWorkerSet")
DISAGGREGATED: Kind = (DISAGGREGATED_GROUP, "DisaggregatedSet")
MODEL_INFERS: tuple[Kind, ...] = (
    ("workload.matrixinfer.ai", "ModelInfer"),
    ("workload.volcano.sh", "ModelInfer"),
    ("workload.serving.volcano.sh", "ModelInfer"),
)
EACH_POD = frozenset(
    {
        "apps.kubernetes.io/pod-index",
        "statefulset.kubernetes.io/pod-name",
        "controller-revision-hash",
        "pod-template-hash",
        "batch.kubernetes.io/job-completion-index",
        "batch.kubernetes.io/controller-uid",
    }
)
"""Labels that a controller adds when it makes the pod: no manifest shows them."""
_RAY = {"RayCluster": "", "RayService": "rayClusterConfig", "RayJob": "rayClusterSpec"}
"""Where each kind of KubeRay keeps its cluster."""
_NODES = Unknown("a DaemonSet has as many pods as there are nodes")
_NO_COUNT = Unknown("the number of pods is not a count")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One object of the stack."""

    index: int
    path: str
    manifest: Mapping[str, Any]
    version: object
    group: str
    kind: str
    name: MaybeText | None
    namespace: MaybeText | None
    """Empty for what belongs to the whole cluster."""

    @property
    def spec(self) -> Mapping[str, Any]:
        """Give the object's spec."""
        return mapping(self.manifest.get("spec"))

    def at(self, path: str) -> str:
        """Write a place of this object in the caller's coordinates."""
        return join_path(self.path, path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pods:
    """Equal pods that an object makes."""

    entry: Entry
    path: str
    """Where their template stands, in the object."""
    count: MaybeInt
    labels: Mapping[str, Any]
    annotations: Mapping[str, Any]
    spec: Mapping[str, Any]
    by_controller: bool = False
    """Whether a controller of its own makes the PodGroup of these pods."""
    spread: bool = False
    """Whether each of their engines has several pods, which are meant for several nodes."""

    @property
    def gang(self) -> MaybeText | None:
        """Give the name of the PodGroup that these pods ask for."""
        return text(self.annotations.get(naming.POD_GROUP))

    @property
    def task(self) -> MaybeText | None:
        """Give the task that these pods carry out; a label stands in for the annotation."""
        task = text(self.annotations.get(naming.TASK_SPEC))
        return text(self.labels.get(naming.TASK_SPEC)) if task in (None, "") else task


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What an object asks for whose pods do not stand in it as templates."""

    gpus: MaybeInt
    """Accelerators of all its pods."""
    resources: frozenset[str] = frozenset()
    """The names of the resources that they are."""


def pods_of(entry: Entry) -> Iterator[Pods]:
    """Give the pods that an object makes, equal ones together."""
    make = MAKERS.get((entry.group, entry.kind))
    if make is not None:
        yield from make(entry)


def _pod(entry: Entry) -> Iterator[Pods]:
    yield _pods(entry, "", entry.manifest, 1)


def _daemons(entry: Entry) -> Iterator[Pods]:
    yield _pods(entry, "spec.template", entry.spec.get("template"), _NODES)


def _copies(entry: Entry, key: str = "replicas") -> Iterator[Pods]:
    yield _pods(entry, "spec.template", entry.spec.get("template"), _count(entry.spec.get(key), 1))


def _batch(entry: Entry) -> Iterator[Pods]:
    yield from _copies(entry, "parallelism")


def _schedule(entry: Entry) -> Iterator[Pods]:
    job, at = mapping(mapping(entry.spec.get("jobTemplate")).get("spec")), "spec.jobTemplate.spec"
    yield _pods(entry, f"{at}.template", job.get("template"), _count(job.get("parallelism"), 1))


def _ray(entry: Entry) -> Iterator[Pods]:
    inner = _RAY.get(entry.kind, "")
    cluster, at = (
        mapping(entry.spec.get(inner)) if inner else entry.spec,
        f"spec.{inner}".strip("."),
    )
    head = mapping(cluster.get("headGroupSpec"))
    yield _pods(entry, f"{at}.headGroupSpec.template", head.get("template"), 1, by_controller=True)
    for i, item in enumerate(items(cluster.get("workerGroupSpecs"))):
        group, place = mapping(item), f"{at}.workerGroupSpecs[{i}].template"
        hosts = _times(_count(group.get("replicas"), 1), _count(group.get("numOfHosts"), 1))
        made = group.get("template")
        yield _pods(entry, place, made, hosts, by_controller=True, spread=hosts != 0)


def _tasks(entry: Entry) -> Iterator[Pods]:
    for i, item in enumerate(items(entry.spec.get("tasks"))):
        task, at = mapping(item), f"spec.tasks[{i}].template"
        number = _count(task.get("replicas"), 1)
        yield _pods(entry, at, task.get("template"), number, by_controller=True)


def _roles(entry: Entry) -> Iterator[Pods]:
    groups = _count(entry.spec.get("replicas"), 1)
    for i, item in enumerate(items(mapping(entry.spec.get("template")).get("roles"))):
        role, at = mapping(item), f"spec.template.roles[{i}]"
        engines = _times(groups, _count(role.get("replicas"), 1))
        each = _count(role.get("workerReplicas"), 0)
        workers = _times(engines, each)
        for name, number in (("entryTemplate", engines), ("workerTemplate", workers)):
            if role.get(name) is not None:
                place = f"{at}.{name}"
                yield _pods(entry, place, role[name], number, by_controller=True, spread=each != 0)


def _groups(entry: Entry) -> Iterator[Pods]:
    for group in read_sets(entry.manifest).groups:
        size = _whole(group.size)
        rest = size if isinstance(size, Unknown) else max(size - 1, 0)
        leader = "leaderTemplate" if group.template.get("leaderTemplate") else "workerTemplate"
        groups = _times(_whole(group.replicas), _count(entry.spec.get("slices"), 1))
        for name, number in ((leader, groups), ("workerTemplate", _times(groups, rest))):
            at = f"{group.path}.leaderWorkerTemplate.{name}"
            if number != 0:
                made = group.template.get(name)
                yield _pods(entry, at, made, number, by_controller=True, spread=rest != 0)


def _whole(number: MaybeInt | None) -> MaybeInt:
    return _NO_COUNT if number is None else number


def _pods(
    entry: Entry,
    path: str,
    template: object,
    number: MaybeInt,
    *,
    by_controller: bool = False,
    spread: bool = False,
) -> Pods:
    fields = mapping(template)
    metadata = mapping(fields.get("metadata"))
    return Pods(
        entry=entry,
        path=path,
        count=number,
        labels=mapping(metadata.get("labels")),
        annotations=mapping(metadata.get("annotations")),
        spec=mapping(fields.get("spec")),
        by_controller=by_controller,
        spread=spread,
    )


def _count(value: object, default: int) -> MaybeInt:
    number = count(value, default)
    return (
        _NO_COUNT if number is None else number if isinstance(number, Unknown) else max(number, 0)
    )


def _times(one: MaybeInt, other: MaybeInt) -> MaybeInt:
    if one == 0 or other == 0:
        return 0
    if isinstance(one, Unknown) or isinstance(other, Unknown):
        return one if isinstance(one, Unknown) else other
    return one * other


def total(counts: Sequence[MaybeInt]) -> MaybeInt:
    """Add counts up; one that is not known makes the sum unknown."""
    gap = next((number for number in counts if isinstance(number, Unknown)), None)
    return gap or sum(number for number in counts if isinstance(number, int))


MAKERS: Mapping[Kind, Callable[[Entry], Iterator[Pods]]] = {
    ("", "Pod"): _pod,
    ("apps", "Deployment"): _copies,
    ("apps", "StatefulSet"): _copies,
    ("apps", "ReplicaSet"): _copies,
    ("apps", "DaemonSet"): _daemons,
    ("batch", "Job"): _batch,
    ("batch", "CronJob"): _schedule,
    **{("ray.io", kind): _ray for kind in _RAY},
    JOB: _tasks,
    MODEL_SERVING: _roles,
    **dict.fromkeys(MODEL_INFERS, _roles),
    LWS: _groups,
    DISAGGREGATED: _groups,
}
