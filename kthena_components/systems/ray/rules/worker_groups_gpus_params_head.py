"""Checks that the pods of a KubeRay cluster have what its engine requests from Ray.

If all workers are equal, world-size-equals-gpus checks an engine that the head starts; the rules
here check Ray's own settings, and clusters with several groups of workers.
"""

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from kthena_components.core.findings import (
    Finding,
    Level,
    advise,
    count_of,
    not_checked,
    part_of_rule,
    refuse,
)
from kthena_components.core.objects.cluster_objects import ClusterObjects
from kthena_components.core.objects.object import Object
from kthena_components.core.remedies import either, remove, write
from kthena_components.core.rules.support.fixes import gpus_of_pod
from kthena_components.core.values.display import display
from kthena_components.core.values.quantity import parse_quantity
from kthena_components.core.values.read import mapping, require_known, sequence, unknown_in, whole
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import MaybeInt, Unknown, product, total
from kthena_components.systems.ray.view import (
    CLUSTERS,
    Cluster,
    Group,
    RayView,
    pods_text,
    read_ray,
)

_PARAMS, _GROUPS, _GPUS = "ray-start-params", "ray-worker-groups", "ray-cluster-gpus"


def ray_start_params(view: RayView) -> Iterator[Finding]:
    """Ray's number of GPUs is the pod's: num-gpus equals the container's limit.

    Without num-gpus, KubeRay uses the limit of the first container. With a larger number Ray starts
    ranks on missing devices; with a smaller one GPUs stay idle, and vLLM's executor ray never
    starts if all pods together have too few, nor do the replicas of Ray Serve. The value is a text.

    Pass: rayStartParams num-gpus "8" and nvidia.com/gpu 8; num-gpus left out; "0" on a head
    without GPUs.
    Fail: num-gpus "8" on pods of 4 GPUs; num-gpus "4" on pods of 8 (advisory); num-gpus 8 without
    quotes.
    Level: mandatory; advisory if GPUs only stay idle, and if a pod has none: such GPUs exist only
    for Ray's scheduler, as in tests.
    Source: ray-project/kuberay ray-operator/controllers/ray/common/pod.go
    addWellKnownAcceleratorResources, updateRayStartParamsResources;
    vllm/v1/executor/ray_utils.py initialize_ray_cluster, _wait_until_pg_ready.
    """
    for group in view.cluster.groups if view.cluster is not None else ():
        params, resources = group.fields.get("rayStartParams"), group.fields.get("resources")
        for field, key, holder in (
            ("rayStartParams", "num-gpus", params),
            ("resources", "GPU", resources),
        ):
            at = f"{group.path}.{field}"
            if gap := unknown_in(holder):
                yield not_checked(at, gap)
            elif mapping(holder).get(key) is not None:
                missing = "" if view.cluster is None else _missing_gpus(view, view.cluster)
                yield from _compare_gpus(group, f"{at}.{key}", mapping(holder)[key], missing)


def _missing_gpus(view: RayView, cluster: Cluster) -> str:
    """Explain that Ray counts fewer GPUs than engines need; empty if it does not.

    vLLM waits for a placement group with a GPU for each rank, and then gives up. Ray Serve waits
    for its replicas, too.
    """
    command, served = cluster.head.pod.command, view.served
    ranks: MaybeInt = 0
    if command is not None and command.executor == "ray" and command.data == 1:
        ranks = command.per_rank_world
    elif isinstance(served, tuple):
        ranks = total([product(one.ranks, one.low) for one in served])
    counted = total(map(counted_in, cluster.groups))
    if not isinstance(ranks, int) or not isinstance(counted, int) or counted >= ranks:
        return ""
    needs = f"so Ray counts {count_of(counted, 'GPU')} in all pods"
    return f"{needs}, and the engine waits for {count_of(ranks, 'GPU')} until it gives up"


