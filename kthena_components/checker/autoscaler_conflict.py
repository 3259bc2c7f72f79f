"""Checks the autoscalers of a cluster, and their targets."""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.checker.read_cluster_objects import known
from kthena_components.core.findings import Finding, advise, not_checked, suggest
from kthena_components.core.naming import name_slip_of
from kthena_components.core.objects.cluster_objects import ClusterObjects, Key
from kthena_components.core.objects.object import MODEL_SERVING, GroupKind, Object
from kthena_components.core.remedies import write
from kthena_components.core.schema.crds import CrdTable, load
from kthena_components.core.schema.versions import VERSIONS, known_version, read_release
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display, listing
from kthena_components.core.values.read import first_unknown, group_kind, mapping
from kthena_components.systems import INDEX, find_kind
from kthena_components.systems.kubernetes.rules.autoscalers_and_coscheduling_pods import (
    HPA,
    SCALED_OBJECT,
    VPA,
    replicas_of,
    stated_target,
)
from kthena_components.systems.system import Made

CONFLICT = "autoscaler-conflict"
REMOVE_IT = "remove the autoscaler, and write "
"""The remedy where a target must keep its number, which is the next word."""
_TARGET = "autoscaler-target"
_SCALERS = frozenset({HPA, SCALED_OBJECT, VPA})
_INSTALLS = "vllm_stack"
"""The system of the kinds that install charts."""
_MANY = 4
"""Names in a message."""


_ONE_COMMAND = frozenset({"Deployment", "StatefulSet"})
"""Kinds whose pods all have one command line."""
_OF_APPS = frozenset({"Deployment", "StatefulSet", "ReplicaSet"})
"""Kinds of the API group apps, which no other group has since Kubernetes 1.16."""
_KEPT_NAMES: tuple[GroupKind, ...] = (
    ("apps", "StatefulSet"),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"),
    MODEL_SERVING,
)
"""Kinds whose controllers create no Deployment of their name."""

_Whose = tuple[GroupKind, Key]
_Rival = tuple[GroupKind, Key, str, str]


@dataclass(frozen=True, slots=True)
class _Target:
    """The target of an autoscaler."""

    scaler: Object
    kind: GroupKind
    name: str
    namespace: str
    version: str = ""
    """The apiVersion that the autoscaler states; empty if it states none that counts."""
    at: str = "spec.scaleTargetRef"
    part: str = ""
    """The part of it whose number is scaled; empty for the whole."""
    by_its_system: bool = False
    """Whether the autoscaler belongs to a system, and needs no scale subresource."""

    @property
    def path(self) -> str:
        """The path at which the autoscaler names its target."""
        return self.scaler.at(self.at)


def autoscaler_conflict(cluster: ClusterObjects) -> Iterator[Finding]:
    """An autoscaler's target can be scaled, and has no other autoscaler.

    Some objects must keep their replicas: the StatefulSets of a ServingGroup, whose pods are one
    engine, a StatefulSet whose pods meet at one stated address with --nnodes, the head and the
    workers of an engine over Ray or of data parallel copies, and an InferenceService with a
    workerSpec, for which KServe allows no autoscaler. An autoscaler changes the number only by the
    scale subresource, which many custom resources do not have: the CRDs of the given release of the
    system tell. Kthena's AutoscalingPolicies and AIBrix's PodAutoscalers are autoscalers, too; they
    may scale different roles of one object. Files may be alternatives, so only autoscalers in the
    same file are compared, unless `--whole` says that all are in one cluster. KEDA looks for a
    target in the API version that it is given; a HorizontalPodAutoscaler finds it in any of the
    group. Without an apiVersion and a kind, KEDA scales a Deployment, and a HorizontalPodAutoscaler
    finds nothing.

    Pass: a HorizontalPodAutoscaler for a Deployment.
    Fail: a ScaledObject for an InferenceService with a workerSpec; a HorizontalPodAutoscaler for an
    LLMInferenceService, which has no scale subresource; two autoscalers of one target, such as a
    HorizontalPodAutoscaler and an AutoscalingPolicy of one ModelServing; a ScaledObject for
    leaderworkerset.x-k8s.io/v1alpha1; a ScaledObject for the Deployment of an LLMInferenceService
    that states replicas, or of an InferenceService that KServe scales.
    Level: mandatory; advisory for a kind that is left out, and for surplus workers over Ray.
    Source: kserve pkg/apis/serving/v1beta1/inference_service_validation.go; Kubernetes
    documentation, Horizontal Pod Autoscaling; keda.sh, ScaledObject specification; the subresources
    of the CRDs in each system's crds.json, and matrixinfer-ai/matrixinfer config/crd; the markers
    kubebuilder:subresource of the types in ai-dynamo/dynamo deploy/operator/api,
    kubernetes-sigs/jobset api, NVIDIA/k8s-nim-operator api and sgl-project/ome pkg/apis;
    kedacore/keda pkg/util/gvkr.go; kubernetes pkg/controller/podautoscaler/horizontal.go; kserve
    pkg/controller/v1alpha2/llmisvc/workload.go and v1beta1/inferenceservice/reconcilers/hpa.
    """
    first: dict[_Rival, Object] = {}
    kept = _kept_by_controllers(cluster)
    for target in _targets(cluster):
        if isinstance(target, Finding):
            yield target
            continue
        key = (target.namespace, target.name)
        whose = (target.kind, key, target.part, cluster.source_of(target.scaler))
        other = first.setdefault(whose, target.scaler)
        if _identity(other) != _identity(target.scaler):
            seen = f"is {_shown(target)}, which the {other.kind} {display(other.name)} scales too, "
            seen += "and each would undo what the other does"
            yield _conflict(target.path, seen, "keep one of the two")
        else:
            yield from _unfit(cluster, target, kept.get((target.kind, key)))


