"""The rules as text: their list, and one of them in full."""

from tabulate import tabulate

from kthena_components.core.checks.catalogue import RuleDoc, all_rules
from kthena_components.core.findings import suggest


class UnknownRuleError(LookupError):
    """There is no rule of that name."""


def list_rules() -> str:
    """Write every rule in a line: its name, its level, what holds."""
    rows = [(rule.name, rule.level.value, rule.judges, rule.summary) for rule in all_rules()]
    return tabulate(rows, headers=("rule", "level", "judges", "what holds"), tablefmt="plain")


def find_rule(name: str) -> RuleDoc:
    """Find a rule by its name.

    Raises:
        UnknownRuleError: there is none; the text says which one was probably meant.
    """
    rules = {rule.name: rule for rule in all_rules()}
    if name not in rules:
        raise UnknownRuleError(f"there is no rule '{name}'; {suggest(name, rules)}")
    return rules[name]


def explain(rule: RuleDoc) -> str:
    """Write a rule's documentation."""
    facts = [f"level: {rule.level.value}", f"judges: {rule.judges}"]
    facts += [f"{'pass' if case.passes else 'fail'}: {case.text}" for case in rule.examples]
    facts += [f"source: {source}" for source in rule.sources]
    parts = [f"{rule.name}: {rule.summary}", rule.body, "\n".join(facts)]
    return "\n\n".join(part for part in parts if part)