def counted_in(group: Group) -> MaybeInt:
    """Count the GPUs of all pods of a group as Ray does."""
    return product(group.high, counted_in_pod(group))


def counted_in_pod(group: Group) -> MaybeInt:
    """Count the GPUs of one pod of a group as Ray does."""
    resources = mapping(group.fields.get("resources")).get("GPU")
    stated = [one for one in (group.params.get("num-gpus"), resources) if one is not None]
    counts = [_count(one) for one in stated]
    if len(counts) > 1 or None in counts:
        return Unknown("the GPUs that Ray counts are not known")
    return counts[0] if counts and counts[0] is not None else group.ray_gpus


@part_of_rule
def _compare_gpus(group: Group, path: str, value: object, missing: str = "") -> Iterator[Finding]:
    """Compare the GPUs in Ray's start parameters with the GPUs of the group's pods."""
    gpus = group.ray_gpus
    require_known(path, value, gpus)
    if not isinstance(value, str):
        number = whole(value)
        written = f'"{number}"' if isinstance(number, int) else f'"{gpus}"'
        seen = f"is {display(value)}, and KubeRay only accepts strings here"
        yield _finding(
            path, seen, write(written.strip('"'), f"write {written}, with quotes"), _PARAMS
        )
    count = _count(value)
    if count is None:
        if isinstance(value, str):
            seen = f"is {display(value)}, which is not a count of GPUs"
            yield _finding(
                path,
                seen,
                either(write(str(gpus), f'write "{gpus}"'), remove("leave it out")),
                _PARAMS,
            )
    elif isinstance(gpus, int) and count != gpus:
        more = count > gpus
        idle = f"so {count_of(gpus - count, 'GPU')} of each pod would stay idle"
        end = "so Ray starts ranks on missing devices" if more else missing or idle
        yield _finding(
            path,
            f"tells Ray of {count_of(count, 'GPU')}, but a pod of '{group.name}' has {gpus}, {end}",
            either(write(str(gpus), f'write "{gpus}"'), remove("leave it out")),
            _PARAMS,
            Level.MANDATORY if (more and gpus) or (missing and not more) else Level.ADVISORY,
        )


def _count(value: object) -> int | None:
    number = parse_quantity(value)
    fits = number is not None and Decimal(0) <= number == number.to_integral_value()
    return int(number) if fits and number is not None else None


def ray_worker_groups(view: RayView) -> Iterator[Finding]:
    """The workers of one engine have equally many GPUs in all groups.

    Ray fills pods of different sizes in any order, so a tensor group may use parts of two pods.

    Pass: groups a and b, both of pods with 8 GPUs.
    Fail: group a with 8 GPUs a pod and group b with 4, and a head that starts vLLM.
    Level: advisory.
    Source: vllm/v1/executor/ray_executor.py sorts workers by node; vllm ray_utils warns when a
    tensor group is split.
    """
    cluster = view.cluster
    if cluster is None or not cluster.starts_engine:
        return
    sizes = [(g, g.pod.gpus) for g in cluster.with_gpus if isinstance(g.pod.gpus, int)]
    if not sizes:
        return
    first, size = sizes[0]
    several = cluster.head.pod.gpus == size or [gpus for _, gpus in sizes].count(size) > 1
    for group, gpus in sizes[1:]:
        if gpus != size:
            yield _finding(
                group.pod.gpus_path,
                f"gives the pods of group '{group.name}' {count_of(gpus, 'GPU')} and those "
                "of group "
                f"'{first.name}' {size}, and one engine runs on both",
                either(
                    gpus_of_pod(group.pod, size, f"write {size} in both"),
                    "" if several else gpus_of_pod(first.pod, gpus, f"{gpus} in both"),
                ),
                _GROUPS,
                Level.ADVISORY,
            )