def _unfit(cluster: ClusterObjects, target: _Target, made: Made | None) -> Iterator[Finding]:
    """Report a target that must not be scaled, or that is not found."""
    why = _why_not(cluster, target, made)
    if not why and (place := _in_other_group(cluster, target)):
        yield _not_found(target, place)
    elif why:
        seen = f"is {_shown(target)}, which {why}"
        kind = find_kind(target.kind)
        number = made.number_in if made else kind.number_in if kind else "replicas"
        yield _conflict(target.path, seen, f"{REMOVE_IT}{number}")
    elif served := _other_versions(target):
        seen = f"is {display(target.version)}, but {target.kind[1]} is served as {served}"
        remedy = write(served, f"write {served}")
        yield _conflict(f"{target.path}.apiVersion", seen, remedy)
    else:
        yield from _of_other_kind(cluster, target)


def _in_other_group(cluster: ClusterObjects, target: _Target) -> str:
    """Return the apiVersion of a target, if the autoscaler states a group without its kind."""
    group, kind = target.kind
    if target.by_its_system or find_kind(target.kind) or cluster.by_kind.get(target.kind):
        return ""
    if kind in _OF_APPS:
        return "" if group == "apps" else "apps/v1"
    key = (target.namespace, target.name)
    others = (each for each in cluster.by_kind if each[1] == kind)
    found = next(filter(None, (cluster.named(each).get(key) for each in others)), None)
    return "" if found is None else str(found.body.get("apiVersion") or "")


def _not_found(target: _Target, place: str) -> Finding:
    stated = _fields(target).get("apiVersion")
    shown = "is missing" if stated is None else f"is {display(stated)}"
    seen = f"{shown}, where the {target.scaler.kind} finds no kind {target.kind[1]}"
    return _conflict(f"{target.path}.apiVersion", seen, write(place, f"write {place}"))


def _of_other_kind(cluster: ClusterObjects, target: _Target) -> Iterator[Finding]:
    """Report a target of KEDA's default kind, if only an object of another kind has its name."""
    key = (target.namespace, target.name)
    if target.by_its_system or "kind" in _fields(target) or key in cluster.named(target.kind):
        return
    found = _same_name(cluster, target)
    if found is not None:
        seen = f"states no kind, so KEDA scales a Deployment, but {display(target.name)} is a "
        yield advise(target.path, f"{seen}{found.kind}", _name_kind(target, found), CONFLICT)


def _name_kind(target: _Target, found: Object) -> str:
    version = str(found.body.get("apiVersion"))
    changed = {**_fields(target), "apiVersion": version, "kind": found.kind}
    return write(changed, f"write apiVersion: {version} and kind: {found.kind}")


def autoscaler_target(cluster: ClusterObjects) -> Iterator[Finding]:
    """What an autoscaler names is among the objects, if others of its kind and namespace are.

    Otherwise the HorizontalPodAutoscaler, the VerticalPodAutoscaler or the ScaledObject changes
    nothing. A controller may create the target: a name that begins with the name of a custom
    resource is not reported, nor the target of an autoscaler that is alone in its file, unless it
    differs from a name in one letter, or in two swapped letters. A target is also reported if only
    an object of another kind has its name.

    Pass: a HorizontalPodAutoscaler for the Deployment chat, and a Deployment chat; one for the
    Deployment chat-predictor, and an InferenceService chat.
    Fail: a HorizontalPodAutoscaler for the Deployment chta, and a Deployment chat; one for the
    Deployment chat, and a StatefulSet chat.
    Level: advisory, because an object of that name may be in the cluster.
    Source: kubernetes pkg/controller/podautoscaler/horizontal.go reconcileAutoscaler
    (FailedGetScale); kubernetes/autoscaler vertical-pod-autoscaler/pkg/target/fetcher.go;
    kedacore/keda pkg/scaling/resolver/scale_resolvers.go.
    """
    for target in (*_targets(cluster, systems=False), *_of_vertical(cluster)):
        if not isinstance(target, Finding):
            yield from _missing_target(cluster, target)


