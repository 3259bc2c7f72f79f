"""Kthena: ModelServings, the ModelBoosters that create them, and their autoscaler and router."""

from collections.abc import Iterator

from kthena_components.core.objects.object import MODEL_SERVER, MODEL_SERVING
from kthena_components.core.objects.retained_fields import kept_pods
from kthena_components.core.plan.controller_variables import KTHENA_POD_VARIABLES
from kthena_components.core.values.read import mapping, text
from kthena_components.systems.kthena import model_booster
from kthena_components.systems.kthena.facts import facts, gangs, pods
from kthena_components.systems.kthena.rules.autoscaling import BINDING_RULES, POLICY_RULES
from kthena_components.systems.kthena.rules.booster import BOOSTER_RULES
from kthena_components.systems.kthena.rules.entry_names_version_image_template import RULES
from kthena_components.systems.kthena.rules.forbidden_changes import (
    gang_topology_only_change,
    kthena_gang_fixed,
    kthena_model_name_fixed,
    kthena_partition_scaling,
)
from kthena_components.systems.kthena.rules.model_server_model_engine_and_adapters import (
    model_route_adapters,
    model_server_engine,
    model_server_model,
)
from kthena_components.systems.kthena.rules.model_servers_routes_targets_selectors import (
    ROUTE_RULES,
    SERVER_RULES,
    autoscaling_target_exists,
    model_route_has_servers,
    model_server_selects_pods,
    selector_of_serving,
)
from kthena_components.systems.kthena.view import (
    BINDING,
    BY_ROLE,
    MODEL_BOOSTER,
    MODEL_ROUTE,
    POLICY,
    Policy,
    read_booster,
    read_policy,
    read_route,
    read_server,
    read_serving,
)
from kthena_components.systems.system import Body, Kind, Restart, ScaleTarget, System

_GROUP, _KIND = MODEL_SERVING
ROLE_PATHS = (
    r"spec\.template\.roles(\[\d+\])?(\.(entryTemplate|workerTemplate|workerReplicas|name)\b|$)"
)
_MAKES_SERVINGS = "Kthena creates ModelServings for it"


def _by_role(body: Body) -> str:
    strategy = mapping(mapping(body.get("spec")).get("rolloutStrategy"))
    return "role after role restarts" if strategy.get("type") == BY_ROLE else ""


def _scales(view: Policy) -> Iterator[ScaleTarget]:
    """List what a policy scales: a ModelServing, or one of its roles."""
    for unit in view.units:
        name, namespace = (text(unit.ref.get(key), "") for key in ("name", "namespace"))
        yield ScaleTarget(
            at=unit.ref_path,
            group_kind=MODEL_SERVING,
            name=name,
            namespace=namespace,
            part=unit.role,
        )


SYSTEM = System(
    name="kthena",
    title="Kthena ModelServing",
    kinds=(
        Kind(
            group=_GROUP,
            name=_KIND,
            view=read_serving,
            facts=facts,
            pods=pods,
            gangs=gangs,
            pod_variables=lambda _: KTHENA_POD_VARIABLES,
            rules=RULES,
            change_rules=(gang_topology_only_change, kthena_gang_fixed, kthena_partition_scaling),
            own_templates=(
                "spec.template.roles[].entryTemplate",
                "spec.template.roles[].workerTemplate",
            ),
            kept=kept_pods,
            restarts=Restart(
                paths=ROLE_PATHS, how="group after group restarts", otherwise=_by_role
            ),
            copies="replicas",
            without={
                "templates": "its CRD has its own pod templates, which kthena-schema checks",
                "rollouts": "no version of Kthena surges",
            },
        ),
        Kind(
            group=MODEL_BOOSTER[0],
            name=MODEL_BOOSTER[1],
            view=read_booster,
            facts=model_booster.facts,
            sketch=model_booster.sketch,
            rules=BOOSTER_RULES,
            title="Kthena ModelBooster",
            without=dict.fromkeys(("pods", "templates", "restarts"), _MAKES_SERVINGS),
        ),
        Kind(
            group=POLICY[0],
            name=POLICY[1],
            view=read_policy,
            rules=POLICY_RULES,
            scales=_scales,
            title="Kthena AutoscalingPolicy",
        ),
        Kind(
            group=BINDING[0],
            name=BINDING[1],
            view=read_policy,
            rules=BINDING_RULES,
            scales=_scales,
            title="Kthena AutoscalingPolicy",
        ),
        Kind(
            group=MODEL_SERVER[0],
            name=MODEL_SERVER[1],
            view=read_server,
            rules=SERVER_RULES,
            title="Kthena ModelServer",
        ),
        Kind(
            group=MODEL_ROUTE[0],
            name=MODEL_ROUTE[1],
            view=read_route,
            rules=ROUTE_RULES,
            change_rules=(kthena_model_name_fixed,),
            title="Kthena ModelRoute",
        ),
    ),
    cluster_rules=(
        autoscaling_target_exists,
        model_server_selects_pods,
        model_route_has_servers,
        selector_of_serving,
        model_server_model,
        model_route_adapters,
        model_server_engine,
    ),
)
