"""Facts and pods of RayCluster, RayService and RayJob: engines that span pods with Ray.

The head's command starts the engine, or the Serve config of a RayService lists the models. Source:
ray-project/kuberay ray-operator/apis/ray/v1.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from kthena_components.core.facts.container import ContainerFacts
from kthena_components.core.facts.pod import DeviceFacts, PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.facts.workload import admitted_together, fill_requests
from kthena_components.core.findings import count_of, join_path
from kthena_components.core.objects.cluster_objects import Gang
from kthena_components.core.objects.engine_containers import Sketch
from kthena_components.core.objects.object import VOLCANO, Object, PodSet, copies_in, pod_set
from kthena_components.core.values.display import key_text
from kthena_components.core.values.read import mapping, name_of, sequence, text
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import (
    MaybeBool,
    MaybeInt,
    Unknown,
    is_unresolved,
    product,
)
from kthena_components.systems.ray.serve_config import CONFIG, Served
from kthena_components.systems.ray.view import Cluster, Group, RayView, read_group_pod

_UNEQUAL = Unknown("its groups of workers have different GPUs")
_SEVERAL = Unknown("its groups of workers start engines themselves")
CLUSTER_LABEL = "ray.io/cluster"
QUEUE_LABEL, _SCHEDULER_LABEL = "volcano.sh/queue-name", "ray.io/scheduler-name"
_GANG_LABELS = frozenset({"ray.io/gang-scheduling-enabled", _SCHEDULER_LABEL, QUEUE_LABEL})
"""Labels that request a gang from KubeRay."""


def facts(view: RayView) -> ServingFacts:
    """Return the facts of what a cluster serves."""
    found, cluster, served = view.object, view.cluster, view.served
    name = name_of(found.body)
    if cluster is None:
        engines: tuple[EngineFacts, ...] = ()
    elif isinstance(served, tuple) and served:
        engines = tuple(_serve_engines(found, cluster, served))
    else:
        engines = tuple(_head_engine(found, cluster, name))
    return ServingFacts(
        path=found.at("spec"), name=name, engines=engines, gang_expected=_has_gang(view)
    )


def _pod(found: Object, group: Group) -> PodFacts:
    """Return the facts of a group's pods, with paths in the caller's input."""
    if not found.path:
        return group.pod
    at = found.at(f"{group.path}.template")
    pod = read_group_pod(group.template, at, group.params, found.context)
    return replace(pod, command_path=found.at(group.command_at)) if group.command_at else pod


def _head_engine(found: Object, cluster: Cluster, name: str) -> Iterator[EngineFacts]:
    """Return the engine that the head starts. Most clusters start none: they run other work."""
    head = _pod(found, cluster.head)
    ranks: MaybeInt = 1 if head.command is None else head.command.world
    if not cluster.starts_engine and head.gap is None:
        return
    workers = cluster.with_gpus
    worker = _pod(found, workers[0]) if workers else None
    if worker is not None and cluster.is_mixed:
        worker = _with_gpus(worker, _UNEQUAL)
    yield EngineFacts(
        path=found.at(cluster.path),
        name=name,
        pods=_pods(cluster, ranks),
        replicas=1,
        entry=fill_requests(head),
        worker=None if worker is None else fill_requests(worker),
        ray_started=True,
    )


def _pods(cluster: Cluster, ranks: MaybeInt) -> MaybeInt:
    """Count the pods of an engine that the head starts, without workers that have no GPUs.

    The autoscaler adds workers until every rank has a GPU, up to its limit.
    """
    low: int = 0
    high: int = 0
    several = _several_engines(cluster)
    if several is not None:
        return several
    for group in cluster.with_gpus:
        for value in (group.low, group.high):
            if isinstance(value, Unknown):
                return value
        if isinstance(group.low, int) and isinstance(group.high, int):
            low, high = low + group.low, high + group.high
    if low == high:
        return 1 + low
    gpus, head = cluster.with_gpus[0].pod.gpus, cluster.head.pod.gpus
    for value in (ranks, gpus, head):
        if isinstance(value, Unknown):
            return Unknown("the autoscaler decides the number of workers")
    if isinstance(ranks, int) and isinstance(gpus, int) and isinstance(head, int):
        return 1 + min(max(-(-(ranks - head) // gpus), low), high)
    return 1 + low


def _several_engines(cluster: Cluster) -> Unknown | None:
    """Say why a cluster is, or may be, no single engine: its groups of workers start some."""
    starting = sum(map(_starts_engine, cluster.with_gpus))
    gaps = [group.pod.gap for group in cluster.with_gpus if group.pod.gap is not None]
    if starting > 1:
        return _SEVERAL
    return gaps[0] if gaps and starting + len(gaps) > 1 else None


def _starts_engine(group: Group) -> bool:
    """Return whether the pods of a group start an engine."""
    command = group.pod.command
    return command is not None and command.engine is not None


def _serve_engines(
    found: Object, cluster: Cluster, served: tuple[Served, ...]
) -> Iterator[EngineFacts]:
    """Return each model as an engine on what Ray reserves for one of its replicas."""
    hosts = sorted(cluster.with_gpus, key=_size, reverse=True)
    if not hosts:
        return
    path, host = found.at(f"spec.{CONFIG}"), _pod(found, hosts[0])
    for one in served:
        pods, gpus = _share(one.ranks, _size(hosts[0]))
        pod = replace(
            _with_gpus(host, gpus),
            command=one.command,
            command_path=path,
            container=host.own.name if host.own else "?",
            own=host.own and _of_ray(host.own),
        )
        yield EngineFacts(
            path=path,
            name=one.name,
            pods=pods,
            replicas=one.low,
            entry=pod,
            worker=None,
            ray_started=True,
        )


def _of_ray(container: ContainerFacts) -> ContainerFacts:
    """Say that others listen in the container: the proxy of Serve, and Ray's agent for probes.

    The engine itself opens no port. Source: ray python/ray/serve/_private/proxy.py; ray-operator
    controllers/ray/common/pod.go, which probes port 52365.
    """
    return replace(container, ports=replace(container.ports, alone=False))


def _size(group: Group) -> int:
    return group.pod.gpus if isinstance(group.pod.gpus, int) else 0


def _share(ranks: MaybeInt, size: int) -> tuple[MaybeInt, MaybeInt]:
    """Return the pods of one replica, and the GPUs that it reserves in each."""
    if isinstance(ranks, Unknown) or ranks <= size or size < 1:
        return 1, ranks
    pods = -(-ranks // size)
    return pods, ranks // pods if ranks % pods == 0 else Unknown("Ray distributes the ranks itself")


def _with_gpus(pod: PodFacts, gpus: MaybeInt) -> PodFacts:
    name = pod.container or (pod.own.name if pod.own else "?")
    device = DeviceFacts(
        path=pod.gpus_path, container=name, resource="GPUs", limit=gpus, request=gpus
    )
    return replace(pod, devices=(device,))


def _has_gang(view: RayView) -> MaybeBool:
    """Return whether the pods are placed together, or need not be, as for replicas of Serve.

    A cluster that starts no engine itself runs whatever its users submit.
    """
    cluster = view.cluster
    metadata = view.object.metadata
    labels = mapping(metadata.get("labels"))
    if cluster is None or view.served or _GANG_LABELS & {str(key) for key in labels}:
        return True
    if (admitted := admitted_together(metadata)) is not False:
        return admitted
    template = mapping(cluster.head.fields.get("template"))
    scheduler = mapping(template.get("spec")).get("schedulerName")
    return not cluster.starts_engine or scheduler == "volcano" or is_unresolved(scheduler)


# The pods of KubeRay's clusters.


def pods_of_cluster(view: RayView) -> Iterator[PodSet]:
    """Return the head and the workers of each group.

    Nothing says that the pods of a cluster without an engine are on several nodes.
    """
    runs = bool(view.served) or (view.cluster is not None and view.cluster.starts_engine)
    head, at = mapping(view.head.stated).get("template"), f"{view.head.path}.template"
    first = pod_set(view.object, at, head, 1, by_controller=True)
    yield replace(first, added=_labels(view, "head", "headgroup"))
    for group in view.workers:
        fields, at = mapping(group.stated), f"{group.path}.template"
        each = (copies_in(fields.get(key), 1) for key in ("replicas", "numOfHosts"))
        hosts, made = product(*each), fields.get("template")
        spread = runs and hosts != 0
        pods = pod_set(view.object, at, made, hosts, by_controller=True, spread=spread)
        yield replace(pods, added=_labels(view, "worker", fields.get("groupName")))


_ANY = regex(r".*")
_MAY_HAVE = (
    *(QUEUE_LABEL, "ray.io/identifier", "ray.io/serve", "ray.io/priority-class-name"),
    *("ray.io/originated-from-cr-name", "ray.io/originated-from-crd"),
)


def _labels(view: RayView, role: str, group: object) -> Mapping[str, object]:
    """Return the labels that KubeRay adds to the pods of a group.

    It makes up the names of the clusters of RayServices and RayJobs. Source: ray-project/kuberay
    ray-operator/controllers/ray/common/pod.go labelPod and controllers/ray/utils/constant.go.
    """
    own = view.object.kind == "RayCluster" and view.object.name is not None
    return {
        **dict.fromkeys(_MAY_HAVE, _ANY),
        "ray.io/is-ray-node": "yes",
        "ray.io/node-type": role,
        "ray.io/group": _ANY if group is None else group,
        CLUSTER_LABEL: view.object.name if own else _ANY,
        "app.kubernetes.io/name": "kuberay",
        "app.kubernetes.io/created-by": "kuberay-operator",
    }


_TOPOLOGY = "volcano.sh/network-topology-"


def gangs_of_cluster(view: RayView) -> Iterator[Gang]:
    """Return the pods that KubeRay puts into one PodGroup if it runs with Volcano.

    These are the head and the desired workers, with an autoscaler the fewest. The operator's own
    configuration decides on the scheduler. The label ray.io/scheduler-name says which one its
    author expects. The labels of the topology count since KubeRay 1.5.

    Source: ray-project/kuberay ray-operator/controllers/ray/batchscheduler/volcano/
    volcano_scheduler.go DoBatchSchedulingOnSubmission and createPodGroup.
    """
    labels = mapping(view.object.metadata.get("labels"))
    scheduler = labels.get(_SCHEDULER_LABEL)
    if scheduler != VOLCANO and (QUEUE_LABEL not in labels or scheduler is not None):
        return
    mode, tier = (labels.get(f"{_TOPOLOGY}{key}") for key in ("mode", "highest-tier-allowed"))
    topology = {} if mode is None else {"mode": mode}
    if topology and isinstance(tier, str) and tier.isdecimal():
        topology["highestTierAllowed"] = int(tier[:9])
    head, *workers = pods_of_cluster(view)
    numbers = [group.low for group in view.workers]
    yield Gang(
        owner=view.object,
        title="the Ray cluster",
        pods=((head, 1), *zip(workers, numbers, strict=True)),
        queue=text(labels.get(QUEUE_LABEL), ""),
        queue_path=join_path("metadata.labels", key_text(QUEUE_LABEL)),
        topology=topology,
        topology_path=f"metadata.labels.{_TOPOLOGY}mode",
        sure=scheduler == VOLCANO,
    )


# The engines of KubeRay's clusters for `convert`.


_NUMBERS = ("replicas", "minReplicas", "maxReplicas")
_OF_RAY = "rayproject/"
_NO_SCRIPT = "an image of Ray has no script to join pods; name an image of vLLM"


def sketch(view: RayView) -> Sketch:
    """Return the engine that the head starts, or those of Ray Serve, with the pods of the cluster.

    The proxy and the router of Ray Serve run on the cluster, too.
    """
    name, served = name_of(view.object.body), view.served
    service = "serve" if served else "head"
    sets = tuple(pods_of_cluster(view))
    images = {each.path: _image(each) for each in sets}
    return Sketch(
        sets=sets,
        known=tuple(_same_numbers(view)),
        unsaid={at: {"engine.image": _NO_SCRIPT} for at, i in images.items() if _OF_RAY in i},
        refused=_refused(view),
        beside={
            f"Service/{name}-{service}-svc": "KubeRay makes it; --set expose.port=80 writes one"
        },
    )


def _refused(view: RayView) -> str:
    """Say why the engines of a RayService are not described; empty if they are."""
    if isinstance(view.served, Unknown):
        return f"has a serveConfigV2 that is not read: {view.served.because}"
    sizes = [g.pod.gpus for g in view.cluster.with_gpus] if view.cluster is not None else []
    size = max((n for n in sizes if isinstance(n, int)), default=0)
    for one in view.served:
        ranks = one.ranks
        if isinstance(ranks, Unknown):
            return f"runs {one.name} on a number of GPUs that is not known: {ranks.because}"
        if not size or (ranks > size and ranks % size):
            return (
                f"runs {one.name} on {count_of(ranks, 'GPU')}, which are no whole pods "
                f"of {count_of(size, 'GPU')}"
            )
    return ""


def _image(pods: PodSet) -> str:
    containers = [mapping(item) for item in sequence(pods.spec.get("containers"))]
    return str(containers[0].get("image")) if containers else ""


def _same_numbers(view: RayView) -> Iterator[str]:
    """Yield the numbers of a group that all say how many pods it has."""
    for group in view.workers:
        fields = mapping(group.stated)
        hosts = copies_in(fields.get("numOfHosts"), 1)
        for key in (key for key in _NUMBERS if fields.get(key) is not None):
            if group.low == group.high == product(copies_in(fields[key], 0), hosts):
                yield view.object.at(f"{group.path}.{key}")
