"""Compares a checkout, in which previews run, with the commit that was checked."""

from collections.abc import Iterator
from pathlib import Path

from kthena_components.cli.branch import named
from kthena_components.cli.branch_changes import Sides
from kthena_components.cli.tree import is_below, shown
from kthena_components.reading.files import read_regular
from kthena_components.reading.project import PROJECT_FILES

_LFS = b"version https://git-lfs.github.com/spec/"
"""Start of a file in the commit whose content is elsewhere."""


def other_settings(sides: Sides, folder: Path, file: str) -> str:
    """Return which settings of a checkout differ from the commit; empty if none.

    Args:
        sides: The commits.
        folder: The project's folder in the checkout.
        file: The stack file, from the project's folder.
    """
    for name in (*PROJECT_FILES, file):
        entry = sides.after.entries.get(sides.at(name))
        found = read_regular(folder / name)
        if entry is None and found is None:
            continue
        if found is None or entry is None or found != sides.after.data(entry):
            return f"{name} in the checkout is not the file of commit {sides.head[:12]}: commit it"
    return ""


def uncommitted(sides: Sides, folder: Path) -> Iterator[str]:
    """Name the files of the project in a checkout that differ from the commit."""
    start = sides.at("")
    files = [entry for entry in sides.after.entries.values() if is_below(entry.path, start)]
    files = [entry for entry in files if entry.is_file]
    contents = sides.after.load([entry.oid for entry in files])
    names = [entry.path.removeprefix(start).lstrip("/") for entry in files]
    other = [
        shown(name)
        for name, content in zip(names, contents, strict=True)
        if not _is_same(read_regular(folder / name), content)
    ]
    if other:
        told = f"Previews used files that are not those of commit {sides.head[:12]}"
        yield f"{told}, and that nothing compared with the base: {named(other)}."


def _is_same(found: bytes | None, content: bytes | None) -> bool:
    if found is None or content is None:
        return False
    return content.startswith(_LFS) or _lines(found) == _lines(content)


def _lines(content: bytes) -> bytes:
    """Return a content without the carriage returns that git may add."""
    return content.replace(b"\r\n", b"\n")
