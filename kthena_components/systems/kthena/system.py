"""Kthena: ModelServing, one object for the whole serving, and ModelBooster, which makes them."""

from kthena_components.core.findings import Finding
from kthena_components.core.objects.kinds import MODEL_SERVING
from kthena_components.core.objects.object import Object
from kthena_components.core.objects.reduction import kept_pods
from kthena_components.core.schema.versions import KTHENA_VERSIONS
from kthena_components.core.values.read import as_map
from kthena_components.systems.contract import Body, Restart, System, legacy
from kthena_components.systems.kthena import facts, facts_booster
from kthena_components.systems.kthena.changes import gang_topology_only_change, kthena_gang_fixed
from kthena_components.systems.kthena.emit import EMITTER
from kthena_components.systems.kthena.pods import pods_of_roles
from kthena_components.systems.kthena.rules import RULES, judge_model_serving
from kthena_components.systems.kthena.rules_booster import RULES as BOOSTER_RULES
from kthena_components.systems.kthena.rules_booster import judge_model_booster
from kthena_components.systems.volcano.rules import judge_volcano_object

ROLE_PATHS = (
    r"spec\.template\.roles(\[\d+\])?(\.(entryTemplate|workerTemplate|workerReplicas|name)\b|$)"
)


def _by_role(body: Body) -> str:
    strategy = as_map(as_map(body.get("spec")).get("rolloutStrategy"))
    return "role after role restarts" if strategy.get("type") == "RoleRollingUpdate" else ""


def _judge(found: Object) -> list[Finding]:
    version = found.context.versions.get("kthena", KTHENA_VERSIONS[-1])
    own = judge_model_serving(found.body, version, found.path)
    return [*own, *judge_volcano_object(found.body, found.path)]


SYSTEM = System(
    name="kthena",
    title="Kthena ModelServing",
    kinds=(
        legacy(
            MODEL_SERVING,
            facts.read,
            rules=RULES,
            legacy=_judge,
            pods=pods_of_roles,
            change_rules=(gang_topology_only_change, kthena_gang_fixed),
            kept=kept_pods,
            restarts=Restart(
                paths=ROLE_PATHS, how="group after group restarts", otherwise=_by_role
            ),
            copies="replicas",
        ),
        legacy(
            (MODEL_SERVING[0], "ModelBooster"),
            facts_booster.read,
            judge_model_booster,
            rules=BOOSTER_RULES,
            title="Kthena ModelBooster",
        ),
    ),
    emitter=EMITTER,
)
