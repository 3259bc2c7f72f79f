"""What rules there are, read from the docstrings of the functions that are the rules.

A rule's docstring begins with one sentence that says what holds. Paragraphs may follow. Then
sections, each of which ends at the next one or at a blank line:

- `Pass:` and `Fail:` are short examples with numbers, as many as one likes;
- `Level:` is the level of its findings, mandatory where it is not stated;
- `Source:` says where the rule is from.

What is said at the edges, by readers of input and by what runs a stack, is documented in edges.py.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from itertools import chain
from typing import Any

from kthena_components.core.findings import rule_name
from kthena_components.core.rules.documentation import RuleDoc, read_docstring
from kthena_components.core.rules.serving import CHECKS
from kthena_components.core.spec.rules_role import ROLE_RULES
from kthena_components.core.spec.rules_serving import RULES as SPEC_RULES
from kthena_components.core.spec.rules_template import template_scheduler
from kthena_components.core.topology.tree import TREE_RULES
from kthena_components.judge.extra import EDGE_DOCS, INPUT_DOCS, MANIFEST_DOCS
from kthena_components.judge.pod_schema import pod_schema
from kthena_components.judge.stack_rules import ASKED_RULES, STACK_RULES
from kthena_components.judge.update import CHANGE_RULES
from kthena_components.judge.waivers import waiver
from kthena_components.judge.weakening import LEVEL_RULES
from kthena_components.judge.weakening import STACK_RULES as BRANCH_RULES
from kthena_components.systems.dynamo.rules import RULES as DYNAMO_RULES
from kthena_components.systems.grove.rules import RULES as GROVE_RULES
from kthena_components.systems.kaito.rules import RULES as KAITO_RULES
from kthena_components.systems.kserve.rules import RULES as KSERVE_RULES
from kthena_components.systems.kserve.rules_llm import RULES as LLM_RULES
from kthena_components.systems.kthena.rules import RULES as KTHENA_RULES
from kthena_components.systems.kthena.rules_booster import RULES as BOOSTER_RULES
from kthena_components.systems.lws.rules import RULES as LWS_RULES
from kthena_components.systems.ray.rules import RULES as RAY_RULES
from kthena_components.systems.ray.rules_serve import ray_serve_gpus
from kthena_components.systems.rbg.rules import RULES as RBG_RULES
from kthena_components.systems.vllm_stack.rules import RULES as VLLM_STACK_RULES
from kthena_components.systems.volcano.rules import RULES as VOLCANO_RULES
from kthena_components.systems.volcano.rules_topology import TOPOLOGY_RULES
from kthena_components.systems.volcano.stack_topology import hypernode_tree

ANY_MANIFEST, MODEL_SERVING, INPUT = (
    "any serving",
    "Kthena ModelServing",
    "input of components",
)

LWS, KSERVE, VOLCANO, WHOLE, WAIVERS = (
    "LeaderWorkerSet and DisaggregatedSet",
    "KServe",
    "Volcano objects",
    "all objects of a cluster",
    "waivers",
)

CHANGES, EDGES = "an update, before and after", "stacks, topologies and policies"

BRANCH = "a branch and its judge"

KAITO = "KAITO"

RAY, BOOSTER, VLLM_STACK = "KubeRay", "Kthena ModelBooster", "releases of vllm-stack"

RBG, GROVE, DYNAMO = ("RoleBasedGroup", "Grove PodCliqueSet", "NVIDIA Dynamo")
"""What rules judge."""

_NAMES = {
    "engine_launch": ("engine-launch", "data-parallel-layout"),
}
"""The names that findings carry, where a function's own name is not the only one."""


@cache
def all_rules() -> tuple[RuleDoc, ...]:
    """List every rule once: those about anybody's servings first, those about our input last."""
    alone = tuple(rule for rule in STACK_RULES if rule is not hypernode_tree)
    listed = (
        *_documented((*CHECKS, pod_schema), ANY_MANIFEST),
        *_documented(KTHENA_RULES, MODEL_SERVING, prefix="kthena-"),
        *_documented(LWS_RULES, LWS),
        *_documented((*KSERVE_RULES, *LLM_RULES), KSERVE),
        *_documented(KAITO_RULES, KAITO),
        *_documented((*RAY_RULES, ray_serve_gpus), RAY),
        *_documented(BOOSTER_RULES, BOOSTER),
        *_documented(VLLM_STACK_RULES, VLLM_STACK),
        *_documented(RBG_RULES, RBG),
        *_documented(GROVE_RULES, GROVE),
        *_documented(DYNAMO_RULES, DYNAMO),
        *_documented((*chain(*VOLCANO_RULES.values()), *TOPOLOGY_RULES), VOLCANO),
        *_written(MANIFEST_DOCS, VOLCANO),
        *_documented(TREE_RULES, WHOLE),
        *_documented((*alone, *ASKED_RULES), WHOLE),
        *_documented(chain(*CHANGE_RULES.values()), CHANGES),
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
    """Give the names of all rules."""
    return frozenset(rule.name for rule in all_rules())


@cache
def stack_rule_names() -> frozenset[str]:
    """Give the names of the rules that one object alone is not enough for."""
    return frozenset(rule.name for rule in all_rules() if rule.judges in {WHOLE, CHANGES})


def _documented(
    rules: Iterable[Callable[..., Any]], judges: str, prefix: str = ""
) -> list[RuleDoc]:
    return [
        read_docstring(inspect.getdoc(rule) or "", name=f"{prefix}{name}", judges=judges)
        for rule in rules
        for name in (_NAMES.get(rule.__name__) if not prefix else None) or (rule_name(rule),)
    ]


def _written(docs: Mapping[str, str], judges: str) -> list[RuleDoc]:
    return [read_docstring(text, name=name, judges=judges) for name, text in docs.items()]
