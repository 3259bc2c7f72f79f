"""Prints the list of rules, and the documentation of one rule."""

from tabulate import tabulate

from kthena_components.checker.catalogue import BRANCH, RuleDoc, all_rules
from kthena_components.checker.levels import ENVIRONMENTS, environment_levels
from kthena_components.core.findings import Level, nearest


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
