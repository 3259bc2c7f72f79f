"""Random ModelServers and ModelRoutes, and changes that break one rule."""

import random
from typing import Any

from conformance.kthena.random_autoscaling import ODD_PERIODS, PERIODS, Change, object_of
from conformance.support.random_servings import coin
from conformance.validation.random_patterns import pattern_of

Body = dict[str, Any]
_ROUTING = "networking.serving.volcano.sh/v1alpha1"


def model_server(draw: random.Random) -> Body:
    """Generate a valid ModelServer."""
    selector: Body = {"matchLabels": {"app": "chat"}}
    spec: Body = {"inferenceEngine": draw.choice(("vLLM", "SGLang")), "workloadSelector": selector}
    if coin(draw):
        sides = {"prefillLabels": {"role": "prefill"}, "decodeLabels": {"role": "decode"}}
        selector["pdGroup"] = {"groupKey": "group", **sides}
        spec["kvConnector"] = draw.choice(({}, {"type": "nixl"}, {"type": "http"}))
    if coin(draw):
        spec["workloadPort"] = {"port": draw.choice((1, 8000, 65535)), "protocol": "https"}
    if coin(draw):
        retry = {"attempts": 3, "retryInterval": draw.choice(PERIODS)}
        spec["trafficPolicy"] = {"timeout": draw.choice(PERIODS), "retry": retry}
    if coin(draw):
        spec["model"] = draw.choice(("", "a" * 256, "org/m"))
    return object_of(_ROUTING, "ModelServer", spec)


def _break_policy(draw: random.Random, body: Body) -> None:
    """Set a duration that Go may not read."""
    odd = draw.choice(ODD_PERIODS)
    retry = {"attempts": 1, "retryInterval": odd}
    body["spec"]["trafficPolicy"] = draw.choice(({"timeout": odd}, {"retry": retry}))


def _break_port(draw: random.Random, body: Body) -> None:
    """Set a port or a protocol near its limits."""
    body["spec"]["workloadPort"] = draw.choice(
        ({}, {"port": 0}, {"port": 65536}, {"port": 1, "protocol": "tcp"}, {"port": "http"})
    )


SERVER_CHANGES: tuple[Change, ...] = (_break_policy, _break_port)


def model_route(draw: random.Random) -> Body:
    """Generate a valid ModelRoute."""
    spec: Body = {"modelName": "chat", "rules": [_rule(draw) for _ in range(draw.randint(0, 3))]}
    if coin(draw):
        spec["loraAdapters"] = ["sql", "b"][: draw.randint(0, 2)]
        if spec["loraAdapters"] and coin(draw):
            spec["modelName"] = draw.choice(("", "chat"))
    if coin(draw):
        unit = draw.choice(("second", "minute", "hour", "day", "month"))
        spec["rateLimit"] = {"inputTokensPerUnit": 1, "unit": unit}
    if coin(draw):
        spec["parentRefs"] = [{"name": "inference"}]
    return object_of(_ROUTING, "ModelRoute", spec)


def _rule(draw: random.Random) -> Body:
    rule: Body = {"targetModels": [{"modelServerName": "chat"}]}
    if coin(draw):
        rule["targetModels"].append({"modelServerName": "b", "weight": draw.choice((0, 1, 100))})
    if coin(draw):
        match = {"headers": {"a": {"regex": "^a$"}}, "uri": {"prefix": "/"}, "body": {"model": "m"}}
        rule["modelMatch"] = match
    return rule


def _break_name(draw: random.Random, body: Body) -> None:
    """Leave nothing to match."""
    spec = body["spec"]
    spec["modelName"] = ""
    if coin(draw):
        del spec["modelName"]
    spec["loraAdapters"] = draw.choice(([], [""], ["a", ""], ["a"] * 11))
    if coin(draw):
        del spec["loraAdapters"]


def _break_targets(draw: random.Random, body: Body) -> None:
    """Leave a rule without weight, name or target."""
    empty = {"modelServerName": "", "weight": 1}
    zero = {"modelServerName": "a", "weight": 0}
    odd: tuple[list[Body], ...] = (
        [],
        [zero],
        [zero, zero],
        [empty],
        [{**zero, "weight": 101}],
        [{**zero, "weight": -1}],
    )
    body["spec"]["rules"].append({"targetModels": draw.choice(odd)})


def _break_pattern(draw: random.Random, body: Body) -> None:
    """Set a regular expression that Go may not read."""
    pattern = {"regex": pattern_of(draw)}
    match = draw.choice(({"uri": pattern}, {"headers": {"a": pattern}}))
    body["spec"]["rules"].append({**_rule(draw), "modelMatch": match})


def _break_limit(draw: random.Random, body: Body) -> None:
    """Set a limit near its bounds."""
    body["spec"]["rateLimit"] = draw.choice(
        ({"inputTokensPerUnit": 0}, {"unit": "year"}, {}, {"global": {"redis": {}}}, {"unit": ""})
    )


ROUTE_CHANGES: tuple[Change, ...] = (_break_name, _break_targets, _break_pattern, _break_limit)
