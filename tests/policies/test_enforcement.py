"""What a config leads to is what the pack does with it."""

from collections.abc import Mapping
from itertools import product
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pulumi_policy import Policy, ResourceValidationArgs, StackValidationArgs

from kthena_components.checker.enforcement import ENFORCED, LED_BY, TOGETHER, read_pack
from kthena_components.checker.levels import ENVIRONMENTS
from kthena_components.checker.weakened_levels_limits_waivers import LevelsChange, levels_weakened
from kthena_components.core.findings import Finding, Level
from kthena_components.core.rules.production import PRODUCTION_NAMES
from kthena_components.policies import pack

OWN: dict[str, tuple[str, ...]] = {
    "world-size-equals-gpus": ("mandatory",),
    "shm-present": ("mandatory",),
    "image-pinned": ("mandatory", "advisory"),
    "production-cache": ("advisory",),
    "rule-fault": (),
    "gpu-budget": ("mandatory",),
    "surge-needs-spare-gpus": ("mandatory", "advisory"),
    "gpu-type-allowed": ("mandatory",),
}
"""The rules of this test, and the levels that their findings have without a config."""
LIMITED = ("gpu-budget", "surge-needs-spare-gpus", "gpu-type-allowed")
RANKS = ("disabled", "advisory", "mandatory")
LEVELS = st.sampled_from(("mandatory", "advisory", "disabled"))
STATED = st.sampled_from(("mandatory", "advisory", "disabled", "remediate"))
SETTINGS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "environment": st.sampled_from(ENVIRONMENTS),
        "levels": st.dictionaries(st.sampled_from(("*", *OWN)), LEVELS, max_size=3),
    },
)
LIMITS = {
    "gpuBudget": st.integers(0, 3),
    "gpuTypes": st.lists(st.sampled_from(("a/x", "a/y", "P", "Q")), min_size=1, max_size=3),
}


@st.composite
def policies(draw: st.DrawFn, name: str) -> Any:
    """Draw the config of one policy, as a map or as a level alone."""
    if draw(st.booleans()):
        return draw(STATED)
    config = dict(draw(SETTINGS))
    if name in TOGETHER:
        config |= draw(st.fixed_dictionaries({}, optional=LIMITS))
    return config | draw(st.fixed_dictionaries({}, optional={"enforcementLevel": STATED}))


CONFIGS = st.fixed_dictionaries(
    {}, optional={**{name: policies(name) for name in ENFORCED}, "all": STATED}
)


def level_of(policy: Policy) -> str:
    """Return the level of a policy without a config."""
    assert policy.enforcement_level is not None
    return policy.enforcement_level.value


def reconciled(config: Mapping[str, Any], policy: str) -> tuple[str, Mapping[str, Any]]:
    """Do what Pulumi's ReconcilePolicyPackConfig does, for one policy."""
    default = {name.name: level_of(name) for name in pack.POLICIES}[policy]
    level, stated = config.get("all", default), config.get(policy, {})
    if isinstance(stated, str):
        return stated, {}
    more = {key: value for key, value in stated.items() if key != "enforcementLevel"}
    return stated.get("enforcementLevel", level), more


class Effects:
    """What the pack's own functions report under a config, for objects with every finding."""

    def __init__(self, config: Mapping[str, Any], patch: pytest.MonkeyPatch) -> None:
        self.config, self.patch = config, patch
        self.found: dict[tuple[Any, ...], int] = {}

    def run(self, key: tuple[Any, ...], names: tuple[str, str], validate: Any) -> None:
        """Run two policies as the SDK does, and keep the highest level at which one reports."""
        rank = 0
        for name in names:
            level, more = reconciled(self.config, name)
            if level == "disabled":
                continue
            told: list[str] = []
            validate(name, more, lambda text, _=None, told=told: told.append(text))
            if any(text.startswith(("Seen", "seen")) for text in told):
                rank = max(rank, 1 if level == "advisory" else 2)
        self.found[key] = rank


