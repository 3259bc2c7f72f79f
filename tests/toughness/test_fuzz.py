"""Nothing that is drawn is a fault: a fortieth of what conformance draws.

Each field of each manifest also gets some of the odd values.

See targets.py for what is fed with what, and fuzz.py for what is looked at.
"""

import random
import subprocess
import sys
from functools import partial
from typing import Any

import pytest
from pulumi_policy.proxy import unknown_checking_proxy

from kthena_components.checker.cluster_rules import compare_objects
from kthena_components.checker.manifest import check_manifest
from kthena_components.compiler.compile import compile_serving
from kthena_components.core.findings import Finding, Level, SpecError
from kthena_components.policies import resource_checks
from kthena_components.policies.secrets_and_stack_gpu import plain
from kthena_components.systems.native.facts import read_group
from tests.rules.cases import bases as bases_by_name
from tests.rules.cases import documents
from tests.support.engine import ROOT
from tests.support.specs import ENGINE_RAY, GUIDE, PREFILL_DECODE
from tests.toughness.corpus import LATE, ODD, Place, bases, cut, damaged, goldens, places, put
from tests.toughness.guard import SEED, TOTALS, check

HIDDEN = 5_000
"""Manifests that are checked as Pulumi hands them to a policy."""
EVERYTHING = {**bases(), **goldens()}
pytestmark = pytest.mark.property


@pytest.mark.parametrize("target", TOTALS)
def test_nothing_that_is_drawn_is_a_fault(target: str) -> None:
    command = [sys.executable, "-m", "tests.toughness.fuzz", target, "0"]
    some = str(TOTALS[target] // 40)
    done = subprocess.run([*command, some], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"


def type_of(body: dict[str, Any]) -> str:
    version, kind = str(body.get("apiVersion")), str(body.get("kind"))
    return f"kubernetes:{'core/' if version == 'v1' else ''}{version}:{kind}"


def test_no_damaged_resource_makes_a_policy_raise_or_hang() -> None:
    for number in range(HIDDEN):
        body = damaged(random.Random(f"{SEED}-{number}"))
        hidden = plain(unknown_checking_proxy(body))
        check(number, partial(resource_checks.check_resource, type_of(body), hidden))


def test_no_stack_of_damaged_manifests_makes_a_rule_raise_or_hang() -> None:
    for number in range(500):
        draw = random.Random(f"{SEED}-stack-{number}")
        bodies = [damaged(draw) if draw.randrange(3) == 0 else body for body in bases().values()]
        paths = [f"[{i}]" for i in range(len(bodies))]
        check(number, partial(compare_objects, bodies, paths))
        read_group(bodies, paths)


def test_every_field_of_objects_that_belong_together_may_hold_anything() -> None:
    """A name that is a mapping can be no key of a table, though rules look others up by it."""
    for name in bases_by_name():
        bodies = documents(name)
        for index, body in enumerate(bodies) if len(bodies) > 1 else ():
            for number, place in enumerate(fields(body)):
                for value in ({"": {"": ""}}, [[]], *ODD[number % 10 :: 10]):
                    others = [*bodies[:index], put(body, place, value), *bodies[index + 1 :]]
                    check((name, place), partial(compare_objects, others, complete=True))


@pytest.mark.parametrize("name", EVERYTHING)
def test_every_field_of_every_manifest_may_hold_anything(name: str) -> None:
    body = EVERYTHING[name]
    share = 5 if name in bases() else 10
    for number, place in enumerate(fields(body)):
        check((name, place), partial(check_manifest, cut(body, place)))
        for value in ODD[number % share :: share]:  # fields of neighbours get the others
            check((name, place, value), partial(check_manifest, put(body, place, value)))


@pytest.mark.parametrize("name", EVERYTHING)
def test_an_unknown_value_in_any_field_refuses_nothing(name: str) -> None:
    body = EVERYTHING[name]
    known = set(refused(check_manifest(body)))  # the guide of Kthena 0.1 has fields of 0.1
    for place in fields(body):
        found = check((name, place), partial(check_manifest, put(body, place, LATE)))
        assert set(refused(found)) <= known, place


@pytest.mark.parametrize("args", [GUIDE, ENGINE_RAY, PREFILL_DECODE], ids=["guide", "ray", "pd"])
def test_every_field_of_a_components_input_may_hold_anything(args: dict[str, Any]) -> None:
    for place in places(args):
        for value in ODD:
            check((place, value), partial(compiled, put(args, place, value)))


def refused(found: list[Finding]) -> list[str]:
    return [str(finding) for finding in found if finding.level is Level.MANDATORY]


def fields(body: dict[str, Any]) -> list[Place]:
    """Give every place but those that say of what kind the object is."""
    return [place for place in places(body) if place[0] not in {"apiVersion", "kind"}]


def compiled(args: dict[str, Any]) -> list[Finding]:
    try:
        return list(compile_serving(args).findings)
    except SpecError as error:
        return list(error.findings)
