"""Writes docs/policies.md from the rules' docstrings: `python -m kthena_components.cli.docs`."""

import sys
from itertools import groupby

from kthena_components.core.checks.catalogue import (
    ANY_MANIFEST,
    INPUT,
    WAIVERS,
    WHOLE,
    RuleDoc,
    all_rules,
)

_HEAD = """# Rules

Every finding ends with the name of its rule in brackets. `kthena-components check --explain RULE`
prints the same text, and `--level` changes how much a rule weighs. The levels of dev, staging and
prod are in `kthena_components/core/levels.json`.

<!-- Written by `make policies-docs` from the rules' docstrings. Change it there. -->
"""
_TITLES = {
    ANY_MANIFEST: "Any serving, whoever wrote it",
    WHOLE: "All objects of a cluster",
    WAIVERS: "Waivers",
    INPUT: "What components and stacks are given",
}


def render() -> str:
    """Write the page."""
    parts = [_HEAD]
    for judges, group in groupby(all_rules(), key=lambda rule: rule.judges):
        rules = list(group)
        rows = [
            f"| [{rule.name}](#{rule.name}) | {rule.level} | {rule.summary} |" for rule in rules
        ]
        table = "\n".join(["| rule | level | what holds |", "|---|---|---|", *rows])
        parts += [f"## {_TITLES.get(judges, judges)}\n\n{table}\n", *map(_section, rules)]
    return "\n".join(parts)


def _section(rule: RuleDoc) -> str:
    facts = [f"- {'Pass' if case.passes else 'Fail'}: {case.text}" for case in rule.examples]
    facts += [f"- Source: {source}" for source in rule.sources]
    parts = [f"### {rule.name}", rule.summary, rule.body, "\n".join(facts)]
    return "\n\n".join(part for part in parts if part) + "\n"


if __name__ == "__main__":
    sys.stdout.write(render())
