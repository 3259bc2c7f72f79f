"""The stages of `.ci/run` leave no test out."""

from pathlib import Path

TESTS = Path(__file__).parent


def test_each_mark_of_programs_is_in_a_file_of_tests() -> None:
    """`make test-programs` finds the files by this text, since pytest takes long to read them all.

    A mark in a module of `tests/support` would be found there, and the tests that take it missed.
    """
    text = "mark." + "programs"
    marked = {path.name for path in TESTS.rglob("*.py") if text in path.read_text()}
    assert len(marked) > 20, "the mark is no longer written like this"
    assert {name for name in marked if not name.startswith("test_")} == set()
