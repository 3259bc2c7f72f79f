"""The rule coscheduling-pods: a PodGroup of the coscheduling plugin has enough pods."""

from collections.abc import Iterator

from kthena_components.core import naming
from kthena_components.core.findings import Finding, advise, count_of, each_of, refuse
from kthena_components.core.objects.cluster_objects import ClusterObjects
from kthena_components.core.objects.object import GroupKind, Object, PodSet
from kthena_components.core.remedies import write
from kthena_components.core.values.read import count, require_known
from kthena_components.core.values.unknown import known, total
from kthena_components.systems.kubernetes.rules.autoscalers import numbers_of

COSCHEDULING: GroupKind = ("scheduling.x-k8s.io", "PodGroup")
_DEFAULT = (None, "", "default-scheduler")


def _groups(cluster: ClusterObjects) -> Iterator[tuple[ClusterObjects, Object, list[PodSet]]]:
    """Return the PodGroups with the pods that have their label."""
    labelled: dict[tuple[object, object], list[PodSet]] = {}
    for pods in cluster.pods if cluster.of(COSCHEDULING) else ():
        if isinstance(name := pods.labels.get(naming.COSCHEDULING), str):
            labelled.setdefault((pods.owner.namespace, name), []).append(pods)
    for group in cluster.of(COSCHEDULING):
        yield cluster, group, labelled.get((group.namespace, group.name), [])


@each_of(_groups)
def coscheduling_pods(
    cluster: ClusterObjects, group: Object, pods: list[PodSet]
) -> Iterator[Finding]:
    """At least minMember pods have the label of their PodGroup; otherwise none of them starts.

    The PodGroup is that of the coscheduling plugin (scheduling.x-k8s.io), and the label is
    scheduling.x-k8s.io/pod-group.

    Pass: minMember 2, and a LeaderWorkerSet of 2 pods with the label.
    Fail: minMember 4, and a LeaderWorkerSet of 2 pods with the label.
    Level: mandatory; advice if these are not all objects of the cluster, or if pods have the
    default scheduler, which need not have the plugin. Without pods, nothing is reported.
    Source: kubernetes-sigs/scheduler-plugins pkg/coscheduling/core/core.go PreFilter;
    apis/scheduling/v1alpha1/types.go.
    """
    path = group.at("spec.minMember")
    least = known(count(group.spec.get("minMember"), 0), path)
    if not pods or least is None:
        return
    require_known(path, group.name, group.namespace)
    number = known(total(numbers_of(cluster, pods)), path)
    if number >= least:
        return
    schedulers = [one.spec.get("schedulerName") for one in pods]
    sure = cluster.complete and not any(name in _DEFAULT for name in schedulers)
    report = refuse if sure else advise
    have = f"{number} has" if number == 1 else f"{number} have"
    seen = f"the PodGroup waits for {count_of(least, 'pod')}, but {have} its label, so it never "
    yield report(path, f"{seen}starts", write(number, f"write minMember {number}"))
