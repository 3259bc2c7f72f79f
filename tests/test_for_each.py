"""The helper that makes one test of a table: no bad row hides, and none hides another."""

import inspect

import pytest

from tests.support.for_each import for_each


def test_every_bad_row_is_named_and_no_other() -> None:
    rows = [(1, 1), (1, 2), pytest.param(3, 4, id="three"), (5, 5)]

    @for_each("first, second", rows)
    def check(first: int, second: int) -> None:
        assert first == second

    with pytest.raises(ExceptionGroup) as caught:
        check()
    assert caught.value.message == "2 of 4 rows are bad:\n- 1: (1, 2)\n- 2: three\n"
    first, second = caught.value.exceptions
    assert (first.__notes__, second.__notes__) == (["row 1: (1, 2)"], ["row 2: three"])
    assert "assert 3 == 4" in str(second)


def test_a_row_that_is_skipped_or_fails_by_name_is_bad() -> None:
    @for_each("end", [pytest.skip, pytest.fail], ids=["skip", "fail"])
    def check(end: type) -> None:
        end("no reason")

    with pytest.raises(ExceptionGroup) as caught:
        check()
    assert [str(error) for error in caught.value.exceptions] == [
        "Skipped: no reason",
        "Failed: no reason",
    ]


def test_a_table_without_rows_is_refused() -> None:
    with pytest.raises(AssertionError, match="without rows"):
        for_each("row", [])


def test_a_name_that_the_test_does_not_take_is_refused() -> None:
    with pytest.raises(AssertionError, match="does not take"):

        @for_each("rwo", [1])
        def check(row: int) -> None:
            raise AssertionError(row)


def test_fixtures_are_left_to_pytest_and_every_row_is_called() -> None:
    called = []

    @for_each("row", [1, 2])
    @for_each("other", "ab")
    def check(row: int, other: str, fixture: int) -> None:
        called.append((row, other, fixture))

    assert list(inspect.signature(check).parameters) == ["fixture"]
    check(fixture=3)
    assert called == [(1, "a", 3), (1, "b", 3), (2, "a", 3), (2, "b", 3)]