def _of_vertical(cluster: ClusterObjects) -> Iterator[_Target]:
    for entry in cluster.of(VPA):
        target, space = mapping(entry.spec.get("targetRef")), entry.namespace
        version, kind, name = (target.get(key) for key in ("apiVersion", "kind", "name"))
        if all(isinstance(word, str) for word in (version, kind, name, space)):
            yield _Target(entry, group_kind(target), str(name), str(space), at="spec.targetRef")


def _missing_target(cluster: ClusterObjects, target: _Target) -> Iterator[Finding]:
    key, entry = (target.namespace, target.name), target.scaler
    there = cluster.named(target.kind)
    if key in there or cluster.name_unknown(target.kind) or not isinstance(entry.name, str):
        return
    path, kind = f"{target.path}.name", target.kind[1]
    seen = f"is {display(target.name)}, but namespace {display(target.namespace)} has no such "
    seen += f"{kind} here"
    if (other := _same_name(cluster, target)) is not None:
        if other.kind != kind and "kind" in _fields(target):  # otherwise, only the group is wrong
            remedy = _name_kind(target, other)
            yield advise(target.path, f"{seen}: it is a {other.kind}", remedy, _TARGET)
        return
    names = [name for space, name in there if space == target.namespace]
    meant = name_slip_of(target.name, names)
    if meant is not None:
        yield advise(path, seen, write(meant), _TARGET)
    elif not _may_be_made(cluster, target):
        source = cluster.source_of(entry)
        beside = [name for name in names if cluster.source_of(there[key[0], name]) == source]
        if beside:
            seen += f", which has {listing([*map(display, beside[:_MANY])])}"
            yield advise(path, seen, suggest(target.name, beside), _TARGET)


def _fields(target: _Target) -> Mapping[str, Any]:
    return mapping(target.scaler.spec.get(target.at.removeprefix("spec.")))


def _same_name(cluster: ClusterObjects, target: _Target) -> Object | None:
    """Return a workload of another kind that has the name of a target."""
    key = (target.namespace, target.name)
    found = (cluster.named(kind).get(key) for kind in (*_KEPT_NAMES, ("apps", "Deployment")))
    return next((one for one in found if one is not None), None)


def _may_be_made(cluster: ClusterObjects, target: _Target) -> bool:
    """Return whether an object may be one whose controller makes the target."""
    makers, name = cluster.once(_makers)[0], target.name
    return "" in makers or any(name[:end] in makers for end in range(1, len(name) + 1))


def _makers(cluster: ClusterObjects) -> Iterator[frozenset[str]]:
    """Return the names of custom resources; an empty one for any that may make whatever it likes.

    The groups of Kubernetes' own kinds have no dot, or end in `.k8s.io`.
    """
    custom = (one for one in cluster.objects if "." in one.group)
    custom = (one for one in custom if not one.group.endswith(".k8s.io"))
    yield frozenset(
        one.name if isinstance(one.name, str) and INDEX.get(one.group_kind) != _INSTALLS else ""
        for one in custom
        if one.group_kind not in _SCALERS
    )


def _identity(scaler: Object) -> tuple[object, ...]:
    """Return the identity of an object in a cluster, in which all API versions are one object."""
    return scaler.group_kind, scaler.namespace, scaler.name


def _shown(target: _Target) -> str:
    of = f"role {display(target.part)} of " if target.part else ""
    return f"{of}the {target.kind[1]} {display(target.name)}"


def _conflict(path: str, seen: str, remedy: str) -> Finding:
    return Finding(path=path, seen=seen, remedy=remedy, rule=CONFLICT)


def _targets(cluster: ClusterObjects, *, systems: bool = True) -> Iterator[_Target | Finding]:
    """List the targets of all autoscalers; a Finding stands for one that is not known yet."""
    for entry in (*cluster.of(HPA), *cluster.of(SCALED_OBJECT)):
        target, namespace = stated_target(entry), entry.namespace
        version, kind, name = (target.get(key) for key in ("apiVersion", "kind", "name"))
        if gap := first_unknown(version, kind, name, namespace):
            yield not_checked(entry.at("spec.scaleTargetRef"), gap, CONFLICT)
        elif isinstance(kind, str) and isinstance(name, str) and isinstance(namespace, str):
            counts = str(version) if entry.group_kind == SCALED_OBJECT else ""
            yield _Target(entry, group_kind(target), name, namespace, counts)
    yield from _of_systems(cluster) if systems else ()


