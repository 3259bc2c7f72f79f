"""Compares what Kthena's controllers make of a ModelBooster with the plan.

First the ModelServing that Kthena writes, read as `check` reads it; then its pods.
"""

import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from conformance.__main__ import Context
from conformance.matrixinfer.pods import within
from conformance.support import random_servings
from conformance.support.observe import Pod
from conformance.support.serving_lives import Check, Life, amounts, arrives, live_all
from kthena_components.compiler.compile import compile_serving
from kthena_components.core import naming
from kthena_components.core.facts.serving import EngineFacts, PodFacts, ServingFacts
from kthena_components.core.findings import SpecError
from kthena_components.core.objects.object import read_object
from kthena_components.core.plan.serving_plan import RolePlan
from kthena_components.systems.booster.emit import EMITTER, comparable, serving_name
from kthena_components.systems.booster.limits import env_of
from kthena_components.systems.kthena.emit import API_VERSION
from kthena_components.systems.kthena.facts import facts
from kthena_components.systems.kthena.view import read_serving
from kthena_components.systems.volcano.emit import SCHEDULING
from sandbox.cluster import Size
from tests.support.draw_booster import booster

SPECIFICATIONS = 30
ROOM = Size(racks=4, nodes=16, gpus=8)
_ENGINES = ("engine", "vllm", "vllm-vllm-worker")
"""Names of the engine's container in Kthena's templates."""


def run(context: Context) -> None:
    """Create ModelBoosters, compare what becomes of them, change and delete them."""
    rng = random.Random(f"booster {context.seed}")  # noqa: S311 - to repeat, not to hide
    servings = draw(rng, context.many(SPECIFICATIONS))
    with context.cluster(ROOM) as sandbox:
        lives = [
            Life(api=sandbox.api, space=f"booster-{number}", args=args)
            for number, args in enumerate(servings)
        ]
        # Labels of the pods have a hash of the whole backend, its replicas included.
        live_all(context, lives, _compared, keeps=False)


def draw(rng: random.Random, number: int) -> list[random_servings.Args]:
    """Generate servings with pods that the backend accepts."""
    found: dict[str, random_servings.Args] = {}
    while len(found) < number:
        args = booster(rng, claims=False)
        try:
            plan = compile_serving(args).plan
        except SpecError:
            continue
        if 0 < plan.pods <= random_servings.MOST_PODS:
            found[json.dumps(args, sort_keys=True)] = args
    return list(found.values())


def _compared(life: Life) -> Iterator[Check]:
    """Compare facts, pods, gangs and the condition with the plan."""
    plan, name = life.compiled().plan, serving_name(life.compiled().plan)
    metadata = {"name": name, "namespace": life.space}
    made = life.api.get({"apiVersion": API_VERSION, "kind": "ModelServing", "metadata": metadata})
    (planned,) = map(_at_its_path, EMITTER.planned(plan))
    seen = _at_its_path(comparable(facts(read_serving(read_object(made)))))
    for wanted, found in zip(planned.engines, seen.engines, strict=True):
        differ = list(_unequal(wanted, found))
        yield "the engine has the planned facts", not differ, differ
    yield "Volcano is asked or not", planned.gang_expected == seen.gang_expected, made["spec"]
    pods = life.pods()
    for role in plan.roles:
        own = [pod for pod in pods if pod["metadata"]["labels"][naming.ROLE] == role.name]
        for pod in own:
            for what, holds, found_there in _differences(pod, role):
                yield what, holds, (pod["metadata"]["name"], found_there)
    gangs = [body["spec"] for body in life.api.list(SCHEDULING, "PodGroup", life.space)]
    members = Counter(spec.get("minMember") for spec in gangs)
    fits = members == ({plan.min_member: plan.groups} if plan.gang else {})
    yield "each group is a gang", fits, (dict(members), plan.min_member)
    if plan.gang:
        yield arrives(life)


def _unequal(wanted: object, found: object, at: str = "") -> Iterator[tuple[str, object, object]]:
    """Return the fields in which two facts differ, each with both values."""
    if wanted == found:
        return
    if type(wanted) is not type(found) or not is_dataclass(wanted):
        yield at, wanted, found
        return
    for field in fields(wanted):
        if field.compare:
            one, other = (getattr(each, field.name) for each in (wanted, found))
            yield from _unequal(one, other, f"{at}.{field.name}")


def _at_its_path(made: ServingFacts) -> ServingFacts:
    """Leave out the model: in the pods it is a path, a hash of its address below the cache."""
    return replace(made, engines=tuple(map(_without_model, made.engines)))


def _without_model(engine: EngineFacts) -> EngineFacts:
    worker = None if engine.worker is None else _of_no_model(engine.worker)
    return replace(engine, entry=_of_no_model(engine.entry), worker=worker)


def _of_no_model(pod: PodFacts) -> PodFacts:
    command = None if pod.command is None else replace(pod.command, model=None)
    return replace(pod, command=command)


def _differences(pod: Pod, role: RolePlan) -> Iterator[Check]:
    (engine,) = (each for each in pod["spec"]["containers"] if each["name"] in _ENGINES)
    planned: Mapping[str, Any] = role.entry["spec"]["containers"][0]
    yield "image", engine["image"] == planned["image"], engine["image"]
    for name in ("requests", "limits"):
        yield name, amounts(engine, name) == amounts(planned, name), engine["resources"]
    set_last = {each["name"]: each for each in engine["env"]}
    for name, wanted in env_of(role).items():
        yield "a variable", within(wanted, set_last.get(name)), (wanted, set_last.get(name))
    command = " ".join(engine["command"])
    yield "nothing is installed at the start", "pip install" not in command, command
