"""What rules there are, read from the docstrings of the functions that are the rules.

A rule's docstring begins with one sentence that says what holds. Paragraphs may follow. Then
sections, each of which ends at the next one or at a blank line:

- `Pass:` and `Fail:` are short examples with numbers, as many as one likes;
- `Level:` is the level of its findings, mandatory where it is not stated;
- `Source:` says where the rule is from.

What is said at the edges, by readers of input and by what runs a stack, is documented in edges.py.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any

from kthena_components.core.checks import CHECKS, rule_name
from kthena_components.core.checks.changes import CHANGE_RULES
from kthena_components.core.checks.dynamo import RULES as DYNAMO_RULES
from kthena_components.core.checks.edges import EDGE_DOCS, INPUT_DOCS, MANIFEST_DOCS
from kthena_components.core.checks.grove import RULES as GROVE_RULES
from kthena_components.core.checks.kaito import RULES as KAITO_RULES
from kthena_components.core.checks.kserve import RULES as KSERVE_RULES
from kthena_components.core.checks.kthena_admission import RULES as KTHENA_RULES
from kthena_components.core.checks.llmisvc import RULES as LLM_RULES
from kthena_components.core.checks.lws import RULES as LWS_RULES
from kthena_components.core.checks.modelbooster import RULES as BOOSTER_RULES
from kthena_components.core.checks.pod_schema import pod_schema
from kthena_components.core.checks.ray import RULES as RAY_RULES
from kthena_components.core.checks.ray_serve import ray_serve_gpus
from kthena_components.core.checks.rbg import RULES as RBG_RULES
from kthena_components.core.checks.stack_topology import hypernode_tree
from kthena_components.core.checks.vllm_stack import RULES as VLLM_STACK_RULES
from kthena_components.core.checks.volcano_objects import RULES as VOLCANO_RULES
from kthena_components.core.checks.volcano_objects import TOPOLOGY_RULES
from kthena_components.core.checks.waivers import waiver
from kthena_components.core.checks.weakening import LEVEL_RULES
from kthena_components.core.checks.weakening import STACK_RULES as BRANCH_RULES
from kthena_components.core.checks.whole_stack import ASKED_RULES, STACK_RULES
from kthena_components.core.findings import Level
from kthena_components.core.role_rules import ROLE_RULES
from kthena_components.core.spec_rules import RULES as SPEC_RULES
from kthena_components.core.template_rules import template_scheduler
from kthena_components.core.topology_tree import TREE_RULES

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

_SECTION = re.compile(r"(Pass|Fail|Level|Source): *(.*)")
_NAMES = {
    "engine_launch": ("engine-launch", "data-parallel-layout"),
}
"""The names that findings carry, where a function's own name is not the only one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A case in a few words."""

    passes: bool
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleDoc:
    """The documentation of one rule."""

    name: str
    judges: str
    """What the rule is about: one of the words above."""
    summary: str
    """What holds, in one sentence."""
    body: str
    """Further paragraphs, with blank lines between them."""
    level: Level
    weighs: str
    """The level as its docstring says it: some rules have findings of two."""
    sources: tuple[str, ...]
    examples: tuple[Example, ...]


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


def read_docstring(text: str, *, name: str, judges: str) -> RuleDoc:
    """Read a rule's documentation from its docstring."""
    summary, *lines = text.splitlines() or [""]
    told: list[str] = []
    sections: list[tuple[str, list[str]]] = []
    inside = False
    for line in lines:
        begun = _SECTION.fullmatch(line)
        if begun:
            sections.append((begun[1], [begun[2]]))
        elif line and inside:
            sections[-1][1].append(line)
        else:
            told.append(line)
        inside = bool(begun) or (inside and bool(line))
    stated = [(kind, " ".join(" ".join(parts).split())) for kind, parts in sections]
    weighs = next((at for kind, at in stated if kind == "Level"), Level.MANDATORY.value)
    return RuleDoc(
        name=name,
        judges=judges,
        summary=summary,
        body=re.sub(r"\n{3,}", "\n\n", "\n".join(told)).strip(),
        level=_level(weighs),
        weighs=weighs.rstrip("."),
        sources=tuple(at for kind, at in stated if kind == "Source"),
        examples=tuple(
            Example(passes=kind == "Pass", text=at)
            for kind, at in stated
            if kind in {"Pass", "Fail"}
        ),
    )


def _level(text: str) -> Level:
    """Take the level from a line that may say more: `advisory, where no gang is asked for`."""
    word = re.split(r"[^a-z]", text, maxsplit=1)[0]
    return Level.UNKNOWN if word == "not" else Level(word)
