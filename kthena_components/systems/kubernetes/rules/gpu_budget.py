"""Checks the accelerators of all pods of a cluster: their number, and their types."""

from collections.abc import Iterable, Iterator

from kthena_components.core.findings import Finding, count_of, not_checked, suggest
from kthena_components.core.objects.cluster_objects import ClusterObjects
from kthena_components.core.objects.object import PodSet, claims_of, gpus_of, shared_gpus
from kthena_components.core.remedies import Remedy, rename, together
from kthena_components.core.values.display import display
from kthena_components.core.values.quantity import is_accelerator
from kthena_components.core.values.read import first_unknown, mapping, pairs, sequence, unknown_in
from kthena_components.core.values.unknown import MaybeInt, Unknown

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
    resource claims count as well, those of a ResourceClaim that several pods name once.

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
            remedy=f"request {used - budget} fewer, or ask for a larger budget",
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
    for field in ("containers", "initContainers"):
        at = f"spec.{field}"
        for i, item in enumerate(sequence(pods.spec.get(field))):
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
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    at = f"spec.affinity.nodeAffinity.{required}"
    node = mapping(mapping(mapping(pods.spec.get("affinity")).get("nodeAffinity")).get(required))
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
