"""Laws that hold for whatever a manifest contains."""

import copy
import math
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kthena_components.core.findings import Finding, Level, rule_name
from kthena_components.core.schema.versions import KTHENA_VERSIONS
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems.kthena.rules.entry_names_version_image_template import RULES
from tests.systems.kthena.test_rules_examples import (
    GONE,
    TIER_1,
    Manifest,
    check_serving,
    multi_node,
    put,
    role,
    serving,
)

LATE = "\ue0007\ue001"
WORDS = st.sampled_from(["prefill", "50%", "hard", "RoleRollingUpdate", "a b", LATE, "maxSurge"])
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    WORDS,
    st.just(Unknown("it is computed")),
)
TREES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text() | WORDS, inner, max_size=4)
    ),
    max_leaves=12,
)
ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    3,
    8.0,
    1.5,
    math.nan,
    10**400,
    "",
    "x" * 70,
    "50%",
    [],
    {},
    [[]],
    [{}],
]

BY_GROUPS = {
    "type": "ServingGroupRollingUpdate",
    "rollingUpdateConfiguration": {"maxUnavailable": "50%", "partition": 1},
}
FULL = serving(
    role("prefill", 2, 1, maxUnavailable=1),
    role("decode"),
    replicas=2,
    recoveryPolicy="RoleRecreate",
    rolloutStrategy={"type": "RoleRollingUpdate"},
    plugins=[{"name": "a", "type": "BuiltIn", "scope": {"roles": ["prefill"]}}],
    template={
        "gangPolicy": {"minRoleReplicas": {"prefill": 1, "decode": 1}},
        "networkTopology": {"groupPolicy": TIER_1},
    },
)
GROUPED = serving(role("prefill", 2, 1), replicas=2, rolloutStrategy=BY_GROUPS)
VALID = [FULL, GROUPED, multi_node("llama-405b")]


