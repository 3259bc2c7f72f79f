"""The list of all rules, read from the docstrings of rule functions, and the text of one rule.

Each system lists the rules of its kinds. input_and_stack_findings.py documents the findings of
input readers and of the program of a stack.

The docstring of a rule starts with one sentence that states the rule. Paragraphs may follow. Then
sections, each of which ends at the next one or at a blank line:

- `Pass:` and `Fail:` are short examples with numbers, any number of them;
- `Level:` is the level of its findings, mandatory if left out;
- `Source:` names the source of the rule;
- `Code:` is the path of its code, for findings that no function of the catalogue makes.
"""

import inspect
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from tabulate import tabulate

from kthena_components.checker.cluster_rules import ASKED_RULES, OWN_RULES
from kthena_components.checker.crd_schema import SCHEMA_RULE, SCHEMA_RULES, crd_schema
from kthena_components.checker.input_and_stack_findings import (
    EDGE_DOCS,
    FOLDER_DOCS,
    INPUT_DOCS,
    MANIFEST_DOCS,
)
from kthena_components.checker.leader_selected import leader_selected
from kthena_components.checker.levels import ENVIRONMENTS, environment_levels
from kthena_components.checker.object_name_version_config_map import OF_KUBERNETES
from kthena_components.checker.pod_schema import pod_schema, pod_values
from kthena_components.checker.unread_kinds_and_parts import kind_read
from kthena_components.checker.update_rules import ANY_CHANGE
from kthena_components.checker.waivers import waiver
from kthena_components.checker.weakened_levels_limits_waivers import BRANCH_RULES, LEVEL_RULES
from kthena_components.core.engines.lmdeploy_and_tgi import LMDEPLOY, TGI
from kthena_components.core.engines.option_table import load
from kthena_components.core.findings import Level, nearest, rule_name
from kthena_components.core.rules.production import PRODUCTION
from kthena_components.core.rules.registry import CHECKS
from kthena_components.core.schema.pod import TABLE
from kthena_components.core.spec.fields import Spec
from kthena_components.core.spec.rules.engine_overlay_and_flags import ROLE_RULES
from kthena_components.core.spec.rules.roles_pods_gang_expose import SERVING_RULES
from kthena_components.core.spec.rules.template_scheduler_labels_image import template_scheduler
from kthena_components.core.topology.hypernode_tree import TREE_RULES
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.regex import regex
from kthena_components.systems import all_systems
from kthena_components.systems.volcano.rules.topology_tier_exists import hypernode_tree

