"""What rules weigh in each environment, and what a config may say."""

from contextlib import suppress
from itertools import product
from typing import Any

import pytest
from hypothesis import given

from kthena_components.checker.catalogue import all_rules, rule_names
from kthena_components.checker.levels import (
    ENVIRONMENTS,
    LIMITS,
    SETTINGS,
    LevelOverride,
    SettingError,
    Settings,
    environment_levels,
    parse_levels,
    parse_settings,
    parse_version,
)
from kthena_components.core.findings import Finding, Level
from kthena_components.core.rules.production import PRODUCTION_NAMES
from tests.support.strategies import json_trees

WEIGHTS = {name: environment_levels(name).weights for name in ENVIRONMENTS}
ORDER = (LevelOverride.DISABLED, LevelOverride.ADVISORY, LevelOverride.MANDATORY)


def finding(rule: str, level: Level = Level.MANDATORY) -> Finding:
    return Finding(path="", seen="x", rule=rule, level=level)


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_an_environment_weighs_rules_that_there_are(environment: str) -> None:
    assert set(WEIGHTS[environment]) <= rule_names()


def test_nothing_weighs_less_nearer_to_production() -> None:
    """Whatever its findings weigh by themselves: some rules have findings of two levels."""
    for rule, own in product(
        set().union(*WEIGHTS.values()), (LevelOverride.ADVISORY, LevelOverride.MANDATORY)
    ):
        row = [WEIGHTS[name].get(rule, own) for name in ENVIRONMENTS]
        assert row == sorted(row, key=ORDER.index), (rule, own)


def test_a_row_says_something() -> None:
    """Where an environment weighs a rule as it weighs itself everywhere, no row is needed."""
    own = {rule.name: rule.level for rule in all_rules()}
    for rule in set().union(*WEIGHTS.values()):
        row = {WEIGHTS[name].get(rule, own[rule]) for name in ENVIRONMENTS}
        assert row != {own[rule]}, rule


def test_a_rule_whose_findings_have_two_levels_is_not_lowered_where_one_is_refused() -> None:
    assert "rbg-gang" not in WEIGHTS["dev"], "both annotations at once cannot start"


@pytest.mark.parametrize(
    "rule", ["world-size-equals-gpus", "nodes-whole", "gang-covers-engine", "kthena-schema"]
)
@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_what_cannot_start_keeps_its_level_everywhere(environment: str, rule: str) -> None:
    assert rule not in WEIGHTS[environment]


def test_a_token_in_a_manifest_is_advice_in_dev_alone() -> None:
    token = finding("hf-token-from-secret")
    levels = [environment_levels(name).apply([token])[0].level for name in ENVIRONMENTS]
    assert levels == [Level.ADVISORY, Level.MANDATORY, Level.MANDATORY]


def test_an_image_that_moves_is_refused_in_prod_alone() -> None:
    moving = finding("image-pinned", Level.ADVISORY)
    levels = [environment_levels(name).apply([moving])[0].level for name in ENVIRONMENTS]
    assert levels == [Level.ADVISORY, Level.ADVISORY, Level.MANDATORY]
    two = finding("image-pinned")
    assert environment_levels("dev").apply([two]) == [two], "two versions never find together"


@pytest.mark.parametrize("level", [Level.UNKNOWN, Level.WAIVED])
def test_what_is_unknown_or_waived_is_not_weighed(level: Level) -> None:
    one = finding("nodes-whole", level)
    assert parse_levels({"*": "mandatory"}).apply([one]) == [one]
    assert parse_levels({"nodes-whole": "disabled"}).apply([one]) == []


@pytest.mark.parametrize(
    ("levels", "pinned", "shm"),
    [
        ({}, LevelOverride.MANDATORY, LevelOverride.MANDATORY),
        ({"image-pinned": "disabled"}, LevelOverride.DISABLED, LevelOverride.MANDATORY),
        ({"*": "advisory", "shm-present": "disabled"}, None, LevelOverride.DISABLED),
    ],
    ids=["none", "one", "all"],
)
def test_levels_stand_above_those_of_the_environment(
    levels: dict[str, str], pinned: LevelOverride | None, shm: LevelOverride
) -> None:
    weights = parse_settings({"environment": "prod", "levels": levels}).levels.weights
    assert (weights.get("image-pinned"), weights["shm-present"]) == (pinned, shm)


def test_a_config_that_says_nothing_leaves_all_as_it_is() -> None:
    assert parse_settings({}) == Settings()
    assert Settings().levels.apply([finding("nodes-whole")]) == [finding("nodes-whole")]


