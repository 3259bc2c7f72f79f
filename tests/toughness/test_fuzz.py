"""Nothing that is drawn is a fault: a fortieth of what conformance draws.

Each field of each manifest also gets some of the odd values.

See targets.py for what is fed with what, and fuzz.py for what is looked at.
"""

import random
import subprocess
import sys
from collections import defaultdict
from functools import cache, partial
from typing import Any

import pytest
from pulumi_policy.proxy import unknown_checking_proxy

from kthena_components.checker.cluster_rules import compare_objects
from kthena_components.checker.manifest import check_manifest, read_ports
from kthena_components.compiler.compile import compile_serving
from kthena_components.core.findings import Finding, Level, SpecError
from kthena_components.core.objects.cluster_objects import Ports
from kthena_components.core.objects.object import read_object
from kthena_components.policies import resource_checks
from kthena_components.policies.secret_marks_and_stack_gpu import plain
from kthena_components.systems.native.facts import read_group
from tests.rules.cases import bases as bases_by_name
from tests.rules.cases import documents
from tests.support.engine import ROOT
from tests.support.specs import ENGINE_RAY, GUIDE, PREFILL_DECODE
from tests.toughness.corpus import LATE, ODD, Place, bases, cut, damaged, goldens, places, put
from tests.toughness.guard import SEED, TOTALS, check

FIRST, NEXT = 6, 2
"""Odd values that a field gets in the first manifest that has it, and in the next ones."""
OTHERS = tuple(value for value in ODD if value is not LATE)
"""Values that are shared out: another test tries a late value in each field."""
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
    in_order = [*bases().values()]
    for number in range(500):
        draw = random.Random(f"{SEED}-stack-{number}")
        bodies = [damaged(draw) if draw.randrange(3) == 0 else body for body in bases().values()]
        paths = [f"[{i}]" for i in range(len(bodies))]
        kept = {i: ports for i, ports in enumerate(ports_of_bases()) if bodies[i] is in_order[i]}
        check(number, partial(compare_objects, bodies, paths, ports=kept))
        read_group(bodies, paths)


def ports_of(body: dict[str, Any]) -> Ports:
    """Read where pods listen, which `check` reads once for an object and its neighbours."""
    return read_ports(read_object(body))


@cache
def ports_of_bases() -> list[Ports]:
    return list(map(ports_of, bases().values()))


def test_every_field_of_objects_that_belong_together_may_hold_anything() -> None:
    """A name that is a mapping can be no key of a table, though rules look others up by it."""
    for name in bases_by_name():
        bodies = documents(name)
        ports = dict(enumerate(map(ports_of, bodies)))
        for index, body in enumerate(bodies) if len(bodies) > 1 else ():
            for number, place in enumerate(fields(body)):
                for value in ({"": {"": ""}}, [[]], *ODD[number % 10 :: 10]):
                    others = [*bodies[:index], put(body, place, value), *bodies[index + 1 :]]
                    kept = {i: each for i, each in ports.items() if i != index}
                    judge = partial(compare_objects, others, complete=True, ports=kept)
                    check((name, place), judge)


@pytest.mark.parametrize("name", EVERYTHING)
def test_every_field_of_every_manifest_may_hold_anything(name: str) -> None:
    body = EVERYTHING[name]
    for place in fields(body):
        check((name, place), partial(check_manifest, cut(body, place)))
        for value in shares()[name, place]:
            check((name, place, value), partial(check_manifest, put(body, place, value)))


def test_every_odd_value_is_tried_in_every_field_that_many_manifests_have() -> None:
    tried: dict[Place, list[Any]] = defaultdict(list)
    for (name, place), values in shares().items():
        tried[alike(EVERYTHING[name], place)] += values
    few = [kind for kind, values in tried.items() if len(values) < FIRST]
    # By identity: NaN equals nothing, and True equals 1.
    again = [
        kind
        for kind, values in tried.items()
        if len({*map(id, values)}) < min(len(values), len(OTHERS))
    ]
    assert (few, again) == ([], [])


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


@cache
def shares() -> dict[tuple[str, Place], list[Any]]:
    """Share the odd values out among the fields of all manifests.

    The same field of the same kind gets other values in each manifest until it had all, and then
    one for what is beside it there.
    """
    found: dict[tuple[str, Place], list[Any]] = {}
    turns: dict[Place, tuple[int, int]] = {}  # the first value, and how many were tried
    for name, body in EVERYTHING.items():
        for place in fields(body):
            first, tried = turns.get(field := alike(body, place), (FIRST * len(turns), 0))
            many = 1 if tried >= len(OTHERS) else NEXT if tried else FIRST
            start = first + tried
            found[name, place] = [OTHERS[turn % len(OTHERS)] for turn in range(start, start + many)]
            turns[field] = first, tried + many
    return found


def alike(body: dict[str, Any], place: Place) -> Place:
    """Name a field without the positions in lists, the same for all objects of its kind."""
    steps = ("*" if isinstance(step, int) else step for step in place)
    return (str(body.get("apiVersion")), str(body.get("kind")), *steps)


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
