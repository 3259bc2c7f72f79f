"""Takes random servings through their lives on a real controller: created, changed, deleted.

A part states how it compares what the controller made with the plan.
"""

import copy
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from conformance.__main__ import Context
from conformance.kthena.emission import namespace
from conformance.prometheus.monitored_pods import unwatched
from conformance.support import observe, random_servings
from conformance.support.waiting import wait
from kthena_components.cluster.client import Cluster
from kthena_components.compiler.compile import Compiled, compile_serving
from kthena_components.core.plan.manifest import WAIT_FOR
from kthena_components.core.values.quantity import parse_quantity

PATIENCE = 300
"""Seconds for each step of one serving."""
_STALLED = 60
"""Seconds after which an update counts as stalled. Others take a few seconds."""
NEW_IMAGE = "example.com/another:v2"
_SETTLES = 120
"""Seconds for what a controller creates after the pods, such as a Service for each leader."""
_AT_ONCE = 4
Body = Mapping[str, Any]
Check = tuple[str, bool, object]
"""What was checked, whether it holds, and what was seen."""


@dataclass(slots=True, kw_only=True)
class Life:
    """One serving in its own namespace, its objects that exist, and what was seen of it."""

    api: Cluster
    space: str
    args: random_servings.Args
    written: Callable[[Body], Body] = lambda body: body
    """What is created instead of a manifest."""
    may_stall: bool = False
    """Whether its controller is known to leave some updates unfinished."""
    stalled: bool = False
    held: dict[tuple[str, str], Body] = field(default_factory=dict)
    seen: list[Check] = field(default_factory=list)

    def compiled(self) -> Compiled:
        """Return what the arguments mean now."""
        return compile_serving({**self.args, "namespace": self.space})

    def pods(self) -> list[observe.Pod]:
        """Return the pods that exist and stay."""
        return observe.pods(self.api, self.space)

    def becomes(self, what: str) -> bool:
        """Create, change and delete objects as the arguments say now, and wait for the pods.

        The number of objects can change: a second group, say, adds a disruption budget.
        """
        bodies = [self.written(manifest.body) for manifest in self.compiled().manifests]
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
        plan, image = self.compiled().plan, NEW_IMAGE if what == "updated" else ""

        def there() -> list[observe.Pod]:
            found = self.pods()
            if plan.gang:
                found = [pod for pod in found if pod.get("status", {}).get("phase") == "Running"]
            return [pod for pod in found if not image or image in _images(pod)]

        def right() -> bool:
            return len(there()) == plan.pods == len(self.pods())

        self.stalled = image != "" and self.may_stall and not wait(right, _STALLED)
        if self.stalled:
            return False
        fine = wait(right, PATIENCE)
        seen = f"{len(there())} of {plan.pods}"
        self.seen.append((f"{what}: a serving has all its pods", fine, seen))
        return fine


Compare = Callable[[Life], Iterator[Check]]


def live_all(
    context: Context,
    lives: Sequence[Life],
    compare: Compare,
    *,
    scales: Callable[[random_servings.Args], bool] = lambda _args: True,
    keeps: bool = True,
) -> None:
    """Run servings through their lives, several at a time, and report what was seen.

    Args:
        context: The part.
        lives: The servings.
        compare: Compares what was created with the plan.
        scales: Whether a serving can get another group.
        keeps: Whether the pods of the other groups stay meanwhile.
    """
    told: set[str] = set()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for args, seen in pool.map(lambda life: _live(life, compare, scales, keeps=keeps), lives):
            for what, holds, found in seen:
                # The serving is shown once for each kind of difference.
                shown = "" if holds or what in told else f"{found}, of {json.dumps(args)}"
                told.update(() if holds else {what})
                context.part.check(what, holds=holds, seen=shown or found)
            context.part.count("servings")
            context.part.count("pods compared", random_servings.pods_of(args))


