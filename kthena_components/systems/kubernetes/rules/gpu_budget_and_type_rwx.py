"""Checks what all pods of a cluster share: accelerators, their types, and volumes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from kthena_components.core import naming
from kthena_components.core.findings import (
    Finding,
    Level,
    advise,
    count_of,
    not_checked,
    part_of_rule,
    refuse,
    suggest,
)
from kthena_components.core.objects.cluster_objects import ClusterObjects, Key
from kthena_components.core.objects.object import (
    CLAIM,
    NODE,
    Object,
    PodSet,
    allocatable,
    claims_of,
    gpus_of,
    shared_gpus,
    whole_gpus,
)
from kthena_components.core.remedies import Remedy, rename, together
from kthena_components.core.topology.node_fit import REQUIRED, apart_from
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display
from kthena_components.core.values.quantity import is_accelerator
from kthena_components.core.values.read import (
    first_unknown,
    list_of_texts,
    mapping,
    pairs,
    require_known,
    sequence,
    unknown_in,
    unknown_inside,
)
from kthena_components.core.values.unknown import MaybeInt, Unknown, known, product, total
from kthena_components.systems.kubernetes.selectors_and_routers import owner_title

PRODUCT_LABELS = frozenset(
    {
        "nvidia.com/gpu.product",
        "amd.com/gpu.product-name",
        "gpu.intel.com/product",
        "gpu.nvidia.com/class",
        "gpu.nvidia.com/model",
        "cloud.google.com/gke-accelerator",
        "cloud.google.com/gke-tpu-accelerator",
        "k8s.amazonaws.com/accelerator",
        "karpenter.k8s.aws/instance-gpu-name",
    }
)
"""Node labels with the accelerator's product name."""


def gpus_asked(cluster: ClusterObjects) -> tuple[int, Unknown | None]:
    """Add up the accelerators of a stack, and explain why there may be more."""
    used, gap = 0, None
    shared = {
        key: n for pods in cluster.pods if pods.count != 0 for key, n in shared_gpus(pods).items()
    }
    demands = (held.gpus for _, held in cluster.demands)
    for number in (*map(gpus_of_pods, cluster.pods), *demands, *shared.values()):
        if isinstance(number, int):
            used += number
        else:
            gap = gap or number
    return used, gap


def gpus_of_pods(pods: PodSet) -> MaybeInt:
    """Count the accelerators of all pods of one template, without those shared with others."""
    each = gpus_of(pods)
    if each == 0 or pods.count == 0:
        return 0
    if isinstance(each, Unknown) or isinstance(pods.count, Unknown):
        return each if isinstance(each, Unknown) else pods.count
    return each * pods.count


def gpu_budget(cluster: ClusterObjects, budget: int) -> Iterator[Finding]:
    """The accelerators of all pods of a stack are within its budget.

    Counted are Pods, the pods that Kubernetes, Volcano, Kthena and LeaderWorkerSet create from
    templates, and the servings of the other supported systems, each with all its replicas. GPUs by
    resource claims count as well. If several pods name one ResourceClaim, its GPUs count once.

    Pass: a budget of 16, two pods of 8 GPUs.
    Fail: a budget of 8, two pods of 8 GPUs.
    Level: mandatory; not checked if a number is unknown and the rest is within the budget.
    Source: the caller's budget.
    """
    rule = "gpu-budget"
    used, gap = gpus_asked(cluster)
    if used > budget:
        least = "at least " if gap else ""
        yield Finding(
            path="",
            seen=f"these pods request {least}{count_of(used, 'GPU')}, but the budget is {budget}",
            remedy=f"request {least}{used - budget} fewer, or ask for a larger budget",
            rule=rule,
        )
    elif gap:
        yield not_checked("", gap, rule)


