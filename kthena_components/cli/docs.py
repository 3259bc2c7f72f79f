"""Writes docs/policies.md from the rules' docstrings: `python -m kthena_components.cli.docs`."""

import sys
from itertools import groupby

from kthena_components.cli.rules import shown_level
from kthena_components.core.findings import Level
from kthena_components.core.rules.documentation import RuleDoc
from kthena_components.judge.catalogue import ANY_MANIFEST, EDGES, INPUT, WAIVERS, WHOLE, all_rules

_HEAD = """# Rules

Every finding ends with the name of its rule in brackets. `kthena-components check --explain RULE`
prints the same text, and `--level` changes how much a rule weighs. The levels of dev, staging and
prod are in `kthena_components/judge/levels.json`. What is wrong with the input of a component, or
of a stack, is refused whatever a level says.

<!-- Written by `make policies-docs` from the rules' docstrings. Change it there. -->
"""
_TITLES = {
    ANY_MANIFEST: "Any serving, whoever wrote it",
    WHOLE: "All objects of a cluster",
    WAIVERS: "Waivers",
    INPUT: "What components are given",
    EDGES: "Stacks, topologies and policies",
}


def render() -> str:
    """Write the page."""
    parts = [_HEAD]
    for judges, group in groupby(all_rules(), key=lambda rule: rule.judges):
        rules = list(group)
        rows = [
            f"| [{rule.name}](#{rule.name}) | {shown_level(rule)} | {rule.summary} |"
            for rule in rules
        ]
        table = "\n".join(["| rule | level | what holds |", "|---|---|---|", *rows])
        parts += [f"## {_TITLES.get(judges, judges)}\n\n{table}\n", *map(_section, rules)]
    return "\n".join(parts)


def _section(rule: RuleDoc) -> str:
    facts = [f"- Level: {rule.weighs}."] if rule.weighs not in set(Level) else []
    facts += [f"- {'Pass' if case.passes else 'Fail'}: {case.text}" for case in rule.examples]
    facts += [f"- Source: {source}" for source in rule.sources]
    parts = [f"### {rule.name}", rule.summary, rule.body, "\n".join(facts)]
    return "\n\n".join(part for part in parts if part) + "\n"


if __name__ == "__main__":
    sys.stdout.write(render())
