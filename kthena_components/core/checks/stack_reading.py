"""The objects of one cluster, read once for the rules that compare them.

A stack is read in one pass; each rule then looks things up by namespace and name. Nothing in a
manifest makes the reading raise.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from kthena_components.core import naming
from kthena_components.core.checks.kthena_reading import LATE, count, gap_of, mapping, text
from kthena_components.core.checks.volcano_reading import JOB, MODEL_SERVING, identity, items, pairs
from kthena_components.core.findings import join_path
from kthena_components.core.known import MaybeInt, MaybeText, Unknown
from kthena_components.core.quantity import add_resources, is_accelerator, parse_quantity

Amounts = Mapping[str, Decimal]
_NODES = Unknown("a DaemonSet has as many pods as there are nodes")
_NO_COUNT = Unknown("the number of pods is not a count")
_REPLICAS = {
    ("apps", "Deployment"): "replicas",
    ("apps", "StatefulSet"): "replicas",
    ("apps", "ReplicaSet"): "replicas",
    ("batch", "Job"): "parallelism",
}
_CLUSTER_WIDE = frozenset(
    {
        ("scheduling.volcano.sh", "Queue"),
        ("topology.volcano.sh", "HyperNode"),
        ("", "Namespace"),
        ("", "Node"),
        ("", "PersistentVolume"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        ("rbac.authorization.k8s.io", "ClusterRole"),
        ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
        ("scheduling.k8s.io", "PriorityClass"),
        ("storage.k8s.io", "StorageClass"),
    }
)


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

    @property
    def gang(self) -> MaybeText | None:
        """Give the name of the PodGroup that these pods ask for."""
        return text(self.annotations.get(naming.POD_GROUP))

    @property
    def task(self) -> MaybeText | None:
        """Give the task that these pods carry out; a label stands in for the annotation."""
        task = text(self.annotations.get(naming.TASK_SPEC))
        return text(self.labels.get(naming.TASK_SPEC)) if task in (None, "") else task


Key = tuple[str, str]


@dataclass(slots=True)
class Stack:
    """All objects, and where to find them."""

    entries: list[Entry] = field(default_factory=list)
    by_kind: dict[tuple[str, str], list[Entry]] = field(default_factory=dict)
    pods: list[Pods] = field(default_factory=list)
    gangs: dict[Key, list[Pods]] = field(default_factory=dict)
    """Pods by the namespace and the name of the PodGroup that they ask for."""
    unsure: Unknown | None = None
    """Why it is not known of some pods which PodGroup they ask for."""

    def of(self, kind: tuple[str, str]) -> list[Entry]:
        """List the objects of a group and kind."""
        return self.by_kind.get(kind, [])

    def named(self, kind: tuple[str, str]) -> dict[Key, Entry]:
        """Find the objects of a kind by namespace and name; the first of each name."""
        found: dict[Key, Entry] = {}
        for entry in self.of(kind):
            if isinstance(entry.name, str) and isinstance(entry.namespace, str):
                found.setdefault((entry.namespace, entry.name), entry)
        return found

    def names_gap(self, kind: tuple[str, str]) -> Unknown | None:
        """Say why it is not known what all objects of a kind are called, if it is not."""
        for entry in self.of(kind):
            for value in (entry.name, entry.namespace):
                if isinstance(value, Unknown):
                    return value
        return None


def read_stack(manifests: Sequence[object], paths: Sequence[str]) -> Stack:
    """Read the objects of one cluster."""
    stack = Stack()
    for index, manifest in enumerate(manifests):
        if not isinstance(manifest, Mapping):
            continue
        entry = _entry(index, manifest, paths[index] if index < len(paths) else "")
        stack.entries.append(entry)
        stack.by_kind.setdefault((entry.group, entry.kind), []).append(entry)
        for pods in _pods_of(entry):
            stack.pods.append(pods)
            _add_to_gang(stack, pods)
    return stack


def _entry(index: int, manifest: Mapping[str, Any], path: str) -> Entry:
    group, kind = identity(manifest)
    metadata = mapping(manifest.get("metadata"))
    wide = (group, kind) in _CLUSTER_WIDE
    return Entry(
        index=index,
        path=path,
        manifest=manifest,
        version=manifest.get("apiVersion"),
        group=group,
        kind=kind,
        name=text(metadata.get("name")),
        namespace="" if wide else text(metadata.get("namespace"), "default"),
    )


def _add_to_gang(stack: Stack, pods: Pods) -> None:
    gang, namespace = pods.gang, pods.entry.namespace
    if pods.by_controller or gang is None:
        return
    if isinstance(gang, str) and isinstance(namespace, str):
        stack.gangs.setdefault((namespace, gang), []).append(pods)
    else:
        stack.unsure = stack.unsure or LATE


def _pods_of(entry: Entry) -> Iterator[Pods]:
    kind, spec = (entry.group, entry.kind), entry.spec
    if kind == ("", "Pod"):
        yield _pods(entry, "", entry.manifest, 1)
    elif kind == ("apps", "DaemonSet"):
        yield _pods(entry, "spec.template", spec.get("template"), _NODES)
    elif kind in _REPLICAS:
        number = _count(spec.get(_REPLICAS[kind]), 1)
        yield _pods(entry, "spec.template", spec.get("template"), number)
    elif kind == JOB:
        for i, item in enumerate(items(spec.get("tasks"))):
            task, at = mapping(item), f"spec.tasks[{i}].template"
            number = _count(task.get("replicas"), 1)
            yield _pods(entry, at, task.get("template"), number, by_controller=True)
    elif kind == MODEL_SERVING:
        yield from _pods_of_serving(entry)


def _pods_of_serving(entry: Entry) -> Iterator[Pods]:
    groups = _count(entry.spec.get("replicas"), 1)
    for i, item in enumerate(items(mapping(entry.spec.get("template")).get("roles"))):
        role, at = mapping(item), f"spec.template.roles[{i}]"
        engines = _times(groups, _count(role.get("replicas"), 1))
        workers = _times(engines, _count(role.get("workerReplicas"), 0))
        for name, number in (("entryTemplate", engines), ("workerTemplate", workers)):
            if role.get(name) is not None:
                yield _pods(entry, f"{at}.{name}", role[name], number, by_controller=True)


def _pods(
    entry: Entry, path: str, template: object, number: MaybeInt, *, by_controller: bool = False
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


def requests_of(pods: Pods) -> dict[str, Decimal] | Unknown:
    """Add up what the containers of one pod ask for; a limit stands in for a request.

    Init containers run before the others, so a pod asks for the larger of the two; one that
    stays (restartPolicy Always) counts with the others.
    """
    if gap := gap_of(pods.spec.get("containers")) or gap_of(pods.spec.get("initContainers")):
        return gap
    asked: dict[str, Decimal] = {}
    first: dict[str, Decimal] = {}
    for name in ("containers", "initContainers"):
        for item in items(pods.spec.get(name)):
            amounts = _requests(item)
            if isinstance(amounts, Unknown):
                return amounts
            if name == "containers" or mapping(item).get("restartPolicy") == "Always":
                asked = add_resources(asked, amounts)
            else:
                first = {
                    key: max(first.get(key, Decimal(0)), amounts.get(key, Decimal(0)))
                    for key in {**first, **amounts}
                }
    return {
        key: max(asked.get(key, Decimal(0)), first.get(key, Decimal(0)))
        for key in {**asked, **first}
    }


def _requests(container: object) -> dict[str, Decimal] | Unknown:
    resources = mapping(mapping(container).get("resources"))
    lists = [resources.get("limits"), resources.get("requests")]
    gap = gap_of(container) or gap_of(mapping(container).get("resources"))
    gap = gap or next((gap for gap in map(gap_of, lists) if gap), None)
    if gap:
        return gap
    found: dict[str, Decimal] = {}
    for resource, stated in (*pairs(lists[0]), *pairs(lists[1])):
        if gap := gap_of(stated):
            return gap
        amount = parse_quantity(stated)
        if isinstance(resource, str) and amount is not None:
            found[resource] = amount
    return {resource: amount for resource, amount in found.items() if amount > 0}


def gpus_of(pods: Pods) -> int | Unknown:
    """Count the accelerators of one pod."""
    asked = requests_of(pods)
    if isinstance(asked, Unknown):
        return asked
    return sum(int(amount) for resource, amount in asked.items() if is_accelerator(resource))
