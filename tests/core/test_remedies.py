"""A remedy is a string, and the same as changes."""

import copy

import pytest

from kthena_components.core.findings import Finding, suggest, suggest_name, tidy
from kthena_components.core.remedies import (
    REMOVED,
    Change,
    Remedy,
    either,
    fixes_as_json,
    fixes_of,
    or_more,
    plain,
    remove,
    rename,
    set_option,
    together,
    without,
    write,
)
from kthena_components.core.values.unknown import OUTPUT_CLOSE, OUTPUT_OPEN, Unknown


def finding(remedy: str, path: str = "spec.replicas") -> Finding:
    return Finding(path=path, seen="is wrong", remedy=remedy, rule="some-rule")


@pytest.mark.parametrize(
    ("remedy", "text", "change"),
    [
        (write(8), "write 8", {"value": 8}),
        (write("a"), "write 'a'", {"value": "a"}),
        (write(True), "write true", {"value": True}),
        (or_more(1), "write 1 or more", {"value": 1}),
        (remove(), "remove it", {"remove": True}),
        (rename("replicas"), "write 'replicas'", {"rename": "replicas"}),
        (set_option("--port", 80), "write --port 80", {"option": "--port", "value": 80}),
        (set_option("--headless", True), "add --headless", {"option": "--headless", "value": True}),
        (without("--port"), "remove --port", {"option": "--port", "remove": True}),
    ],
)
def test_a_remedy_says_the_same_twice(remedy: Remedy, text: str, change: object) -> None:
    assert remedy == text
    assert fixes_as_json(finding(remedy).fixes) == [[{"path": "spec.replicas", **dict(change)}]]  # type: ignore[call-overload]


def test_each_alternative_is_a_fix_and_a_plain_text_has_none() -> None:
    both = either(write(1), "rename the role", remove())
    assert both == "write 1, or rename the role, or remove it"
    assert [fix[0].value for fix in both.fixes] == [1, REMOVED]


def test_what_belongs_together_is_one_fix() -> None:
    made = together(write(1, at="a"), write(1, at="b"), write(1, at="a"), text="write 1 in both")
    assert [[change.path for change in fix] for fix in made.fixes] == [["a", "b"]]
    assert together(write(1), Remedy("design it")).fixes == ()


def test_a_fix_moves_with_its_finding() -> None:
    moved = finding(either(write(1), write(2, at="spec.other"))).under("chat")
    assert [fix[0].path for fix in moved.fixes] == ["chat.spec.replicas", "chat.spec.other"]


def test_a_value_that_is_not_known_and_a_path_that_is_cut_give_no_fix() -> None:
    late = f"{OUTPUT_OPEN}7{OUTPUT_CLOSE}"
    for value in (late, Unknown("it is an output"), [late]):
        assert finding(write(value, "write it")).fixes == ()
    assert finding(write(1), path="spec.a…").fixes == ()


def test_copies_keep_the_fixes_and_texts_do_not() -> None:
    remedy = write(8)
    for same in (copy.copy(remedy), copy.deepcopy(remedy), remedy.then(".")):
        assert fixes_of(same) == ((Change(value=8),),)
    assert fixes_of(plain(remedy)) == fixes_of(f"{remedy}") == ()


def test_a_long_or_odd_finding_keeps_what_its_remedy_says() -> None:
    long = Finding(path="a", seen="x" * 2000, remedy=write(8), rule="some-rule")
    assert tidy(long).fixes == long.fixes


def test_a_word_is_a_value_or_a_name() -> None:
    assert fixes_of(suggest("replica", ["replicas"]))[0][0].value == "replicas"
    assert fixes_of(suggest_name("replica", ["replicas"]))[0][0].name == "replicas"
    assert fixes_of(suggest_name("zzz", ["replicas"])) == ()
