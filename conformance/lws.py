"""Compares what the LeaderWorkerSet controller creates with the plan, from creation to deletion."""

import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from conformance import drawn, witness
from conformance.__main__ import Context
from conformance.emission import namespace
from conformance.waiting import wait
from conformance.watching import unwatched
from kthena_components.cluster.client import Cluster, ClusterError
from kthena_components.compiler.compile import Compiled, compile_serving
from kthena_components.core import naming
from kthena_components.core.findings import SpecError
from kthena_components.core.plan.model import RolePlan, ServingPlan
from kthena_components.core.values.quantity import parse_quantity
from kthena_components.systems.lws.emit import EMITTER
from kthena_components.systems.volcano.emit import SCHEDULING
from sandbox.cluster import Size

SPECIFICATIONS = 40
AT_ONCE = 4
ROOM = Size(racks=4, nodes=16, gpus=8)
_PATIENCE = 300
"""Seconds for each step of one serving."""
_SETS = (("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"),
         ("disaggregatedset.x-k8s.io/v1", "DisaggregatedSet"))  # fmt: skip
_LABEL = "leaderworkerset.sigs.k8s.io"
_NEW = "example.com/another:v2"
Seen = list[tuple[str, bool, object]]


def run(context: Context) -> None:
    """Create servings, compare them, update and scale them, and delete them."""
    rng = random.Random(f"lws {context.seed}")  # noqa: S311 - to repeat, not to hide
    servings = draw(rng, context.many(SPECIFICATIONS))
    sandbox = context.sandbox(ROOM)
    try:
        api = sandbox.api
        _refuses(context, api)
        api.create({"apiVersion": SCHEDULING, "kind": "Queue", "metadata": {"name": drawn.QUEUE},
                    "spec": {"weight": 1, "reclaimable": False}})  # fmt: skip
        told: set[str] = set()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for args, seen in pool.map(lambda each: _live(api, *each), enumerate(servings)):
                for what, holds, found in seen:
                    # The serving is shown once for each kind of difference.
                    shown = "" if holds or what in told else f"{found}, of {json.dumps(args)}"
                    told.update(() if holds else {what})
                    context.part.check(what, holds=holds, seen=shown or found)
                context.part.count("servings")
                context.part.count("pods compared", drawn.pods_of(args))
        sandbox.processes.check()
    finally:
        sandbox.processes.stop_all()


def draw(rng: random.Random, number: int) -> list[drawn.Args]:
    """Generate servings that the backend accepts: of one role, and of several."""
    found: dict[str, drawn.Args] = {}
    while len(found) < number:
        args = {**drawn.serving(rng), "backend": "lws"}
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


def _options(rng: random.Random, args: drawn.Args) -> drawn.Args:
    options: drawn.Args = {}
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


