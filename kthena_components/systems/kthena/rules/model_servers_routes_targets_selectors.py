"""Checks ModelServers and ModelRoutes, alone and with the objects that Kthena's objects refer to.

Source: Kthena v1.0.0 pkg/kthena-router; of the selectors,
pkg/model-serving-controller/utils/utils.go, the labels of pods, and
pkg/kthena-router/controller/modelserver_controller.go: each ready pod that a ModelServer selects
gets requests, whatever it is.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kthena_components.core import naming
from kthena_components.core.findings import (
    Finding,
    advise,
    each_of,
    not_checked,
    part_of_rule,
    refuse,
    suggest_name,
)
from kthena_components.core.objects.cluster_objects import (
    ClusterObjects,
    has_label,
    names_serving,
    selects,
)
from kthena_components.core.objects.object import MODEL_SERVER, MODEL_SERVING, Object, PodSet
from kthena_components.core.remedies import remove
from kthena_components.core.values.display import display
from kthena_components.core.values.quantity import read_duration
from kthena_components.core.values.read import (
    count,
    first_unknown,
    mapping,
    pairs,
    require_known,
    sequence,
    text,
    unknown_in,
    unknown_inside,
)
from kthena_components.core.values.regex import trouble_in_go
from kthena_components.core.values.unknown import Unknown, known
from kthena_components.systems.kthena.view import (
    BINDING,
    MODEL_BOOSTER,
    MODEL_ROUTE,
    POLICY,
    Policy,
    Route,
    RouteRule,
    Scaled,
    Server,
    Serving,
)
from kthena_components.systems.kubernetes.rules.service_selects_pods_one_model_headless import (
    may_make_pods,
)
from kthena_components.systems.kubernetes.selectors_and_routers import Selector, selectors
from kthena_components.systems.system import Rule

# Checks ModelServers and ModelRoutes. Each function of the two lists is one rule.
#
# Source: volcano-sh/kthena v1.0.0 pkg/kthena-router.


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
    """Check that the durations of a traffic policy have Go's form."""
    policy, path = mapping(view.object.spec.get("trafficPolicy")), "spec.trafficPolicy"
    retry = mapping(policy.get("retry"))
    stated = {"timeout": policy.get("timeout"), "retry.retryInterval": retry.get("retryInterval")}
    for at, value in stated.items():
        if gap := unknown_in(value):
            yield not_checked(f"{path}.{at}", gap)
        elif isinstance(value, str) and read_duration(value) is None:
            seen = f"is {display(value)}, which is not a duration"
            yield refuse(f"{path}.{at}", seen, "write, for example, 500ms or 2m")


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
    """Check that a rule has targets with names, and a weight above 0."""
    path, stated = f"{rule.path}.targetModels", rule.fields.get("targetModels")
    require_known(path, stated, unknown_inside(stated))
    if not rule.targets:
        yield refuse(path, "has no target", "add an entry with modelServerName")
        return
    for index, target in enumerate(rule.targets):
        if target.get("modelServerName") == "":
            yield refuse(f"{path}[{index}].modelServerName", "is empty", "write a name")
    weights = [count(target.get("weight"), _WEIGHT) for target in rule.targets]
    require_known(path, *weights)
    if all(weight == 0 for weight in weights):
        yield refuse(path, "has only weights of 0", "give one a weight from 1 to 100")


def _matches(rule: RouteRule) -> Iterator[Finding]:
    """Check that the regular expressions of a match compile in Go."""
    match, path = mapping(rule.fields.get("modelMatch")), f"{rule.path}.modelMatch"
    texts = [(f"headers.{name}", stated) for name, stated in pairs(match.get("headers"))]
    for at, stated in (*texts, ("uri", match.get("uri"))):
        regex = mapping(stated).get("regex")
        if gap := unknown_in(regex):
            yield not_checked(f"{path}.{at}.regex", gap)
        elif isinstance(regex, str) and (trouble := trouble_in_go(regex)):
            seen = f"is {display(regex)}, which Go cannot read: {trouble}"
            yield refuse(f"{path}.{at}.regex", seen, "write a regular expression in Go's syntax")


SERVER_RULES: tuple[Rule[Server], ...] = (kthena_model_server,)
ROUTE_RULES: tuple[Rule[Route], ...] = (kthena_model_route,)