def ray_cluster_gpus(view: RayView) -> Iterator[Finding]:
    """An engine on a Ray cluster with unequal workers has as many ranks as the cluster has GPUs.

    With more ranks, the placement group waits forever; with fewer, GPUs stay idle. With an
    autoscaler, the ranks are between the minimum and maximum of GPUs. If all workers are equal,
    world-size-equals-gpus reports this instead.

    Pass: tensor 4 × pipeline 5 = 20 ranks on a head of 8, a worker of 8 and a worker of 4 GPUs.
    Fail: tensor 8 × pipeline 3 = 24 ranks on the same 20 GPUs.

    Source: kserve/kserve#4946; vllm-project/vllm#6938; vllm ray_utils initialize_ray_cluster.
    """
    cluster = view.cluster
    command = cluster.head.pod.command if cluster is not None else None
    if cluster is None or command is None or not cluster.is_mixed or not cluster.starts_engine:
        return
    path = cluster.head.pod.command_path
    ranks = command.world
    least, most = cluster.total(most=False), cluster.total(most=True)
    require_known(path, command.data_mode, ranks, least, most)
    if not (isinstance(ranks, int) and isinstance(least, int) and isinstance(most, int)):
        return
    if command.data_mode != "internal" or least <= ranks <= most:
        return
    held = ", ".join(pods_text(g) for g in (cluster.head, *cluster.with_gpus))
    many = ranks > most
    yield _finding(
        path,
        f"starts {count_of(ranks, 'rank')}, but the Ray cluster has "
        f"{count_of(most if many else least, 'GPU')} ({held}), and "
        + ("Ray waits for the others forever" if many else "the others stay idle"),
        f"change the parallelism to {count_of(most if many else least, 'rank')}, or the "
        "groups' replicas",
        _GPUS,
    )


def _finding(
    path: str, seen: str, remedy: str, rule: str, level: Level = Level.MANDATORY
) -> Finding:
    return Finding(path=path, seen=seen, remedy=remedy, rule=rule, level=level)


_HEAD, _SERVICE = "(head)", ("", "Service")
"""Key of a kept spec, with the addresses of its head. A manifest may have it, but no such value."""
_ADDRESS = regex(r"(?:ray://)?(?P<name>[a-z][a-z0-9-]*)(?P<rest>(?:\.[a-z0-9-]+)*)(?::\d+)?")
_LOCAL = frozenset({"auto", "local", "localhost"})
_SVC = "svc"
_SIGNS = ("--address", "RAY_ADDRESS", '"address"', '"configMap"')
_OF_WORKERS = ("FQ_RAY_IP", "RAY_IP")
_OWN_START = "$(FQ_RAY_IP):6379"
"""The address in the command that view.py gives a group of workers without one."""


class _Address(NamedTuple):
    """An address of the head, and its path in the object."""

    at: str
    address: str


def head_asked(found: Object) -> Mapping[str, Any]:
    """Keep the addresses at which the pods of a Ray cluster look for its head."""
    text = json.dumps(mapping(found.body.get("spec")), default=str)
    if not any(sign in text for sign in _SIGNS):
        return {}
    asked = tuple(_addresses(read_ray(found), found.path))
    return {_HEAD: asked} if asked else {}


def _addresses(view: RayView, above: str) -> Iterator[_Address]:
    """List addresses of a head that variables, parameters and commands state."""
    for group in view.groups:
        for number, one in enumerate(map(mapping, sequence(group.container.get("env")))):
            if one.get("name") == "RAY_ADDRESS" and isinstance(one.get("value"), str):
                at = f"{group.path}.template.spec.containers[0].env[{number}].value"
                yield _Address(at, one["value"])
    for group in view.workers:
        stated, command = group.params.get("address"), group.pod.command
        if isinstance(stated, str):
            yield _Address(f"{group.path}.rayStartParams.address", stated)
        asked = command.ray_address if command is not None else None
        if command is None or not isinstance(asked, str) or _states_own(group):
            continue
        if asked != _OWN_START or asked in json.dumps(
            group.pod_spec.get("containers"), default=str
        ):
            yield _Address(group.pod.command_path.removeprefix(f"{above}."), asked)


