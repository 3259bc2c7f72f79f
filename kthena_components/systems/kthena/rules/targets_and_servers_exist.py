"""Checks what Kthena's autoscaler and router refer to: ModelServings, roles, ModelServers."""

from collections.abc import Iterator

from kthena_components.core.findings import (
    Finding,
    advise,
    part_of_rule,
    refuse,
    suggest_name,
)
from kthena_components.core.objects.cluster_objects import ClusterObjects
from kthena_components.core.objects.object import MODEL_SERVER, MODEL_SERVING, Object
from kthena_components.core.values.display import display
from kthena_components.core.values.read import (
    first_unknown,
    mapping,
    require_known,
    text,
)
from kthena_components.core.values.unknown import Unknown, known
from kthena_components.systems.kthena.view import MODEL_BOOSTER, MODEL_ROUTE, Route, Serving
from kthena_components.systems.kthena.view_autoscaling import BINDING, POLICY, Policy, Scaled


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
                yield from _told(found, "spec.policyRef.name", missing, POLICY[1])


@part_of_rule
def _target(cluster: ClusterObjects, found: Object, unit: Scaled) -> Iterator[Finding]:
    name = text(unit.ref.get("name"), "")
    namespace = text(unit.ref.get("namespace"), "") or found.namespace
    missing = _missing(cluster, MODEL_SERVING, name, namespace)
    yield from _told(found, f"{unit.ref_path}.name", missing, MODEL_SERVING[1])
    serving = cluster.named(MODEL_SERVING).get((str(namespace), str(name)))
    view = None if serving is None else cluster.views[serving.index]
    if not isinstance(view, Serving) or unit.role in ("", None):
        return
    names = [role.name for role in view.roles]
    require_known(found.at(unit.path), unit.role, *names, view.template.get("roles"))
    if unit.role not in names:
        seen = f"is about role {display(unit.role)}, which the ModelServing {display(name)} has not"
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
def _told(found: Object, path: str, stated: str | Unknown | None, kind: str) -> Iterator[Finding]:
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
                yield from _told(found, path, missing, MODEL_SERVER[1])
