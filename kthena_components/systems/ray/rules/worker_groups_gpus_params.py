"""Checks that the pods of a KubeRay cluster have what its engine requests from Ray.

If all workers are equal, world-size-equals-gpus checks an engine that the head starts; the rules
here check Ray's own settings, and clusters with several groups of workers.
"""

from collections.abc import Iterator
from decimal import Decimal

from kthena_components.core.findings import Finding, Level, count_of, not_checked, part_of_rule
from kthena_components.core.remedies import either, remove, write
from kthena_components.core.rules.support.fixes import gpus_of_pod
from kthena_components.core.values.display import display
from kthena_components.core.values.quantity import parse_quantity
from kthena_components.core.values.read import (
    mapping,
    require_known,
    unknown_in,
    whole,
)
from kthena_components.core.values.unknown import MaybeInt, Unknown, product, total
from kthena_components.systems.ray.view import Cluster, Group, RayView, pods_text

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
                yield from _told(group, f"{at}.{key}", mapping(holder)[key], missing)


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
def _told(group: Group, path: str, value: object, missing: str = "") -> Iterator[Finding]:
    gpus = group.ray_gpus
    require_known(path, value, gpus)
    if not isinstance(value, str):
        number = whole(value)
        written = f'"{number}"' if isinstance(number, int) else f'"{gpus}"'
        seen = f"is {display(value)}, and KubeRay only accepts texts here"
        yield _finding(
            path, seen, write(written.strip('"'), f"write {written}, with quotes"), _PARAMS
        )
    told = _count(value)
    if told is None:
        if isinstance(value, str):
            seen = f"is {display(value)}, which is not a count of GPUs"
            yield _finding(
                path,
                seen,
                either(write(str(gpus), f'write "{gpus}"'), remove("leave it out")),
                _PARAMS,
            )
    elif isinstance(gpus, int) and told != gpus:
        more = told > gpus
        idle = f"so {count_of(gpus - told, 'GPU')} of each pod would stay idle"
        end = "so Ray starts ranks on missing devices" if more else missing or idle
        yield _finding(
            path,
            f"tells Ray of {count_of(told, 'GPU')}, but a pod of '{group.name}' has {gpus}, {end}",
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
