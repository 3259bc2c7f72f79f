"""The one renderer of refusals, and the guesses at what was meant."""

import pytest

from kthena_components.core.findings import (
    Finding,
    SpecError,
    count_of,
    join_path,
    nearest,
    path_of,
    render_findings,
    suggest,
    suggest_name,
)
from tests.support.strategies import LATE

FINDING = Finding(path="roles[0].name", seen="is 'x'", remedy="write 'y'", rule="some-rule")


def test_a_finding_is_one_line_of_path_sight_remedy_and_rule() -> None:
    assert str(FINDING) == "roles[0].name: is 'x'. Write 'y'. [some-rule]"


@pytest.mark.parametrize(
    ("finding", "line"),
    [
        (Finding(path="", seen="it is odd", rule="r"), "it is odd. [r]"),
        (Finding(path="a", seen="it is odd", rule="r"), "a: it is odd. [r]"),
    ],
    ids=["no-path", "no-remedy"],
)
def test_what_a_finding_lacks_leaves_no_gap(finding: Finding, line: str) -> None:
    assert str(finding) == line


def test_a_value_that_is_not_known_is_shown_as_an_output() -> None:
    finding = Finding(path="image", seen=f"is 'vllm:{LATE}'", rule="r")
    assert str(finding) == "image: is 'vllm:<output>'. [r]"


def test_a_finding_moves_under_its_caller() -> None:
    assert FINDING.under("servings[1]").path == "servings[1].roles[0].name"


def test_a_refusal_lists_its_findings() -> None:
    error = SpecError([FINDING, FINDING])
    assert error.findings == (FINDING, FINDING)
    assert str(error) == f"{FINDING}\n{FINDING}"


@pytest.mark.parametrize(
    ("count", "head"), [(1, "chat: 1 problem"), (2, "chat: 2 problems")], ids=["one", "two"]
)
def test_below_a_subject_problems_are_counted(count: int, head: str) -> None:
    text = render_findings([FINDING] * count, "chat")
    assert text.splitlines() == [head, *[f"  {FINDING}"] * count]


@pytest.mark.parametrize(
    ("prefix", "path", "joined"),
    [
        ("", "", ""),
        ("a", "", "a"),
        ("", "b", "b"),
        ("a", "b", "a.b"),
        ("a", "[0]", "a[0]"),
        ("a", "[0].b", "a[0].b"),
    ],
)
def test_paths_join(prefix: str, path: str, joined: str) -> None:
    assert join_path(prefix, path) == joined


def test_a_location_is_written_as_a_path() -> None:
    assert path_of(["roles", 0, "engine", "extra_args", 2]) == "roles[0].engine.extra_args[2]"


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("decod", "decode"),
        ("Decode", "decode"),
        ("workerReplicas", "worker_replicas"),
        ("worker-replicas", "worker_replicas"),
        ("zzz", None),
        ("", None),
    ],
)
def test_the_nearest_word_is_what_was_meant(word: str, meant: str | None) -> None:
    assert nearest(word, ["decode", "prefill", "worker_replicas"]) == meant


@pytest.mark.parametrize(
    ("word", "known", "clause"),
    [
        ("decod", ["decode", "prefill"], "write 'decode'"),
        ("zzz", ["prefill", "decode"], "known: decode, prefill"),
        ("zzz", [], "add it"),
    ],
    ids=["near", "far", "nothing"],
)
def test_a_suggestion_names_what_there_is(word: str, known: list[str], clause: str) -> None:
    assert suggest(word, known) == clause


@pytest.mark.parametrize(("number", "text"), [(0, "0 pods"), (1, "1 pod"), (2, "2 pods")])
def test_a_count_agrees_with_its_word(number: int, text: str) -> None:
    assert count_of(number, "pod") == text


def test_a_field_that_is_stated_is_no_new_name_for_another() -> None:
    known = ("replicas", "roles")

    assert suggest_name("replica", known, {"replica", "roles"}) == "write 'replicas'"
    assert (
        suggest_name("replica", known, {"replica", "replicas"})
        == "remove it, because replicas is stated, too"
    )
