"""One object of a cluster, its pods and their requests."""

from collections.abc import Callable, Mapping
from decimal import Decimal
from itertools import chain
from typing import Any

from kthena_components.core import naming
from kthena_components.core.facts.claims import ClaimedDevices, read_claims
from kthena_components.core.facts.context import NO_CONTEXT, Context, in_object
from kthena_components.core.findings import join_path
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.quantity import is_accelerator, parse_quantity
from kthena_components.core.values.read import (
    count,
    first_unknown,
    group_kind,
    is_name,
    mapping,
    pairs,
    sequence,
    text,
    unknown_in,
    unknown_within,
)
from kthena_components.core.values.unknown import MaybeInt, MaybeText, Unknown, total

GroupKind = tuple[str, str]
"""API group and kind."""

_UIDS = ("batch.kubernetes.io/controller-uid", "controller-uid")
_LABELS: Mapping[str, tuple[str, ...]] = {
    "DaemonSet": ("controller-revision-hash", "pod-template-generation"),
    "Deployment": ("pod-template-hash",),
    "Job": _UIDS,
    "StatefulSet": (
        *(naming.POD_INDEX, "statefulset.kubernetes.io/pod-name", "controller-revision-hash"),
    ),
}
"""Labels whose values only the controller of a kind knows."""
_OF_INDEXED = (
    *("batch.kubernetes.io/job-index-failure-count",),
    "batch.kubernetes.io/job-index-ignored-failure-count",
)
EACH_POD = frozenset((naming.COMPLETION_INDEX, *chain.from_iterable(_LABELS.values())))
"""Labels that a controller adds to pods it creates: no manifest shows them."""


def fields_of_kind(kind: str, *, indexed: bool = False) -> tuple[str, ...]:
    """Return what a controller of Kubernetes adds to its pods' metadata, as paths of fields.

    Source: kubernetes pkg/controller/statefulset/stateful_set_utils.go updateIdentity,
    deployment/sync.go, daemon/util/daemonset_util.go, job/indexed_job_utils.go, and
    pkg/registry/batch/job/strategy.go generateSelector.

    Args:
        kind: The kind. A CronJob makes Jobs.
        indexed: Whether its pods are those of an indexed Job.
    """
    of_job = kind in {"CronJob", "Job"}
    labels = (*_LABELS["Job"], *naming.JOB_NAMES) if of_job else _LABELS.get(kind, ())
    found = [naming.label_field(key) for key in labels]
    if indexed:
        found += naming.fields_of_pod(naming.COMPLETION_INDEX)
        found += map(naming.annotation_field, _OF_INDEXED)
    return tuple(found)


_NO_COUNT = Unknown("the number of pods is not a count")


@dataclass(frozen=True, slots=True, kw_only=True)
class Object:
    """One object of a cluster, as it would be applied."""

    body: Mapping[str, Any]
    path: str = ""
    """Its path in the caller's input; a prefix of every path."""
    context: Context = NO_CONTEXT
    """Its context."""
    index: int = 0
    """Its index among the objects that are checked together."""
    group: str
    kind: str
    name: MaybeText | None
    namespace: MaybeText | None
    """Empty for cluster-scoped objects."""

    @property
    def group_kind(self) -> GroupKind:
        """Its API group and kind, without the version."""
        return self.group, self.kind

    @property
    def version(self) -> object:
        """Its apiVersion, even if invalid."""
        return self.body.get("apiVersion")

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Its metadata."""
        metadata = self.body.get("metadata")
        return metadata if type(metadata) is dict else mapping(metadata)

    @property
    def spec(self) -> Mapping[str, Any]:
        """Its spec."""
        spec = self.body.get("spec")
        return spec if type(spec) is dict else mapping(spec)

    @property
    def stated_namespace(self) -> str:
        """The namespace that it states; empty if it states none, or it is not known."""
        space = self.metadata.get("namespace")
        return str(space) if is_name(space) else ""

    def at(self, path: str) -> str:
        """Return a path of this object in the caller's input."""
        return join_path(self.path, path) if self.path else path