def gpu_type_allowed(cluster: ClusterObjects, allowed: Iterable[str]) -> Iterator[Finding]:
    """Pods only request accelerators that the cluster's owner allows.

    The list may contain names of resources, such as nvidia.com/gpu, and of products, as in node
    labels. Resources are compared if the list contains any, and so are products. A device of a
    resource claim counts as the resource by which a device plugin offers the same: one of the class
    gpu.nvidia.com as nvidia.com/gpu.

    Pass: nvidia.com/gpu, and the list nvidia.com/gpu.
    Fail: amd.com/gpu, and the list nvidia.com/gpu.
    Fail: nodeSelector nvidia.com/gpu.product Tesla-T4, and the list NVIDIA-H100-80GB-HBM3.
    Level: mandatory. It applies only if a list is given.
    Source: the caller's list.
    """
    listed = sorted(set(allowed))
    resources = [word for word in listed if "/" in word]
    products = [word for word in listed if "/" not in word]
    for pods in cluster.pods:
        if resources:
            yield from _resources(pods, resources)
            yield from _claimed(pods, resources)
        if products:
            yield from _products(pods, products)
    for entry, held in cluster.demands if resources else ():
        for name in sorted(held.resources - set(resources)):
            yield _refused(entry.at("spec"), name, resources)


def _claimed(pods: PodSet, allowed: list[str]) -> Iterator[Finding]:
    """Report accelerators by claims that the list of GPU types does not allow."""
    found, gap = claims_of(pods)
    path = pods.at("spec.resourceClaims")
    if gap is not None and gpus_of(pods) == gap:
        yield not_checked(path, gap, "gpu-type-allowed")
    for each in found:
        if each.asked.resource not in allowed:
            what = f"requests {display(each.asked.resource)} by {each.title}"
            yield Finding(
                path=path,
                seen=f"{what}, but only {', '.join(allowed[:10])} may be requested here",
                remedy="request another class of devices there",
                rule="gpu-type-allowed",
            )


def _resources(pods: PodSet, allowed: list[str]) -> Iterator[Finding]:
    """Report accelerators by resources that the list of GPU types does not allow."""
    for listed in ("containers", "initContainers"):
        at = f"spec.{listed}"
        for i, item in enumerate(sequence(pods.spec.get(listed))):
            stated = mapping(mapping(item).get("resources"))
            lists = stated.get("limits"), stated.get("requests")
            path = pods.at(f"{at}[{i}].resources")
            if gap := first_unknown(item, mapping(item).get("resources"), *lists):
                yield not_checked(path, gap, "gpu-type-allowed")
            names = {name for one in lists for name, _ in pairs(one) if isinstance(name, str)}
            for name in sorted(names - set(allowed)):
                if is_accelerator(name):
                    parts = zip(("limits", "requests"), lists, strict=True)
                    places = [
                        f"{path}.{part}" for part, amounts in parts if name in mapping(amounts)
                    ]
                    yield _refused(path, name, allowed, places)


def _products(pods: PodSet, allowed: list[str]) -> Iterator[Finding]:
    for path, value in _product_values(pods):
        at = pods.at(path)
        if gap := unknown_in(value):
            yield not_checked(at, gap, "gpu-type-allowed")
        elif isinstance(value, str) and value not in allowed:
            yield _refused(at, value, allowed)


def _product_values(pods: PodSet) -> Iterator[tuple[str, object]]:
    """List GPU models that pods require of nodes, by selector or affinity, with their paths."""
    for key, value in pairs(pods.spec.get("nodeSelector")):
        if key in PRODUCT_LABELS:
            yield f"spec.nodeSelector.{key}", value
    at = f"spec.affinity.nodeAffinity.{REQUIRED}"
    node = mapping(mapping(mapping(pods.spec.get("affinity")).get("nodeAffinity")).get(REQUIRED))
    for i, term in enumerate(sequence(node.get("nodeSelectorTerms"))):
        for k, item in enumerate(sequence(mapping(term).get("matchExpressions"))):
            expression = mapping(item)
            key, operator = expression.get("key"), expression.get("operator")
            if isinstance(key, str) and key in PRODUCT_LABELS and operator == "In":
                path = f"{at}.nodeSelectorTerms[{i}].matchExpressions[{k}].values"
                yield from ((path, value) for value in sequence(expression.get("values")))


def _refused(path: str, name: str, allowed: list[str], at: Iterable[str] = ()) -> Finding:
    """Write the finding of a forbidden resource; `at` are the places to rename it in."""
    remedy = suggest(name[:253], allowed[:100])
    if at and isinstance(remedy, Remedy):
        new = remedy.fixes[0][0].value
        remedy = together(*(rename(new, at=f"{place}.{name}") for place in at), text=remedy)
    return Finding(
        path=path,
        seen=f"requests {display(name)}, but only {', '.join(allowed[:10])} may be requested here",
        remedy=remedy,
        rule="gpu-type-allowed",
    )


# Checks volumes that several pods of a cluster share.


