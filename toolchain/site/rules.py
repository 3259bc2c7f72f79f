"""Writes one page for each rule: what it requires, what fails, what the finding says."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import yaml

from kthena_components.checker.catalogue import RuleDoc, all_rules, shown_level
from kthena_components.checker.levels import ENVIRONMENTS, environment_levels
from kthena_components.core.findings import Finding
from tests.rules.cases import Case, read_cases
from toolchain.pages.rules import TITLES

_LONGEST = 120
"""Most lines of an example."""


def write_rules(site: Path) -> list[str]:
    """Write the pages of all rules, and return their paths in the site, the list first."""
    folder = site / "rules"
    folder.mkdir(parents=True)
    rules = all_rules()
    (folder / "index.md").write_text("\n".join(_index(rules)))
    for rule in rules:
        (folder / f"{rule.name}.md").write_text(page(rule))
    names = sorted(rule.name for rule in rules)
    return ["rules/index.md", *(f"rules/{name}.md" for name in names)]


def _index(rules: Sequence[RuleDoc]) -> Iterator[str]:
    yield "# Rules\n"
    yield (
        "Every finding ends with the name of its rule in brackets. `kthena-components check "
        "--explain RULE` prints the same text, and `--level` changes the level of a rule.\n"
    )
    for subject, group in groupby(rules, key=lambda rule: rule.subject):
        yield f"## {TITLES.get(subject, subject)}\n"
        yield "| rule | level | requirement |\n|---|---|---|"
        for rule in group:
            yield f"| [{rule.name}]({rule.name}.md) | {shown_level(rule)} | {rule.summary} |"
        yield ""


def page(rule: RuleDoc) -> str:
    """Write the page of one rule."""
    facts = [f"| level | {rule.weighs} |"]
    weights = {name: environment_levels(name).weights.get(rule.name) for name in ENVIRONMENTS}
    facts += [f"| level in {name} | {level} |" for name, level in weights.items() if level]
    facts += [f"| checks | {rule.subject} |"]
    facts += [f"| source | {source} |" for source in rule.sources]
    facts += [f"| code | `{rule.file}` |"] if rule.file else []
    parts = [
        f"# {rule.name}", rule.summary, rule.body,
        "\n".join([facts[0], "|---|---|", *facts[1:]]),
        *(f"- **{'Passes' if one.passes else 'Fails'}:** {one.text}" for one in rule.examples),
        *_example(rule),
        f"## Change its level\n\n```\nkthena-components check . --level {rule.name}=advisory\n```",
        "[Levels and waivers](../levels.md) has the other ways.",
    ]  # fmt: skip
    return "\n\n".join(part for part in parts if part) + "\n"


def _example(rule: RuleDoc) -> Iterator[str]:
    """Show the first input that fails, and the finding about it."""
    case = next((one for one in read_cases(rule.name) if one.kind == "fail"), None)
    if case is None or case.before is not None:
        return
    found = next((one for one in case.findings() if one.rule == rule.name), None)
    if found is None:
        return
    yield "## An example"
    yield _finding(found)
    yield from _input(case)


def _finding(found: Finding) -> str:
    return f"```text\n{found}\n```"


def _input(case: Case) -> Iterator[str]:
    """Show the fields that the finding is about, then the whole input, if it is not too long."""
    if case.set:
        yield "It is about these fields:"
        yield _yaml({path: value for path, value in case.set.items() if _plain(value)})
    whole = _yaml(case.input()) if _plain(case.input()) else ""
    if whole and whole.count("\n") <= _LONGEST:
        indented = "\n".join(f"    {line}" for line in whole.split("\n"))
        yield f'??? note "The whole input"\n\n{indented}'


def _yaml(value: object) -> str:
    return f"```yaml\n{yaml.safe_dump(value, sort_keys=False, width=100).rstrip()}\n```"


def _plain(value: Any) -> bool:
    """Return whether YAML can write a value: some cases hold values that are not known."""
    try:
        yaml.safe_dump(value)
    except yaml.YAMLError:
        return False
    return True