def autoscaling_target_exists(cluster: ClusterObjects) -> Iterator[Finding]:
    """The ModelServing of an AutoscalingPolicy exists, and has the roles that it scales.

    So is the policy of an AutoscalingPolicyBinding.

    Pass: targetRef.name llama and a ModelServing llama; role prefill, which it has.
    Fail: targetRef.name lama; role prefil.
    Level: mandatory for a role; advisory for an object, which is reported only if these are all
    objects of the cluster.
    Source: volcano-sh/kthena v1.0.0 pkg/autoscaler/controller/autoscale_controller.go
    getTargetReplicas, getCurrentRoleReplicas; v0.4.0 autoscaling_binding_validator.go.
    """
    for found in (*cluster.of(POLICY), *cluster.of(BINDING)):
        view = cluster.views[found.index]
        if isinstance(view, Policy):
            for unit in view.units:
                yield from _target(cluster, found, unit)
            if found.group_kind == BINDING:
                name = text(mapping(found.spec.get("policyRef")).get("name"), "")
                missing = _missing(cluster, POLICY, name, found.namespace)
                yield from _absent(found, "spec.policyRef.name", missing, POLICY[1])


@part_of_rule
def _target(cluster: ClusterObjects, found: Object, unit: Scaled) -> Iterator[Finding]:
    """Check that the scaled ModelServing exists, and has the role that is scaled."""
    name = text(unit.ref.get("name"), "")
    namespace = text(unit.ref.get("namespace"), "") or found.namespace
    missing = _missing(cluster, MODEL_SERVING, name, namespace)
    yield from _absent(found, f"{unit.ref_path}.name", missing, MODEL_SERVING[1])
    serving = cluster.named(MODEL_SERVING).get((str(namespace), str(name)))
    view = None if serving is None else cluster.views[serving.index]
    if not isinstance(view, Serving) or unit.role in ("", None):
        return
    names = [role.name for role in view.roles]
    require_known(found.at(unit.path), unit.role, *names, view.template.get("roles"))
    if unit.role not in names:
        seen = f"is role {display(unit.role)}, which ModelServing {display(name)} does not have"
        remedy = suggest_name(str(unit.role), map(str, names))
        yield refuse(found.at(unit.path), seen, remedy)


def _missing(
    cluster: ClusterObjects, kind: tuple[str, str], name: object, namespace: object
) -> str | Unknown | None:
    """Return the name of an object that is missing; None if it is here, or may be elsewhere."""
    if not cluster.complete or name in ("", None) or namespace is None or cluster.of(MODEL_BOOSTER):
        return None
    if (str(namespace), str(name)) in cluster.named(kind):
        return None
    return first_unknown(name, namespace) or cluster.name_unknown(kind) or str(name)


@part_of_rule
def _absent(found: Object, path: str, stated: str | Unknown | None, kind: str) -> Iterator[Finding]:
    missing = known(stated, found.at(path))
    if missing is not None:
        seen = f"is {display(missing)}, but there is no {kind} of that name in its namespace"
        yield advise(found.at(path), seen, "write the name of one, or add it")


def model_route_has_servers(cluster: ClusterObjects) -> Iterator[Finding]:
    """Each ModelServer that a ModelRoute names exists.

    Pass: modelServerName llama, and a ModelServer llama in the same namespace.
    Fail: modelServerName lama.
    Level: advisory. It applies only if these are all objects of the cluster.
    Source: volcano-sh/kthena v1.0.0 pkg/kthena-router/datastore/store.go MatchModelServer.
    """
    for found in cluster.of(MODEL_ROUTE):
        view = cluster.views[found.index]
        for rule in view.rules if isinstance(view, Route) else ():
            for index, target in enumerate(rule.targets):
                name = text(target.get("modelServerName"), "")
                path = f"{rule.path}.targetModels[{index}].modelServerName"
                missing = _missing(cluster, MODEL_SERVER, name, found.namespace)
                yield from _absent(found, path, missing, MODEL_SERVER[1])


_SHOWN = 5


def _of_servings(cluster: ClusterObjects) -> Iterator[tuple[Selector, Object, list[PodSet]]]:
    """Yield each selector with the ModelServing that it names, and all pods of that."""
    owned: dict[int, list[PodSet]] = {}
    for pods in cluster.pods:
        if pods.owner.group_kind == MODEL_SERVING:
            owned.setdefault(pods.owner.index, []).append(pods)
    servings = cluster.named(MODEL_SERVING)
    for each in selectors(cluster) if servings else ():
        key = (str(each.owner.namespace), str(each.labels.get(naming.NAME)))
        if serving := servings.get(key):
            yield each, serving, owned.get(serving.index, [])