def _of_systems(cluster: ClusterObjects) -> Iterator[_Target | Finding]:
    """List the targets of autoscalers that belong to a system."""
    for scaler, kind, view in known(cluster):
        for one in kind.scales(view) if kind.scales is not None else ():
            namespace = one.namespace or scaler.namespace
            if gap := first_unknown(one.name, namespace, one.part):
                yield not_checked(scaler.at(one.at), gap, CONFLICT)
            elif one.name and isinstance(one.name, str) and isinstance(namespace, str):
                part = one.part if isinstance(one.part, str) else ""
                yield _Target(
                    scaler,
                    one.group_kind,
                    one.name,
                    namespace,
                    at=one.at,
                    part=part,
                    by_its_system=True,
                )


def _why_not(cluster: ClusterObjects, target: _Target, made: Made | None) -> str:
    """Explain why a target must not be scaled; empty if it may be."""
    kind = find_kind(target.kind)
    if kind is not None and kind.unscalable:
        return kind.unscalable
    owned = cluster.named(target.kind).get((target.namespace, target.name))
    why = ""
    if owned is not None and kind is not None and kind.keeps_number is not None:
        why = kind.keeps_number(cluster.views[owned.index])
    why = why or ("" if made is None else made.why)
    why = why or ("" if owned is None else _one_engine(cluster, target, owned))
    return why or ("" if target.by_its_system else _no_scale(target))


def _one_engine(cluster: ClusterObjects, target: _Target, owned: Object) -> str:
    """Explain that all pods of a workload are of one engine; empty if that is not sure."""
    if owned.kind not in _ONE_COMMAND or target.by_its_system:
        return ""
    least, most = replicas_of(target.scaler)
    if least == most or first_unknown(least, most):
        return ""
    for pods in cluster.pods_of.get(owned.index, ()):
        ports = cluster.listening(pods)
        if ports is not None and ports.meets is not None:
            at = f"{ports.meets[0]}:{ports.meets[1]}"
            return f"has the pods of one engine: they meet at {at}, and --nnodes is their number"
    return ""


def _other_versions(target: _Target) -> str:
    """Return the apiVersion of a target's kind, if it has one and the autoscaler another."""
    found = _table(target.kind, target.scaler.context.versions)
    if found is None or not target.version:
        return ""
    table, place = found
    served = [
        version
        for version in table.kinds[target.kind[1]]
        if table.number(target.kind[1], version, place) is not None
    ]
    return served[0] if len(served) == 1 and target.version not in served else ""


def _no_scale(target: _Target) -> str:
    """Explain that the CRDs of a target's system give it no scale subresource."""
    found = scale_of(target.kind, target.scaler.context.versions)
    return "" if found is None or found[0] else f"has no scale subresource in {found[1]}"


def scale_of(kind: GroupKind, versions: Mapping[str, str]) -> tuple[bool, str] | None:
    """Return whether a kind has the scale subresource, and the release that tells.

    Args:
        versions: The releases that the cluster runs, by system; the newest if left out.

    Returns:
        None if no table has the kind.
    """
    found = _table(kind, versions)
    if found is None:
        return None
    (table, place), name = found, kind[1]
    has = any(table.is_scaled(name, served, place) for served in table.kinds[name])
    return has, table.name(place)


def _table(kind: GroupKind, versions: Mapping[str, str]) -> tuple[CrdTable, int] | None:
    """Return the table of a kind's system, and the place of its release in it."""
    system, (_, name) = INDEX.get(kind, ""), kind
    table = load(f"kthena_components.systems.{system}") if system else None
    if table is None or name not in table.kinds:
        return None
    stated = versions.get(system)
    known = stated is not None and system in VERSIONS and known_version(stated, system)
    return table, table.place(read_release(stated) if known and stated is not None else None)


def _kept_by_controllers(cluster: ClusterObjects) -> dict[_Whose, Made]:
    """Find the workloads that controllers create and whose replicas they keep."""
    found: dict[_Whose, Made] = {}
    for owner, kind, view in known(cluster):
        made = kind.makes(view) if kind.makes is not None else None
        if made is not None and isinstance(owner.namespace, str):
            found[made.group_kind, (owner.namespace, made.name)] = made
    return found
