"""No manifest makes a rule raise or hang: 20,000 damaged ones, and each field of each changed."""

import os
import random
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from pulumi_policy.proxy import unknown_checking_proxy

from kthena_components.backends.compiler import compile_serving
from kthena_components.backends.readers import judge_manifest
from kthena_components.backends.serving_groups import read_group
from kthena_components.core.checks.whole_stack import judge_stack
from kthena_components.core.findings import Finding, Level, SpecError
from policies import pack
from tests.support.specs import ENGINE_RAY, GUIDE, PREFILL_DECODE
from tests.toughness.corpus import LATE, ODD, Place, bases, cut, damaged, goldens, places, put

SEED = os.environ.get("FUZZ_SEED", "1")
DAMAGED = 20_000
SECONDS = 10
"""Processor time after which a judgement counts as hanging. Most take less than a millisecond."""
EVERYTHING = {**bases(), **goldens()}
pytestmark = pytest.mark.property


class HangError(Exception):
    """A judgement that does not end."""


@contextmanager
def no_hang() -> Iterator[None]:
    """End a judgement that uses up its processor time."""

    def stop(*_: object) -> None:
        raise HangError

    signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def check(what: object, judge: Callable[[], list[Finding]]) -> list[Finding]:
    """Judge, and say which input it was when something is wrong."""
    try:
        with no_hang():
            found = judge()
            for finding in found:
                assert str(finding)
                assert finding.rule != "rule-fault"
                assert finding.level in set(Level)
    except Exception as error:
        raise AssertionError(f"{what} (FUZZ_SEED={SEED}): {error!r}") from error
    return found


def type_of(body: dict[str, Any]) -> str:
    version, kind = str(body.get("apiVersion")), str(body.get("kind"))
    return f"kubernetes:{'core/' if version == 'v1' else ''}{version}:{kind}"


def test_no_damaged_manifest_makes_a_rule_raise_or_hang() -> None:
    for number in range(DAMAGED):
        body = damaged(random.Random(f"{SEED}-{number}"))
        check(number, partial(judge_manifest, body))
        if number % 4 == 0:
            hidden = unknown_checking_proxy(body)
            check(number, partial(pack.judge_resource, type_of(body), hidden))


def test_no_stack_of_damaged_manifests_makes_a_rule_raise_or_hang() -> None:
    for number in range(500):
        draw = random.Random(f"{SEED}-stack-{number}")
        bodies = [damaged(draw) if draw.randrange(3) == 0 else body for body in bases().values()]
        paths = [f"[{i}]" for i in range(len(bodies))]
        check(number, partial(judge_stack, bodies, paths))
        read_group(bodies, paths)


@pytest.mark.parametrize("name", EVERYTHING)
def test_every_field_of_every_manifest_may_hold_anything(name: str) -> None:
    body = EVERYTHING[name]
    odd = ODD if name in bases() else ODD[::5]
    for place in fields(body):
        check((name, place), partial(judge_manifest, cut(body, place)))
        for value in odd:
            check((name, place, value), partial(judge_manifest, put(body, place, value)))


@pytest.mark.parametrize("name", EVERYTHING)
def test_an_unknown_value_in_any_field_refuses_nothing(name: str) -> None:
    body = EVERYTHING[name]
    for place in fields(body):
        found = check((name, place), partial(judge_manifest, put(body, place, LATE)))
        assert [str(f) for f in found if f.level is Level.MANDATORY] == [], place


@pytest.mark.parametrize("args", [GUIDE, ENGINE_RAY, PREFILL_DECODE], ids=["guide", "ray", "pd"])
def test_every_field_of_a_components_input_may_hold_anything(args: dict[str, Any]) -> None:
    for place in places(args):
        for value in ODD:
            check((place, value), partial(compiled, put(args, place, value)))


def fields(body: dict[str, Any]) -> list[Place]:
    """Give every place but those that say of what kind the object is."""
    return [place for place in places(body) if place[0] not in {"apiVersion", "kind"}]


def compiled(args: dict[str, Any]) -> list[Finding]:
    try:
        return list(compile_serving(args).findings)
    except SpecError as error:
        return list(error.findings)