def _live(api: Cluster, number: int, args: drawn.Args) -> tuple[drawn.Args, Seen]:
    """Run one serving through its life."""
    life = _Life(api, f"lws-{number}", args)
    namespace(api, life.space)
    before = witness.left(api, life.space)
    if life.becomes("created"):
        life.seen += _compared(api, life.space, life.compiled().plan)
        missed = list(unwatched(life.compiled().plan, witness.pods(api, life.space)))
        life.seen.append(("monitoring finds all pods", not missed, missed[:3]))
        _change(life)
    for body in life.held.values():
        api.delete(body)
    gone = wait(lambda: witness.left(api, life.space) == before, _PATIENCE)
    life.seen.append(("nothing is left", gone, sorted(witness.left(api, life.space) ^ before)))
    api.delete({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": life.space}})
    return args, life.seen


@dataclass(slots=True)
class _Life:
    """One serving in its own namespace, its objects that exist, and what was seen of it."""

    api: Cluster
    space: str
    args: drawn.Args
    held: dict[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    seen: Seen = field(default_factory=list)

    def compiled(self) -> Compiled:
        """Return what the arguments mean now."""
        return compile_serving({**self.args, "namespace": self.space})

    def becomes(self, what: str) -> bool:
        """Create, change and delete objects as the arguments say now, and wait for the pods.

        The number of objects can change: a second group, say, adds a disruption budget.
        """
        bodies = [manifest.body for manifest in self.compiled().manifests]
        wanted = {(body["kind"], body["metadata"]["name"]): body for body in bodies}
        for key, body in wanted.items():
            if key in self.held:
                self.api.patch(body, {"spec": body["spec"]})
            else:
                self.api.create(body)
        for key in self.held.keys() - wanted.keys():
            self.api.delete(self.held[key])
        self.held = wanted
        return self._has_pods(what)

    def _has_pods(self, what: str) -> bool:
        """Wait until the planned pods run, or only exist if Volcano does not schedule them."""
        plan, image = self.compiled().plan, _NEW if what == "updated" else ""

        def there() -> list[witness.Pod]:
            found = witness.pods(self.api, self.space)
            if plan.gang:
                found = [pod for pod in found if _phase(pod) == "Running"]
            return [pod for pod in found if not image or image in _images(pod)]

        def right() -> bool:
            return len(there()) == plan.pods == len(witness.pods(self.api, self.space))

        fine = wait(right, _PATIENCE)
        seen = f"{len(there())} of {plan.pods}"
        self.seen.append((f"{what}: a serving has all its pods", fine, seen))
        return fine


def _change(life: _Life) -> None:
    """Give every pod another image, then add and remove a group."""
    args = life.args
    if not drawn.places(args):
        return  # without a scheduler no pod is ever ready, and a rollout waits for the first
    for role in args["roles"]:
        for name in ("entry_template", "worker_template"):
            if role.get(name):
                role[name]["spec"]["containers"][0]["image"] = _NEW
        if "engine" in role:
            role["engine"]["image"] = _NEW
    if not life.becomes("updated") or len(args["roles"]) > 1:
        return
    before = witness.identities(witness.pods(life.api, life.space))
    args["replicas"] += 1
    if life.becomes("scaled up"):
        found = witness.identities(witness.pods(life.api, life.space))
        life.seen.append(("scaled up: no pod is recreated", before <= found, len(before - found)))
    args["replicas"] -= 1
    life.becomes("scaled down")


def _compared(api: Cluster, space: str, plan: ServingPlan) -> Iterator[tuple[str, bool, object]]:
    """Compare pods, Services and gangs with the plan."""
    found = witness.pods(api, space)
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
    pod: witness.Pod, template: Mapping[str, Any], role: RolePlan, services: set[str], index: int
) -> Iterator[tuple[str, object, object]]:
    """Return what a pod should have, and what it has."""
    (made, *_), (planned, *_) = pod["spec"]["containers"], template["spec"]["containers"]
    env = _env(pod)
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
    for name in ("image", "command", "args"):
        yield name, planned.get(name), made.get(name)
    for name in ("requests", "limits"):
        yield name, _amounts(planned, name), _amounts(made, name)
    entry = pod["metadata"]["labels"].get(naming.ENTRY)
    yield "only the leader is an entry", None if index else "true", entry


def _env(pod: witness.Pod) -> dict[str, Any]:
    container = pod["spec"]["containers"][0]
    return {each["name"]: each.get("value") for each in container.get("env", [])}


def _leader(pod: witness.Pod) -> str:
    return str(_env(pod).get("LWS_LEADER_ADDRESS") or "")


def _amounts(container: Mapping[str, Any], name: str) -> dict[str, object]:
    stated = (container.get("resources") or {}).get(name) or {}
    return {each: parse_quantity(str(amount)) for each, amount in stated.items()}


def _gangs(api: Cluster, space: str, plan: ServingPlan) -> Iterator[tuple[str, bool, object]]:
    gangs = [body["spec"] for body in api.list(SCHEDULING, "PodGroup", space)]
    wanted = Counter({role.pods: 0 for role in plan.roles})
    for role in plan.roles:
        wanted[role.pods] += plan.groups * role.replicas
    found = Counter(gang.get("minMember") for gang in gangs)
    yield "each engine is a gang of all its pods", +found == +wanted, (dict(found), dict(wanted))
    queues = {gang.get("queue", "default") for gang in gangs}
    yield "the gangs are in the queue", queues <= {plan.queue or "default"}, sorted(queues)


def _phase(pod: witness.Pod) -> object:
    return (pod.get("status") or {}).get("phase")


def _images(pod: witness.Pod) -> set[str]:
    return {container["image"] for container in pod["spec"]["containers"]}
