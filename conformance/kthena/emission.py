"""Compares the objects of Kthena's controller with those of the native backend.

It creates random servings twice: as a ModelServing for the real controller, and as the native
backend's manifests for the controllers of Kubernetes, in separate namespaces.
"""

import json
import random
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from conformance.__main__ import Context
from conformance.kthena.differences import DOCUMENTED, Difference, compare, level, unused
from conformance.prometheus.monitored_pods import unwatched
from conformance.support import random_servings
from conformance.support.waiting import wait
from kthena_components.cluster.client import Cluster, ClusterError
from kthena_components.compiler.compile import Compiled, compile_serving
from kthena_components.core.findings import SpecError
from kthena_components.core.plan.manifest import Manifest
from kthena_components.systems.volcano.emit import SCHEDULING
from sandbox.cluster import Size, create

SPECIFICATIONS = 60
AT_ONCE = 4
ROOM = Size(racks=4, nodes=16, gpus=8)
ORDER = ("PodGroup", "Service", "StatefulSet")
KINDS = (("v1", "Pod"), ("v1", "Service"), (SCHEDULING, "PodGroup"))


@dataclass(slots=True, kw_only=True)
class Tried:
    """One serving on both sides."""

    args: random_servings.Args
    differences: list[Difference] = field(default_factory=list)
    missing: str = ""
    """The pods that were not ready in time."""
    objects: int = 0
    used: Counter[str] = field(default_factory=Counter)
    unwatched: list[str] = field(default_factory=list)
    """Pods of either side that alerts and PodMonitors would not find."""


def run(context: Context) -> None:
    """Compare the servings, several at a time, and report the differences."""
    rng = random.Random(f"emission {context.seed}")  # noqa: S311 - to repeat, not to hide
    servings = draw(rng, context.many(SPECIFICATIONS))
    with context.cluster(ROOM) as sandbox:
        api = sandbox.api
        _prepare(api)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            tried = list(pool.map(lambda item: _try(api, *item), enumerate(servings)))
    tell(context, tried)


def draw(rng: random.Random, number: int) -> list[random_servings.Args]:
    """Generate different servings that both backends accept."""
    found: dict[str, random_servings.Args] = {}
    while len(found) < number:
        args = random_servings.serving(rng)
        try:
            for backend in ("native", "kthena"):
                compile_serving({**args, "backend": backend})
        except SpecError:
            continue
        found[json.dumps(args, sort_keys=True)] = args
    return list(found.values())


def tell(context: Context, tried: list[Tried]) -> None:
    """Count the comparisons and allowed differences. Show each type of difference once."""
    part, used = context.part, Counter[str]()
    part.count("servings made by both", len(tried))
    part.count("pods compared", sum(random_servings.pods_of(each.args) for each in tried))
    part.count("objects compared", sum(each.objects for each in tried))
    smallest: dict[str, tuple[random_servings.Args, Difference]] = {}
    for each in sorted(tried, key=lambda item: len(json.dumps(item.args))):
        used.update(each.used)
        part.check("a serving has all its pods", holds=not each.missing,
                   seen=f"{each.missing}: {json.dumps(each.args)}")  # fmt: skip
        part.check("both make the same", holds=not each.differences,
                   seen=f"{len(each.differences)} differences")  # fmt: skip
        part.check("monitoring finds all pods", holds=not each.unwatched,
                   seen=f"{each.unwatched[:3]}: {json.dumps(each.args)}")  # fmt: skip
        for difference in each.differences:
            smallest.setdefault(difference.sort, (each.args, difference))
    for args, difference in smallest.values():
        part.fail(f"{difference}, of {json.dumps(args)}")
    for text, number in sorted(used.items()):
        part.count(f"times allowed: {text}", number)
    part.count("documented differences", DOCUMENTED)
    if context.scale >= 1:
        for text in unused(used):
            part.fail(f"documented, but needed by nothing: {text}")


