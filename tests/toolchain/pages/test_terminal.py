"""The picture of a terminal in README."""

import re

from toolchain.pages.terminal import PICTURE, README, draw


def test_the_picture_shows_what_readme_shows() -> None:
    """`make pictures` draws it again after a change of README's blocks."""
    assert PICTURE.read_text(encoding="utf-8") == draw()
    assert f"](docs/{PICTURE.name})" in README.read_text(encoding="utf-8")


def test_the_picture_loads_nothing() -> None:
    assert not re.search(r"url\((?!#)|<image|href=|@import|@font-face", draw())
