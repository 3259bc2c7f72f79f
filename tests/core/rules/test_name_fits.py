"""Whether the names that will be made fit."""

import pytest

from kthena_components.core.facts.serving import NameFacts, ServingFacts
from kthena_components.core.findings import run_rule
from kthena_components.core.rules.name_fits import name_fits


def said(*names: NameFacts) -> list[str]:
    facts = ServingFacts(path="", name="s", engines=(), names=names)
    return [str(finding) for finding in run_rule(name_fits, facts)]


def name(length: int, limit: int = 63, path: str = "roles[0].name") -> NameFacts:
    return NameFacts(path=path, name="c" * length, limit=limit, what="pod")


def test_a_name_as_long_as_its_limit_fits() -> None:
    assert said(name(63), name(52, 52)) == []


def test_a_longer_name_is_refused_with_how_much_to_shorten() -> None:
    (line,) = said(name(55, 52))
    assert line == (
        f"roles[0].name: gives the pod name '{'c' * 55}', 55 characters; at most 52 are allowed. "
        "Shorten the serving's or the role's name by 3. [name-fits]"
    )


def test_only_the_beginning_of_a_much_longer_name_is_shown() -> None:
    (line,) = said(name(5000))
    assert f"'{'c' * 253}…', 5000 characters" in line


def test_one_place_is_told_once_with_what_makes_all_its_names_fit() -> None:
    (line,) = said(name(64), name(60, 52), name(65))
    assert "Shorten the serving's or the role's name by 8." in line


def test_each_place_is_told() -> None:
    lines = said(name(64), name(64, path="roles[1].name"))
    assert [line.partition(":")[0] for line in lines] == ["roles[0].name", "roles[1].name"]


@pytest.mark.parametrize(
    ("made", "part"),
    [(True, "the serving's or the role's name"), (False, "it")],
    ids=["made", "written"],
)
def test_what_to_shorten_is_what_the_user_wrote(made: bool, part: str) -> None:
    item = NameFacts(path="p", name="c" * 64, limit=63, what="pod", made=made)
    assert said(item)[0].endswith(f"Shorten {part} by 1. [name-fits]")
