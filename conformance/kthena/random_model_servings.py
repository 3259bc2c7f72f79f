"""Random ModelServings that Kthena 1.0 accepts, and changes that violate one rule each."""

import random
from collections.abc import Callable
from typing import Any

from conformance.kubernetes import random_pod_templates
from conformance.support.random_servings import coin

Body = dict[str, Any]
Change = Callable[[random.Random, Body], None]
NAMES = ("a", "server", "prefill", "decode", "llama-405b", "a-b", "x9", "abcdefghijkl")
BY_ROLE, BY_GROUP = "RoleRollingUpdate", "ServingGroupRollingUpdate"
LABEL = 63
_HALF = 0.5


def serving(draw: random.Random) -> Body:
    """Generate a valid ModelServing."""
    roles = [_role(draw, name) for name in draw.sample(NAMES, draw.choice((1, 1, 2, 2, 3, 4)))]
    spec: Body = {"template": {"roles": roles}}
    if coin(draw):
        spec["replicas"] = draw.choice((0, 1, 2, 3, 10, 2.0))
    if coin(draw):
        spec["schedulerName"] = draw.choice(("volcano", "default-scheduler", ""))
    if draw.random() < _HALF / 2:
        spec["plugins"] = [_plugin(draw, name) for name in ("a", "b")[: draw.randint(0, 2)]]
    _add_group(draw, spec["template"], roles)
    _add_rollout(draw, spec, roles)
    body: Body = {
        "apiVersion": "workload.serving.volcano.sh/v1alpha1",
        "kind": "ModelServing",
        "metadata": {"namespace": "serving", "name": "chat"},
        "spec": spec,
    }
    _add_metadata(draw, body)
    return body


def _add_metadata(draw: random.Random, body: Body) -> None:
    if draw.random() < _HALF / 5:
        del body["metadata"]["name"]
        body["metadata"]["generateName"] = "chat-"
    elif coin(draw):
        body["metadata"]["name"] = _name_of(body, draw.choice((LABEL, LABEL - 1, 40)))
    if draw.random() < _HALF / 2:
        body["metadata"]["labels"] = {"app.kubernetes.io/name": "chat", "Team": "a_b.C"}
        body["metadata"]["annotations"] = {"example.com/what": "a b ü", "b": ""}


def _role(draw: random.Random, name: str) -> Body:
    workers = draw.choice((0, 0, 1, 2, 15))
    role: Body = {
        "name": name,
        "workerReplicas": workers,
        "entryTemplate": random_pod_templates.template(draw),
    }
    if coin(draw):
        role["replicas"] = draw.choice((0, 1, 2, 3, 12))
    if workers or coin(draw):
        role["workerTemplate"] = random_pod_templates.template(draw)
    return role


def _plugin(draw: random.Random, name: str) -> Body:
    found: Body = {"name": name, "type": "BuiltIn"}
    if coin(draw):
        del found["type"]
    if coin(draw):
        found["config"] = draw.choice(({"a": [1, None]}, "text", 5, [1], {}))
    if coin(draw):
        found["scope"] = {"roles": ["a"], "target": "All"}
    return found


def _add_group(draw: random.Random, group: Body, roles: list[Body]) -> None:
    if coin(draw):
        chosen = draw.sample(roles, draw.randint(0, len(roles)))
        least = {role["name"]: draw.randint(0, role.get("replicas", 1)) for role in chosen}
        group["gangPolicy"] = draw.choice(({"minRoleReplicas": least}, {}))
    if coin(draw):
        kinds = draw.sample(("groupPolicy", "rolePolicy"), draw.randint(0, 2))
        group["networkTopology"] = {kind: _policy(draw) for kind in kinds}
    if coin(draw):
        group["restartGracePeriodSeconds"] = draw.choice((0, 30, -5, 2**40))


def _policy(draw: random.Random) -> Body:
    found: Body = {"mode": draw.choice(("hard", "soft"))} if coin(draw) else {}
    if coin(draw):
        found["highestTierAllowed"] = draw.choice((0, 1, 2, 2**40))
    if coin(draw):
        found["highestTierName"] = draw.choice(("rack", "", "x" * 253))
    return found


