"""How much a rule weighs is data."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kthena_components.cli.levels import ENVIRONMENTS, read_levels
from tests.cli.conftest import Command, Ran
from tests.support.manifests import ADVISED, UNKNOWN, WRONG

Write = Callable[[str, str | bytes], Path]
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
        ("{", "levels.json: is not JSON: "),
        ("[]", "levels.json: must be a map from rules to levels"),
        (
            '{"world-size-equal-gpu": "advisory"}',
            "levels.json: there is no rule 'world-size-equal-gpu'; write 'world-size-equals-gpus'",
        ),
        (
            '{"name-fits": "error"}',
            "levels.json: 'name-fits' is \"error\"; known: mandatory, advisory, disabled",
        ),
        ('{"name-fits": ["mandatory"]}', "levels.json: 'name-fits' is [\"mandatory\"]; known: "),
        ("[" * 100_000, "levels.json: is not JSON: "),
    ],
    ids=["no JSON", "a list", "no such rule", "no such level", "no level", "deep"],
)
def test_a_file_that_cannot_be_used_is_refused(weigh: Weigh, text: str, told: str) -> None:
    done = weigh(text)
    assert done.err.startswith(f"kthena-components check: {told}")
    assert (done.status, done.out) == (2, "")


@pytest.mark.parametrize(("name", "status"), [("dev", 0), ("staging", 1), ("prod", 1)])
def test_an_environment_has_levels_of_its_own(
    run: Command, write: Write, name: str, status: int
) -> None:
    write("a.yaml", WRONG)
    assert run("a.yaml", "--level", name).status == status


def test_the_levels_of_every_environment_are_in_the_package() -> None:
    assert [bool(read_levels(name).weights) for name in ENVIRONMENTS] == [True, False, False]


def test_a_level_that_is_not_there_is_named_with_the_nearest(run: Command) -> None:
    done = run(".", "--level", "prd")
    told = "there is no level and no file 'prd'; write 'prod', or a file"
    assert (done.status, done.err) == (2, f"kthena-components check: {told}\n")
