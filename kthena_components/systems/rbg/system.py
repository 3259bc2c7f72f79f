"""RoleBasedGroup and RoleBasedGroupSet."""

from kthena_components.systems.contract import System, legacy
from kthena_components.systems.rbg.facts import read
from kthena_components.systems.rbg.rules import RULES, judge_role_based_group
from kthena_components.systems.rbg.view import RBG, RBG_SET

_TEMPLATES = (
    "roleTemplates[].template",
    "roles[].template",
    "roles[].standalonePattern.template",
    "roles[].leaderWorkerPattern.template",
)

SYSTEM = System(
    name="rbg",
    title="RoleBasedGroup",
    kinds=(
        legacy(
            RBG,
            read,
            judge_role_based_group,
            rules=RULES,
            templates=tuple(f"spec.{at}" for at in _TEMPLATES),
        ),
        legacy(
            RBG_SET,
            read,
            judge_role_based_group,
            rules=RULES,
            templates=(
                *(f"spec.template.{at}" for at in _TEMPLATES),
                *(f"spec.groupTemplate.spec.{at}" for at in _TEMPLATES),
            ),
            copies="replicas",
        ),
    ),
)
