"""Cases of rules, read from files: see README.md beside this one."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from kthena_components.backends.compiler import compile_serving
from kthena_components.backends.readers import judge_manifest
from kthena_components.core.checks.changes import judge_change
from kthena_components.core.checks.whole_stack import judge_stack
from kthena_components.core.findings import Finding, Level, SpecError
from kthena_components.core.known import LATE_CLOSE, LATE_OPEN
from tests.support.specs import REMOVED, changed

HERE = Path(__file__).parent
KINDS = ("pass", "fail", "boundary", "unknown", "foreign")
_FIELDS = {"base", "before", "set", "budget", "says", "level", "by", "none"}
_OF_ALL = ("base", "budget")
"""Fields that a file may give once, for all its cases."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One input, and what the rule says about it."""

    rule: str
    kind: str
    number: int
    """Its place among the cases of its kind."""
    base: str
    before: dict[str, Any] | None = None
    """Fields of the base as they were, for a rule about an update."""
    set: dict[str, Any] = field(default_factory=dict)
    budget: int | None = None
    says: str | None = None
    level: str | None = None
    by: str | None = None
    none: str | None = None

    def findings(self) -> list[Finding]:
        """Judge the input by every rule there is."""
        if self.before is not None:
            return judge_update(self.base, self.before, self.set)
        return judge(self.base, self.set, self.budget)

    @property
    def weight(self) -> Level:
        """The level that a finding must have."""
        usual = Level.UNKNOWN if self.kind == "unknown" else Level.MANDATORY
        return usual if self.level is None else Level(self.level)


class _Loader(yaml.SafeLoader):
    """YAML with the two values that no file can write."""


_Loader.add_constructor("!unknown", lambda _, node: f"{node.value}{LATE_OPEN}7{LATE_CLOSE}")
_Loader.add_constructor("!gone", lambda _loader, _node: REMOVED)


def judge(base: str, changes: dict[str, Any], budget: int | None = None) -> list[Finding]:
    """Judge a base with some fields changed, as what it is: manifest, stack or input."""
    named = {body.get("metadata", body).get("name"): body for body in documents(base)}
    if len(named) > 1:
        return _judge_stack(changed(named, changes), budget)
    body = changed(documents(base)[0], changes)
    if "apiVersion" in body:
        return judge_manifest(body)
    try:
        return list(compile_serving(body).findings)
    except SpecError as error:
        return list(error.findings)


def _judge_stack(named: dict[str, Any], budget: int | None) -> list[Finding]:
    alone = [f for name, body in named.items() for f in judge_manifest(body, name)]
    return [*alone, *judge_stack(list(named.values()), list(named), budget=budget)]


@cache
def documents(name: str) -> list[dict[str, Any]]:
    """Read the documents of a base."""
    return list(yaml.load_all((HERE / "bases" / f"{name}.yaml").read_text(), _Loader))


def judge_update(base: str, before: dict[str, Any], changes: dict[str, Any]) -> list[Finding]:
    """Judge what an update would make of a base that was different before."""
    (body,) = documents(base)
    return judge_change(changed(body, before), changed(body, changes))


def read_cases(rule: str) -> Iterator[Case]:
    """Read the cases of a rule; none where it has no file."""
    path = HERE / "cases" / f"{rule}.yaml"
    if not path.exists():
        return
    stated = yaml.load(path.read_text(), _Loader)  # noqa: S506 - safe, with two more tags
    of_all = {name: stated.pop(name) for name in _OF_ALL if name in stated}
    for kind, cases in stated.items():
        for number, case in enumerate(cases if isinstance(cases, list) else [cases]):
            assert kind in KINDS, f"{path.name}: {kind}"
            assert case.keys() <= _FIELDS, f"{path.name}: {kind}: {case}"
            yield Case(rule=rule, kind=kind, number=number, **{"base": "", **of_all, **case})
