"""Kthena: ModelServing, one object for the whole serving, and ModelBooster, which creates them."""

from kthena_components.core.objects.kinds import MODEL_SERVING
from kthena_components.core.objects.reduction import kept_pods
from kthena_components.core.values.read import mapping
from kthena_components.systems.contract import Body, Kind, Restart, System
from kthena_components.systems.kthena import facts_booster
from kthena_components.systems.kthena.changes import gang_topology_only_change, kthena_gang_fixed
from kthena_components.systems.kthena.emit import EMITTER
from kthena_components.systems.kthena.facts import facts
from kthena_components.systems.kthena.pods import pods
from kthena_components.systems.kthena.rules import RULES
from kthena_components.systems.kthena.rules_booster import BOOSTER_RULES
from kthena_components.systems.kthena.view import BY_ROLE, read_serving
from kthena_components.systems.kthena.view_booster import read_booster

_GROUP, _KIND = MODEL_SERVING
ROLE_PATHS = (
    r"spec\.template\.roles(\[\d+\])?(\.(entryTemplate|workerTemplate|workerReplicas|name)\b|$)"
)
_MAKES_SERVINGS = "Kthena creates ModelServings for it"


def _by_role(body: Body) -> str:
    strategy = mapping(mapping(body.get("spec")).get("rolloutStrategy"))
    return "role after role restarts" if strategy.get("type") == BY_ROLE else ""


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
            rules=RULES,
            change_rules=(gang_topology_only_change, kthena_gang_fixed),
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
            group=_GROUP,
            name="ModelBooster",
            view=read_booster,
            facts=facts_booster.facts,
            rules=BOOSTER_RULES,
            title="Kthena ModelBooster",
            without=dict.fromkeys(("pods", "templates", "restarts"), _MAKES_SERVINGS),
        ),
    ),
    emitter=EMITTER,
)