def _states_own(group: Group) -> bool:
    """Return whether a container states a variable that KubeRay sets behind it, in its place."""
    env = map(mapping, sequence(group.container.get("env")))
    return any(one.get("name") in _OF_WORKERS for one in env)


def ray_head_address(cluster: ClusterObjects) -> Iterator[Finding]:
    """The pods of a Ray cluster look for its head at the Service that KubeRay makes for it.

    It has the name in headGroupSpec.headService, or else the name of the RayCluster with -head-svc.
    A RayJob names its cluster at random. KubeRay sets FQ_RAY_IP and RAY_IP to the name of the
    Service in the workers. A Service of another name counts if it is among the objects.

    Pass: `ray start --address=chat-head-svc:6379 --block` in the workers of a RayCluster chat;
    --address=$FQ_RAY_IP:6379.
    Fail: --address=chat-head:6379 there, and no Service chat-head; the same in RAY_ADDRESS, or in
    rayStartParams.address.
    Level: mandatory if these are all objects of the cluster; otherwise advice, because a Service of
    that name may be elsewhere.
    Source: ray-project/kuberay v1.4 ray-operator/controllers/ray/utils/util.go
    (GenerateHeadServiceName) and controllers/ray/common/pod.go (setContainerEnvVars).
    """
    services = cluster.named(_SERVICE)
    for kind, inner in CLUSTERS.items():
        for entry in cluster.of(("ray.io", kind)):
            kept = entry.spec.get(_HEAD)
            asked = kept if isinstance(kept, tuple) else head_asked(entry).get(_HEAD, ())
            names = _head_services(entry, inner) if asked else None
            for one in asked if names is not None else ():
                found = _ADDRESS.fullmatch(one.address)
                if found is None or found["name"] in _LOCAL or names is None:
                    continue
                space = _namespace(entry, found["rest"])
                own = space == entry.namespace or not entry.stated_namespace
                if space is None or (own and found["name"] in names):
                    continue
                if (space, found["name"]) in services or cluster.name_unknown(_SERVICE):
                    continue
                yield _elsewhere(cluster, entry, one, names)
                break


def _namespace(entry: Object, rest: str) -> str | None:
    """Return the namespace of a name in the cluster; None for what may be another name."""
    _, *labels = rest.split(".")
    if not labels or labels == [entry.namespace]:
        return str(entry.namespace)
    return labels[0] if labels[1:2] == [_SVC] else None


def _head_services(entry: Object, inner: str) -> set[str] | None:
    """Return the names of the Services of a head; None if they are not known."""
    spec = mapping(entry.spec.get(inner)) if inner else entry.spec
    service = mapping(mapping(spec.get("headGroupSpec")).get("headService"))
    named = mapping(service.get("metadata")).get("name")
    if not isinstance(entry.name, str) or unknown_in(named) or unknown_in(entry.namespace):
        return None
    if isinstance(named, str) and named:
        return {named, f"{entry.name}-head-svc"} if entry.kind == "RayService" else {named}
    return set() if entry.kind == "RayJob" else {f"{entry.name}-head-svc"}


def _elsewhere(cluster: ClusterObjects, entry: Object, one: _Address, names: set[str]) -> Finding:
    """Write the finding of an address that is not a Service of KubeRay's head."""
    seen = f"looks for the head at {display(one.address)}, but "
    if names:
        seen += f"KubeRay names its Service {min(names)}, and no object is a Service of that name"
    else:
        seen += "KubeRay names the cluster and its Service at random, and no object is that Service"
    remedy = "write $FQ_RAY_IP as the host, which KubeRay sets in the workers"
    if "env[" in one.at or one.at.endswith("rayStartParams.address"):
        remedy = "remove it: KubeRay sets it"
    tell = refuse if cluster.complete else advise
    return tell(entry.at(one.at), seen, remedy)
