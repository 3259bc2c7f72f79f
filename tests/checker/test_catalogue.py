"""Every rule's docstring is its documentation."""

import ast
import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import kthena_components
from kthena_components.checker.catalogue import (
    ANY_MANIFEST,
    INPUT,
    Example,
    RuleDoc,
    all_rules,
    read_docstring,
    rule_names,
)
from kthena_components.checker.cluster_rules import only_together
from kthena_components.checker.input_and_stack_findings import EDGE_DOCS, INPUT_DOCS, MANIFEST_DOCS
from kthena_components.core.findings import Level, rule_name
from kthena_components.core.rules.production import PRODUCTION
from kthena_components.core.rules.registry import CHECKS
from kthena_components.core.spec.rules import engine_overlay_and_flags as role_rules
from kthena_components.core.spec.rules import gpu_model_image_adapter_amount as engine_rules
from kthena_components.core.spec.rules import roles_pods_gang_expose as spec_rules
from kthena_components.core.spec.rules import rollout as rollout_rules
from kthena_components.core.spec.rules import (
    startup_window_resource_claims_cache_grace_period as pod_rules,
)
from kthena_components.core.spec.rules import template_scheduler_labels_image as template_rules
from kthena_components.systems import all_systems
from tests.support.for_each import for_each

INPUT_RULES = (*(engine_rules, spec_rules, rollout_rules, role_rules, pod_rules, template_rules),)

ROOT = Path(kthena_components.__file__).parent
each_rule = for_each("rule", all_rules(), ids=lambda rule: rule.name)


def test_names_are_unique() -> None:
    assert [name for name, n in Counter(r.name for r in all_rules()).items() if n > 1] == []


def test_no_rule_over_one_object_gives_the_name_of_a_rule_over_all() -> None:
    """Findings of rules over all objects are then not among those of single objects."""
    kinds = [kind for system in all_systems() for kind in system.kinds]
    single: list[Callable[..., Any]] = [
        *CHECKS,
        *PRODUCTION,
        *(rule for kind in kinds for rule in kind.rules),
    ]
    texts = {Path(inspect.getfile(inspect.unwrap(rule))).read_text() for rule in single}
    assert only_together().isdisjoint(map(rule_name, single))
    assert [name for name in only_together() if any(f'"{name}"' in text for text in texts)] == []


@each_rule
def test_a_rule_says_in_a_sentence_what_holds(rule: RuleDoc) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*", rule.name)
    assert rule.summary.endswith(".")


@each_rule
def test_a_rule_has_a_source_and_says_what_passes_and_what_fails(rule: RuleDoc) -> None:
    assert rule.sources or not rule.module, "a rule of this package's own input is its own source"
    assert {example.passes for example in rule.examples} == {True, False}


@each_rule
def test_the_file_of_a_rule_is_the_one_that_gives_its_findings(rule: RuleDoc) -> None:
    text = (ROOT.parent / rule.file).read_text()
    assert rule.module or f'"{rule.name}"' in text


@for_each("rule", [r for r in all_rules() if r.subject == ANY_MANIFEST], ids=lambda rule: rule.name)
def test_the_cases_of_a_rule_about_anybodys_serving_have_numbers(rule: RuleDoc) -> None:
    assert all(re.search(r"\d", example.text) for example in rule.examples)


def test_the_names_of_rules_about_input_are_those_of_their_findings() -> None:
    """Some functions give findings of several names, or of another than their own."""
    stated = {
        name
        for module in INPUT_RULES
        for name in re.findall(r'rule="([a-z-]+)"', Path(module.__file__ or "").read_text())
    }
    named = {rule.name for rule in all_rules() if rule.subject == INPUT} - set(INPUT_DOCS)
    assert stated <= {rule.name for rule in all_rules()}
    assert named - stated == {
        *("engine-launch", "gpu-agrees", "kv-transfer-supported", "sglang-data-multi-node")
    }


NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")


def constants(tree: ast.Module) -> dict[str, str]:
    """Read the strings that a module gives a name, also several at once."""
    found: dict[str, str] = {}
    for node in tree.body:
        if not isinstance(node, ast.Assign):
            continue
        target, value = node.targets[0], node.value
        both = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
        pairs = zip(target.elts, value.elts, strict=True) if both else [(target, value)]  # type: ignore[attr-defined]
        for name, text in pairs:
            if isinstance(name, ast.Name) and isinstance(text, ast.Constant):
                found[name.id] = str(text.value)
    return found


def stated_rules(path: Path) -> Iterator[str]:
    """Find the names that a module gives findings: `rule=`, or `rule` of several at once."""
    tree = ast.parse(path.read_text())
    named = constants(tree)
    for node in ast.walk(tree):
        match node:
            case ast.keyword(arg="rule", value=ast.Constant(value=str(name))):
                yield name
            case ast.keyword(arg="rule", value=ast.Name(id=constant)) if constant in named:
                yield named[constant]
            case ast.Assign(targets=[ast.Name(id="rule")], value=ast.Constant(value=str(name))):
                yield name
            case ast.Assign(targets=[ast.Tuple(elts=parts)], value=ast.Tuple(elts=values)):
                for part, value in zip(parts, values, strict=False):
                    if getattr(part, "id", "") == "rule" and isinstance(value, ast.Constant):
                        yield str(value.value)
            case _:
                pass


MODULES = [*ROOT.rglob("*.py"), *(ROOT.parent / "policies").glob("*.py")]


def test_no_finding_has_a_name_outside_the_catalogue() -> None:
    stated = {name for path in MODULES for name in stated_rules(path)}
    assert len(stated) > 100, "the names are no longer found where they were"
    assert not stated - rule_names()


def test_what_is_documented_at_the_edges_is_what_is_said_there() -> None:
    """Each name is written in some module beside the one that documents it."""
    texts = [path.read_text() for path in MODULES if path.name != "edges.py"]
    for name in (*EDGE_DOCS, *INPUT_DOCS, *MANIFEST_DOCS):
        assert NAME.fullmatch(name)
        assert any(f'"{name}"' in text for text in texts), name


def test_sections_are_read_from_a_docstring() -> None:
    text = """All is well.

Because it is.

Pass: 1 of 1.
Pass: 2 of
2.
Fail: 1 of 2.
Level: advisory, as an example.
Source: here.
Code: there.py.

Further words.
"""
    assert read_docstring(text, name="well", subject=INPUT) == RuleDoc(
        name="well",
        subject=INPUT,
        summary="All is well.",
        body="Because it is.\n\nFurther words.",
        level=Level.ADVISORY,
        weighs="advisory, as an example",
        sources=("here.",),
        file="there.py",
        examples=(
            Example(passes=True, text="1 of 1."),
            Example(passes=True, text="2 of 2."),
            Example(passes=False, text="1 of 2."),
        ),
    )


_CITED = re.compile(r"(?:this package: )?(docs/[\w/-]+\.md), (.+?)\.?")


def test_a_source_in_the_documentation_names_a_heading_of_its_page() -> None:
    cited = {found.groups() for rule in all_rules() for one in rule.sources
             if (found := _CITED.fullmatch(one))}  # fmt: skip
    assert cited
    for page, heading in cited:
        headings = re.findall(r"^#+ (.*)$", (ROOT.parent / page).read_text(), re.MULTILINE)
        assert heading in headings, (page, heading)
