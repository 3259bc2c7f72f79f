"""Checks the autoscalers of a cluster, and their targets."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kthena_components.core.findings import Finding, not_checked
from kthena_components.core.objects.cluster_objects import ClusterObjects, Key
from kthena_components.core.objects.object import GroupKind, Object
from kthena_components.core.values.display import display
from kthena_components.core.values.read import first_unknown, mapping
from kthena_components.judge.cluster_objects import known
from kthena_components.systems import find_kind

HPA: GroupKind = ("autoscaling", "HorizontalPodAutoscaler")
SCALED_OBJECT: GroupKind = ("keda.sh", "ScaledObject")
_RULE = "autoscaler-conflict"


_Whose = tuple[GroupKind, Key]
_Rival = tuple[GroupKind, Key, str, str]


@dataclass(frozen=True, slots=True)
class _Target:
    """The target of an autoscaler."""

    scaler: Object
    kind: GroupKind
    name: str
    namespace: str
    at: str = "spec.scaleTargetRef"
    part: str = ""
    """The part of it whose number is scaled; empty for the whole."""

    @property
    def path(self) -> str:
        """The path at which the autoscaler names its target."""
        return self.scaler.at(self.at)


def autoscaler_conflict(cluster: ClusterObjects) -> Iterator[Finding]:
    """An autoscaler's target can be scaled, and has no other autoscaler.

    Some objects must keep their replicas: the StatefulSets of a ServingGroup, whose pods are one
    engine, and an InferenceService with a workerSpec, for which KServe allows no autoscaler. A
    ModelInfer and a DisaggregatedSet have no scale subresource. Kthena's AutoscalingPolicies are
    autoscalers, too; they may scale different roles of one ModelServing. Files may be alternatives,
    so only autoscalers in the same file are compared, unless `--whole` says that all are in one
    cluster.

    Pass: a HorizontalPodAutoscaler for a Deployment.
    Fail: a ScaledObject for an InferenceService with a workerSpec; two autoscalers of one target,
    such as a HorizontalPodAutoscaler and an AutoscalingPolicy of one ModelServing.
    Level: mandatory.
    Source: kserve pkg/apis/serving/v1beta1/inference_service_validation.go; Kubernetes
    documentation, Horizontal Pod Autoscaling; keda.sh, ScaledObject specification;
    matrixinfer-ai/matrixinfer config/crd (no scale subresource).
    """
    first: dict[_Rival, Object] = {}
    kept = _kept_by_controllers(cluster)
    for target in _targets(cluster):
        if isinstance(target, Finding):
            yield target
            continue
        key, source = (target.namespace, target.name), cluster.source_of(target.scaler)
        whose = (target.kind, key, target.part, source)
        other = first.setdefault(whose, target.scaler)
        why = _why_not(cluster, target, kept)
        if _identity(other) != _identity(target.scaler):
            seen = (
                f"is {_shown(target)}, which the {other.kind} {display(other.name)} "
                "scales too, and "
            )
            seen += "each would undo what the other does"
            yield _conflict(target.path, seen, "keep one of the two")
        elif why:
            seen = f"is {_shown(target)}, which {why}"
            yield _conflict(target.path, seen, "remove the autoscaler, and write replicas")


def _identity(scaler: Object) -> tuple[object, ...]:
    """Return the identity of an object in a cluster, in which all API versions are one object."""
    return scaler.group_kind, scaler.namespace, scaler.name


def _shown(target: _Target) -> str:
    of = f"role {display(target.part)} of " if target.part else ""
    return f"{of}the {target.kind[1]} {display(target.name)}"


def _conflict(path: str, seen: str, remedy: str) -> Finding:
    return Finding(path=path, seen=seen, remedy=remedy, rule=_RULE)


def _targets(cluster: ClusterObjects) -> Iterator[_Target | Finding]:
    for scaler_kind in (HPA, SCALED_OBJECT):
        for entry in cluster.of(scaler_kind):
            target = mapping(entry.spec.get("scaleTargetRef"))
            usual = ("apps/v1", "Deployment") if scaler_kind == SCALED_OBJECT else (None, None)
            version, kind = target.get("apiVersion", usual[0]), target.get("kind", usual[1])
            name, namespace = target.get("name"), entry.namespace
            if gap := first_unknown(version, kind, name, namespace):
                yield not_checked(entry.at("spec.scaleTargetRef"), gap, _RULE)
            elif isinstance(kind, str) and isinstance(name, str) and isinstance(namespace, str):
                group = str(version).partition("/")[0] if "/" in str(version) else ""
                yield _Target(entry, (group, kind), name, namespace)
    yield from _of_systems(cluster)


def _of_systems(cluster: ClusterObjects) -> Iterator[_Target | Finding]:
    """List the targets of autoscalers that belong to a system."""
    for scaler, kind, view in known(cluster):
        for one in kind.scales(view) if kind.scales is not None else ():
            namespace = one.namespace or scaler.namespace
            if gap := first_unknown(one.name, namespace, one.part):
                yield not_checked(scaler.at(one.at), gap, _RULE)
            elif one.name and isinstance(one.name, str) and isinstance(namespace, str):
                part = one.part if isinstance(one.part, str) else ""
                yield _Target(scaler, one.group_kind, one.name, namespace, one.at, part)


def _why_not(cluster: ClusterObjects, target: _Target, kept: Mapping[_Whose, str]) -> str:
    """Explain why a target must not be scaled; empty if it may be."""
    kind = find_kind(target.kind)
    if kind is not None and kind.unscalable:
        return kind.unscalable
    owned = cluster.named(target.kind).get((target.namespace, target.name))
    why = ""
    if owned is not None and kind is not None and kind.keeps_number is not None:
        why = kind.keeps_number(cluster.views[owned.index])
    return why or kept.get((target.kind, (target.namespace, target.name)), "")


def _kept_by_controllers(cluster: ClusterObjects) -> dict[_Whose, str]:
    """Find the workloads that controllers create and whose replicas they keep."""
    found: dict[_Whose, str] = {}
    for owner, kind, view in known(cluster):
        made = kind.makes(view) if kind.makes is not None else None
        if made is not None and isinstance(owner.namespace, str):
            found[made.group_kind, (owner.namespace, made.name)] = made.why
    return found