@pytest.mark.parametrize(
    ("stated", "told"),
    [
        ({"enviroment": "prod"}, "there is no setting 'enviroment' here; write 'environment'"),
        ({"environment": "prd"}, "there is no environment 'prd'; write 'prod'"),
        ({"environment": 3}, "there is no environment '3'; known: dev, prod, staging"),
        ({"levels": []}, "levels: must be a map from rules to levels"),
        ({"levels": {"zz": "advisory"}}, "levels: there is no rule 'zz'; 'check --rules' lists"),
        (
            {"levels": {"name-fits": "error"}},
            "levels: 'name-fits' is \"error\"; known: mandatory, advisory, disabled",
        ),
        ({"kthenaVersion": "9"}, "there is no Kthena '9'; known: 0.1, 0.2, 0.3, 0.4, 1.0"),
        ({"kthenaVersion": 1.0}, "1.0 is not a version of Kthena; known: 0.1, "),
        ({"volcanoVersion": "1.9"}, "there is no Volcano '1.9'; known: 1.14, 1.15"),
    ],
)
def test_a_config_that_cannot_be_used_is_told_in_one_sentence(
    stated: dict[str, Any], told: str
) -> None:
    with pytest.raises(SettingError) as caught:
        parse_settings(stated)
    assert str(caught.value).startswith(told)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("stated", "told"),
    [
        ({"gpuBudget": -1}, "gpuBudget is -1; write a number of GPUs from 0 on"),
        ({"gpuBudget": 7.5}, "gpuBudget is 7.5; write a number of GPUs from 0 on"),
        ({"gpuBudget": True}, "gpuBudget is true; write a number of GPUs from 0 on"),
        ({"gpuBudget": "16"}, 'gpuBudget is "16"; write a number of GPUs from 0 on'),
        ({"gpuTypes": []}, "gpuTypes is empty, and so allows nothing; name one or remove it"),
        (
            {"gpuTypes": "nvidia.com/gpu"},
            (
                'gpuTypes is "nvidia.com/gpu", which is not a list; write, for example, '
                '["nvidia.com/gpu"]'
            ),
        ),
        (
            {"gpuTypes": ["nvidia.com/gpu", " "]},
            'gpuTypes contains " ", which is not a name; write, for example, ["nvidia.com/gpu"]',
        ),
        ({"gpuType": []}, "there is no setting 'gpuType' here; write 'gpuTypes'"),
    ],
)
def test_a_limit_that_cannot_be_used_is_told_in_one_sentence(
    stated: dict[str, Any], told: str
) -> None:
    with pytest.raises(SettingError) as caught:
        parse_settings(stated, together=True)
    assert str(caught.value) == told


def test_limits_are_read_where_all_objects_are_seen() -> None:
    stated = {"gpuBudget": 16.0, "gpuTypes": ["nvidia.com/gpu ", "NVIDIA-H100-80GB-HBM3"]}
    settings = parse_settings(stated, together=True)
    assert (settings.gpu_budget, type(settings.gpu_budget)) == (16, int)
    assert settings.gpu_types == ("nvidia.com/gpu", "NVIDIA-H100-80GB-HBM3")
    assert parse_settings({"gpuBudget": 0}, together=True).gpu_budget == 0
    for name, value in stated.items():
        with pytest.raises(SettingError, match=f"no setting '{name}' here; only policies that see"):
            parse_settings({name: value})


def test_what_is_declared_is_what_is_read() -> None:
    assert parse_settings({}, together=True) == Settings()
    for name in {**SETTINGS, **LIMITS}:
        with pytest.raises(SettingError) as caught:
            parse_settings({name: None}, together=True)
        assert "there is no setting" not in str(caught.value)


@pytest.mark.parametrize(
    ("system", "stated", "version"),
    [
        ("kthena", "0.4", "0.4"),
        ("kthena", "v0.4.1", "0.4.1"),
        ("kthena", "1.0.0-rc.1", "1.0.0"),
        ("volcano", "v1.14.2", "1.14.2"),
    ],
)
def test_a_version_is_a_release_without_what_stands_around_it(
    system: str, stated: str, version: str
) -> None:
    assert parse_version(stated, system) == version


@pytest.mark.property
@given(json_trees())
def test_any_config_is_read_or_refused(value: Any) -> None:
    for name in {**SETTINGS, **LIMITS}:
        with suppress(SettingError):
            assert isinstance(parse_settings({name: value}, together=True), Settings)


@pytest.mark.parametrize(
    ("config", "asked"),
    [
        ({}, set()),
        ({"environment": "dev"}, set()),
        ({"environment": "staging"}, set()),
        ({"environment": "prod"}, PRODUCTION_NAMES),
        ({"levels": {"*": "mandatory"}}, set()),
        ({"levels": {"production-cache": "mandatory"}}, {"production-cache"}),
        (
            {"environment": "prod", "levels": {"production-cache": "disabled"}},
            PRODUCTION_NAMES - {"production-cache"},
        ),
    ],
)
def test_rules_about_production_are_asked_for_by_name_or_in_prod(
    config: dict[str, Any], asked: set[str]
) -> None:
    assert parse_settings(config).levels.asked == asked