def read_object(
    body: Mapping[str, Any],
    path: str = "",
    context: Context = NO_CONTEXT,
    *,
    index: int = 0,
    cluster_wide: bool = False,
) -> Object:
    """Read what identifies an object.

    Args:
        context: Its context: ConfigMaps, shapes of models and versions of systems.
        index: Its index among the objects that are checked together.
        cluster_wide: Whether its kind is cluster-scoped.
    """
    group, kind = group_kind(body)
    metadata = mapping(body.get("metadata"))
    return Object(
        body=body,
        path=path,
        context=in_object(context, body),
        index=index,
        group=group,
        kind=kind,
        name=text(metadata.get("name")),
        namespace="" if cluster_wide else text(metadata.get("namespace"), "default"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSet:
    """Equal pods of an object."""

    owner: Object
    path: str
    """Path of their template, in the object."""
    count: MaybeInt
    labels: Mapping[str, Any]
    annotations: Mapping[str, Any]
    spec: Mapping[str, Any]
    by_controller: bool = False
    """Whether a separate controller creates the PodGroup of these pods."""
    spread: bool = False
    """Whether each of their engines has several pods, intended for several nodes."""
    written: Callable[[str], str] | None = None
    """Maps a path in the template to a path in the object. None: below `path`."""
    name: str = ""
    """Name of the part of the object that has these pods. Empty: it stands above their template."""
    added: Mapping[str, object] | None = None
    """Labels that their controller adds to the template's: a value, Unknown, or the pattern of a
    value that no manifest shows. None: it may add any."""
    numbered: MaybeInt | None = None
    """How many of them their controller numbers together, from 0. None: all."""

    def at(self, path: str) -> str:
        """Return the path in the caller's input of a field of the pod template.

        Args:
            path: The field in the template, such as `spec.containers[0]`.
        """
        inner = join_path(self.path, path) if self.written is None else self.written(path)
        return self.owner.at(inner)

    @property
    def gang(self) -> MaybeText | None:
        """Return the name of the pods' PodGroup."""
        return text(self.annotations.get(naming.POD_GROUP))

    @property
    def task(self) -> MaybeText | None:
        """Return the pods' task; a label replaces a missing annotation."""
        task = text(self.annotations.get(naming.TASK_SPEC))
        return text(self.labels.get(naming.TASK_SPEC)) if task in (None, "") else task


def as_copies(number: MaybeInt | None) -> MaybeInt:
    """Return a count, or Unknown for anything else."""
    return _NO_COUNT if number is None else number


def pod_set(
    owner: Object,
    path: str,
    template: object,
    number: MaybeInt,
    *,
    by_controller: bool = False,
    spread: bool = False,
    written: Callable[[str], str] | None = None,
    numbered: MaybeInt | None = None,
) -> PodSet:
    """Return equal pods of one template."""
    fields = mapping(template)
    metadata = mapping(fields.get("metadata"))
    return PodSet(
        owner=owner,
        path=path,
        count=number,
        labels=mapping(metadata.get("labels")),
        annotations=mapping(metadata.get("annotations")),
        spec=mapping(fields.get("spec")),
        by_controller=by_controller,
        spread=spread,
        written=written,
        numbered=numbered,
    )


def copies_in(value: object, default: int) -> MaybeInt:
    """Read the number of copies in a field; negative numbers count as 0."""
    number = count(value, default)
    return (
        _NO_COUNT if number is None else number if isinstance(number, Unknown) else max(number, 0)
    )


# Schedulers of gangs, and kinds of Kubernetes, and of the two systems whose terms a plan uses.


VOLCANO, KAI = "volcano", "kai-scheduler"
"""The names of their schedulers."""

NODE, CLAIM = ("", "Node"), ("", "PersistentVolumeClaim")

POD_GROUP = ("scheduling.volcano.sh", "PodGroup")

QUEUE = ("scheduling.volcano.sh", "Queue")

HYPER_NODE = ("topology.volcano.sh", "HyperNode")

JOB = ("batch.volcano.sh", "Job")

MODEL_SERVER = ("networking.serving.volcano.sh", "ModelServer")

MODEL_SERVING = ("workload.serving.volcano.sh", "ModelServing")


# Adds up the requests of a pod over its containers.


Amounts = Mapping[str, Decimal]


def allocatable(node: Mapping[str, Any]) -> dict[str, Decimal]:
    """Return what a Node can allocate, without what is not a quantity; empty if it is not known."""
    status = mapping(node.get("status"))
    stated = status.get("allocatable") or status.get("capacity")
    if unknown_within(stated):
        return {}
    read = ((key, parse_quantity(value)) for key, value in pairs(stated))
    return {str(key): amount for key, amount in read if amount is not None}


def requests_of(pods: PodSet) -> dict[str, Decimal] | Unknown:
    """Add up the requests of one pod's containers; a limit replaces a missing request.

    Init containers run before the others, so a pod requests the larger of the two. Sidecars
    (restartPolicy Always) count with the others.
    """
    return requests_in(pods.spec)


def requests_in(spec: Mapping[str, object]) -> dict[str, Decimal] | Unknown:
    """Add up the requests of the containers in the spec of a pod, as `requests_of` does."""
    if gap := first_unknown(spec.get("containers"), spec.get("initContainers")):
        return gap
    asked: dict[str, Decimal] = {}
    first: dict[str, Decimal] = {}
    for name in ("containers", "initContainers"):
        for item in sequence(spec.get(name)):
            amounts = _requests(item)
            if isinstance(amounts, Unknown):
                return amounts
            if name == "containers" or mapping(item).get("restartPolicy") == "Always":
                for key, amount in amounts.items():
                    asked[key] = asked.get(key, Decimal(0)) + amount
            else:
                for key, amount in amounts.items():
                    first[key] = max(first.get(key, Decimal(0)), amount)
    for key, amount in first.items():
        asked[key] = max(asked.get(key, amount), amount)
    return asked


def _requests(container: object) -> dict[str, Decimal] | Unknown:
    """Read what a container requests, where a limit stands for a missing request.

    Keys are resource names, values are amounts above 0 in Kubernetes units (bytes, cores).
    """
    resources = mapping(container).get("resources")
    limits, requests = mapping(resources).get("limits"), mapping(resources).get("requests")
    if gap := first_unknown(container, resources, limits, requests):
        return gap
    found: dict[str, Decimal] = {}
    listed: list[tuple[object, object]] = [*mapping(limits).items(), *mapping(requests).items()]
    for resource, stated in listed:
        if gap := unknown_in(stated):
            return gap
        amount = parse_quantity(stated)
        if isinstance(resource, str) and amount is not None:
            found[resource] = amount
    return {resource: amount for resource, amount in found.items() if amount > 0}


def gpus_of(pods: PodSet) -> int | Unknown:
    """Count the accelerators of one pod, without those that it shares with other pods.

    Claims that are not known count where a pod has no other accelerators: in others they mostly
    are for networks.
    """
    asked = requests_of(pods)
    if isinstance(asked, Unknown):
        return asked
    own = sum(int(amount) for resource, amount in asked.items() if is_accelerator(resource))
    found, gap = claims_of(pods)
    claimed = total(each.asked.count for each in found if not each.shared)
    if gap is not None and not own and not found:
        return gap
    return total((own, claimed))


_WHOLE = ("nvidia.com/gpu", "google.com/tpu", "habana.ai/gaudi")
"""Not amd.com/gpu and aws.amazon.com/neuroncore: a node may have 64 partitions, or 128 cores."""


def whole_gpus(pods: PodSet) -> int:
    """Count the whole GPUs of a pod; one alone may be a share of a GPU, by time-slicing."""
    asked = requests_of(pods)
    count = 0 if isinstance(asked, Unknown) else sum(int(asked.get(name, 0)) for name in _WHOLE)
    return count if count > 1 else 0


def shared_gpus(pods: PodSet) -> dict[tuple[object, str], MaybeInt]:
    """Return the accelerators that pods share with others, by namespace and claim."""
    found, _ = claims_of(pods)
    return {(pods.owner.namespace, each.key): each.asked.count for each in found if each.shared}


def claims_of(pods: PodSet) -> tuple[list[ClaimedDevices], Unknown | None]:
    """Return what all containers of a pod get by claims, and why they may get more."""
    found: dict[str, ClaimedDevices] = {}
    gap = None
    if pods.spec.get("resourceClaims") is not None:
        for field in ("containers", "initContainers"):
            for container in map(mapping, sequence(pods.spec.get(field))):
                claims = read_claims(container, pods.spec, pods.owner.context)
                found.update((each.key, each) for each in claims.devices)
                gap = gap or claims.gap
    return [*found.values()], gap


def pulumi_identity(resource_type: str) -> dict[str, str]:
    """Read apiVersion and kind from a type such as `kubernetes:apps/v1:StatefulSet`."""
    _, version, kind = (*resource_type.split(":"), "", "")[:3]
    return {"apiVersion": version.removeprefix("core/"), "kind": kind}
