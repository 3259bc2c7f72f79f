"""Random AutoscalingPolicies, and changes that break one rule."""

import random
from collections.abc import Callable
from typing import Any

from conformance.support.random_servings import coin

Body = dict[str, Any]
Change = Callable[[random.Random, Body], None]
_HALF = 0.5
_SERVING = "workload.serving.volcano.sh/v1alpha1"
PERIODS = ("0", "0s", "15s", "1m30s", "30m", "1.5m", "+5s", "1000ms", ".5h")
ODD_PERIODS = (
    "31m",
    "-1s",
    "15",
    "1 s",
    "30m1ns",
    "",
    "1d",
    "1h",
    "0.6h",
    "1800.5s",
    "9999999h",
    15,
)
_AMOUNTS = ("5", 5, "500m", "1n", "1Gi", 0.5, "1e3")
_ODD_AMOUNTS = ("0", 0, "-1", "0.0", "-1m", "a", "", None, -5)


def object_of(version: str, kind: str, spec: Body) -> Body:
    """Write an object in the namespace of the tries."""
    metadata = {"name": "chat", "namespace": "serving"}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def autoscaling_policy(draw: random.Random) -> Body:
    """Generate a valid AutoscalingPolicy."""
    spec: Body = {"metrics": _metrics(draw)}
    if coin(draw):
        spec["tolerancePercent"] = draw.choice((0, 10, 100))
    if coin(draw):
        spec["behavior"] = _behavior(draw)
    names = [metric["name"] for metric in spec["metrics"]]
    shape = draw.randrange(4)
    if shape == 0:
        spec["homogeneousTarget"] = {"target": _target(draw, names), **_bounds(draw)}
    elif shape == 1:
        params = [
            {"target": _target(draw, names), **_bounds(draw)} for _ in range(draw.randint(1, 3))
        ]
        spec["heterogeneousTarget"] = {"params": params}
    else:
        spec["disaggregatedTarget"] = _roles(draw, names)
    return object_of(_SERVING, "AutoscalingPolicy", spec)


def _metrics(draw: random.Random) -> list[Body]:
    names = draw.sample(("waiting", "busy", "a b", "vllm:x"), draw.randint(1, 2))
    return [{"name": name, "targetValue": draw.choice(_AMOUNTS)} for name in names]


def _behavior(draw: random.Random) -> Body:
    behavior: Body = {}
    if coin(draw):
        behavior["scaleDown"] = _stable(draw)
    if coin(draw):
        panic = {"period": draw.choice(PERIODS), "panicModeHold": draw.choice(PERIODS)}
        behavior["scaleUp"] = {"panicPolicy": panic, "stablePolicy": _stable(draw)}
    return behavior


def _stable(draw: random.Random) -> Body:
    stated = {
        "instances": 1,
        "percent": 100,
        "period": draw.choice(PERIODS),
        "selectPolicy": draw.choice(("Or", "And")),
        "stabilizationWindow": draw.choice(PERIODS),
    }
    return {key: value for key, value in stated.items() if coin(draw)}


def _sources(draw: random.Random, names: list[str]) -> Body:
    prometheus = {"serverURL": "http://prometheus:9090", "query": "sum(x)"}
    pod: Body = {"port": 8000, "labelSelector": {"matchLabels": {"a": "b"}}}
    return {
        name: draw.choice(({"pod": pod}, {"pod": {}}, {"prometheus": prometheus})) for name in names
    }


def _target(draw: random.Random, names: list[str]) -> Body:
    ref = draw.choice(({"name": "chat"}, {"kind": "ModelServing", "name": "chat"}))
    return {
        "targetRef": dict(ref),
        **({"metricSources": _sources(draw, names)} if coin(draw) else {}),
    }


def _bounds(draw: random.Random) -> Body:
    least = draw.choice((0, 1, 2))
    return {"minReplicas": least, "maxReplicas": draw.choice((2, 3, 1_000_000))}


def _roles(draw: random.Random, names: list[str]) -> Body:
    chosen = draw.sample(("prefill", "decode", "x"), draw.randint(1, 2))
    least = draw.choice((0, 1, 2))
    roles = {name: _role(draw, names, least) for name in chosen}
    target: Body = {"targetRef": {"name": "chat"}, "roles": roles}
    if len(chosen) > 1 and coin(draw):
        both = dict(zip(("numeratorRole", "denominatorRole"), chosen, strict=True))
        target["ratioConstraint"] = {**both, "minRatio": "0", "maxRatio": draw.choice((10, "5"))}
    return target


def _role(draw: random.Random, names: list[str], least: int) -> Body:
    role: Body = {"minReplicas": least, "maxReplicas": draw.choice((2, 3, 4))}
    if coin(draw):
        role["metrics"] = _metrics(draw)
        names = [metric["name"] for metric in role["metrics"]]
    return {**role, "metricSources": _sources(draw, names)}