def _live(
    life: Life, compare: Compare, scales: Callable[[random_servings.Args], bool], *, keeps: bool
) -> tuple[random_servings.Args, list[Check]]:
    args = copy.deepcopy(life.args)
    namespace(life.api, life.space)
    before = observe.left(life.api, life.space)
    if life.becomes("created"):
        life.seen += settled(lambda: compare(life), _SETTLES)
        missed = list(unwatched(life.compiled().plan, life.pods()))
        life.seen.append(("monitoring finds all pods", not missed, missed[:3]))
        # Without a scheduler no pod is ever ready, and a rollout waits for the first.
        if random_servings.places(args):
            _change(life, scales=scales(args), keeps=keeps)
    for body in life.held.values():
        life.api.delete(body)

    def left() -> set[str]:
        return observe.left(life.api, life.space) ^ before

    # A list of the pods is one request, a list of everything is dozens.
    gone = wait(lambda: not life.pods() and not left(), PATIENCE)
    life.seen.append(("nothing is left", gone, sorted(left())))
    life.api.delete({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": life.space}})
    return args, life.seen


def settled(compare: Callable[[], Iterable[Check]], seconds: float) -> list[Check]:
    """Compare until every check holds. Return the last comparison after the timeout."""
    seen: list[Check] = []

    def holds() -> bool:
        seen[:] = compare()
        return all(right for _, right, _ in seen)

    wait(holds, seconds)
    return seen


def _change(life: Life, *, scales: bool, keeps: bool) -> None:
    """Give every pod another image, then add and remove a group."""
    for role in life.args["roles"]:
        for name in ("entry_template", "worker_template"):
            if role.get(name):
                role[name]["spec"]["containers"][0]["image"] = NEW_IMAGE
        if "engine" in role:
            role["engine"]["image"] = NEW_IMAGE
    if not life.becomes("updated") or not scales:
        return
    before = observe.identities(life.pods())
    life.args["replicas"] += 1
    if life.becomes("scaled up"):
        life.seen.append(_kept(life, before) if keeps else _recreated(life, before))
    life.args["replicas"] -= 1
    life.becomes("scaled down")


def _kept(life: Life, before: set[str]) -> Check:
    lost = before - observe.identities(life.pods())
    return "scaled up: no pod is recreated", not lost, len(lost)


def _recreated(life: Life, before: set[str]) -> Check:
    def left() -> set[str]:
        return before & observe.identities(life.pods())

    return "scaled up: all pods are recreated", wait(lambda: not left(), PATIENCE), len(left())


def arrives(life: Life) -> Check:
    """Wait for what `up` waits for."""
    (body,) = (body for (kind, _), body in life.held.items() if kind.startswith("Model"))
    stated = body["metadata"].get("annotations", {}).get(WAIT_FOR)
    waits = json.loads(stated) if stated and stated.startswith("[") else [stated]

    def met(condition: str | None) -> bool:
        if condition is None:
            return True
        status = life.api.get(body).get("status") or {}
        if condition.startswith("condition="):
            kind = condition.removeprefix("condition=")
            found = status.get("conditions") or []
            return any((each["type"], each["status"]) == (kind, "True") for each in found)
        field, _, number = condition.removeprefix("jsonpath={.status.").partition("}=")
        return str(status.get(field)) == number

    fine = wait(lambda: all(map(met, waits)), PATIENCE)
    return "what `up` waits for arrives", fine, (waits, life.api.get(body).get("status"))


def same_container(pod: observe.Pod, template: Body) -> Iterator[tuple[str, object, object]]:
    """Return what the first container of a pod should have, and what it has."""
    (made, *_), (planned, *_) = pod["spec"]["containers"], template["spec"]["containers"]
    for name in ("image", "command", "args"):
        yield name, planned.get(name), made.get(name)
    for name in ("requests", "limits"):
        yield name, amounts(planned, name), amounts(made, name)


def env_of(pod: observe.Pod) -> dict[str, Any]:
    """Return the variables of the first container of a pod, in their order."""
    container = pod["spec"]["containers"][0]
    return {each["name"]: each.get("value") for each in container.get("env", [])}


def amounts(container: Body, name: str) -> dict[str, Any]:
    """Return the requests or limits of a container."""
    stated = (container.get("resources") or {}).get(name) or {}
    return {each: parse_quantity(str(amount)) for each, amount in stated.items()}


def _images(pod: observe.Pod) -> set[str]:
    return {container["image"] for container in pod["spec"]["containers"]}
