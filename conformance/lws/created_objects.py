"""Compares what the LeaderWorkerSet controller creates with the plan, from creation to deletion."""

import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from conformance.__main__ import Context
from conformance.kthena.emission import make_queue
from conformance.support import observe, random_servings
from conformance.support.serving_lives import Check, Life, env_of, live_all, same_container
from kthena_components.cluster.client import Cluster, ClusterError
from kthena_components.compiler.compile import compile_serving
from kthena_components.core import naming
from kthena_components.core.findings import SpecError
from kthena_components.core.plan.serving_plan import RolePlan, ServingPlan
from kthena_components.systems.lws.emit import EMITTER
from kthena_components.systems.volcano.emit import SCHEDULING
from sandbox.cluster import Size

SPECIFICATIONS = 40
ROOM = Size(racks=4, nodes=16, gpus=8)
_SETS = (("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"),
         ("disaggregatedset.x-k8s.io/v1", "DisaggregatedSet"))  # fmt: skip
_LABEL = "leaderworkerset.sigs.k8s.io"


def run(context: Context) -> None:
    """Create servings, compare them, update and scale them, and delete them."""
    rng = random.Random(f"lws {context.seed}")  # noqa: S311 - to repeat, not to hide
    servings = draw(rng, context.many(SPECIFICATIONS))
    with context.cluster(ROOM) as sandbox:
        api = sandbox.api
        _refuses(context, api)
        make_queue(api)
        lives = [
            Life(api=api, space=f"lws-{number}", args=args) for number, args in enumerate(servings)
        ]
        # A DisaggregatedSet has one group.
        live_all(context, lives, _compared, scales=lambda args: len(args["roles"]) == 1)


def draw(rng: random.Random, number: int) -> list[random_servings.Args]:
    """Generate servings that the backend accepts: of one role, and of several."""
    found: dict[str, random_servings.Args] = {}
    while len(found) < number:
        args = {**random_servings.serving(rng), "backend": "lws"}
        for name in ("network_topology", "gang_policy"):
            args.pop(name, None)
        # A partition would keep the first groups from the update that follows.
        args.get("rollout_strategy", {}).get("rolling_update_configuration", {}).pop(
            "partition", None
        )
        args["backend_options"] = _options(rng, args)
        try:
            compile_serving(args)
        except SpecError:
            continue
        found[json.dumps(args, sort_keys=True)] = args
    return list(found.values())


def _options(rng: random.Random, args: random_servings.Args) -> random_servings.Args:
    options: random_servings.Args = {}
    if rng.random() < 1 / 3:
        options["subdomain_policy"] = "UniquePerReplica"
    if rng.random() < 1 / 3:
        options["recreate_after_start"] = True
    if rng.random() < 1 / 3:
        role = rng.choice(args["roles"])
        options["subgroups"] = {role["name"]: {"size": 1}}
    return options


def _refuses(context: Context, api: Cluster) -> None:
    """Begin with objects that the webhooks must reject: else they are not asked."""
    template = {"spec": {"containers": [{"name": "a", "image": "a"}]}}
    group = {"size": 0, "workerTemplate": template}
    update = {"type": "RollingUpdate", "rollingUpdateConfiguration": {"partition": 1}}
    part = {"replicas": 1, "leaderWorkerTemplate": {"workerTemplate": template}}
    roles = [{"name": name, "spec": {**part, "rolloutStrategy": update}} for name in ("a", "b")]
    for (version, kind), spec in zip(
        _SETS, ({"leaderWorkerTemplate": group}, {"roles": roles}), strict=True
    ):
        body = {"apiVersion": version, "kind": kind, "spec": spec,
                "metadata": {"name": "wrong", "namespace": "serving"}}  # fmt: skip
        try:
            api.create(body)
            said = ""
        except ClusterError as error:
            said = str(error)
        context.part.check(f"a wrong {kind} is rejected", holds="denied" in said, seen=said)


def _compared(life: Life) -> Iterator[Check]:
    """Compare pods, Services and gangs with the plan."""
    api, space, plan, found = life.api, life.space, life.compiled().plan, life.pods()
    services = {body["metadata"]["name"] for body in api.list("v1", "Service", space)}
    for role in plan.roles:
        own = [pod for pod in found if pod["metadata"]["labels"].get(naming.ROLE) == role.name]
        wanted = plan.groups * role.replicas
        engines = Counter(pod["metadata"]["labels"][f"{_LABEL}/group-key"] for pod in own)
        sizes = set(engines.values())
        fits = len(engines) == wanted and sizes <= {role.pods}
        yield "engines have the planned pods", fits, (role.name, dict(engines))
        for pod in own:
            index = int(pod["metadata"]["labels"][f"{_LABEL}/worker-index"])
            template = role.worker if index and role.worker else role.entry
            for what, wanted_here, seen in _differences(pod, template, role, services, index):
                yield what, wanted_here == seen, (pod["metadata"]["name"], wanted_here, seen)
    told = EMITTER.addresses(plan)
    leaders = sorted({address for pod in found if (address := _leader(pod))})
    yield "the addresses are those of the leaders", not told or sorted(told) == leaders, leaders
    if plan.gang:
        yield from _gangs(api, space, plan)
    if plan.expose:
        yield "the front Service is there", plan.name in services, sorted(services)


def _differences(
    pod: observe.Pod, template: Mapping[str, Any], role: RolePlan, services: set[str], index: int
) -> Iterator[tuple[str, object, object]]:
    """Return what a pod should have, and what it has."""
    (made, *_), (planned, *_) = pod["spec"]["containers"], template["spec"]["containers"]
    env = env_of(pod)
    pods = str(role.pods)
    yield "LWS_GROUP_SIZE is the pods of the engine", pods, env.get("LWS_GROUP_SIZE")
    yield "LWS_WORKER_INDEX is the rank", str(index), env.get("LWS_WORKER_INDEX")
    service = _leader(pod).partition(".")[2].partition(".")[0]
    yield "the leader's address is in a headless Service", True, service in services
    names = [each["name"] for each in made.get("env", [])]
    for theirs, ours in naming.LWS_ENV.items():
        stated = any(each.get("name") == ours for each in planned.get("env") or [])
        if not stated:
            yield f"{ours} refers to {theirs}", f"$({theirs})", env.get(ours)
        yield f"{theirs} stands in front of {ours}", True, names.index(theirs) < names.index(ours)
    yield from same_container(pod, template)
    entry = pod["metadata"]["labels"].get(naming.ENTRY)
    yield "only the leader is an entry", None if index else "true", entry


def _leader(pod: observe.Pod) -> str:
    return str(env_of(pod).get("LWS_LEADER_ADDRESS") or "")


def _gangs(api: Cluster, space: str, plan: ServingPlan) -> Iterator[Check]:
    gangs = [body["spec"] for body in api.list(SCHEDULING, "PodGroup", space)]
    wanted = Counter({role.pods: 0 for role in plan.roles})
    for role in plan.roles:
        wanted[role.pods] += plan.groups * role.replicas
    found = Counter(gang.get("minMember") for gang in gangs)
    yield "each engine is a gang of all its pods", +found == +wanted, (dict(found), dict(wanted))
    queues = {gang.get("queue", "default") for gang in gangs}
    yield "the gangs are in the queue", queues <= {plan.queue or "default"}, sorted(queues)
