"""How much something weighs that some releases refuse."""

import pytest

from kthena_components.core.engines import CommandFacts
from kthena_components.core.engines.options import Release
from kthena_components.core.findings import Level
from kthena_components.core.rules.support.engine_pods import since
from kthena_components.core.values.images import Version

FIRST, BEFORE = (0, 10), (0, 26)


def command(version: Version, because: str = "") -> CommandFacts:
    release = Release(engine="vllm", version=version, because=because)
    return CommandFacts(engine="vllm", release=release)


@pytest.mark.parametrize(
    ("version", "level"),
    [
        ((0, 9, 2), None),
        ((0, 10, 0), Level.MANDATORY),
        ((0, 25, 1, 1), Level.MANDATORY),
        ((0, 26, 0), None),
    ],
)
def test_only_the_releases_that_refuse_something_are_told(
    version: Version, level: Level | None
) -> None:
    assert since(command(version), FIRST, BEFORE) is level


def test_a_release_that_is_not_sure_makes_advice() -> None:
    assert since(command((0, 33, 0), "the image states none"), FIRST) is Level.ADVISORY
    assert since(command((0, 33, 0), "the image states none"), FIRST, BEFORE) is None


def test_a_program_without_a_release_of_its_own_is_not_told() -> None:
    assert since(CommandFacts(engine="vllm"), FIRST) is None
