"""How much a rule weighs is data."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kthena_components.checker.levels import ENVIRONMENTS, environment_levels
from kthena_components.cli.settings import read_settings
from tests.cli.conftest import Command, Ran, Write
from tests.support.manifests import ADVISED, RIGHT, UNKNOWN, WRONG

ROOT = Path(__file__).parent.parent.parent

Weigh = Callable[[str], Ran]


@pytest.fixture
def weigh(run: Command, write: Write) -> Weigh:
    """Check one wrong, one advised and one unknown serving by a levels file."""
    write("wrong.yaml", WRONG)
    write("advised.yaml", ADVISED)
    write("unknown.yaml", UNKNOWN)

    def by(text: str) -> Ran:
        write("levels.json", text)
        return run("wrong.yaml", "advised.yaml", "unknown.yaml", "--level", "levels.json")

    return by


@pytest.mark.parametrize(
    ("text", "counts", "status"),
    [
        ("{}", "1 mandatory, 2 advisory, 1 not checked", 1),
        ('{"*": "advisory"}', "0 mandatory, 3 advisory, 1 not checked", 0),
        ('{"*": "mandatory"}', "3 mandatory, 0 advisory, 1 not checked", 1),
        ('{"world-size-equals-gpus": "disabled"}', "0 mandatory, 2 advisory, 0 not checked", 0),
        (
            '{"gpu-requests-equal-limits": "mandatory", "*": "disabled"}',
            "2 mandatory, 0 advisory, 0 not checked",
            1,
        ),
    ],
)
def test_a_file_weighs_rules(weigh: Weigh, text: str, counts: str, status: int) -> None:
    done = weigh(text)
    assert done.lines[-1].endswith(f": {counts}")
    assert done.status == status


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "levels.json:1:2: is not JSON: "),
        ("[]", "levels.json: contains no map of settings"),
        (
            '{"world-size-equal-gpu": "advisory"}',
            "levels.json: there is no rule 'world-size-equal-gpu'; write 'world-size-equals-gpus'",
        ),
        (
            '{"name-fits": "error"}',
            "levels.json: 'name-fits' is \"error\"; known: mandatory, advisory, disabled",
        ),
        ('{"name-fits": ["mandatory"]}', "levels.json: 'name-fits' is [\"mandatory\"]; known: "),
        ("[" * 100_000, "levels.json:1: is nested too deeply"),
        (
            '{"name-fits": "mandatory",\n"name-fits": "disabled"}',
            "levels.json:2:1: states 'name-fits'",
        ),
        ('{"serving-groups": {"gpuBudget": 1e1}}', "levels.json:1:34: has the number 1e1, which"),
    ],
    ids=["no JSON", "a list", "no such rule", "no such level", "no level", "deep", "twice", "1e1"],
)
def test_a_file_that_cannot_be_used_is_refused(weigh: Weigh, text: str, told: str) -> None:
    done = weigh(text)
    assert done.err.startswith(f"kthena-components check: {told}")
    assert (done.status, done.out) == (2, "")


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_what_cannot_start_is_mandatory_in_every_environment(
    run: Command, write: Write, name: str
) -> None:
    write("a.yaml", WRONG)
    assert run("a.yaml", "--level", name).status == 1


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_file_of_the_pack_says_the_same_as_the_name_of_its_environment(name: str) -> None:
    file = ROOT / "policies" / "levels" / f"{name}.json"
    assert read_settings(str(file)) == read_settings(name)
    assert read_settings(name).levels == environment_levels(name)


def test_a_config_of_the_pack_is_read_whole(run: Command, write: Write) -> None:
    write("a.yaml", WRONG)
    config = '{"serving-rules": {"enforcementLevel": "mandatory", "levels": {"*": "advisory"}}}'
    write("pack.json", config)
    assert run("a.yaml", "--level", "pack.json").status == 0


@pytest.mark.parametrize(
    ("config", "told"),
    [
        (
            '{"serving-advice": {}}',
            (
                "this config of policies has no entry serving-rules that is a map; "
                'write, for example, {"serving-rules": {"environment": "prod"}}'
            ),
        ),
        ('{"serving-rules": {"level": {}}}', "there is no setting 'level' here; write 'levels'"),
        (
            '{"serving-rules": {"environment": "prd"}}',
            "there is no environment 'prd'; write 'prod'",
        ),
        (
            '{"serving-rules": {"levels": {"shm-presnt": "advisory"}}}',
            "levels: there is no rule 'shm-presnt'; write 'shm-present'",
        ),
        (
            '{"serving-rules": {"kthenaVersion": 0.4}}',
            "0.4 is not a version of Kthena; known: 0.1, 0.2, 0.3, 0.4, 1.0",
        ),
    ],
)
def test_a_config_of_the_pack_that_cannot_be_used_is_refused(
    run: Command, write: Write, config: str, told: str
) -> None:
    write("pack.json", config)
    done = run(".", "--level", "pack.json")
    assert (done.status, done.err) == (2, f"kthena-components check: pack.json: {told}\n")


def test_a_version_of_kthena_is_gone_by(run: Command, write: Write) -> None:
    surge = "spec:\n  rolloutStrategy: {type: RoleRollingUpdate}\n"
    write("a.yaml", RIGHT.replace("spec:\n", surge, 1))
    assert run("a.yaml").status == 0
    done = run("a.yaml", "--kthena-version", "0.3")
    assert (done.status, "RoleRollingUpdate" in done.out) == (1, True)


def test_a_version_of_kthena_that_is_not_known_is_named(run: Command) -> None:
    done = run(".", "--kthena-version", "2.0")
    told = "there is no Kthena '2.0'; known: 0.1, 0.2, 0.3, 0.4, 1.0"
    assert (done.status, done.err) == (2, f"kthena-components check: {told}\n")


def test_a_level_that_is_not_there_is_named_with_the_nearest(run: Command) -> None:
    done = run(".", "--level", "prd")
    told = "there is no level or file 'prd'; write 'prod', or a file"
    assert (done.status, done.err) == (2, f"kthena-components check: {told}\n")


@pytest.mark.parametrize(
    ("config", "flags", "rules"),
    [
        ({}, (), []),
        ({"gpuBudget": 15}, (), ["gpu-budget"]),
        ({"gpuBudget": 15}, ("--gpu-budget", "16"), []),
        ({"gpuTypes": ["amd.com/gpu"]}, (), ["gpu-type-allowed"]),
        ({"gpuTypes": ["amd.com/gpu"]}, ("--gpu-types", "nvidia.com/gpu"), []),
    ],
)
def test_limits_of_the_packs_config_hold_unless_a_flag_says_other(
    run: Command, write: Write, config: dict[str, object], flags: tuple[str, ...], rules: list[str]
) -> None:
    write("right.yaml", RIGHT)
    pack = {"serving-rules": {}, "serving-groups": {"enforcementLevel": "mandatory", **config}}
    write("pack.json", json.dumps(pack))
    done = run("right.yaml", "--level", "pack.json", *flags)
    told = {line.rpartition("[")[2].strip("]") for line in done.lines[:-1]}
    assert told == set(rules)
    assert done.status == bool(rules)