def _targets_of(body: Body) -> list[tuple[str, Any]]:
    return [(key, value) for key, value in body["spec"].items() if key.endswith("Target")]


def _break_target(draw: random.Random, body: Body) -> None:
    """Remove the target, add another, or name something else."""
    spec, found = body["spec"], _targets_of(body)
    if not found:
        return
    key, target = found[0]
    match draw.randrange(5):
        case 0:
            del spec[key]
        case 1:
            spec["homogeneousTarget"] = {"target": _target(draw, []), **_bounds(draw)}
            spec["disaggregatedTarget"] = _roles(draw, ["waiting"])
        case 2 if key == "disaggregatedTarget":
            target["targetRef"] = draw.choice(({}, {"name": ""}, {"kind": "Pod", "name": "a"}))
        case 3 if key == "disaggregatedTarget":
            target["roles"] = draw.choice(
                ({}, {**target["roles"], "": _role(draw, ["waiting"], 1)})
            )
        case _:
            owner = target["params"][0] if key == "heterogeneousTarget" else target
            ref = draw.choice(({}, {"kind": "Deployment", "name": "a"}, {"kind": "", "name": ""}))
            (owner.get("target") or owner)["targetRef"] = ref


def _break_bounds(draw: random.Random, body: Body) -> None:
    """Turn the bounds of a role round, or fix its number."""
    for role in body["spec"].get("disaggregatedTarget", {}).get("roles", {}).values():
        role["minReplicas"], role["maxReplicas"] = draw.choice(((3, 2), (2, 2), (0, 1), (5, 1)))


def _break_metrics(draw: random.Random, body: Body) -> None:
    """Remove or repeat metrics, and move them away from their sources."""
    spec = body["spec"]
    match draw.randrange(4):
        case 0:
            spec["metrics"] = draw.choice(([], None, [{"name": "", "targetValue": 1}]))
        case 1:
            spec["metrics"].append(dict(spec["metrics"][0]))
        case 2:
            spec["metrics"][0]["targetValue"] = draw.choice(_ODD_AMOUNTS)
        case _:
            spec["metrics"][0]["name"] = "other"


def _break_role_metrics(draw: random.Random, body: Body) -> None:
    """Change the metrics of a role, or where they are read."""
    for role in body["spec"].get("disaggregatedTarget", {}).get("roles", {}).values():
        match draw.randrange(5):
            case 0:
                role.pop("metricSources", None)
            case 1:
                role["metrics"] = draw.choice(([], _metrics(draw) * 2, None))
            case 2:
                role["metricSources"] = {"waitin": {"pod": {}}}
            case 3:
                body["spec"].pop("metrics", None)
            case _:
                role["metrics"] = [{"name": "waiting", "targetValue": draw.choice(_ODD_AMOUNTS)}]


def _break_source(draw: random.Random, body: Body) -> None:
    """Give a source two places, or none."""
    target = body["spec"].get("homogeneousTarget", {}).get("target")
    roles = body["spec"].get("disaggregatedTarget", {}).get("roles", {})
    for owner in [target] if target else list(roles.values()):
        names = [metric["name"] for metric in body["spec"].get("metrics") or ()]
        place = {"serverURL": draw.choice(("http://a", "", "a b", "::")), "query": "x"}
        source = draw.choice(({}, {"pod": {}, "prometheus": place}, {"prometheus": place}))
        owner["metricSources"] = dict.fromkeys(names, source)


def _break_ratio(draw: random.Random, body: Body) -> None:
    """Relate the wrong roles, or by numbers that they cannot have."""
    target = body["spec"].get("disaggregatedTarget")
    if not target:
        return
    names = [*target["roles"], "none", ""]
    sides = {key: draw.choice(names) for key in ("numeratorRole", "denominatorRole")}
    amounts = ("0", "1", "2", "0.1", "-1", "100", 0, 3, "500m")
    sides |= {key: draw.choice(amounts) for key in ("minRatio", "maxRatio")}
    target["ratioConstraint"] = sides


def _break_period(draw: random.Random, body: Body) -> None:
    """Set a duration near its limits."""
    behavior = body["spec"].setdefault("behavior", {})
    odd = draw.choice(ODD_PERIODS)
    match draw.randrange(4):
        case 0:
            behavior["scaleDown"] = {draw.choice(("period", "stabilizationWindow")): odd}
        case 1:
            stable = {draw.choice(("period", "stabilizationWindow")): odd}
            behavior["scaleUp"] = {"stablePolicy": stable}
        case 2:
            behavior["scaleUp"] = {"panicPolicy": {"period": odd}}
        case _:
            behavior["scaleUp"] = {"panicPolicy": {"period": "1s", "panicModeHold": odd}}


POLICY_CHANGES: tuple[Change, ...] = (
    _break_target,
    _break_bounds,
    _break_metrics,
    _break_role_metrics,
    _break_source,
    _break_ratio,
    _break_ratio,
    _break_period,
)
