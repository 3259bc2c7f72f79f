"""Random LeaderWorkerSets and DisaggregatedSets that LWS 0.9 accepts, and wrong changes."""

import copy
import random
from collections.abc import Callable, Iterator
from typing import Any

from conformance.kubernetes import random_pod_templates
from conformance.support.random_servings import coin
from conformance.validation import random_damage
from conformance.volcano import invalid_objects

Body = dict[str, Any]
Change = Callable[[random.Random, Body], None]
LWS, SETS = "leaderworkerset.x-k8s.io/v1", "disaggregatedset.x-k8s.io/v1"
_TOPOLOGIES = tuple(
    f"leaderworkerset.sigs.k8s.io/{name}"
    for name in ("exclusive-topology", "subgroup-exclusive-topology")
)
_HALF = 0.5
_NUMBERS = (0, -1, 1, 2, 3, 5, 2**31 - 1, 2**31, "2", 1.5, None)
_BUDGETS = (0, 1, -1, "0%", "50%", "100%", "101%", "-5%", "5", "a", "%", "1.5%", None, True, 2**31)


def leader_worker_set(draw: random.Random) -> Body:
    """Generate a valid LeaderWorkerSet."""
    names = ("chat", "a", "a-b", "c" * 63)
    metadata: Body = {"name": draw.choice(names), "namespace": "serving"}
    spec, annotations = _set(draw)
    if annotations:
        metadata["annotations"] = annotations
    if coin(draw):
        metadata["labels"] = {"Team": "a_b.C"}
    return {"apiVersion": LWS, "kind": "LeaderWorkerSet", "metadata": metadata, "spec": spec}


def disaggregated_set(draw: random.Random) -> Body:
    """Generate a valid DisaggregatedSet."""
    empty, roles = draw.random() < _HALF / 4, []
    for name in ("prefill", "decode", "a", "encode-image")[: draw.choice((2, 2, 3, 4))]:
        spec, annotations = _set(draw)
        spec["replicas"] = 0 if empty else draw.choice((1, 2, 3))
        update = spec.get("rolloutStrategy", {}).get("rollingUpdateConfiguration", {})
        update.pop("partition", None)
        role: Body = {"name": name, "spec": spec}
        if annotations:
            role["metadata"] = {"annotations": annotations}
        roles.append(role)
    metadata = {"name": draw.choice(("chat", "a", "a-b")), "namespace": "serving"}
    spec = {"roles": roles}
    return {"apiVersion": SETS, "kind": "DisaggregatedSet", "metadata": metadata, "spec": spec}


def made_sets(body: Body) -> Iterator[Body]:
    """Return the LeaderWorkerSets that the controller would create for a DisaggregatedSet.

    Source: kubernetes-sigs/lws v0.9.0 pkg/controllers/disaggregatedset.
    """
    for role in body["spec"]["roles"]:
        name = f"{body['metadata']['name']}-01234567-{role['name']}"
        stated = role.get("metadata") or {}
        metadata = {**copy.deepcopy(stated), "name": name, "namespace": "serving"}
        spec = copy.deepcopy(role["spec"])
        yield {"apiVersion": LWS, "kind": "LeaderWorkerSet", "metadata": metadata, "spec": spec}


def _set(draw: random.Random) -> tuple[Body, Body]:
    """Generate the spec of a set, and its annotations."""
    template, annotations = _template(draw)
    spec: Body = {"leaderWorkerTemplate": template}
    if coin(draw):
        spec["replicas"] = draw.choice((0, 1, 2, 3, 100))
    if coin(draw):
        spec["startupPolicy"] = draw.choice(("LeaderCreated", "LeaderReady"))
    # Where both are given the webhook fills in nothing, and then does not rewrite other fields.
    if coin(draw):
        spec["networkConfig"] = {"subdomainPolicy": draw.choice(("Shared", "UniquePerReplica"))}
    elif coin(draw):
        spec["rolloutStrategy"] = _rollout(draw, spec.get("replicas", 1))
    return spec, annotations


def _template(draw: random.Random) -> tuple[Body, Body]:
    size = draw.choice((1, 2, 3, 4, 5, 8, 16))
    template: Body = {"size": size, "workerTemplate": random_pod_templates.template(draw)}
    if size == 1 and coin(draw):
        del template["size"]
    if coin(draw):
        template["leaderTemplate"] = random_pod_templates.template(draw)
    if coin(draw):
        policies = ("RecreateGroupOnPodRestart", "RecreateGroupAfterStart", "None", "Default")
        template["restartPolicy"] = draw.choice(policies)
    annotations: Body = {}
    if coin(draw):
        template["subGroupPolicy"] = _subgroups(draw, size)
        if coin(draw):
            annotations[_TOPOLOGIES[1]] = "rack"
    if draw.random() < _HALF / 2:
        annotations[_TOPOLOGIES[0]] = "topology.kubernetes.io/zone"
    return template, annotations


def _subgroups(draw: random.Random, size: int) -> Body:
    excluded = draw.random() < _HALF / 2
    counts = [size - 1] if excluded and size > 1 else [size, size - 1]
    fitting = [n for n in range(1, size + 1) if any(count % n == 0 for count in counts)]
    policy: Body = {"subGroupSize": draw.choice(fitting)}
    if excluded and size > 1:
        policy["subGroupPolicyType"] = "LeaderExcluded"
    elif coin(draw):
        policy["subGroupPolicyType"] = "LeaderWorker"
    return policy