def _add_rollout(draw: random.Random, spec: Body, roles: list[Body]) -> None:
    by_role = draw.random() < _HALF / 2
    recoveries = ["RoleRecreate", "None"] + ([] if by_role else ["ServingGroupRecreate"])
    if coin(draw):
        spec["recoveryPolicy"] = draw.choice(recoveries)
    if by_role:
        spec["rolloutStrategy"] = {"type": BY_ROLE}
        for role in roles:
            if role.get("replicas", 1) and coin(draw):
                budget = draw.choice((1, role.get("replicas", 1), "100%"))
                role["maxUnavailable"] = budget
    elif coin(draw):
        update: Body = {}
        if coin(draw):
            whole = ["100%", "0100%"] if spec.get("replicas", 1) else []
            update["maxUnavailable"] = draw.choice([1, 2, 100, 1.0, *whole])
        if coin(draw):
            update["partition"] = draw.choice((0, 1, 99, "0%", "50%", "100%", 0.0))
        spec["rolloutStrategy"] = {"type": BY_GROUP, "rollingUpdateConfiguration": update}
        if coin(draw):
            del spec["rolloutStrategy"]["type"]


def _name_of(body: Body, length: int) -> str:
    """Return a name for which the longest generated name has a given length."""
    spec = body["spec"]
    tails = [
        len(f"-{int(spec.get('replicas', 1))}-{r['name']}-{r.get('replicas', 1)}-")
        + len(str(r["workerReplicas"]))
        for r in spec["template"]["roles"]
    ]
    return "c" * max(length - max(tails), 1)


def _any_role(draw: random.Random, body: Body) -> Body:
    found: Body = draw.choice(body["spec"]["template"]["roles"])
    return found


def long_name(draw: random.Random, body: Body) -> None:
    """Make the longest generated name 62 to 66 characters long, or the name invalid."""
    body["metadata"].pop("generateName", None)
    near = _name_of(body, draw.randint(LABEL - 1, LABEL + 3))
    body["metadata"]["name"] = draw.choice(
        (near, near, "Chat", "9chat", "chat.a", "chat-", "c" * 300, "", "chat_1", "-")
    )


def generated(draw: random.Random, body: Body) -> None:
    """Let the API server generate the end of the name."""
    body["metadata"].pop("name", None)
    stem = draw.choice(("c" * draw.randint(35, 70), "Chat-", "chat", "9-", ""))
    body["metadata"]["generateName"] = stem


def role_name(draw: random.Random, body: Body) -> None:
    """Set the name of a role near the limits."""
    names = ("405b", "a" * 12, "a" * 13, "A", "a.b", "-a", "a-", "", "a b", "é", "a\n", "a_b", "9")
    _any_role(draw, body)["name"] = draw.choice(names)


def role_count(draw: random.Random, body: Body) -> None:
    """Use zero, five or fifty roles."""
    roles = body["spec"]["template"]["roles"]
    number = draw.choice((0, 4, 5, 50))
    body["spec"]["template"]["roles"] = [
        {**roles[0], "name": f"r{index}", "replicas": 1} for index in range(number)
    ]


def twin_roles(draw: random.Random, body: Body) -> None:
    """Give two roles the same name."""
    roles = body["spec"]["template"]["roles"]
    roles.append({**draw.choice(roles)})


def image(draw: random.Random, body: Body) -> None:
    """Set an odd image in a container or an init container."""
    role = _any_role(draw, body)
    spec = role[draw.choice([k for k in ("entryTemplate", "workerTemplate") if k in role])]["spec"]
    odd = draw.choice((" ", "a b", " a", "a ", "a\tb", "\t", "\n", "", "a\u00a0b", "\u3000"))
    if draw.random() < _HALF / 3:
        spec["initContainers"] = [{"name": "init", "image": odd}]
    else:
        draw.choice(spec["containers"])["image"] = odd


def counts(draw: random.Random, body: Body) -> None:
    """Set a count below 0 or outside of int32."""
    role = _any_role(draw, body)
    holder, key = draw.choice(
        ((body["spec"], "replicas"), (role, "replicas"), (role, "workerReplicas"))
    )
    holder[key] = draw.choice((-1, -(2**31), 2**31, 2**31 - 1, -(2**31) - 1, 0, 10**6, 2**63))


def gang(draw: random.Random, body: Body) -> None:
    """Set a minimum that is too high, too low, or for a missing role."""
    role = _any_role(draw, body)
    most = role.get("replicas", 1)
    name = draw.choice((role["name"], role["name"], "nobody", ""))
    least = {name: draw.choice((-1, 0, most, most + 1, 2**31, None))}
    body["spec"]["template"]["gangPolicy"] = {"minRoleReplicas": least}


def no_worker(draw: random.Random, body: Body) -> None:
    """Remove the worker's template."""
    role = _any_role(draw, body)
    role.pop("workerTemplate", None)
    role["workerReplicas"] = draw.choice((0, 1, 2))


