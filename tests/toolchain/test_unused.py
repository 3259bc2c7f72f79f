"""Code that nothing uses is found, and there is none."""

from pathlib import Path

import pytest

from toolchain.unused import CALLED_ELSEWHERE, unused


def test_nothing_in_the_repository_is_unused() -> None:
    """And every exception is needed."""
    assert set(unused()) == set(CALLED_ELSEWHERE)


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("def called():\n    pass\n\n\ncalled()\n\n\ndef forgotten():\n    pass\n", "forgotten"),
        ("class Forgotten:\n    pass\n", "Forgotten"),
        ("import json\n", "json"),
        ("class A:\n    def forgotten(self):\n        pass\n\n\nA()\n", "forgotten"),
    ],
)
def test_what_nothing_uses_is_named_with_its_place(code: str, name: str, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "module.py").write_text(code)
    (found,) = unused(tmp_path, ["own"]).items()
    assert found[0] == name
    assert found[1].startswith("own/module.py:")
