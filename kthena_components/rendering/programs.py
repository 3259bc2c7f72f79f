"""Finds programs on PATH that no untrusted folder decides about.

A checkout may contain a program of any name, and a link to any program. If PATH leads there (`.`,
an empty entry, `bin`, a folder of the checkout, a link into it), the author of the checkout would
choose what runs. So each lookup in a folder on PATH is followed as the kernel does it, and a
program is skipped if one step reads an entry below an untrusted folder. The next one on PATH is
taken: a program that the user has installed stays usable, whatever the checkout contains.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

_GIT = ".git"
_Identity = tuple[int, int]
"""Device and inode of a folder: a folder may have several spellings, by case or by a bind mount."""


def find_program(names: Iterable[str], untrusted: Iterable[str]) -> str | None:
    """Find a program on PATH: the first one that no untrusted folder decides about.

    Entries of PATH that are empty or relative are skipped, because they depend on the current
    folder.

    Args:
        names: Its possible names, the best first: `("kustomize", "kubectl")`.
        untrusted: Folders with untrusted files; see `checkouts_around`. A folder that does not
            exist is ignored.

    Returns:
        Its absolute path, with links as PATH spells them (some programs depend on their name).
        None if there is none.
    """
    names, roots = list(names), _identities(untrusted)
    found = (file for name in names for file in _on_path(name))
    return next((file for file in found if not _depends_on(file, roots)), None)


def why_missing(names: Iterable[str], untrusted: Iterable[str]) -> str:
    """Explain why `find_program` returned None, as the end of a message."""
    names, roots = list(names), _identities(untrusted)
    found = (file for name in names for file in _on_path(name))
    inside = next((file for file in found if _depends_on(file, roots)), None)
    if inside is None:
        return f"there is no {' or '.join(names)} on PATH"
    name = Path(inside).name
    return (
        f"PATH leads to {inside}, which a checked folder decides about, so it is not started, and "
        f"there is no other {name} on PATH: install {name} outside the checkout"
    )


def checkouts_around(folders: Iterable[str]) -> list[str]:
    """Return the real paths of the checkouts that contain some folders.

    This is the folder itself and the repository around it. A repository whose `.git` is a file, a
    submodule or a worktree, may be part of another one, which then counts, too.
    """
    found: dict[str, None] = {}
    for folder in folders:
        real = Path(os.path.realpath(folder))
        found[str(real)] = None
        for each in (real, *real.parents):
            if (each / _GIT).exists():
                found[str(each)] = None
                if (each / _GIT).is_dir():
                    break
    return list(found)


def _on_path(name: str) -> Iterator[str]:
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        file = Path(folder, name)
        if file.is_absolute() and file.is_file() and os.access(file, os.X_OK):
            yield str(file)


def _identities(folders: Iterable[str]) -> set[_Identity]:
    found = (_identity(Path(folder)) for folder in folders)
    return {each for each in found if each is not None}


def _identity(folder: Path) -> _Identity | None:
    try:
        seen = folder.stat()
    except (OSError, ValueError):
        return None
    return seen.st_dev, seen.st_ino


def _depends_on(file: str, roots: set[_Identity]) -> bool:
    """Return whether the lookup of an absolute path reads an entry below one of some folders."""
    folders = {each for folder in _looked_up_in(file) for each in (folder, *folder.parents)}
    return any(_identity(folder) in roots for folder in folders)


def _looked_up_in(path: str) -> Iterator[Path]:
    """Yield the real path of each folder in which the lookup of an absolute path reads an entry.

    The path must exist. So the number of links on the way is limited: the kernel has followed them.
    """
    waiting, here = _names(Path(path)), Path(os.sep)
    while waiting:
        name = waiting.pop()
        if name == os.pardir:
            here = here.parent  # `here` has no links
            continue
        yield here
        entry = here / name
        if entry.is_symlink():
            target = entry.readlink()
            here = Path(os.sep) if target.is_absolute() else here
            waiting += _names(target)
        else:
            here = entry


def _names(path: Path) -> list[str]:
    """List the names in a path, the last one first."""
    return [name for name in reversed(path.parts) if name != path.anchor]