def _prepare(api: Cluster) -> None:
    """Create the objects that the servings refer to."""
    make_queue(api)
    for node in list(api.list("topology.volcano.sh/v1alpha1", "HyperNode")):
        api.patch(node, {"spec": {"tierName": random_servings.TIERS[node["spec"]["tier"]]}})


def make_queue(api: Cluster) -> None:
    """Create the Queue of random servings, unless another part has created it."""
    named, spec = {"name": random_servings.QUEUE}, {"weight": 1, "reclaimable": False}
    if all(found["metadata"]["name"] != named["name"] for found in api.list(SCHEDULING, "Queue")):
        api.create({"apiVersion": SCHEDULING, "kind": "Queue", "metadata": named, "spec": spec})


def _try(api: Cluster, number: int, args: random_servings.Args) -> Tried:
    tried = Tried(args=args)
    spaces = {backend: f"{backend}-{number}" for backend in ("native", "kthena")}
    for backend, space in spaces.items():
        namespace(api, space)
        made = compile_serving({**args, "backend": backend, "namespace": space})
        create(api, _in_order(made))

    def has_no(what: str) -> bool:
        _look(api, tried, spaces, made)
        return not getattr(tried, what)

    if wait(lambda: has_no("missing")):
        wait(lambda: has_no("differences"))
    for space in spaces.values():
        api.delete({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}})
    return tried


def _look(api: Cluster, tried: Tried, spaces: Mapping[str, str], made: Compiled) -> None:
    """Compare the current objects of both sides."""
    bodies = {side: _bodies(api, space) for side, space in spaces.items()}
    tried.missing = "; ".join(
        text for side, found in bodies.items() for text in [_lacks(tried.args, side, found)] if text
    )
    tried.used.clear()
    if not tried.missing:
        used = tried.used
        sides = [level(bodies[side], spaces[side], used) for side in ("native", "kthena")]
        tried.objects = sum(len(side) for side in sides)
        tried.differences = list(compare(sides[0], sides[1], made.plan, tried.used))
        tried.unwatched = [
            f"{side}: {text}"
            for side, found in bodies.items()
            for text in unwatched(replace(made.plan, backend=side), pods_among(found))
        ]


def pods_among(bodies: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the pods among some objects."""
    return [body for body in bodies if body["kind"] == "Pod"]


def _lacks(args: random_servings.Args, side: str, bodies: list[dict[str, Any]]) -> str:
    """Describe the missing pods of a side."""
    pods = pods_among(bodies)
    running = [pod for pod in pods if (pod.get("status") or {}).get("phase") == "Running"]
    there = len(running) if random_servings.places(args) else len(pods)
    wanted = random_servings.pods_of(args)
    if there == wanted:
        return ""
    found = (condition.get("message") for body in bodies
             for condition in (body.get("status") or {}).get("conditions") or [])  # fmt: skip
    why = sorted({text for text in found if text})[:3]
    return f"{side} has {there} of {wanted} pods, {len(pods)} are made {why}"


def _bodies(api: Cluster, space: str) -> list[dict[str, Any]]:
    found = [body for kind in KINDS for body in api.list(*kind, space)]
    return [body for body in found if "deletionTimestamp" not in body["metadata"]]


def _in_order(made: Compiled) -> list[Mapping[str, Any]]:
    """Return the manifests in the order of Pulumi: gangs, Services, pods."""

    def place(manifest: Manifest) -> int:
        return ORDER.index(manifest.kind) if manifest.kind in ORDER else len(ORDER)

    return [manifest.body for manifest in sorted(made.manifests, key=place)]


def namespace(api: Cluster, name: str) -> None:
    """Create a namespace, and wait for its service account, which pods require."""
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    account = {"apiVersion": "v1", "kind": "ServiceAccount",
               "metadata": {"name": "default", "namespace": name}}  # fmt: skip

    def made() -> bool:
        try:
            return bool(api.get(account))
        except ClusterError:
            return False

    if not wait(made):
        raise TimeoutError(f"namespace {name} has no service account")