_SHARED = frozenset({"ReadWriteMany", "ReadOnlyMany"})
_ONE_POD, _ONE_NODE = "ReadWriteOncePod", "ReadWriteOnce"
_ONCE = {_ONE_POD: "be mounted by one pod", _ONE_NODE: "be attached to one node"}


@dataclass(slots=True)
class _Users:
    """The pods of one object, or of one group of objects, that mount a claim."""

    path: str
    pods: list[PodSet] = field(default_factory=list)

    @property
    def spread(self) -> bool:
        """Whether the pods are intended for several nodes."""
        return any(pods.spread or naming.WORKER in pods.labels for pods in self.pods)


def rwx_for_shared_model(cluster: ClusterObjects) -> Iterator[Finding]:
    """A volume that several pods mount can be attached to several nodes.

    ReadWriteOnce allows one node at a time, so the pods of an engine that spans nodes cannot all
    mount the claim. Nor can pods that never share a node, because of required podAntiAffinity over
    kubernetes.io/hostname, a nodeName or nodeSelector for different nodes, or more whole GPUs
    together, of pods with several, than the largest Node here has (16 if the Nodes are not all
    known). ReadWriteOncePod allows one pod. KServe mounts the claim of pvc://claim/path into each
    pod. Claims that are not here are not checked. Claims that a StatefulSet creates for each of its
    pods are fine. A Job ends, so its pods are not compared with the pods of other objects.

    Pass: a claim with ReadWriteMany, an engine of 2 pods.
    Fail: a claim with ReadWriteOnce, and an engine of 2 pods, or two Deployments with GPUs, that
    mount it.
    Level: mandatory for engines of several pods, for pods that share no node and for
    ReadWriteOncePod; advisory for replicas, for pods of several objects, and for a Ray cluster that
    starts no engine, whose pods may happen to be on one node. Objects of several files may be
    alternatives, and are not compared, unless `--whole` says that all are in one cluster.
    Source: Kubernetes documentation, Persistent Volumes, Access Modes; kubernetes
    pkg/scheduler/framework/plugins/volumerestrictions (ReadWriteOncePod); KServe
    docs/samples/multinode: the claim must be ReadWriteMany; v0.20.0 pkg/webhook/admission/pod/
    storage_initializer_injector.go.
    """
    claims = cluster.named(CLAIM)
    most = _largest(cluster) if claims else 0
    several: dict[tuple[str, str], list[tuple[Object, _Users]]] = {}
    for (_, name), users in _users_of_volumes(cluster).items() if claims else ():
        claim = claims.get((str(users.pods[0].owner.namespace), name))
        if claim is not None:
            found = list(_check_volume(claim, users, name, most))
            yield from found
            if not found and not all(pods.owner.group_kind in _JOBS for pods in users.pods):
                key = (str(claim.index), cluster.source_of(users.pods[0].owner))
                several.setdefault(key, []).append((claim, users))
    for each in several.values():
        yield from _check_several([users for _, users in each], each[0][0], most)
    yield from _late(cluster) if claims else ()


_JOBS = frozenset({("batch", "Job"), ("batch", "CronJob")})
"""Kinds whose pods end by themselves."""
_MOST_GPUS = 16
"""GPUs of the largest machines: a2-megagpu-16g, NVIDIA DGX-2."""


def _largest(cluster: ClusterObjects) -> int:
    """Return the GPUs of the largest Node; of the largest machine, if a Node is not known."""
    known = [allocatable(node.body) for node in cluster.of(NODE)]
    found = [int(sum(n for key, n in each.items() if is_accelerator(key))) for each in known]
    sure = cluster.complete and bool(known) and all(known)
    return max([*found, *([] if sure else [_MOST_GPUS])])


def _on_several(pods: Sequence[PodSet], most: int) -> str:
    """Say why pods of all these sets cannot all be on one node; empty if they can."""
    for one in pods:
        for other in pods:
            several = one is not other or (isinstance(one.count, int) and one.count > 1)
            keys = {key for _, key in apart_from(one.spec, other.labels)}
            if several and naming.HOSTNAME in keys:
                return "their podAntiAffinity keeps them apart"
    stated = [(one.spec.get("nodeName"), mapping(one.spec.get("nodeSelector"))) for one in pods]
    listed = (name or selector.get(naming.HOSTNAME) for name, selector in stated)
    names = sorted({name for name in listed if isinstance(name, str) and not unknown_in(name)})
    if len(names) > 1:
        return f"they are for the nodes {' and '.join(names[:2])}"
    numbers = [product(whole_gpus(one), one.count) for one in pods]
    asked = sum(n for n in numbers if isinstance(n, int))
    return f"they request {count_of(asked, 'GPU')}, more than one node has" if asked > most else ""


