"""How parts are run: nothing that breaks or cannot run is taken for a success."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from conformance.__main__ import Context, run, run_beside
from conformance.report import passed, render
from toolchain.programs import ToolchainError


def part(monkeypatch: pytest.MonkeyPatch, name: str, what: object) -> None:
    """Make a part of a function."""
    monkeypatch.setitem(sys.modules, f"conformance.{name}", SimpleNamespace(run=what))


def test_a_part_that_breaks_fails_and_its_folder_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    folders: list[Path] = []

    def broken(context: Context) -> None:
        folders.append(context.folder)
        context.part.check("the first", holds=True)
        raise RuntimeError("in the middle")

    part(monkeypatch, "broken", broken)
    found = run("broken", 1, 1)
    assert (found.checks, len(found.failures)) == (1, 1)
    assert "RuntimeError: in the middle" in found.failures[0]
    assert not folders[0].exists()
    assert not passed([found])


def test_what_a_machine_cannot_run_is_listed_and_no_success(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def lacking(_: Context) -> None:
        raise ToolchainError("Go 1.26 is needed")

    part(monkeypatch, "lacking", lacking)
    found = run("lacking", 1, 1)
    assert found.not_run == ["all of it: Go 1.26 is needed"]
    assert not passed([found])
    assert render([found]).endswith("not run:\n  lacking: all of it: Go 1.26 is needed")


def test_parts_beside_one_another_are_given_in_their_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fine(context: Context) -> None:
        context.part.check("it holds", holds=context.many(10) == 5)

    for name in ("one", "two", "three"):
        part(monkeypatch, name, fine)
    found = run_beside(["one", "two", "three"], 1, 0.5, jobs=2)
    assert [(each.name, each.checks, each.failures) for each in found] == [
        ("one", 1, []), ("two", 1, []), ("three", 1, []),
    ]  # fmt: skip
    assert passed(found)