def _rollout(draw: random.Random, replicas: int) -> Body:
    update: Body = {}
    if coin(draw):
        update["maxUnavailable"] = draw.choice((1, 2, "100%", *([0, "0%"] if not replicas else [])))
    if coin(draw):
        update["maxSurge"] = draw.choice((0, 1, "0%", "50%", "100%"))
    if coin(draw):
        update["partition"] = draw.choice((0, 1, 100))
    return {"type": "RollingUpdate", "rollingUpdateConfiguration": update}


def _one_set(draw: random.Random, body: Body) -> tuple[Body, Body]:
    """Return the spec of the set, or of one role, and the metadata that belongs to it."""
    if body["kind"] == "LeaderWorkerSet":
        return body["spec"], body["metadata"]
    role = draw.choice(body["spec"]["roles"])
    return role["spec"], role.setdefault("metadata", {})


def _counts(draw: random.Random, body: Body) -> None:
    spec, _ = _one_set(draw, body)
    holder = draw.choice((spec, spec["leaderWorkerTemplate"]))
    holder["replicas" if holder is spec else "size"] = draw.choice(_NUMBERS)


def _too_many(draw: random.Random, body: Body) -> None:
    spec, _ = _one_set(draw, body)
    size = draw.choice((1, 2, 3))
    spec["leaderWorkerTemplate"]["size"] = size
    spec["replicas"] = (2**31 - 1) // size + draw.choice((0, 1))


def _odd_subgroups(draw: random.Random, body: Body) -> None:
    spec, metadata = _one_set(draw, body)
    template = spec["leaderWorkerTemplate"]
    if draw.random() < _HALF / 3:
        template.pop("subGroupPolicy", None)
        metadata.setdefault("annotations", {})[_TOPOLOGIES[1]] = "rack"
        return
    policy: Body = {"subGroupSize": draw.choice((*_NUMBERS[:6], "1"))}
    if coin(draw):
        policy["subGroupPolicyType"] = draw.choice(("LeaderExcluded", "LeaderWorker", "Leader", ""))
    template["subGroupPolicy"] = policy


def _budgets(draw: random.Random, body: Body) -> None:
    spec, _ = _one_set(draw, body)
    spec.pop("networkConfig", None)
    keys = ("maxUnavailable", "maxSurge", "partition")
    update = {key: draw.choice(_BUDGETS) for key in keys if coin(draw)}
    kind = draw.choice(("RollingUpdate", "RollingUpdate", "RollingUpdate", "Recreate", "", None))
    spec["rolloutStrategy"] = {"type": kind, "rollingUpdateConfiguration": update}
    if draw.random() < _HALF / 3:
        del spec["rolloutStrategy"]["type"]


def _words(draw: random.Random, body: Body) -> None:
    spec, _ = _one_set(draw, body)
    word = draw.choice(("leaderReady", "", None, 5, "None", "Shared"))
    place = draw.choice(("startupPolicy", "restartPolicy", "networkConfig"))
    if place == "networkConfig":
        spec.pop("rolloutStrategy", None)
        spec[place] = draw.choice(({"subdomainPolicy": word}, {}, None, word))
    else:
        (spec if place == "startupPolicy" else spec["leaderWorkerTemplate"])[place] = word


def _set_names(draw: random.Random, body: Body) -> None:
    odd = ("405b", "a" * 63, "a" * 64, "a.b", "-a", "a-", "A", "a" * 60)
    body["metadata"]["name"] = draw.choice(odd)


def _roles(draw: random.Random, body: Body) -> None:
    roles = body["spec"]["roles"]
    match draw.randrange(5):
        case 0:
            body["spec"]["roles"] = roles[:1]
        case 1:
            roles[0]["name"] = roles[-1]["name"]
        case 2:
            roles[0]["name"] = draw.choice(("A", "-a", "", "a" * 64, "9", "a.b", None))
        case 3:
            roles[0]["spec"]["replicas"] = 0
            roles[-1]["spec"]["replicas"] = draw.choice((0, 1))
        case _:
            copies = [{**copy.deepcopy(roles[0]), "name": f"r{n}"} for n in range(11)]
            body["spec"]["roles"] = copies[: draw.choice((10, 11))]


def damage_template(draw: random.Random, body: Body) -> None:
    """Set a field inside one pod template to an odd value, or remove it."""
    try:
        spec, _ = _one_set(draw, body)
        random_damage.damage_spec(draw, spec["leaderWorkerTemplate"]["workerTemplate"]["spec"])
    except (AttributeError, LookupError, TypeError):
        return  # another change has already removed it


SET_CHANGES: tuple[Change, ...] = (
    _set_names, invalid_objects.name, invalid_objects.labels, _counts, _too_many,
    _odd_subgroups, _odd_subgroups, _budgets, _budgets, _words,
)  # fmt: skip
DISAGGREGATED_CHANGES: tuple[Change, ...] = (*SET_CHANGES[2:], _roles, _roles, _roles)
