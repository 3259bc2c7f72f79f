"""Measures `place`, and Volcano's scheduler on the same cluster with `--scheduler`.

`python -m bench.placing` prints how the time grows. Each group has ten equal pods of half a node,
under a hard cap at tier 1, so that racks must be compared. Further rows: each group requests other
amounts, for pods of two sizes; none of such groups fits; each pod has a whole node, and half of
the groups wait. Where groups do not fit, the reasons are looked for, too.
"""

import argparse
import signal
import sys
import tempfile
import time
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from tabulate import tabulate

from conformance.fit.driven_cluster import DrivenCluster
from conformance.fit.random_clusters import Case, Gang
from conformance.support.cluster import NAMESPACE, PODGROUP
from kthena_components.core import naming
from kthena_components.core.topology.domains import read_domains
from kthena_components.placement.model import Cluster, Node, PodGroup, PodSet, Topology, Verdict
from kthena_components.placement.place import place
from sandbox.cluster import Size, up
from sandbox.nodes import hyper_nodes, nodes

GPU: Final = "nvidia.com/gpu"
SIZES: Final = ((100, 10, 10), (1_000, 100, 100), (5_000, 500, 1_000))
"""Nodes, racks, and groups of ten pods. All groups fit if each pod has half a node."""
REAL: Final = SIZES[1]
PODS: Final = 10


def placing_seconds(
    count: int, racks: int, groups: int, gpus: int = 4, *, different: bool = False
) -> tuple[float, int]:
    """Place all groups, and return the processor seconds and how many fit."""
    cluster, wanted = cluster_of(count, racks), [_group(f"gang-{n}", gpus) for n in range(groups)]
    if different:
        wanted = [_unlike(group, number) for number, group in enumerate(wanted)]
    begun = time.process_time()
    outcomes = place(cluster, wanted)
    return time.process_time() - begun, sum(one.verdict is Verdict.FITS for one in outcomes)


def cluster_of(count: int, racks: int) -> Cluster:
    """Return an empty cluster of racks under one spine, as the sandbox makes it."""
    bodies = nodes(racks, count // racks, 8)
    amounts = {"cpu": Decimal(192), "memory": Decimal(2000 * 2**30), "pods": Decimal(110),
               GPU: Decimal(8)}  # fmt: skip
    trees = hyper_nodes(racks)
    labels = {body["metadata"]["name"]: body["metadata"]["labels"] for body in bodies}
    listed = [Node(name=name, body=body, allocatable=amounts, used={})
              for name, body in zip(labels, bodies, strict=True)]  # fmt: skip
    return Cluster(nodes=listed, domains=read_domains(trees, labels), hyper_nodes=trees)


def scheduler_seconds(count: int, racks: int, groups: int) -> tuple[float, int]:
    """Let Volcano's scheduler place the same groups, and return how long it takes."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        sandbox = up(Path(folder) / "sandbox", Size(racks=1, nodes=1), _say)
        try:
            driven = DrivenCluster(sandbox)
            gangs = [_gang(f"gang-{number}") for number in range(groups)]
            case = Case(title="bench", nodes=nodes(racks, count // racks, 8),
                        hyper_nodes=hyper_nodes(racks), queues={}, gangs=gangs)  # fmt: skip
            driven.create(case)
            _say(f"{count} nodes and {groups * PODS} pods exist")
            begun = time.monotonic()
            driven.release()
            while len(driven.bound()) < groups * PODS:
                time.sleep(0.2)
            return time.monotonic() - begun, len(driven.bound()) // PODS
        finally:
            sandbox.processes.stop_all()


def _group(name: str, gpus: int) -> PodGroup:
    pods = PodSet(name=name, count=PODS, requests={"cpu": Decimal(1), GPU: Decimal(gpus)})
    return PodGroup(namespace=NAMESPACE, name=name, owner=f"PodGroup {name}", pods=(pods,),
                    minimum=PODS, topology=Topology(hard=True, highest_tier=1))  # fmt: skip


def _unlike(group: PodGroup, number: int) -> PodGroup:
    """Let half of the pods request less, and all of them more memory than those of other groups."""
    (pods,) = group.pods
    asked = {**pods.requests, "memory": Decimal(2**30 * (number + 1))}
    half = {**asked, GPU: asked[GPU] / 2}
    sets = (replace(pods, name="large", task="large", count=PODS // 2, requests=asked),
            replace(pods, name="small", task="small", count=PODS // 2, requests=half))  # fmt: skip
    return replace(group, pods=sets)


def _gang(name: str) -> Gang:
    topology = {"mode": "hard", "highestTierAllowed": 1}
    group = {"apiVersion": PODGROUP, "kind": "PodGroup",
             "metadata": {"name": name, "namespace": NAMESPACE},
             "spec": {"minMember": PODS, "networkTopology": topology}}  # fmt: skip
    amounts = {"cpu": "1", GPU: "4"}
    container = {"name": "serve", "image": "serve", "resources": {"limits": amounts}}
    pods = [
        {"apiVersion": "v1", "kind": "Pod",
         "metadata": {"name": f"{name}-serve-{number}", "namespace": NAMESPACE,
                      "annotations": {naming.POD_GROUP: name}},
         "spec": {"schedulerName": "volcano", "containers": [container]}}
        for number in range(PODS)
    ]  # fmt: skip
    return Gang(bodies=[group, *pods], pods=PODS)


def main(arguments: list[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.placing", description=__doc__)
    parser.add_argument("--scheduler", action="store_true", help="also run Volcano's scheduler")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, _leave)
    placing_seconds(*SIZES[0])  # a warm-up run, which fills the caches
    rows: list[list[Any]] = []
    measured: list[tuple[tuple[int, int, int], int, bool]] = [(size, 4, False) for size in SIZES]
    measured += [(REAL, 4, True), (REAL, 16, True), (SIZES[-1], 8, False)]
    for size, gpus, different in measured:
        seconds, fit = placing_seconds(*size, gpus=gpus, different=different)
        kinds = size[2] if different else 1
        rows.append([*size[:2], size[2] * PODS, size[2], kinds, fit, seconds, None])
    if options.scheduler:
        seconds, fit = scheduler_seconds(*REAL)
        rows[1][-1] = seconds
        _say(f"Volcano places {fit} of {REAL[2]} groups")
    headers = ("nodes", "racks", "pods", "groups", "that differ", "fit", "place, s", "Volcano, s")
    sys.stdout.write(f"{tabulate(rows, headers, 'github', floatfmt='.2f')}\n")
    return 0


def _leave(number: int, _frame: object) -> None:
    """Turn a signal into an exception, so that the sandbox is stopped."""
    raise SystemExit(128 + number)


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())