_SECTION = regex(r"(Pass|Fail|Level|Source|Code): *(.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A passing or failing example."""

    passes: bool
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleDoc:
    """The documentation of one rule."""

    name: str
    subject: str
    """What the rule checks: the title of a group of rules."""
    summary: str
    """The rule in one sentence."""
    body: str
    """Further paragraphs, with blank lines between them."""
    level: Level
    weighs: str
    """The level as the docstring states it: some rules have two."""
    sources: tuple[str, ...]
    examples: tuple[Example, ...]
    module: str = ""
    """The module of the rule's function. Empty for findings that no function makes."""
    file: str = ""
    """Path of the rule's code in the repository."""

    @property
    def cases(self) -> str:
        """Path of the rule's cases in the repository: the folder of tests that mirrors its own."""
        package, _, folder = self.module.rpartition(".")[0].partition(".")
        if not package:
            return ""
        mirror = folder if folder == "core.rules" else folder.removesuffix(".rules")
        return f"tests/{mirror.replace('.', '/')}/cases/{self.name}.yaml"


def read_docstring(text: str, *, name: str, subject: str, module: str = "") -> RuleDoc:
    """Read a rule's documentation from its docstring."""
    summary, *lines = text.splitlines() or [""]
    shown_lines: list[str] = []
    sections: list[tuple[str, list[str]]] = []
    inside = False
    for line in lines:
        begun = _SECTION.fullmatch(line)
        if begun:
            sections.append((begun[1], [begun[2]]))
        elif line and inside:
            sections[-1][1].append(line)
        else:
            shown_lines.append(line)
        inside = bool(begun) or (inside and bool(line))
    stated = [(kind, " ".join(" ".join(parts).split())) for kind, parts in sections]
    weighs = next((at for kind, at in stated if kind == "Level"), Level.MANDATORY.value)
    code = next((at for kind, at in stated if kind == "Code"), f"{module.replace('.', '/')}.py")
    return RuleDoc(
        name=name,
        subject=subject,
        summary=summary,
        body=re.sub(r"\n{3,}", "\n\n", "\n".join(shown_lines)).strip(),
        level=_level(weighs),
        weighs=weighs.rstrip("."),
        sources=tuple(at for kind, at in stated if kind == "Source"),
        examples=tuple(
            Example(passes=kind == "Pass", text=at)
            for kind, at in stated
            if kind in {"Pass", "Fail"}
        ),
        module=module,
        file=code.rstrip("."),
    )


def _level(text: str) -> Level:
    """Read the level from a line that may contain more: `advisory, where no gang is asked for`."""
    word = re.split(r"[^a-z]", text, maxsplit=1)[0]
    return Level.UNKNOWN if word == "not" else Level(word)


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
    yield ANY_MANIFEST, (*CHECKS, *OF_KUBERNETES, pod_schema, pod_values, crd_schema, kind_read)
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
    """Read the documentation of rules; a function may document several names."""
    if isinstance(rules, Mapping):
        return [read_docstring(text, name=name, subject=subject) for name, text in rules.items()]
    return [
        read_docstring(inspect.getdoc(rule) or "", name=name, subject=subject, module=_place(rule))
        for rule in rules
        for name in _NAMES.get(rule.__name__) or (rule_name(rule),)
    ]


def _place(rule: Rule) -> str:
    """Return the module of a rule's function, with the name of its file if that is a package."""
    module = rule.__module__
    return f"{module}.__init__" if hasattr(sys.modules[module], "__path__") else module


_PROGRAMS = """
    && -- -c -ec -lc -m -u ; api_server bash env exec lmdeploy lmsysorg/sglang nohup python python3
    ray serve sglang sglang.launch_server sh start text-generation-launcher tini vllm
    vllm.entrypoints.openai.api_server vllm/vllm-openai |
"""
_ENGINES = ("ray", "sglang", "trtllm", "vllm")
"""Words that are never secret: of programs, and the engines whose options have a table.

The Kubernetes provider marks a whole list as secret if one value in it is, so `containers` with a
secret variable would have nothing to read. Names of fields, spellings of options and these words
stay visible (checker/secrecy.py). Numbers, names and all other values do not.
"""


@cache
def public_keys() -> frozenset[str]:
    """Return the names of fields of pods, of objects with pods, and of components' input."""
    kinds = (kind for system in all_systems() for kind in system.kinds)
    holders = (re.split(r"[][.]+", place) for kind in kinds for place in kind.templates)
    listed = {word for parts in holders for word in parts}
    of_pods = (name for kind in json.loads(TABLE.read_text()).values() for name in kind["fields"])
    return frozenset({*listed, *of_pods, *_fields(Spec)}) - {""}


@cache
def public_words() -> frozenset[str]:
    """Return the spellings of all options of all engines, and of programs that start them."""
    options = (spelling for engine in _ENGINES for spelling in load(engine).spellings)
    others = (spelling for dialect in (LMDEPLOY, TGI) for spelling in dialect.options)
    return frozenset({*_PROGRAMS.split(), *options, *others})


@cache
def rule_summary(name: str) -> str:
    """Return the summary of a rule, without its full stop; empty for an unknown rule."""
    return next((rule.summary for rule in all_rules() if rule.name == name), "").rstrip(".")


def _fields(spec: type[Spec]) -> Iterator[str]:
    yield from spec.model_fields
    for kind in spec.__subclasses__():
        yield from _fields(kind)


class UnknownRuleError(LookupError):
    """There is no rule with that name."""


def list_rules() -> str:
    """Write one line per rule: its name, its level, what it checks and what it requires."""
    rows = [(rule.name, shown_level(rule), rule.subject, rule.summary) for rule in all_rules()]
    return tabulate(rows, headers=("rule", "level", "checks", "requirement"), tablefmt="plain")


def shown_level(rule: RuleDoc) -> str:
    """Return the level of a rule as text."""
    return "not checked" if rule.level is Level.UNKNOWN else rule.level.value


def find_rule(name: str) -> RuleDoc:
    """Find a rule by its name.

    Raises:
        UnknownRuleError: There is no such rule. The text suggests a similar name.
    """
    rules = {rule.name: rule for rule in all_rules()}
    if name not in rules:
        close = nearest(name, rules)
        meant = f"write '{close}'" if close else "--rules lists all rules"
        raise UnknownRuleError(f"there is no rule '{name}'; {meant}")
    return rules[name]


def explain(rule: RuleDoc) -> str:
    """Write a rule's documentation."""
    facts = [f"level: {rule.weighs}", *_by_environment(rule), f"checks: {rule.subject}"]
    facts += [f"{'pass' if case.passes else 'fail'}: {case.text}" for case in rule.examples]
    facts += [f"source: {source}" for source in rule.sources]
    facts += [f"code: {rule.file}"]
    facts += [f"cases: {rule.cases}"] if rule.cases and rule.subject != BRANCH else []
    parts = [f"{rule.name}: {rule.summary}", rule.body, "\n".join(facts)]
    return "\n\n".join(part for part in parts if part)


def _by_environment(rule: RuleDoc) -> list[str]:
    weights = {name: environment_levels(name).weights.get(rule.name) for name in ENVIRONMENTS}
    weights_set = [f"{name} {weight}" for name, weight in weights.items() if weight is not None]
    return [f"environments: {', '.join(weights_set)}"] if weights_set else []
