"""The list of all rules, read from the docstrings of rule functions.

Each system lists the rules of its kinds. input_findings.py and stack_findings.py document the
findings of input readers and of the program of a stack.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from kthena_components.checker.cluster_rules import ASKED_RULES, OWN_RULES
from kthena_components.checker.crd_schema import SCHEMA_RULE, SCHEMA_RULES, crd_schema
from kthena_components.checker.input_findings import FOLDER_DOCS, INPUT_DOCS, MANIFEST_DOCS
from kthena_components.checker.leader_selected import leader_selected
from kthena_components.checker.object_name import object_name
from kthena_components.checker.pod_schema import pod_schema, pod_values
from kthena_components.checker.stack_findings import EDGE_DOCS
from kthena_components.checker.unread_kinds_and_parts import kind_read
from kthena_components.checker.update_rules import ANY_CHANGE
from kthena_components.checker.waivers import waiver
from kthena_components.checker.weakened_levels_limits_waivers import BRANCH_RULES, LEVEL_RULES
from kthena_components.core.findings import rule_name
from kthena_components.core.rules.production import PRODUCTION
from kthena_components.core.rules.registry import CHECKS
from kthena_components.core.rules.support.documentation import RuleDoc, read_docstring
from kthena_components.core.spec.rules.engine_only_field_launch_overlay_counted_flag import (
    ROLE_RULES,
)
from kthena_components.core.spec.rules.roles_pods_gang_expose import SERVING_RULES
from kthena_components.core.spec.rules.template_scheduler_labels_image import template_scheduler
from kthena_components.core.topology.hypernode_tree import TREE_RULES
from kthena_components.systems import all_systems
from kthena_components.systems.volcano.rules.topology_tier_exists import hypernode_tree

Rule = Callable[..., Any]

ANY_MANIFEST, INPUT = "any serving", "input of components"
VOLCANO, WHOLE, WAIVERS = "Volcano objects", "all objects of a cluster", "waivers"
CHANGES, EDGES = "an update, before and after", "stacks, topologies and policies"
REVIEW = "engines in production"
BRANCH, FOLDERS = "a branch and its judge", "objects in folders"
"""Groups of rules on the page of rules, for rules that are not about one kind of a system."""

_NAMES = {
    "engine_launch": ("engine-launch", "data-parallel-layout"),
    "crd_schema": (SCHEMA_RULE, *SCHEMA_RULES.values()),
}
"""Names of a rule function's findings, if they differ from the function's name."""


@cache
def all_rules() -> tuple[RuleDoc, ...]:
    """List every rule once, in the order of the groups: the first one that has it describes it."""
    first: dict[str, RuleDoc] = {}
    for subject, rules in _groups():
        for doc in _documented(rules, subject):
            first.setdefault(doc.name, doc)
    return tuple(first.values())


def _groups() -> Iterator[tuple[str, Iterable[Rule] | Mapping[str, str]]]:
    """Yield what rules check, with their functions or, by name, their docstrings.

    Rules about servings come first, those about this package's input last.
    """
    systems = tuple(all_systems())
    yield ANY_MANIFEST, (*CHECKS, object_name, pod_schema, pod_values, crd_schema, kind_read)
    yield REVIEW, PRODUCTION
    for system in systems:
        for kind in system.kinds:
            yield kind.title or system.title, kind.rules
    yield VOLCANO, MANIFEST_DOCS
    yield FOLDERS, FOLDER_DOCS
    yield WHOLE, TREE_RULES
    for system in systems:
        # hypernode_tree only runs TREE_RULES.
        yield WHOLE, (rule for rule in system.cluster_rules if rule is not hypernode_tree)
    yield WHOLE, (*OWN_RULES, *ASKED_RULES, leader_selected)
    for system in systems:
        for kind in system.kinds:
            yield CHANGES, kind.change_rules
    yield CHANGES, ANY_CHANGE
    yield BRANCH, (*LEVEL_RULES, *BRANCH_RULES)
    yield WAIVERS, (waiver,)
    yield INPUT, (*SERVING_RULES, *ROLE_RULES, template_scheduler)
    yield INPUT, INPUT_DOCS
    yield EDGES, EDGE_DOCS


@cache
def rule_names() -> frozenset[str]:
    """Return the names of all rules."""
    return frozenset(rule.name for rule in all_rules())


@cache
def cluster_rule_names() -> frozenset[str]:
    """Return the names of the rules that need more than one object."""
    return frozenset(rule.name for rule in all_rules() if rule.subject in {WHOLE, CHANGES})


def _documented(rules: Iterable[Rule] | Mapping[str, str], subject: str) -> list[RuleDoc]:
    if isinstance(rules, Mapping):
        return [read_docstring(text, name=name, subject=subject) for name, text in rules.items()]
    return [
        read_docstring(
            inspect.getdoc(rule) or "", name=name, subject=subject, module=rule.__module__
        )
        for rule in rules
        for name in _NAMES.get(rule.__name__) or (rule_name(rule),)
    ]
