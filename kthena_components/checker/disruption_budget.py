"""The rule disruption-budget: a PodDisruptionBudget lets nodes be drained."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from kthena_components.checker.autoscaler_conflict import scale_of
from kthena_components.core.findings import Finding, Level, advise, count_of, part_of_rule
from kthena_components.core.objects.cluster_objects import ClusterObjects, PodIndex, selects
from kthena_components.core.objects.object import JOB, MODEL_SERVING, Object, PodSet, gpus_of
from kthena_components.core.remedies import either, remove, write
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display
from kthena_components.core.values.quantity import is_budget, scaled
from kthena_components.core.values.read import (
    first_unknown,
    is_map,
    mapping,
    pairs,
    require_known,
    sequence,
)
from kthena_components.core.values.unknown import MaybeInt, Unknown, known, total
from kthena_components.systems.kubernetes.rules.autoscalers_and_coscheduling_pods import (
    HPA,
    SCALED_OBJECT,
    replicas_of,
    scaler_of,
    stated_target,
)

_BUDGET = ("policy", "PodDisruptionBudget")
_OWNERS = frozenset(
    {
        MODEL_SERVING,
        JOB,
        ("", "Pod"),
        ("batch", "Job"),
        ("batch", "CronJob"),
        *(("ray.io", kind) for kind in ("RayCluster", "RayJob", "RayService")),
    }
)
"""Kinds whose pods no StatefulSet, ReplicaSet or other controller with a number of pods has."""

_ONE_POD_EACH = frozenset({("apps", kind) for kind in ("Deployment", "StatefulSet", "ReplicaSet")})
"""Kinds with one pod for each replica."""
_BY_MAXIMUM = "write maxUnavailable 1 in its place"


@dataclass(slots=True)
class _Beside:
    """The pods of one namespace in one file."""

    index: PodIndex = field(default_factory=PodIndex)
    places: dict[int, int] = field(default_factory=dict)
    """The places of the pods among all, by their identity."""

    def candidates(self, wanted: Mapping[str, object]) -> list[PodSet]:
        """Return the pods that a selector may match, in the order in which they were given."""
        labels = {key: value for key, value in wanted.items() if isinstance(value, str)}
        return sorted(self.index.candidates(labels), key=lambda pods: self.places[id(pods)])


def disruption_budget(cluster: ClusterObjects) -> Iterator[Finding]:
    """A PodDisruptionBudget allows the eviction of some pod that it selects.

    Otherwise no drain of their nodes ends. A percentage of minAvailable is rounded up. Of pods that
    a Job, a Volcano Job or a RayCluster has, or that have no controller, Kubernetes does not learn
    the number: it allows an eviction only by a minAvailable that is a number. Of a ModelServing it
    learns the number of groups, and not of pods. Only pods in the file of the budget are compared,
    unless `--whole` says that all are in one cluster. Of pods that an autoscaler scales, the least
    number counts. Without labels, a budget is for all pods of its namespace. A pod that two budgets
    select is never evicted.

    Pass: maxUnavailable 1; minAvailable 1 for a Deployment with replicas 2.
    Fail: maxUnavailable 0; both fields; minAvailable 2 or 90% for a Deployment with replicas 2;
    maxUnavailable 1 for a RayCluster; maxUnavailable 1 for a ModelServing, which allows it for all
    pods but one; minAvailable 2 for a Deployment with a HorizontalPodAutoscaler of minReplicas 2;
    two budgets for the pods of one Deployment; minAvailable -1.
    Level: mandatory if the pods have accelerators, else advisory; advisory for a ModelServing, and
    if an autoscaler may start more pods than minAvailable.
    Source: kubernetes pkg/apis/policy/validation/validation.go
    ValidatePodDisruptionBudgetSpec; pkg/controller/disruption/disruption.go getExpectedPodCount and
    getScaleController; pkg/registry/core/pod/storage/eviction.go (more than one
    PodDisruptionBudget); Kubernetes documentation, Specifying a Disruption Budget for your
    Application, Arbitrary workloads and arbitrary selectors.
    """
    first: dict[int, Object] = {}
    for entry in cluster.of(_BUDGET):
        stated = entry.spec.get("selector")
        labels = _labels(mapping(stated))
        if labels is None:
            continue
        every = is_map(stated) and not stated and entry.body.get("apiVersion") == "policy/v1"
        yield from _check(cluster, entry, labels, first, every=every)


def _labels(selector: Mapping[str, object]) -> object | None:
    """Return the labels of a selector; None if it has operators for other than equality."""
    labels, listed = selector.get("matchLabels"), sequence(selector.get("matchExpressions"))
    if selector.get("matchExpressions") and not listed:
        return None
    found = dict(pairs(labels))
    for each in map(mapping, listed):
        values = sequence(each.get("values"))
        if each.get("operator") != "In" or len(values) != 1:
            return None
        found[str(each.get("key"))] = values[0]
    return found if listed or labels is None else labels


def _twice(
    entry: Object, chosen: Sequence[PodSet], first: dict[int, Object], level: Level
) -> Iterator[Finding]:
    """Report pods that two budgets select: the API server then evicts none of them."""
    others = [first.setdefault(id(pods), entry) for pods in chosen]
    other = next((found for found in others if found is not entry), None)
    if other is not None:
        pods = chosen[others.index(other)]
        seen = f"matches the pods of the {pods.owner.kind} {display(pods.owner.name)}, as does the "
        seen += f"budget {display(other.name)}, and no pod with two budgets may be evicted"
        remedy = "remove one of the two, or write labels that the other's pods do not have"
        yield Finding(path=entry.at("spec.selector"), seen=seen, remedy=remedy, level=level)


def _chosen(
    cluster: ClusterObjects, entry: Object, labels: object, *, every: bool
) -> list[PodSet] | Unknown:
    """Return the pods that a budget selects: all of its namespace with an empty selector."""
    source = cluster.source_of(entry)
    wanted = {str(key): value for key, value in pairs(labels)}
    if gap := first_unknown(labels, entry.namespace, *wanted.values()):
        return gap
    beside = cluster.once(_beside)[0].get((entry.namespace, source))
    near = beside.candidates(wanted) if beside else []
    if every:
        return near
    found = [(pods, selects(wanted, pods)) for pods in near]
    gap = next((said for _, said in found if isinstance(said, Unknown)), None)
    chosen = [pods for pods, said in found if said is True and _surely(wanted, pods)]
    return gap or (chosen if wanted else [])


def _beside(cluster: ClusterObjects) -> Iterator[dict[tuple[object, str], _Beside]]:
    """Yield the pods by namespace and file."""
    found: dict[tuple[object, str], _Beside] = {}
    for place, pods in enumerate(cluster.pods):
        key = (pods.owner.namespace, cluster.source_of(pods.owner))
        beside = found.setdefault(key, _Beside())
        beside.index.add(pods)
        beside.places[id(pods)] = place
    yield found


def _surely(wanted: Mapping[str, object], pods: PodSet) -> bool:
    """Return whether pods that may match a selector do so.

    Where a controller may add any label, a label with the object's name counts: the label of LWS is
    leaderworkerset.sigs.k8s.io/name.
    """
    return all(
        key in pods.labels
        or key in (pods.added or {})
        or (key.endswith("/name") and value == pods.owner.name)
        for key, value in wanted.items()
    )


@part_of_rule
def _check(
    cluster: ClusterObjects, entry: Object, labels: object, first: dict[int, Object], *, every: bool
) -> Iterator[Finding]:
    """Report what a budget prevents for ever, in view of the pods that its labels select."""
    chosen = known(_chosen(cluster, entry, labels, every=every), entry.at("spec.selector"))
    if not chosen:
        return
    level = Level.MANDATORY if any(map(_has_gpus, chosen)) else Level.ADVISORY
    yield from _twice(entry, chosen, first, level)
    key = "maxUnavailable" if entry.spec.get("maxUnavailable") is not None else "minAvailable"
    stated, path = entry.spec.get(key), entry.at(f"spec.{key}")
    require_known(path, stated)
    if type(stated) is int and stated < 0:
        seen = f"is {stated}, and the API server accepts 0 or more"
        yield Finding(path=path, seen=seen, remedy=write(1), level=level)
    if stated is None or not is_budget(stated, 100):
        return
    if not every or _for_any_number(key, stated):  # else other pods of the namespace count, too
        yield from _against_pods(cluster, entry, key, chosen, level)


def _against_pods(
    cluster: ClusterObjects, entry: Object, key: str, chosen: Sequence[PodSet], level: Level
) -> Iterator[Finding]:
    """Check a number or a percentage against the pods that a budget selects."""
    stated, path = entry.spec.get(key), entry.at(f"spec.{key}")
    pods = total([one.count for one in chosen])
    zero = scaled(stated, 100, up=True) == 0
    if pods == 0 or (key == "minAvailable" and zero):
        return
    least = entry.at("spec.minAvailable")
    if key == "maxUnavailable" and entry.spec.get("minAvailable") is not None:
        seen = "is stated beside maxUnavailable, and the API server accepts only one of the two"
        yield Finding(path=least, seen=seen, remedy=remove(), level=level)
    if key == "maxUnavailable" and zero:
        seen = f"is {display(stated)}, so no pod may be evicted, and no drain of a node ends"
        yield Finding(path=path, seen=seen, remedy=write(1), level=level)
        return
    if key == "maxUnavailable" or isinstance(stated, str):
        uncounted = next(filter(None, map(_uncounted, chosen)), None)
        if uncounted is not None:
            yield _never(path, key, stated, uncounted, level)
        elif any(one.owner.group_kind == MODEL_SERVING for one in chosen):
            yield _groups(path, stated, chosen[0].owner)
            return
    if key == "minAvailable":
        yield from _at_least(cluster, path, stated, chosen, level)


def _for_any_number(key: str, stated: object) -> bool:
    """Return whether a budget allows no eviction, however many pods it selects."""
    zero = scaled(stated, 100, up=True) == 0
    return zero if key == "maxUnavailable" else stated == "100%"


def _has_gpus(pods: PodSet) -> bool:
    number = gpus_of(pods)
    return isinstance(number, int) and number > 0


def _uncounted(pods: PodSet) -> Object | None:
    """Return the owner of pods whose number Kubernetes does not learn."""
    owner = pods.owner
    if owner.group_kind not in _OWNERS:
        return None
    counted = scale_of(owner.group_kind, owner.context.versions)
    return None if counted is not None and counted[0] else owner


def _never(path: str, key: str, stated: object, owner: Object, level: Level) -> Finding:
    word = "maxUnavailable" if key == "maxUnavailable" else "a percentage"
    seen = (
        f"is {display(stated)}, but Kubernetes does not learn the number of pods of the "
        f"{owner.kind} {display(owner.name)}, and never evicts one by {word}"
    )
    remedy = "write minAvailable as a number, one less than the pods"
    return Finding(path=path, seen=seen, remedy=remedy, level=level)


def _groups(path: str, stated: object, owner: Object) -> Finding:
    seen = (
        f"is {display(stated)}, but Kubernetes counts the groups of {owner.kind} "
        f"{display(owner.name)}, and not its pods"
    )
    return advise(path, seen, "write minAvailable as a number, one less than the pods")


def _at_least(
    cluster: ClusterObjects, path: str, stated: object, chosen: Sequence[PodSet], level: Level
) -> Iterator[Finding]:
    """Report a minAvailable that leaves no pod to evict."""
    number = total([one.count for one in chosen])
    if stated == "100%":
        seen = "is 100%, so no pod may be evicted, and no drain of a node ends"
        varies = any(scaler_of(cluster, one.owner) for one in chosen)
        remedy = _BY_MAXIMUM if varies else _one_less(number, grows=False)
        yield Finding(path=path, seen=seen, remedy=remedy, level=level)
    elif any(_is_scaled(cluster, one.owner, path) for one in chosen):
        yield from _when_scaled(cluster, path, stated, chosen, level)
    else:
        pods = known(number, path)
        least = scaled(stated, pods, up=True)
        if least is not None and least >= pods:
            of = f", which is {least}" if isinstance(stated, str) else ""
            seen = (
                f"is {display(stated)}{of}, and {count_of(pods, 'pod')} "
                f"{'has' if pods == 1 else 'have'} its labels, so none may be evicted, and no "
                "drain of a node ends"
            )
            yield Finding(path=path, seen=seen, remedy=_one_less(pods), level=level)


def _when_scaled(
    cluster: ClusterObjects, path: str, stated: object, chosen: Sequence[PodSet], level: Level
) -> Iterator[Finding]:
    """Report that no pod may be evicted at the least replicas of the autoscaler of all pods."""
    scaler = next((found for one in chosen if (found := scaler_of(cluster, one.owner))), None)
    if scaler is None or len(chosen) > 1 or chosen[0].owner.group_kind not in _ONE_POD_EACH:
        return
    least, most = (known(number, path) for number in replicas_of(scaler))
    if not least or most is None or least > most:
        return
    needed = scaled(stated, least, up=True)
    if needed is None or needed < least:
        return
    of = f", which is {needed}" if isinstance(stated, str) else ""
    seen = f"is {display(stated)}{of}, but the {scaler.kind} {display(scaler.name)} goes down to "
    seen += f"{count_of(least, 'pod')}, of which none may be evicted then, so no drain of a node "
    always = (scaled(stated, most, up=True) or 0) >= most
    fewer = write(least - 1) if least > 1 else _BY_MAXIMUM
    yield Finding(
        path=path,
        seen=f"{seen}ends" if always else f"{seen}ends until it has more",
        remedy=either(fewer, f"let the {scaler.kind} keep more pods"),
        level=level if always else Level.ADVISORY,
    )


def _one_less(pods: MaybeInt, *, grows: bool = True) -> str:
    """Allow the eviction of one pod.

    Args:
        pods: The pods that the budget selects.
        grows: Whether more pods would allow it, too: not with 100 % of them.
    """
    more = "start more pods" if grows else ""
    if isinstance(pods, int) and pods > 1:
        return either(write(pods - 1), more)
    if grows or isinstance(pods, int):
        return either("remove the budget", more)
    return _BY_MAXIMUM


def _is_scaled(cluster: ClusterObjects, owner: Object, path: str) -> bool:
    """Return whether an autoscaler of the cluster names an object.

    Raises:
        NotKnownError: An autoscaler may name it.
    """
    targets = cluster.once(_scaled)[0]
    kinds = targets.get(owner.name, ())
    if owner.kind in kinds or None in kinds:
        return True
    require_known(path, *kinds, *targets.get(None, ()))
    return False


def _scaled(cluster: ClusterObjects) -> Iterator[dict[object, list[object]]]:
    """Yield the kinds that autoscalers state, by the name of the target; None for any kind.

    What is not known of a target without a name is there for None.
    """
    found: dict[object, list[object]] = {}
    for kind in (HPA, SCALED_OBJECT):
        for entry in cluster.of(kind):
            target = stated_target(entry)
            gap = first_unknown(entry.spec.get("scaleTargetRef"), target.get("name"))
            if gap is not None:
                found.setdefault(None, []).append(gap)
            elif isinstance(name := target.get("name"), str):
                found.setdefault(name, []).append(target.get("kind"))
    yield found
