"""The list of all rules, read from the docstrings of rule functions.

Each system lists the rules of its kinds. Findings of input readers and of the stack program are
documented in extra.py.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from itertools import chain
from typing import Any

from kthena_components.core.findings import rule_name
from kthena_components.core.rules.production import PRODUCTION
from kthena_components.core.rules.registry import CHECKS
from kthena_components.core.rules.support.documentation import RuleDoc, read_docstring
from kthena_components.core.spec.rules.role import ROLE_RULES
from kthena_components.core.spec.rules.serving import RULES as SPEC_RULES
from kthena_components.core.spec.rules.template import template_scheduler
from kthena_components.core.topology.tree import TREE_RULES
from kthena_components.judge.cluster_rules import ASKED_RULES, OWN_RULES
from kthena_components.judge.crd_schema import NAMES as SCHEMAS
from kthena_components.judge.crd_schema import RULE as SCHEMA
from kthena_components.judge.crd_schema import crd_schema
from kthena_components.judge.input_findings import FOLDER_DOCS, INPUT_DOCS, MANIFEST_DOCS
from kthena_components.judge.pod_schema import pod_schema, pod_values
from kthena_components.judge.stack_findings import EDGE_DOCS
from kthena_components.judge.unread import kind_read
from kthena_components.judge.waivers import waiver
from kthena_components.judge.weakening import LEVEL_RULES
from kthena_components.judge.weakening import STACK_RULES as BRANCH_RULES
from kthena_components.systems import all_systems
from kthena_components.systems.contract import System
from kthena_components.systems.volcano.rules.topology_tier_exists import hypernode_tree

ANY_MANIFEST, INPUT = "any serving", "input of components"
VOLCANO, WHOLE, WAIVERS = "Volcano objects", "all objects of a cluster", "waivers"
CHANGES, EDGES = "an update, before and after", "stacks, topologies and policies"
REVIEW = "engines in production"
BRANCH, FOLDERS = "a branch and its judge", "objects in folders"
"""What rules check, if not a kind of a system."""

_NAMES = {
    "engine_launch": ("engine-launch", "data-parallel-layout"),
    "crd_schema": (SCHEMA, *SCHEMAS.values()),
}
"""Names of a rule function's findings, if they differ from the function's name."""


@cache
def all_rules() -> tuple[RuleDoc, ...]:
    """List every rule once: first those about servings, last those about this package's input."""
    systems = tuple(all_systems())
    kinds = [kind for system in systems for kind in system.kinds]
    alone = [rule for system in systems for rule in system.cluster_rules]
    listed = (
        *_documented((*CHECKS, pod_schema, pod_values, crd_schema, kind_read), ANY_MANIFEST),
        *_documented(PRODUCTION, REVIEW),
        *chain.from_iterable(map(_of_system, systems)),
        *_written(MANIFEST_DOCS, VOLCANO),
        *_written(FOLDER_DOCS, FOLDERS),
        *_documented(TREE_RULES, WHOLE),
        *_documented((rule for rule in alone if rule is not hypernode_tree), WHOLE),
        *_documented((*OWN_RULES, *ASKED_RULES), WHOLE),
        *_documented((rule for kind in kinds for rule in kind.change_rules), CHANGES),
        *_documented((*LEVEL_RULES, *BRANCH_RULES), BRANCH),
        *_documented((waiver,), WAIVERS),
        *_documented((*SPEC_RULES, *ROLE_RULES, template_scheduler), INPUT),
        *_written(INPUT_DOCS, INPUT),
        *_written(EDGE_DOCS, EDGES),
    )
    first: dict[str, RuleDoc] = {}
    for rule in listed:
        first.setdefault(rule.name, rule)
    return tuple(first.values())


@cache
def rule_names() -> frozenset[str]:
    """Return the names of all rules."""
    return frozenset(rule.name for rule in all_rules())


@cache
def cluster_rule_names() -> frozenset[str]:
    """Return the names of the rules that need more than one object."""
    return frozenset(rule.name for rule in all_rules() if rule.judges in {WHOLE, CHANGES})


def _of_system(system: System) -> list[RuleDoc]:
    return [
        doc for kind in system.kinds for doc in _documented(kind.rules, kind.title or system.title)
    ]


def _documented(rules: Iterable[Callable[..., Any]], judges: str) -> list[RuleDoc]:
    return [
        read_docstring(inspect.getdoc(rule) or "", name=name, judges=judges, module=rule.__module__)
        for rule in rules
        for name in _NAMES.get(rule.__name__) or (rule_name(rule),)
    ]


def _written(docs: Mapping[str, str], judges: str) -> list[RuleDoc]:
    return [read_docstring(text, name=name, judges=judges) for name, text in docs.items()]
