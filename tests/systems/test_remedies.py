"""A remedy that names another backend: that backend does not refuse the same field."""

import re
from collections.abc import Iterator

import pytest

from kthena_components.core.findings import Finding
from kthena_components.systems import EMITTERS
from tests.support.for_each import for_each
from tests.support.refusals import judged
from tests.support.specs import ALL, Args, changed, example_for
from tests.systems.test_written import PROBES

_UPDATE = "rollout_strategy.rolling_update_configuration"
_NAMED = re.compile(r"backend: ([a-z]+(?:, [a-z]+)*(?: or [a-z]+)?)")
MORE: list[Args] = [
    {"rollout_strategy": {"type": "RoleRollingUpdate"}, "roles[0].max_unavailable": 1},
    {"gang_policy": {"min_role_replicas": {"decode": 1}}},
    {
        "roles[0].replicas": 2,
        "gang_policy": {"min_role_replicas": dict.fromkeys(("server", "decode", "leader"), 2)},
    },
    {"replicas": 3, _UPDATE: {"max_unavailable": 2, "max_surge": 1}},
    {"roles[0].resources.shm": "3Gi"},
    {"roles[0].startup_seconds": 30},
    {"roles[0].network": {"interface": "eth0"}},
    {"kthena_version": "0.4"},
]
"""What several backends reject, besides each argument alone."""


def refused(args: Args) -> list[Finding]:
    is_refused, findings = judged(args)
    return list(findings) if is_refused else []


def servings(backend: str, example: str) -> Iterator[Args]:
    base = example_for(backend, example)
    for changes in (*(each for probes in PROBES.values() for each in probes), *MORE):
        args = changed(base, changes)
        if args.get("expose") == {"role": None}:
            args["expose"] = {"role": args["roles"][0]["name"]}
        yield args


def named_in(remedy: str) -> list[str]:
    found = _NAMED.search(remedy)
    return re.split(", | or ", found[1]) if found else []


def again(found: Finding, args: Args, backend: str, known: set[tuple[str, str]]) -> list[str]:
    """Give what a backend says of the field that another one refuses, besides what was known."""
    moved = {key: value for key, value in args.items() if key != "backend_options"}
    return [
        str(each)
        for each in refused({**moved, "backend": backend})
        if each.path == found.path or each.path.startswith(f"{found.path}.")
        if each.rule == "backend-loss" or (each.path, each.rule) not in known
    ]


@pytest.mark.parametrize("backend", EMITTERS)
@for_each("example", ALL)
def test_a_backend_that_a_remedy_names_takes_the_field(backend: str, example: str) -> None:
    wrong, named = [], 0
    for args in servings(backend, example):
        findings = refused(args)
        known = {(each.path, each.rule) for each in findings}
        for found in (each for each in findings if each.path != "roles"):
            for other in named_in(found.remedy):
                named += 1
                wrong += [(str(found), other, each) for each in again(found, args, other, known)]
    assert wrong == []
    assert named or backend == "kthena"
