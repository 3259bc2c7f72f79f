"""Checks ModelServers and ModelRoutes. Each function of the two lists is one rule.

Source: volcano-sh/kthena v1.0.0 pkg/kthena-router.
"""

from collections.abc import Iterator

from kthena_components.core.findings import Finding, advise, not_checked, part_of_rule, refuse
from kthena_components.core.remedies import either, remove, write
from kthena_components.core.rules.support.admission import Change, differ
from kthena_components.core.values.display import display
from kthena_components.core.values.quantity import read_duration
from kthena_components.core.values.read import (
    count,
    first_unknown,
    mapping,
    pairs,
    require_known,
    sequence,
    spec_of,
    text,
    unknown_in,
    unknown_inside,
)
from kthena_components.core.values.regex import trouble_in_go
from kthena_components.systems.kthena.view import Route, RouteRule, Server
from kthena_components.systems.system import Rule

_WEIGHT = 100
"""Default of a weight."""


def kthena_model_server(view: Server) -> Iterator[Finding]:
    """A ModelServer selects the pods of one model, and tells prefill from decode by their labels.

    Empty matchLabels select all pods of the namespace. A pod with both labels of a pdGroup counts
    as decode, and empty labels select none. Without a pdGroup, the router never uses kvConnector.
    The timeout and the retryInterval of its trafficPolicy are durations.

    Pass: matchLabels {app: llama}; prefillLabels {role: prefill}, decodeLabels {role: decode}.
    Fail: no matchLabels; the same labels for prefill and decode; kvConnector without pdGroup;
    timeout 10, without a unit.
    Level: advisory; mandatory for durations, which the webhook cannot read.
    Source: volcano-sh/kthena v1.0.0 pkg/kthena-router/controller/modelserver_controller.go,
    pkg/kthena-router/datastore/model_server.go; pkg/kthena-router/webhook/utils.go.
    """
    yield from _durations(view)
    path, spec = "spec.workloadSelector", view.object.spec
    require_known(path, spec.get("workloadSelector"), view.labels, view.pair)
    if not mapping(view.labels) and spec.get("workloadSelector") is not None:
        seen = "is empty, so all pods of the namespace serve this model"
        yield advise(f"{path}.matchLabels", seen, "write the labels of its pods")
    if view.pair is None:
        if spec.get("kvConnector") is not None:
            seen = (
                "is given without workloadSelector.pdGroup, and only pairs of prefill and decode "
            )
            seen += "use it"
            yield advise("spec.kvConnector", seen, "add a pdGroup, or remove it")
        return
    sides = [mapping(view.pair).get(f"{side}Labels") for side in ("prefill", "decode")]
    require_known(f"{path}.pdGroup", *sides, unknown_inside(*sides))
    for side, stated in zip(("prefill", "decode"), sides, strict=True):
        if stated is not None and not mapping(stated):
            seen = f"is empty, so no pod is {side}"
            yield advise(f"{path}.pdGroup.{side}Labels", seen, "write labels")
    if sides[0] and sides[0] == sides[1]:
        seen = "equals prefillLabels, so every pod is decode and none prefill"
        yield advise(f"{path}.pdGroup.decodeLabels", seen, "write other labels")


def _durations(view: Server) -> Iterator[Finding]:
    policy, path = mapping(view.object.spec.get("trafficPolicy")), "spec.trafficPolicy"
    retry = mapping(policy.get("retry"))
    stated = {"timeout": policy.get("timeout"), "retry.retryInterval": retry.get("retryInterval")}
    for at, value in stated.items():
        if gap := unknown_in(value):
            yield not_checked(f"{path}.{at}", gap)
        elif isinstance(value, str) and read_duration(value) is None:
            seen = f"is {display(value)}, which is no duration"
            yield refuse(f"{path}.{at}", seen, "write for example 500ms or 2m")


def kthena_model_route(view: Route) -> Iterator[Finding]:
    """A ModelRoute has a name to match, and rules whose targets have names and some weight.

    It matches modelName, or one of loraAdapters. A regex is one that Go can read.

    Pass: modelName llama, one rule with modelServerName llama.
    Fail: neither modelName nor loraAdapters; an empty adapter; all weights 0; the regex (.
    Level: mandatory.
    Source: volcano-sh/kthena v1.0.0 pkg/kthena-router/webhook/validator.go validateModelRoute.
    """
    spec = view.object.spec
    name, adapters = text(spec.get("modelName"), ""), spec.get("loraAdapters")
    if gap := first_unknown(name, adapters):
        yield not_checked("spec.modelName", gap)
    elif name == "" and not sequence(adapters):
        seen = "has neither modelName nor loraAdapters, so it matches nothing"
        yield refuse("spec", seen, "write the name of the model in requests")
    for index, adapter in enumerate(sequence(adapters)):
        if adapter == "":
            seen = "is empty, but must be the name of an adapter"
            yield refuse(f"spec.loraAdapters[{index}]", seen, remove())
    for rule in view.rules:
        yield from _targets(rule)
        yield from _matches(rule)


@part_of_rule
def _targets(rule: RouteRule) -> Iterator[Finding]:
    path, stated = f"{rule.path}.targetModels", rule.fields.get("targetModels")
    require_known(path, stated, unknown_inside(stated))
    if not rule.targets:
        yield refuse(path, "has no target", "write a ModelServer")
        return
    for index, target in enumerate(rule.targets):
        if target.get("modelServerName") == "":
            yield refuse(f"{path}[{index}].modelServerName", "is empty", "write a name")
    weights = [count(target.get("weight"), _WEIGHT) for target in rule.targets]
    require_known(path, *weights)
    if all(weight == 0 for weight in weights):
        yield refuse(path, "has only weights of 0", "give one a weight from 1 to 100")


def _matches(rule: RouteRule) -> Iterator[Finding]:
    match, path = mapping(rule.fields.get("modelMatch")), f"{rule.path}.modelMatch"
    texts = [(f"headers.{name}", stated) for name, stated in pairs(match.get("headers"))]
    for at, stated in (*texts, ("uri", match.get("uri"))):
        regex = mapping(stated).get("regex")
        if gap := unknown_in(regex):
            yield not_checked(f"{path}.{at}.regex", gap)
        elif isinstance(regex, str) and (trouble := trouble_in_go(regex)):
            seen = f"is {display(regex)}, which Go cannot read: {trouble}"
            yield refuse(f"{path}.{at}.regex", seen, "write a regular expression of Go")


def kthena_model_name_fixed(change: Change) -> Iterator[Finding]:
    """A ModelRoute keeps the modelName of its creation.

    Pass: modelName llama before and after.
    Fail: modelName llama before, qwen after.
    Source: volcano-sh/kthena v1.0.0 pkg/apis/networking/v1alpha1/modelroute_types.go, the CEL rule.
    """
    old, new = (spec_of(body).get("modelName") for body in (change.before, change.after))
    if old is None or new is None:
        return
    path, edited = "spec.modelName", differ(old, new)
    require_known(path, edited)
    if edited:
        seen = f"changes from {display(old)} to {display(new)}, but it is immutable"
        yield refuse(path, seen, either(write(old, "keep it"), "write another ModelRoute"))


SERVER_RULES: tuple[Rule[Server], ...] = (kthena_model_server,)
ROUTE_RULES: tuple[Rule[Route], ...] = (kthena_model_route,)
