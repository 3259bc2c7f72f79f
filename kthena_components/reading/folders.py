"""Which files are read of the paths that a user names.

A folder may have been written by a stranger. Of it regular files are read, and links to such files
as long as they stay inside of the folders that were named.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kthena_components.reading.files import STDIN, Unreadable, odd_kind

SUFFIXES = (".yaml", ".yml", ".json")
CHART = "Chart.yaml"
KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
"""Source: sigs.k8s.io/kustomize/api/konfig, RecognizedKustomizationFileNames."""


@dataclass(slots=True)
class Found:
    """What is to be read, and what is not."""

    files: list[str | Unreadable] = field(default_factory=list)
    named: set[str] = field(default_factory=set)
    """Those that the user named, which need not be regular files."""
    hidden: int = 0
    """Folders that were passed over because their names begin with a dot."""
    linked: int = 0
    """Folders that were passed over because they are links."""
    again: int = 0
    """Links that were passed over because the file that they lead to is read where it stands."""
    folders: list[str] = field(default_factory=list)
    """Those that the user named."""
    charts: dict[str, str] = field(default_factory=dict)
    """Folders that hold a Helm chart, each with the folder that was named."""
    kustomizations: dict[str, str] = field(default_factory=dict)
    """Files from which Kustomize builds, each with the folder that was named."""


@dataclass(frozen=True, slots=True)
class _Link:
    """A link that is named like a file to be read."""

    path: str
    folder: str
    """The folder that was named."""


def find_files(paths: Iterable[str]) -> Found:
    """List what is to be read: files as they are given, and what folders hold, sorted."""
    found, roots = Found(), list[str]()
    listed: list[str | Unreadable | _Link] = []
    read: set[str] = set()
    for path in paths:
        if path == STDIN or not Path(path).is_dir():
            found.named.add(path)
            listed.append(path)
            continue
        found.folders.append(path)
        roots.append(os.path.realpath(path))
        below = list(_below(path, found))
        read.update(_real(each, path, roots[-1]) for each in below if isinstance(each, str))
        listed += below or [_empty(path)]
    for each in listed:
        followed = _follow(each, roots, read) if isinstance(each, _Link) else each
        if followed is None:
            found.again += 1
        else:
            found.files.append(followed)
    return found


def _below(root: str, found: Found) -> Iterator[str | Unreadable | _Link]:
    """List one folder, each level before those below it.

    Not with os.walk, which calls itself for each level and so ends in a RecursionError.
    """
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(folder) as scanned:
                entries = sorted(scanned, key=lambda entry: entry.name)
            folders = [entry for entry in entries if _is_folder(entry, found)]
        except OSError as error:
            yield Unreadable(file=folder, because=f"cannot be listed: {error.strerror}")
            continue
        for entry in entries:
            _note_source(entry, root, found)
            if Path(entry.name).suffix.lower() in SUFFIXES and not _leads_to_folder(entry):
                yield _entry(entry, root)
        waiting += [entry.path for entry in reversed(folders)]


def _note_source(entry: os.DirEntry[str], root: str, found: Found) -> None:
    """Note what a program renders manifests from."""
    if entry.name == CHART and entry.is_file(follow_symlinks=False):
        found.charts[str(Path(entry).parent)] = root
    elif entry.name in KUSTOMIZATIONS and entry.is_file(follow_symlinks=False):
        found.kustomizations[str(Path(entry))] = root


def _is_folder(entry: os.DirEntry[str], found: Found) -> bool:
    """Tell whether an entry is a folder to be read; count the others."""
    if not _leads_to_folder(entry):
        return False
    if entry.name.startswith("."):
        found.hidden += 1
        return False
    if entry.is_symlink():
        found.linked += 1
        return False
    return True


def _leads_to_folder(entry: os.DirEntry[str]) -> bool:
    # Of a link that leads in a circle, entry.is_dir() would raise, and the others not be listed.
    return entry.is_dir(follow_symlinks=False) or (entry.is_symlink() and Path(entry).is_dir())


def _entry(entry: os.DirEntry[str], root: str) -> str | Unreadable | _Link:
    path = str(Path(entry))
    if entry.is_symlink():
        return _Link(path, root)
    return path if entry.is_file(follow_symlinks=False) else _odd(path)


def _follow(link: _Link, roots: list[str], read: set[str]) -> str | Unreadable | None:
    """Say what becomes of a link: it is read, or refused; or None if its file is read anyway.

    What is read twice would be judged twice, and an object that is in two files is a finding.
    A link is read for a file that nothing else reads: of another name, or in a hidden folder, as
    where Kubernetes mounts a ConfigMap.
    """
    real = os.path.realpath(link.path)
    if not any(_is_below(real, root) for root in roots):
        return _refused(link, f"leads out of the folder {link.folder} that is checked")
    try:
        seen = Path(real).stat()
    except OSError as error:
        return _refused(link, f"cannot be followed: {error.strerror}")
    if not stat.S_ISREG(seen.st_mode):
        return _odd(link.path)
    if real in read:
        return None
    read.add(real)
    return link.path


def _refused(link: _Link, why: str) -> Unreadable:
    try:
        target = str(Path(link.path).readlink())
    except OSError:
        target = "?"
    return Unreadable(
        file=link.path,
        because=f"is a link to '{target}', which {why}, and is not read: remove the link, or give "
        "the file as an argument of its own",
    )


def _odd(path: str) -> Unreadable:
    try:
        kind = odd_kind(Path(path).stat())
    except OSError as error:
        return Unreadable(file=path, because=f"cannot be read: {error.strerror}")
    return Unreadable(
        file=path,
        because=f"is {kind or 'no regular file'}, and of a folder only regular files are read: "
        "remove it, or give it as an argument of its own",
    )


def _empty(folder: str) -> Unreadable:
    return Unreadable(file=folder, because=f"holds no file that ends in {' or '.join(SUFFIXES)}")


def _real(path: str, root: str, real_root: str) -> str:
    """Give the real path of a file below a folder, where no link is on the way."""
    return str(Path(real_root, Path(path).relative_to(root)))


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)
