"""Random servings that both backends accept, small enough to read and to schedule."""

import random
from typing import Any

Args = dict[str, Any]
ROLES = ("a", "server", "prefill", "decode", "llama-405b", "a-b", "x9")
QUEUE = "research"
TIERS = {1: "rack", 2: "spine"}
"""Names of the tiers of the sandbox's HyperNodes."""
MOST_PODS = 24
"""Per serving."""
_ELSEWHERE = "default-scheduler"


def serving(rng: random.Random) -> Args:
    """Generate the arguments of a ModelServing, without its backend and namespace."""
    while True:
        args = _draw(rng)
        if 0 < pods_of(args) <= MOST_PODS:
            return args


def pods_of(args: Args) -> int:
    """Return the expected number of pods of a serving."""
    engines = ((role.get("replicas", 1), role.get("worker_replicas", 0)) for role in args["roles"])
    return int(args["replicas"] * sum(count * (1 + workers) for count, workers in engines))


def places(args: Args) -> bool:
    """Return whether Volcano schedules the pods. The sandbox has no other scheduler."""
    return bool(args.get("scheduler_name", "volcano") == "volcano")


def _draw(rng: random.Random) -> Args:
    names = rng.sample(ROLES, rng.randint(1, 3))
    roles = [_role(rng, name) for name in names]
    args: Args = {"name": rng.choice(("m", "chat", "llama-70b-v2")), "roles": roles}
    args["replicas"] = rng.randint(1, 3)
    if rng.random() < 1 / 8:
        args["scheduler_name"] = _ELSEWHERE
    else:
        _add_gang(rng, args)
    if rng.random() < 1 / 3:
        args["rollout_strategy"] = {"type": "RoleRollingUpdate"}
    elif rng.random() < 1 / 3:
        budget = {"max_unavailable": rng.choice((1, 2, "100%")), "partition": rng.choice((0, 1))}
        args["rollout_strategy"] = {"rolling_update_configuration": budget}
    if rng.random() < 1 / 3:
        args["expose"] = {"role": rng.choice(names), "target_port": 8080}
    return args


def _add_gang(rng: random.Random, args: Args) -> None:
    """Generate fields that only Volcano uses: minima, topology and a queue."""
    if rng.random() < 1 / 2:
        chosen = [role for role in args["roles"] if rng.random() < 2 / 3]
        minima = {role["name"]: rng.randint(0, role["replicas"]) for role in chosen}
        args["gang_policy"] = {"min_role_replicas": minima}
    if rng.random() < 1 / 2:
        policies = {key: _policy(rng) for key in ("group_policy", "role_policy")}
        args["network_topology"] = dict(rng.sample(sorted(policies.items()), rng.randint(0, 2)))
    if rng.random() < 1 / 2:
        args["queue"] = QUEUE


def _policy(rng: random.Random) -> Args:
    tier = rng.choice(sorted(TIERS))
    limit = rng.choice(({"highest_tier_allowed": tier}, {"highest_tier_name": TIERS[tier]}))
    return rng.choice(({"mode": "soft"}, {"mode": "hard", **limit}, {"mode": "soft", **limit}))


def _role(rng: random.Random, name: str) -> Args:
    workers = rng.randint(0, 3)
    role = {"name": name, "replicas": rng.randint(0, 2), "worker_replicas": workers}
    return role | rng.choice((_templates, _engine))(rng, 1 + workers)


def _engine(rng: random.Random, pods: int) -> Args:
    gpus = rng.choice((1, 2))
    kind, sizes = rng.choice((
        ("vllm", {"tensor": gpus, "pipeline": pods}),
        ("vllm", {"tensor": gpus * pods}),
        ("vllm", {"tensor": gpus, "data": pods}),
        ("sglang", {"tensor": gpus * pods}),
    ))  # fmt: skip
    engine: Args = {"kind": kind, "image": f"{kind}:v1", "model": "org/m", "parallelism": sizes}
    if kind == "vllm" and "data" not in sizes and rng.random() < 1 / 3:
        engine["launcher"] = "ray"
    resources: Args = {"gpus_per_pod": gpus}
    if rng.random() < 1 / 2:
        resources |= {"cpu": "1500m", "memory": "8Gi", "shm": "1Gi"}
    role: Args = {"engine": engine, "resources": resources}
    if rng.random() < 1 / 2:
        role["overlay"] = _pod(rng, {"name": "engine", "tty": True})
    if rng.random() < 1 / 3:
        role["hugging_face_token"] = {"name": "hf-token", "key": "token"}
    return role


def _templates(rng: random.Random, pods: int) -> Args:
    role = {"entry_template": _pod(rng, _container(rng, "leader"))}
    if pods > 1 or rng.random() < 1 / 2:
        role["worker_template"] = _pod(rng, _container(rng, "worker"))
    return role


def _container(rng: random.Random, name: str) -> Args:
    amounts = {"nvidia.com/gpu": "1", "memory": "1.5Gi", "cpu": rng.choice(("250m", 2, "0.5"))}
    container: Args = {"name": name, "image": "nginx:1.29"}
    container |= rng.choice((
        {},
        {"resources": {"limits": amounts}},
        {"resources": {"limits": amounts, "requests": {"cpu": "100m"}}},
        {"resources": {"requests": {"cpu": "100m"}}},
    ))  # fmt: skip
    if rng.random() < 1 / 2:
        container["command"] = ["sh", "-c", "echo $(ENTRY_ADDRESS) $(WORKER_INDEX)"]
    if rng.random() < 1 / 2:
        mine = [{"name": "GROUP_SIZE", "value": "9"}, {"name": "TZ", "value": "UTC"}]
        node = {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
        container["env"] = rng.sample([*mine, node], rng.randint(1, 3))
    if rng.random() < 1 / 3:
        container["ports"] = [{"name": "http", "containerPort": 8080}]
    return container


def _pod(rng: random.Random, container: Args) -> Args:
    """Generate a pod template, or an overlay, around its container."""
    pod: Args = {"spec": {"containers": [container]}}
    if rng.random() < 1 / 3:
        pod["metadata"] = {"labels": {"team": "chat"}}
    if rng.random() < 1 / 3:
        pod.setdefault("metadata", {})["annotations"] = {"who": "me"}
    if rng.random() < 1 / 3:
        pod["spec"]["initContainers"] = [{"name": "fetch", "image": "busybox:1.37"}]
    extras: tuple[Args, ...] = (
        {"nodeSelector": {"type": "kwok"}},
        {"terminationGracePeriodSeconds": 5},
        {"tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}]},
        {"priorityClassName": "system-cluster-critical"},
        {"securityContext": {"runAsUser": 1000, "fsGroup": 1000}},
        {"automountServiceAccountToken": False},
        {"volumes": [{"name": "scratch", "emptyDir": {}}]},
    )
    for extra in rng.sample(extras, rng.choice((0, 0, 1, 2))):
        pod["spec"] |= extra
    return pod


def coin(rng: random.Random, share: float = 0.5) -> bool:
    """Decide at random."""
    return rng.random() < share
