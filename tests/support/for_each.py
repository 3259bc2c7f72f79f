"""One test for all rows of a table: it checks each row and names every bad one."""

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import pytest

_LONGEST = 100
"""Characters of a row's name in the message."""

_Ids = Iterable[Any] | Callable[[Any], object] | None


def for_each(
    names: str | tuple[str, ...], rows: Iterable[Any], ids: _Ids = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Call a test with each row, as `pytest.mark.parametrize` does, but as one test.

    pytest sets up fixtures and writes a report for each parameter, which takes longer than most
    rows. Its `subtests` write a report for each, too. A row costs only its call here.

    The rows share the test's fixtures, so use it where a row changes none. The test fails with a
    group of all errors, whose message names the bad rows.
    """
    fields = names.replace(" ", "").split(",") if isinstance(names, str) else list(names)
    named = _named(fields, list(rows), ids)
    assert named, "a table without rows checks nothing"

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def run(**fixtures: Any) -> None:
            errors: dict[str, Exception] = {}
            for name, row in named:
                try:
                    test(**row, **fixtures)
                except Exception as error:  # noqa: BLE001 - an error of a row is told with the others
                    errors[name] = error
                # pytest takes a group of these for a skipped test, and a row would go unnoticed
                except (pytest.skip.Exception, pytest.fail.Exception) as outcome:
                    errors[name] = AssertionError(f"{type(outcome).__name__}: {outcome}")
            for name, bad in errors.items():
                bad.add_note(f"row {name}")
            if errors:
                told = "\n".join(f"- {name}" for name in errors)
                text = f"{len(errors)} of {len(named)} rows are bad:\n{told}\n"
                raise ExceptionGroup(text, [*errors.values()])

        stated = inspect.signature(test)
        assert stated.parameters.keys() >= set(fields), f"{test.__name__} does not take {fields}"
        left = [one for name, one in stated.parameters.items() if name not in fields]
        run.__signature__ = stated.replace(parameters=left)  # type: ignore[attr-defined]
        return run

    return decorate


def _named(fields: list[str], rows: list[Any], ids: _Ids) -> list[tuple[str, dict[str, Any]]]:
    """Give each row its name and its values by field."""
    given = [ids(row) for row in rows] if callable(ids) else list(ids or rows)
    found = []
    for number, (row, name) in enumerate(zip(rows, given, strict=True)):
        is_param = hasattr(row, "marks")
        values = row.values if is_param else row if len(fields) > 1 else (row,)
        stated = row.id if is_param and row.id else name
        text = stated if isinstance(stated, str) else repr(stated)
        assert not is_param or not row.marks, f"{text}: for_each knows no marks"
        found.append((f"{number}: {text[:_LONGEST]}", dict(zip(fields, values, strict=True))))
    return found
