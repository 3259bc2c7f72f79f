"""Compares MatrixInfer's webhook with its stand-in of the tests, on random ModelInfers."""

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

from conformance.report import Part
from conformance.support import random_servings
from conformance.support.cluster import said_by_webhook
from kthena_components.cluster.client import Cluster
from kthena_components.compiler.compile import compile_serving
from tests.systems.matrixinfer.webhook import refusals

TRIES = 400
Body = dict[str, Any]
Change = Callable[[random.Random, Body], None]


def agree(
    part: Part, api: Cluster, rng: random.Random, servings: Sequence[random_servings.Args]
) -> None:
    """Ask the webhook about each serving and about changed ones. Objects are never stored.

    What the CRD's schema rejects never reaches the webhook, and is not counted.
    """
    for number in range(len(servings) * (TRIES // max(len(servings), 1))):
        args = {**servings[number % len(servings)], "namespace": "serving"}
        body = json.loads(json.dumps(compile_serving(args).manifests[0].body))
        for change in rng.sample(_CHANGES, rng.randint(0, 2)):
            change(rng, body)
        said = said_by_webhook(api, body)
        if said and "denied the request" not in said:
            part.count("ModelInfers that the schema rejects")
            continue
        part.count(f"ModelInfers {'rejected' if said else 'accepted'} by the webhook")
        ours = refusals(body)
        part.check("the webhook's stand-in agrees", holds=bool(ours) == bool(said),
                   seen=f"{ours} and {said!r}, of {json.dumps(body['spec'])}")  # fmt: skip


def _name(rng: random.Random, body: Body) -> None:
    body["metadata"]["name"] = rng.choice(("405b", "a" * 45, "a" * 60, "a-b", "a.b"))


def _scheduler(rng: random.Random, body: Body) -> None:
    body["spec"]["schedulerName"] = rng.choice(("default-scheduler", "", "volcano"))


def _image(rng: random.Random, body: Body) -> None:
    role = rng.choice(body["spec"]["template"]["roles"])
    container = rng.choice(role["entryTemplate"]["spec"]["containers"])
    container["image"] = rng.choice(("a b", " ", "", "a:b"))


def _minima(rng: random.Random, body: Body) -> None:
    role = rng.choice(body["spec"]["template"]["roles"])
    most = role["replicas"] + role["workerReplicas"]
    numbers = (0, most, most + 1, -1)
    name = rng.choice((role["name"], role["name"], "nobody"))
    body["spec"]["template"]["gangSchedule"] = {"minRoleReplicas": {name: rng.choice(numbers)}}


def _budgets(rng: random.Random, body: Body) -> None:
    groups = body["spec"]["replicas"]
    rolling = {
        "maxUnavailable": rng.choice((0, 1, 2, -1, "0%", "50%", "100%", "101%")),
        "maxSurge": rng.choice((0, 1, "0%", "10%", "200%")),
        "partition": rng.choice((0, groups - 1, groups, -1)),
    }
    kept = {key: value for key, value in rolling.items() if rng.random() < 2 / 3}
    strategy = {"type": "InferGroupRollingUpdate", "rollingUpdateConfiguration": kept}
    body["spec"]["rolloutStrategy"] = strategy


def _counts(rng: random.Random, body: Body) -> None:
    role = rng.choice(body["spec"]["template"]["roles"])
    holder, key = rng.choice(
        ((body["spec"], "replicas"), (role, "replicas"), (role, "workerReplicas"))
    )
    holder[key] = rng.choice((-1, 0, 1, 1000))


_CHANGES: tuple[Change, ...] = (_name, _scheduler, _image, _minima, _budgets, _budgets, _counts)
