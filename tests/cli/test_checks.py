"""What a branch's files of levels lead to is compared with what those of its base lead to."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from kthena_components.checker.levels import ENVIRONMENTS, parse_settings
from kthena_components.cli.policy_pack import levels_of
from kthena_components.cli.review.strictness import Pack, level_findings
from kthena_components.core.findings import Finding, Level
from kthena_components.reading.files import Unreadable
from tests.support.for_each import for_each

Config = Mapping[str, Any]
PROD: dict[str, dict[str, object]] = {
    "serving-rules": {"enforcementLevel": "mandatory", "environment": "prod", "gpu": "h100"},
    "serving-groups": {
        "enforcementLevel": "mandatory",
        "gpuBudget": 32,
        "gpuTypes": ["H100"],
        "inventory": "prod.yaml",
    },
}
RULES, GROUPS = PROD["serving-rules"], PROD["serving-groups"]


def pack(*config: Config | str | Unreadable, stack: str = "prod") -> Pack:
    """Give the files of one side, with at most one file of levels."""
    texts = [one if isinstance(one, str | Unreadable) else json.dumps(one) for one in config]
    return Pack(levels={f"{stack}.json": text for text in texts}, is_own=True)


def weaker(before: Config | str, after: Config | str | Unreadable) -> list[str]:
    return [str(finding) for finding in level_findings(pack(before), pack(after))]


def test_levels_that_stay_or_rise_are_no_weakening() -> None:
    assert weaker(PROD, PROD) == []
    assert weaker(PROD, {**PROD, "serving-groups": {**GROUPS, "gpuBudget": 16}}) == []
    without = {key: value for key, value in GROUPS.items() if key != "inventory"}
    assert weaker({**PROD, "serving-groups": without}, PROD) == []
    silent = {**GROUPS, "levels": {"placement-fits": "disabled"}}
    assert weaker({**PROD, "serving-groups": silent}, {**PROD, "serving-groups": without}) == []


@pytest.mark.parametrize(
    ("policy", "config", "told"),
    [
        ("serving-rules", "advisory", "enforcementLevel: would be advisory, and the base has mand"),
        ("serving-rules", "disabled", "enforcementLevel: would be disabled, and the base has mand"),
        (
            "serving-rules",
            {**RULES, "levels": {"world-size-equals-gpus": "disabled"}},
            "would lower the level of 1 rule: world-size-equals-gpus (mandatory → disabled)",
        ),
        ("serving-rules", {"levels": {"*": "disabled"}}, "would lower the level of 4"),
        ("serving-groups", {**GROUPS, "gpuBudget": 64}, "would be 64, and the bas"),
        (
            "serving-groups",
            {"gpuTypes": ["H100"]},
            "gpuBudget: would be removed, and the base has 32",
        ),
        (
            "serving-groups",
            {"gpuBudget": 32, "gpuTypes": ["H100", "A10"]},
            "gpuTypes: would allow A10 as well. Keep H100, or let a person",
        ),
        ("serving-groups", {"gpuBudget": 32}, "gpuTypes: would allow every product. Keep H100"),
        (
            "serving-groups",
            {key: value for key, value in GROUPS.items() if key != "inventory"},
            "inventory: would be removed, so that no pods are placed, and the base has prod.yaml.",
        ),
        (
            "serving-groups",
            {**GROUPS, "inventory": "other.yaml"},
            "inventory: would be other.yaml, and the base has prod.yaml.",
        ),
        ("serving-rules", {**RULES, "gpu": "h200"}, "serving-rules.gpu: would be NVIDIA H200 with"),
        ("serving-rules", {"environment": "prod"}, "serving-rules.gpu: would name no GPU, and"),
    ],
)
def test_a_weaker_level_is_told(policy: str, config: object, told: str) -> None:
    found = weaker(PROD, {**PROD, policy: config})
    assert any(told in text and text.endswith("[levels-weakened]") for text in found), found


DEFAULTS: Config = {"serving-rules": {"environment": "prod"}, "serving-groups": {"gpuBudget": 8}}


@for_each(
    ("before", "after", "told"),
    [
        (DEFAULTS, {**DEFAULTS, "serving-rules": {"enforcementLevel": "disabled", **RULES}}, None),
        (
            DEFAULTS,
            {**DEFAULTS, "serving-rules": {**RULES, "enforcementLevel": "disabled"}},
            "serving-rules.enforcementLevel: would be disabled, and the base has mandatory",
        ),
        ({}, {"serving-rules": "advisory"}, "would be advisory, and the base has mandatory"),
        ({}, {"serving-advice": "disabled"}, "serving-advice.enforcementLevel: would be disabled"),
        (
            DEFAULTS,
            {**DEFAULTS, "all": "disabled"},
            "all: would be disabled, and the base has the default of each policy. Remove it",
        ),
        (
            DEFAULTS,
            {**DEFAULTS, "all": {"enforcementLevel": "advisory"}},
            "serving-groups.enforcementLevel: would be advisory",
        ),
        (
            {"all": "mandatory"},
            {},
            "serving-advice.enforcementLevel: would be advisory, and the base has mandatory",
        ),
        (
            {"serving-rules": "remediate"},
            {"serving-rules": "advisory"},
            "would be advisory, and the base has mandatory",
        ),
        ({"serving-rules": "remediate"}, {"serving-rules": "mandatory"}, None),
        ({"serving-rules": "mandatory"}, {"serving-rules": "remediate"}, None),
        ({"all": "disabled"}, {}, None),
        ({"all": "disabled"}, {"all": "disabled", "serving-rules": "mandatory"}, None),
        (
            {"serving-rules": "disabled"},  # so serving-advice reports what is advisory
            {"serving-rules": {"levels": {"*": "disabled"}}},
            "serving-rules: would lower the level of ",
        ),
        (
            {"serving-rules": {"environment": "prod"}},
            {"serving-rules": {"environment": "dev"}},
            "would lower the level of ",
        ),
        (
            {"serving-rules": {"levels": {"production-cache": "advisory"}}},
            {"serving-rules": {}},
            "serving-rules: would lower the level of 1 rule: production-cache (advisory → disa",
        ),
        (
            {"serving-rules": {"levels": {"*": "mandatory", "production-cache": "mandatory"}}},
            {"serving-rules": {"levels": {"*": "mandatory"}}},
            "would lower the level of 1 rule: production-cache (mandatory → disabled)",
        ),
        (
            {
                "serving-rules": "disabled",
                "serving-advice": {"levels": {"shm-present": "advisory"}},
            },
            {
                "serving-rules": "disabled",
                "serving-advice": {"levels": {"shm-present": "disabled"}},
            },
            "serving-rules: would lower the level of 1 rule: shm-present (advisory → disabled)",
        ),
        (
            {"serving-advice": {"levels": {"shm-present": "advisory"}}},
            {"serving-advice": {"levels": {"shm-present": "disabled"}}},
            None,  # serving-rules runs, and its config applies to both
        ),
        (
            {"serving-groups": {"gpuTypes": ["nvidia.com/gpu", "H100"]}},
            {"serving-groups": {"gpuTypes": ["nvidia.com/gpu"]}},
            "gpuTypes: would allow every product. Keep H100",
        ),
        (
            {"serving-groups": {"gpuTypes": ["nvidia.com/gpu"]}},
            {"serving-groups": {"gpuTypes": ["nvidia.com/gpu", "H100"]}},
            None,
        ),
        (
            {"serving-rules": {"kthenaVersion": "1.0"}},
            {"serving-rules": {"kthenaVersion": "0.1"}},
            "would check objects of Kthena by the rules of 0.1, and the base by the rules of 1.0",
        ),
        ({"serving-rules": {"kthenaVersion": "1.0"}}, {"serving-rules": {}}, None),
        (
            {"serving-rules": {}},
            {"serving-rules": {"releases": {"lws": "0.6"}}},
            "would check objects of LWS by the rules of 0.6, and the base by the rules of 0.10",
        ),
        ({"mine": "mandatory"}, {"mine": "advisory"}, "mine.enforcementLevel: would be advisory"),
        ({"mine": "mandatory"}, {}, "mine.enforcementLevel: would be the default of its pack"),
        ({}, {"mine": "disabled"}, "mine.enforcementLevel: would be disabled"),
        ({}, {"mine": "mandatory"}, None),
        ({"mine": {"regions": ["a"]}}, {"mine": {"regions": ["a", "b"]}}, "would have other sett"),
    ],
)
def test_effects_are_compared_and_not_texts(
    before: Config, after: Config, told: str | None
) -> None:
    found = weaker(before, after)
    if told is None:
        assert found == []
    else:
        assert any(told in text for text in found), found


@pytest.mark.parametrize(
    ("after", "why"),
    [
        ("{", "is not JSON: "),
        ("[]", "contains no map"),
        ('{"all": "disabled", "all": "mandatory"}', "states 'all' twice in one map"),
        ({"serving-rules": "Disabled"}, "serving-rules is 'Disabled'; known: advisory, mandatory"),
        ({"serving-rules": None}, "serving-rules is 'None'; known: "),
        ({"serving-rules": {"enforcementLevel": ""}}, "serving-rules.enforcementLevel is ''"),
        ({"serving-rules": {"enforcementLevel": 0}}, "serving-rules.enforcementLevel is '0'"),
        ({"serving-rules": {"enforcementlevel": "disabled"}}, "no setting 'enforcementlevel'"),
        ({"all": {"environment": "dev"}}, "all has the setting 'environment', but it sets only"),
        ({"environments": ["team/lax"]}, "environments takes settings from environments of Pulumi"),
        (
            {"serving-groups": {"gpuBudget": "64"}},
            'serving-groups: gpuBudget is "64"; write a numb',
        ),
        (
            {"serving-rules": {"environment": "Prod"}},
            "there is no environment 'Prod'; write 'prod'",
        ),
        (Unreadable(file="prod.json", because="is a link"), "is a link"),
    ],
)
def test_a_file_that_is_not_valid_is_never_passed_over(
    after: Config | str | Unreadable, why: str
) -> None:
    (finding,) = weaker(PROD, after)
    assert "is not valid, so its levels were not compared with those of the base: " in finding
    assert why in finding
    assert finding.endswith("[levels-weakened]")
    if not isinstance(after, Unreadable):
        (repaired,) = weaker(after, PROD)
        assert "was not compared, because the file of the base is not valid: " in repaired
        assert why in repaired
        assert weaker(after, after) == []


def test_a_file_of_levels_that_goes_is_told() -> None:
    found = [str(finding) for finding in level_findings(pack(PROD), pack())]
    assert len(found) == 5, found
    (rules, *_) = (text for text in found if "lower the level" in text)
    assert "because the branch deletes the file" in rules
    assert any(
        "serving-groups.gpuBudget: would be removed, and the base has 32" in t for t in found
    )
    strict = {"serving-rules": {"levels": {"shm-present": "disabled"}}}
    assert list(level_findings(pack(strict), pack())) == [], "the defaults are stricter"


def test_a_new_stack_is_compared_with_the_defaults_of_the_pack() -> None:
    weak = pack({"serving-rules": {"levels": {"shm-present": "disabled"}}}, stack="prod2")
    (finding,) = level_findings(pack(), weak)
    assert str(finding).startswith("policies/levels/prod2.json: serving-rules: would lower the lev")
    assert list(level_findings(pack(), pack({"serving-rules": {}}, stack="prod2"))) == []


def test_the_levels_of_the_wheel_are_those_of_a_project_without_any() -> None:
    wheel = Pack()
    same = {f"{name}.json": levels_of(name) for name in ENVIRONMENTS}
    assert list(level_findings(wheel, Pack(levels=same))) == []
    weak = Pack(levels={**same, "prod.json": levels_of("dev")})
    assert any(
        "prod.json: serving-rules: would lower" in str(f) for f in level_findings(wheel, weak)
    )
    only = Pack(levels={"x.json": "{}"})
    for other in (only, Pack(has_levels=True)):
        told = {str(f).partition(": ")[0] for f in level_findings(wheel, other)}
        assert "policies/levels/prod.json" in told, "with something there, the wheel adds none"


def test_an_environment_does_not_replace_a_level_that_is_stated() -> None:
    """An environment leaves what is only probable advisory, and a stated level does not."""
    probable = Finding(
        path="a", seen="b", rule="shm-present", level=Level.ADVISORY, most=Level.ADVISORY
    )
    stated = {"environment": "prod", "levels": {"shm-present": "mandatory"}}
    ends = [
        parse_settings(config).levels.apply([probable])[0].level
        for config in (stated, {"environment": "prod"})
    ]
    assert ends == [Level.MANDATORY, Level.ADVISORY]
    found = weaker({"serving-rules": stated}, {"serving-rules": {"environment": "prod"}})
    assert any("shm-present (mandatory → advisory)" in text for text in found), found
    assert weaker({"serving-rules": {"environment": "prod"}}, {"serving-rules": stated}) == []
