"""Cases of rules, read from files: see README.md beside this one."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from kthena_components.backends.compiler import compile_serving
from kthena_components.backends.readers import judge_manifest
from kthena_components.core.checks.whole_stack import judge_stack
from kthena_components.core.findings import Finding, SpecError
from kthena_components.core.known import LATE_CLOSE, LATE_OPEN
from tests.support.specs import REMOVED, changed

HERE = Path(__file__).parent
TODAY = date(2026, 6, 30)
"""The day by which waivers are judged."""
KINDS = ("pass", "fail", "boundary", "unknown", "foreign")
_FIELDS = {"base", "set", "says", "level", "none"}


@dataclass(frozen=True, kw_only=True)
class Case:
    """One input, and what the rule says about it."""

    rule: str
    kind: str
    number: int
    """Its place among the cases of its kind."""
    base: str
    set: dict[str, Any] = field(default_factory=dict)
    says: str | None = None
    level: str = "mandatory"
    none: str | None = None

    def findings(self) -> list[Finding]:
        """Judge the input, and give what this rule has to say."""
        return [finding for finding in judge(self.base, self.set) if finding.rule == self.rule]


class _Loader(yaml.SafeLoader):
    """YAML with the two values that no file can write."""


_Loader.add_constructor("!unknown", lambda _loader, _node: f"{LATE_OPEN}7{LATE_CLOSE}")
_Loader.add_constructor("!gone", lambda _loader, _node: REMOVED)


def judge(base: str, changes: dict[str, Any]) -> list[Finding]:
    """Judge a base with some fields changed, as what it is: manifest, stack or input."""
    found = documents(base)
    if len(found) > 1:
        bodies = changed({"stack": found}, {f"stack{at}": v for at, v in changes.items()})
        alone = [
            f for i, body in enumerate(bodies["stack"]) for f in judge_manifest(body, f"[{i}]")
        ]
        return [*alone, *judge_stack(bodies["stack"], [f"[{i}]" for i in range(len(found))])]
    body = changed(found[0], changes)
    if "apiVersion" in body:
        return judge_manifest(body, today=TODAY)
    try:
        return list(compile_serving(body, today=TODAY).findings)
    except SpecError as error:
        return list(error.findings)


@cache
def documents(name: str) -> list[dict[str, Any]]:
    """Read the documents of a base."""
    return list(yaml.load_all((HERE / "bases" / f"{name}.yaml").read_text(), _Loader))


def read_cases(rule: str) -> Iterator[Case]:
    """Read the cases of a rule; none where it has no file."""
    path = HERE / "cases" / f"{rule}.yaml"
    if not path.exists():
        return
    stated = yaml.load(path.read_text(), _Loader)  # noqa: S506 - safe, with two more tags
    base = stated.pop("base", "")
    for kind, cases in stated.items():
        for number, case in enumerate(cases if isinstance(cases, list) else [cases]):
            assert kind in KINDS, f"{path.name}: {kind}"
            assert case.keys() <= _FIELDS, f"{path.name}: {kind}: {case}"
            yield Case(rule=rule, kind=kind, number=number, **{"base": base, **case})