@part_of_rule
def _check_several(users: Sequence[_Users], claim: Object, most: int) -> Iterator[Finding]:
    """Report a claim that pods of several objects mount."""
    narrow, pods = _narrow(claim), [one for each in users for one in each.pods if one.count != 0]
    owners = list(dict.fromkeys(owner_title(one) for one in pods))
    if narrow is None or len(owners) < _SEVERAL:
        return
    why = _on_several(pods, most)
    if not (why or narrow == _ONE_POD or any(gpus_of(one) != 0 for one in pods)):
        return
    path = users[1].path
    number = known(total([one.count for one in pods]), path)
    seen = f"is {display(claim.name)}, which is {narrow} and can {_ONCE[narrow]} at a time, but "
    seen += f"{count_of(number, 'pod')} of {' and '.join(owners[:_SEVERAL])} mount it"
    report = refuse if why or narrow == _ONE_POD else advise
    yield report(path, f"{seen}{why and f', and {why}'}", _SEPARATE.format(display(claim.name)))


def _users_of_volumes(cluster: ClusterObjects) -> dict[tuple[object, str], _Users]:
    """Find the users of each claim. Objects of one ServingGroup count as one."""
    found: dict[tuple[object, str], _Users] = {}
    for pods in cluster.pods:
        for path, name in _claims_of(pods):
            if isinstance(name, str) and not unknown_in(name):
                whose = (_owner(pods.owner), name)
                users = found.setdefault(whose, _Users(pods.at(path)))
                users.pods.append(pods)
    return found


def _owner(entry: Object) -> Key | int:
    labels = mapping(mapping(entry.body.get("metadata")).get("labels"))
    group = labels.get(naming.GROUP_NAME)
    known = isinstance(group, str) and isinstance(entry.namespace, str)
    return (str(entry.namespace), str(group)) if known else entry.index


def _claims_of(pods: PodSet) -> Iterator[tuple[str, Any]]:
    for i, item in enumerate(sequence(pods.spec.get("volumes"))):
        claim = mapping(item).get("persistentVolumeClaim")
        if isinstance(claim, Mapping):
            name = claim.get("claimName")
            yield f"spec.volumes[{i}].persistentVolumeClaim.claimName", name


def _late(cluster: ClusterObjects) -> Iterator[Finding]:
    for pods in cluster.pods:
        for path, name in _claims_of(pods):
            if gap := first_unknown(name, pods.owner.namespace):
                at = pods.at(path)
                yield not_checked(at, gap)


_SEVERAL = 2
_SEPARATE = "write accessModes: [ReadWriteMany] in the claim {}, or give each pod its own claim"


def _narrow(claim: Object) -> str | None:
    """Return the mode by which a claim serves one pod or one node; None if it serves several."""
    stated = claim.spec.get("accessModes")
    modes = list_of_texts(stated)
    if not _SHARED.isdisjoint(modes):
        return None
    return next((mode for mode in (_ONE_POD, _ONE_NODE) if mode in modes), None)


@part_of_rule
def _check_volume(claim: Object, users: _Users, name: str, most: int) -> Iterator[Finding]:
    """Report a claim for one pod or node that several pods mount."""
    number = total([pods.count for pods in users.pods])
    stated = claim.spec.get("accessModes")
    require_known(users.path, claim.body.get("spec"), unknown_inside(stated))
    narrow = _narrow(claim)
    if narrow is None:
        return
    number = known(number, users.path)
    if number > 1:
        why = "" if users.spread or narrow == _ONE_POD else _on_several(users.pods, most)
        must = users.spread or narrow == _ONE_POD or why
        yield Finding(
            path=users.path,
            seen=f"is {display(name)}, which is {narrow} and can {_ONCE[narrow]} at a time, but "
            f"{count_of(number, 'pod')} mount it{why and f', and {why}'}",
            remedy=_SEPARATE.format(display(claim.name)),
            level=Level.MANDATORY if must else Level.ADVISORY,
        )