_BUDGETS = (
    0, 1, -1, 2, 3, 2**31, "0%", "1%", "33%", "50%", "99%", "100%", "101%", "-1%", "1", "", "%",
    "050%", "1.5%", " 5%", "5 %", "+5%", "٣%", "1000%", "0000000000000000000000050%", 0.5, None,
)  # fmt: skip


def group_budget(draw: random.Random, body: Body) -> None:
    """Set a rollout by groups with an odd budget or partition."""
    strategy: Body = {"rollingUpdateConfiguration": {}}
    for key in draw.sample(("maxUnavailable", "partition"), draw.randint(1, 2)):
        strategy["rollingUpdateConfiguration"][key] = draw.choice(_BUDGETS)
    strategy["type"] = draw.choice((BY_GROUP, BY_GROUP, BY_ROLE, None))
    body["spec"]["rolloutStrategy"] = strategy
    body["spec"]["replicas"] = draw.choice((0, 1, 2, 3, 100))


def role_budget(draw: random.Random, body: Body) -> None:
    """Set an odd budget in a role."""
    if draw.random() > _HALF / 2:
        body["spec"]["rolloutStrategy"] = {"type": BY_ROLE}
        body["spec"].pop("recoveryPolicy", None)
    role = _any_role(draw, body)
    role["replicas"] = draw.choice((0, 1, 2, 3, 100))
    role["maxUnavailable"] = draw.choice(_BUDGETS)


def rolling(draw: random.Random, body: Body) -> None:
    """Combine a recovery and a rollout that are valid separately."""
    body["spec"]["recoveryPolicy"] = draw.choice(
        ("RoleRecreate", "ServingGroupRecreate", "None", "", "roleRecreate", None)
    )
    strategy = draw.choice((BY_ROLE, BY_ROLE, BY_GROUP, "", "rolling", None))
    if coin(draw):
        body["spec"]["recoveryPolicy"], strategy = "ServingGroupRecreate", BY_ROLE
    body["spec"]["rolloutStrategy"] = {"type": strategy}
    for role in body["spec"]["template"]["roles"]:
        role.pop("maxUnavailable", None)


def surge(draw: random.Random, body: Body) -> None:
    """Set a surge, which no version supports."""
    strategy = body["spec"].setdefault("rolloutStrategy", {})
    places = (body["spec"], strategy, _any_role(draw, body), body["spec"]["template"])
    draw.choice(places)["maxSurge"] = draw.choice((0, 1, "50%"))


def topology(draw: random.Random, body: Body) -> None:
    """Set a topology near the limits, or in the form of older versions."""
    policy = draw.choice(
        (
            {"mode": "Hard"}, {"mode": ""}, {"highestTierAllowed": -1},
            {"highestTierName": "x" * 254},
            {"highestTierName": "x" * 253}, {"highestTierAllowed": 2**63}, {"highestTierName": 1},
            {"highestTierName": "é" * 253}, {"highestTierAllowed": "1"}, {"mode": None},
            {"tier": 1},
        )
    )  # fmt: skip
    key = draw.choice(("groupPolicy", "rolePolicy"))
    body["spec"]["template"]["networkTopology"] = draw.choice(({key: policy}, policy))


def plugins(draw: random.Random, body: Body) -> None:
    """Set incomplete plugins."""
    body["spec"]["plugins"] = draw.choice(
        (
            [{"name": "a"}, {"name": "a"}], [{"type": "BuiltIn"}], [{"name": "a", "type": "Own"}],
            [{"name": "a", "scope": {"roles": "a"}}], [{"name": "", "scope": {}}], {"name": "a"},
            [None], [[]], [{"name": "a", "scope": {"roles": [1]}}], [{"name": "a", "type": None}],
        )
    )  # fmt: skip


def metadata(draw: random.Random, body: Body) -> None:
    """Set labels or annotations near the limits."""
    kind = draw.choice(("labels", "annotations"))
    key = draw.choice(("a", "a/b", "A", "a b", "/a", "a/", "a/b/c", "x" * 63, "x" * 64, "", "é",
                       "A.b/c", "a_b/c", "-a", "example.com/" + "x" * 64,
                       "x" * 254 + "/a"))  # fmt: skip
    word = draw.choice(("a", "", "a b", "a" * 63, "a" * 64, "-", "é", "a_b.C", None, 5, True))
    body["metadata"][kind] = {key: word}


CHANGES: tuple[Change, ...] = (
    long_name, generated, role_name, role_count, twin_roles, image, counts, gang, no_worker,
    group_budget, group_budget, role_budget, role_budget, rolling, surge, topology, plugins,
    metadata,
)  # fmt: skip