def places(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """List the paths of everything in a manifest."""
    inside = dict(enumerate(value)) if isinstance(value, list) else value
    for key, item in inside.items() if isinstance(inside, dict) else ():
        yield (*path, str(key))
        yield from places(item, (*path, str(key)))


def changed(manifest: Manifest, path: tuple[str, ...], value: Any) -> Manifest:
    """Copy a manifest with another value at a path."""
    copied = copy.deepcopy(manifest)
    put(copied, list(path), value)
    return copied


CASES = [(manifest, path) for manifest in VALID for path in places(manifest)]


def is_readable(finding: Finding) -> bool:
    """Tell whether a finding is one line of bearable length."""
    return "\n" not in finding.seen + finding.remedy and len(str(finding)) < 1500


@pytest.mark.property
@settings(deadline=None, max_examples=200)
@given(tree=TREES, version=st.sampled_from(KTHENA_VERSIONS))
def test_no_manifest_makes_a_rule_raise(tree: Any, version: str) -> None:
    assert all(map(is_readable, check_serving(tree, version)))


@pytest.mark.property
@settings(deadline=None, max_examples=200)
@given(
    changes=st.lists(st.tuples(st.sampled_from(CASES), TREES), min_size=1, max_size=3),
    version=st.sampled_from(KTHENA_VERSIONS),
)
def test_no_change_to_a_valid_manifest_makes_a_rule_raise(
    changes: list[tuple[tuple[Manifest, tuple[str, ...]], Any]], version: str
) -> None:
    (manifest, path), value = changes[0]
    odd = changed(manifest, path, value)
    for (_, other), more in changes[1:]:
        try:
            odd = changed(odd, other, more)
        except (KeyError, IndexError, ValueError, TypeError, AttributeError):
            continue  # The first change took the place of the second away.
    assert all(map(is_readable, check_serving(odd, version)))


# A rule that joins fields speaks where it is easiest to correct.
ELSEWHERE = {
    r"metadata\.generateName.*": r"metadata\.name",
    r"spec(\.template(\.roles.*)?)?": r"metadata\.name|spec\.template\.(roles|gangPolicy).*",
    r"spec\.replicas": r"metadata\.name|spec\.rolloutStrategy\.rolling.*",
    r"spec\.(recoveryPolicy|rolloutStrategy.*)": r"spec\.(rolloutStrategy|template\.roles).*",
    r"spec\.template\.gangPolicy.*": r"spec\.template\.networkTopology",
}


def is_near(change: str, finding: str) -> bool:
    """Tell whether a finding's path belongs to a change's path."""
    if change.startswith(finding) or finding.startswith(change):
        return True
    siblings = change.rpartition("[")[0]  # A list with keys compares its members.
    if siblings and finding.startswith(f"{siblings}["):
        return True
    related = (e for c, e in ELSEWHERE.items() if re.fullmatch(c, change))
    return any(re.fullmatch(pattern, finding) for pattern in related)


@pytest.mark.parametrize("version", [KTHENA_VERSIONS[0], KTHENA_VERSIONS[-1]])
def test_a_single_change_is_found_where_it_was_made(version: str) -> None:
    for manifest, path in CASES:
        before = set(check_serving(manifest, version))
        change = re.sub(r"\.(\d+)", r"[\1]", ".".join(path))
        for value in (*ODD, GONE):
            after = check_serving(changed(manifest, path, value), version)
            for finding in after:
                assert finding in before or is_near(change, finding.path), (change, str(finding))


@pytest.mark.parametrize("version", KTHENA_VERSIONS)
@pytest.mark.parametrize("value", [LATE, f"x-{LATE}", Unknown("it is computed")])
def test_what_is_not_known_never_adds_a_refusal(value: Any, version: str) -> None:
    for manifest, path in CASES:
        before = {(f.rule, f.path) for f in check_serving(manifest, version)}
        found = check_serving(changed(manifest, path, value), version)
        new = [f for f in found if (f.rule, f.path) not in before]
        assert all(f.level is Level.UNKNOWN for f in new), (path, [str(f) for f in new])
        said = [(f.rule, f.path) for f in found if f.level is Level.UNKNOWN]
        assert len(said) == len(set(said))


def test_checking_changes_nothing() -> None:
    manifest = copy.deepcopy(FULL)
    check_serving(manifest)
    assert manifest == FULL


def test_lists_may_be_tuples() -> None:
    manifest = changed(
        FULL, ("spec", "template", "roles"), tuple(FULL["spec"]["template"]["roles"])
    )
    assert check_serving(manifest) == check_serving(FULL) == []


def deep(levels: int) -> Any:
    """Nest a map so deep that recursion over it would fail."""
    tree: Any = {}
    for _ in range(levels):
        tree = {"a": [tree]}
    return tree


@pytest.mark.parametrize("path", [(), ("spec",), ("spec", "plugins", 0, "config")])
def test_deep_nesting_is_not_descended_into(path: tuple[Any, ...]) -> None:
    manifest: Any = {"": copy.deepcopy(FULL)}
    place: Any = manifest
    for key in ("", *path)[:-1]:
        place = place[key]
    place[("", *path)[-1]] = deep(100_000)
    assert all(map(is_readable, check_serving(manifest[""])))


def large(size: int) -> Manifest:
    """Make a manifest that is large in every dimension at once."""
    containers = [{"name": f"c{i % 7}", "image": "a b", "env": []} for i in range(size)]
    manifest = serving(*({"name": f"r{i}"} for i in range(size)), name="a" * size)
    manifest["spec"] |= {f"field{i}": i for i in range(size)} | {"x" * size: "x" * size}
    template = manifest["spec"]["template"]
    template["roles"][0] |= {"entryTemplate": {"spec": {"containers": containers}}}
    template["roles"][0] |= {"name": "r" * size, "workerReplicas": 1, "replicas": "9" * size}
    template["roles"][1] |= {"workerReplicas": 1, "maxUnavailable": "0" * size}
    template["gangPolicy"] = {"minRoleReplicas": {f"g{i}": i for i in range(size)}}
    return manifest


def test_the_work_is_linear_in_the_manifest() -> None:
    check_serving(large(10))

    def cost(size: int) -> float:
        manifest = large(size)
        start = time.process_time()
        found = check_serving(manifest)
        assert sum(len(str(f)) for f in found) < 2000 * size
        return time.process_time() - start

    # A quadratic rule would cost 64 times as much.
    assert cost(4_000) < 24 * max(cost(500), 0.01)


def test_every_rule_is_documented_with_its_source() -> None:
    for rule in RULES:
        assert rule.__doc__
        assert "Source: " in rule.__doc__


def test_every_rule_has_a_name_of_its_own() -> None:
    names = list(map(rule_name, RULES))
    assert len(set(names)) == len(RULES)
    broken = changed(FULL, ("spec", "template", "roles", "1", "name"), "prefill")
    told = {f.rule for version in KTHENA_VERSIONS for f in check_serving(broken, version)}
    assert told <= set(names)