@each_of(_of_servings)
def selector_of_serving(
    each: Selector, serving: Object, pods: Sequence[PodSet]
) -> Iterator[Finding]:
    """A selector that names a ModelServing among the objects matches some of its pods.

    The rule reads the selectors of Services, ModelServers and InferencePools with the label
    modelserving.volcano.sh/name. Kthena gives each pod that label, and role, role-id, group-name,
    revision and role-template-hash; entry pods also have entry "true". Labels of a template replace
    these.

    Pass: modelserving.volcano.sh/name llama and modelserving.volcano.sh/role prefill, which llama
    has.
    Fail: the role prefil; entry yes; the label entyr.
    Level: mandatory.
    Source: volcano-sh/kthena v1.0.0 pkg/model-serving-controller/utils/utils.go createBasePod,
    GenerateEntryPod.
    """
    at = each.owner.at(each.path)
    found = [selects(each.labels, one) for one in pods]
    require_known(at, each.gap, *(() if True in found else (*found, _hidden(serving))))
    if True not in found and pods:
        wrong = _unmatched_labels(each.labels, pods)
        shown = ", ".join(f"{k}={display(v)}" for k, v in list(each.labels.items())[:_SHOWN])
        seen = f"selects {shown}, which no pod of ModelServing {display(serving.name)} has"
        if wrong:
            seen += f": none has {wrong[0]}={display(each.labels[wrong[0]])}"
        yield refuse(at, seen, _remedy(wrong, pods))


def _hidden(serving: Object) -> Unknown | None:
    """Explain why the ModelServing may have other pods than those that are known."""
    roles = mapping(serving.spec.get("template")).get("roles")
    return first_unknown(roles, *sequence(roles))


def _unmatched_labels(labels: Mapping[str, Any], pods: Sequence[PodSet]) -> list[str]:
    """Return the labels that no pod has; empty if only no pod has all of them."""
    return [
        key
        for key, value in labels.items()
        if all(has_label(one, str(key), value) is False for one in pods)
    ]


def _remedy(wrong: Sequence[str], pods: Sequence[PodSet]) -> str:
    if naming.ROLE in wrong:
        roles = [display(one.added[naming.ROLE]) for one in pods if one.added]
        return f"write a role that it has: {', '.join(dict.fromkeys(roles))}"
    if naming.ENTRY in wrong:
        return 'write "true", which Kthena gives the entry pods'
    return f"remove {wrong[0]}" if wrong else "write labels that one of its pods has"


_MOST_COMPARED = 1_000_000
"""Maximum number of comparisons of pods with ModelServers."""
_MANY = Unknown("there are too many pods and ModelServers to compare them all")


def model_server_selects_pods(cluster: ClusterObjects) -> Iterator[Finding]:
    """The labels of a ModelServer match pods, for prefill and for decode, too.

    Nothing is reported if an object of an unknown kind may create pods.

    Pass: modelserving.volcano.sh/name llama, and a ModelServing llama.
    Fail: modelserving.volcano.sh/name lama; modelserving.volcano.sh/role prefil as a prefill label.
    Level: advisory. It applies only if these are all objects of the cluster.
    Source: volcano-sh/kthena v1.0.0 pkg/kthena-router/controller/modelserver_controller.go;
    pkg/model-serving-controller/utils/utils.go, the labels of pods.
    """
    if (
        not cluster.complete
        or cluster.demands
        or any(may_make_pods(o, cluster) for o in cluster.objects)
    ):
        return
    by_namespace: dict[object, list[PodSet]] = {}
    for pods in cluster.pods:
        by_namespace.setdefault(pods.owner.namespace, []).append(pods)
    left, hidden = _MOST_COMPARED, cluster.hidden_pods
    for found in cluster.of(MODEL_SERVER):
        view = cluster.views[found.index]
        for path, wanted in _selectors(view) if isinstance(view, Server) else ():
            if names_serving(cluster, found, wanted):
                continue  # selector-of-serving checks it
            candidates = by_namespace.get(found.namespace, [])
            left -= len(candidates)
            gap = unknown_in(found.namespace) or unknown_in(wanted) or unknown_inside(wanted)
            gap = gap or (_MANY if left < 0 else None)
            labels = {str(key): value for key, value in pairs(wanted)}
            selected = gap or (_selected(labels, candidates) if labels else True) or hidden or False
            if isinstance(selected, Unknown):
                yield not_checked(found.at(path), selected)
            elif not selected:
                shown = ", ".join(f"{key}={display(labels[key])}" for key in list(labels)[:5])
                seen = f"selects {shown}, which no pod in its namespace has"
                yield advise(found.at(path), seen, "write the labels of the pods")


def _selectors(view: Server) -> Iterator[tuple[str, object]]:
    """List the labels that pods need: those of all pods, and with those of each side of a pair."""
    path = "spec.workloadSelector"
    yield f"{path}.matchLabels", view.labels
    for side in ("prefillLabels", "decodeLabels"):
        stated = mapping(view.pair).get(side)
        if mapping(stated):
            yield f"{path}.pdGroup.{side}", {**mapping(view.labels), **mapping(stated)}


def _selected(wanted: Mapping[str, Any], candidates: list[PodSet]) -> bool | Unknown:
    """Return whether a selector selects pods of any template; unknown if that depends on values."""
    gap: Unknown | None = None
    for pods in candidates:
        found = selects(wanted, pods)
        if found is True:
            return True
        gap = gap or unknown_in(found)
    return gap or False
