"""Cases of rules, read from files: see README.md beside this one."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import yaml

from kthena_components.checker.check_cluster_objects import check_split_engines
from kthena_components.checker.cluster_rules import compare_objects, without_contrary
from kthena_components.checker.manifest import check_manifest, read_demand, read_ports
from kthena_components.checker.members import read_engine_part_of
from kthena_components.checker.update_rules import check_change
from kthena_components.compiler.compile import compile_serving
from kthena_components.core.facts.context import Context, ReferencedObjects, gather
from kthena_components.core.facts.pod_policies_and_sharing import LimitRanges, PodPolicies
from kthena_components.core.findings import Finding, Level, SpecError
from kthena_components.core.objects.object import read_object
from kthena_components.core.rules.production import PRODUCTION_NAMES
from kthena_components.core.values.unknown import OUTPUT_CLOSE, OUTPUT_OPEN
from kthena_components.systems import COMPLETING, NAMED_BY
from tests.support.specs import REMOVED, changed

TESTS = Path(__file__).parents[1]
TODAY = date(2026, 6, 30)
"""The day by which waivers are judged."""
KINDS = ("pass", "fail", "boundary", "unknown", "foreign")
_OF_ALL = ("base", "budget", "gpu_types", "versions")
"""Fields that a file may give once, for all its cases."""
_FIELDS = {*_OF_ALL, "before", "set", "says", "level", "times", "by", "none"}


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
    gpu_types: list[str] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    """Releases that the cluster runs, by system."""
    says: str | None = None
    level: str | None = None
    times: int = 1
    """How many findings the rule reports, where it reports one."""
    by: str | None = None
    none: str | None = None

    def findings(self) -> list[Finding]:
        """Give what every rule there is says of the input. It is checked once in a process."""
        return [*self._found]

    @cached_property
    def _found(self) -> list[Finding]:
        return self.judge(self.input())

    def input(self) -> dict[str, Any]:
        """Give the object, the arguments, or the documents by name."""
        return given(self.base, self.set)

    def judge(self, tree: dict[str, Any]) -> list[Finding]:
        """Check an input in place of the case's own."""
        if self.before is not None:
            (body,) = documents(self.base)
            return check_change(changed(body, self.before), tree)
        asked = {"budget": self.budget, "gpu_types": self.gpu_types, "versions": self.versions}
        return check_input(self.base, tree, **asked)

    @property
    def weight(self) -> Level:
        """The level that a finding must have."""
        usual = Level.UNKNOWN if self.kind == "unknown" else Level.MANDATORY
        return usual if self.level is None else Level(self.level)


class _Loader(yaml.CSafeLoader):
    """YAML with the two values that no file can write."""


_Loader.add_constructor("!unknown", lambda _, node: f"{node.value}{OUTPUT_OPEN}7{OUTPUT_CLOSE}")
_Loader.add_constructor("!gone", lambda _loader, _node: REMOVED)


def given(base: str, changes: dict[str, Any]) -> dict[str, Any]:
    """Give a base with some fields changed; one of several documents as a map of them by name."""
    found = documents(base)
    if len(found) > 1:
        found = [{str(body.get("metadata", body).get("name")): body for body in found}]
    return changed(found[0], changes)


def judge(base: str, changes: dict[str, Any], **asked: Any) -> list[Finding]:
    """Check a base with some fields changed."""
    return check_input(base, given(base, changes), **asked)


def check_input(base: str, body: dict[str, Any], **asked: Any) -> list[Finding]:
    """Check an input as what its base is: manifest, stack or arguments of a component."""
    if len(documents(base)) > 1:
        return check_objects_together(body, **asked)
    if "apiVersion" in body:
        return check_manifest(
            body, today=TODAY, versions=asked.get("versions", {}), asked=PRODUCTION_NAMES
        )
    try:
        return list(compile_serving(body, today=TODAY).findings)
    except SpecError as error:
        return list(error.findings)


def check_objects_together(named: dict[str, Any], **asked: Any) -> list[Finding]:
    bodies = list(named.values())
    around, limits = PodPolicies(complete=True), LimitRanges()
    claims = ReferencedObjects(COMPLETING, NAMED_BY)
    for body in bodies:
        around.add(body)
        limits.add(body)
        claims.add(body)
    context = Context(
        config_maps=gather(bodies), pod_policies=around, limits=limits, referenced=claims
    )
    given = {"context": context, "versions": asked.get("versions", {})}
    given["asked"] = PRODUCTION_NAMES
    alone = [f for name, body in named.items() for f in check_manifest(body, name, **given)]
    held = {i: held for i, body in enumerate(bodies) if (held := read_demand(body))}
    parts = [part for name, body in named.items() if (part := read_engine_part_of(body, name))]
    split = check_split_engines(parts, named)
    objects = (read_object(body, name, context) for name, body in named.items())
    ports = dict(enumerate(map(read_ports, objects)))
    compared = compare_objects(bodies, list(named), held=held, ports=ports, **asked)
    return [*alone, *without_contrary([*split, *compared], named)]


@cache
def bases() -> dict[str, Path]:
    """Find the files of bases by name: beside the cases of the system that has the kind."""
    return _by_name("bases")


@cache
def case_files() -> dict[str, Path]:
    """Find the files of cases by the name of the rule: in the folder that mirrors its module."""
    return _by_name("cases")


def _by_name(folder: str) -> dict[str, Path]:
    found = sorted(TESTS.glob(f"**/{folder}/*.yaml"))
    named = {path.stem: path for path in found}
    assert len(named) == len(found), f"two files of {folder} have one name"
    return named


@cache
def documents(name: str) -> list[dict[str, Any]]:
    """Read the documents of a base."""
    return list(yaml.load_all(bases()[name].read_text(), _Loader))


def check_update(base: str, before: dict[str, Any], changes: dict[str, Any]) -> list[Finding]:
    """Check what an update would make of a base that was different before."""
    (body,) = documents(base)
    return check_change(changed(body, before), changed(body, changes))


@cache
def read_cases(rule: str) -> tuple[Case, ...]:
    """Read the cases of a rule; none where it has no file."""
    return tuple(_read_cases(rule))


def _read_cases(rule: str) -> Iterator[Case]:
    path = case_files().get(rule)
    if path is None:
        return
    stated = yaml.load(path.read_text(), _Loader)  # noqa: S506 - safe, with two more tags
    of_all = {name: stated.pop(name) for name in _OF_ALL if name in stated}
    for kind, cases in stated.items():
        for number, case in enumerate(cases if isinstance(cases, list) else [cases]):
            assert kind in KINDS, f"{path.name}: {kind}"
            assert case.keys() <= _FIELDS, f"{path.name}: {kind}: {case}"
            yield Case(rule=rule, kind=kind, number=number, **{"base": "", **of_all, **case})