def effects(config: Mapping[str, Any], patch: pytest.MonkeyPatch) -> dict[tuple[Any, ...], int]:
    """Return how each finding ends: 0 for not at all, 1 for advisory, 2 for mandatory."""
    made = Effects(config, patch)
    by_name = {policy.name: policy for policy in pack.POLICIES}
    told = {name: pack.REFUSED if name in LED_BY.values() else pack.ADVISED for name in by_name}
    for rule, owns in OWN.items():
        for own in () if rule in LIMITED else (*owns, "unknown"):
            finding = Finding(path="", seen="seen", rule=rule, level=Level(own))

            def judge(_args: Any, by: Any, finding: Finding = finding) -> list[Finding]:
                asked = finding.rule not in PRODUCTION_NAMES or finding.rule in by.levels.asked
                return [finding] if asked else []

            def resource(name: str, more: Any, report: Any) -> None:
                args = ResourceValidationArgs("x", {}, "urn", "n", None, None, more, {})  # type: ignore[arg-type]
                pack.validate_resource(name, told[name], args, report)

            def groups(name: str, more: Any, report: Any) -> None:
                args = StackValidationArgs([], more, {})
                pack.validate_groups(name, told[name], args, report)

            patch.setattr(pack, "check_once", judge)
            made.run(("resource", rule, own), ("serving-rules", "serving-advice"), resource)
            patch.setattr(
                pack, "_safely_in_stack", lambda a, by, judge=judge: [("", f) for f in judge(a, by)]
            )
            made.run(("groups", rule, own), ("serving-groups", "serving-groups-advice"), groups)
    for gpus, own in product(range(5), ("mandatory", "advisory")):
        rule = "gpu-budget" if own == "mandatory" else "surge-needs-spare-gpus"
        over = Finding(path="", seen="seen", rule=rule, level=Level(own))
        patch.setattr(
            pack, "_safely_in_stack",
            lambda _, by, gpus=gpus, over=over:
                [("", over)] if by.gpu_budget is not None and gpus > by.gpu_budget else [],
        )  # fmt: skip
        made.run(("budget", gpus, own), ("serving-groups", "serving-groups-advice"), groups)
    for name in ("a/x", "a/y", "a/z", "P", "Q", "R"):
        kind = Finding(path="", seen="seen", rule="gpu-type-allowed", level=Level.MANDATORY)

        def types(_: Any, by: Any, name: str = name, kind: Finding = kind) -> list[Any]:
            alike = [one for one in by.gpu_types if ("/" in one) == ("/" in name)]
            return [("", kind)] if alike and name not in alike else []

        patch.setattr(pack, "_safely_in_stack", types)
        made.run(("types", name), ("serving-groups", "serving-groups-advice"), groups)
    made.found["all", "of other policies"] = RANKS.index(
        config.get("all", "mandatory").replace("remediate", "mandatory")
    )
    return made.found


def told(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return the findings about the rules of this test, without those of the command line."""
    change = LevelsChange(
        file="x.json", before=read_pack(before), after=read_pack(after), rules=OWN
    )
    found = map(str, levels_weakened(change))
    return [text for text in found if not text.startswith("x.json: check --level")]


OFF = {"levels": {"*": "disabled"}}
FAULT = {"rule-fault": "disabled"}


@st.composite
def changes(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """Draw two configs that differ in one setting of one policy, or in the level of all."""
    before = draw(CONFIGS)
    name = draw(st.sampled_from(("all", *ENFORCED)))
    other = draw(STATED if name == "all" else policies(name))
    old = before.get(name, {})
    if (
        draw(st.booleans())
        and old
        and other
        and not isinstance(old, str)
        and not isinstance(other, str)
    ):
        key = draw(st.sampled_from(sorted({*old, *other})))
        other = {**old, key: other[key]} if key in other else {k: old[k] for k in old if k != key}
    after = {**before, name: other}
    if draw(st.booleans()) and name in before:
        after = {key: value for key, value in before.items() if key != name}
    return (before, after) if draw(st.booleans()) else (after, before)


@pytest.mark.property
@settings(max_examples=600, deadline=None)
@given(changes())
@example(({"serving-rules": OFF}, {"serving-rules": {"levels": {**OFF["levels"], **FAULT}}}))
@example(
    ({"serving-groups": {"gpuTypes": ["a/x", "P"]}}, {"serving-groups": {"gpuTypes": ["a/x"]}})
)
@example(
    ({"serving-groups": {"gpuTypes": ["a/x"]}}, {"serving-groups": {"gpuTypes": ["a/x", "P"]}})
)
def test_a_finding_says_exactly_that_something_the_pack_does_is_weaker(
    change: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    before, after = change
    with pytest.MonkeyPatch.context() as patch:
        old, new = effects(before, patch), effects(after, patch)
    weaker = [key for key in old if new[key] < old[key]]
    assert bool(told(before, after)) is bool(weaker), (weaker, told(before, after))


def test_the_names_and_levels_of_the_policies_are_those_of_the_pack() -> None:
    assert {one.name: level_of(one) for one in pack.POLICIES} == dict(ENFORCED)
    assert set(LED_BY) | set(LED_BY.values()) == set(ENFORCED)


@given(CONFIGS)
def test_the_levels_of_policies_are_those_that_pulumi_passes_on(config: dict[str, Any]) -> None:
    for name, level in read_pack(config).enforced.items():
        assert level == reconciled(config, name)[0].replace("remediate", "mandatory")
