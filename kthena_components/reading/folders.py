"""Finds the files to read among the paths that a user names.

A folder may be untrusted. Only regular files in it are read, and links to such files if they stay
inside the named folders.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import field
from functools import lru_cache
from pathlib import Path

from kthena_components.core.values.dataclass import dataclass
from kthena_components.reading.files import STDIN, Unreadable, odd_kind

SUFFIXES = (".yaml", ".yml", ".json")
CHART = "Chart.yaml"
PACKED, SUBCHARTS = ".tgz", "charts"
TERRAFORM = (".tf", ".tofu")
SCRIPTS = (".sh", "Makefile")
HELMFILE, HELMFILES, TEMPLATE = "helmfile", "helmfile.d", ".gotmpl"
KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
"""Source: sigs.k8s.io/kustomize/api/konfig, RecognizedKustomizationFileNames."""


@dataclass(slots=True)
class FoundFiles:
    """The files to read, and what is skipped."""

    files: list[str | Unreadable] = field(default_factory=list)
    named: set[str] = field(default_factory=set)
    """Files that the user named; they need not be regular."""
    hidden: int = 0
    """Number of skipped folders whose names start with a dot."""
    linked: int = 0
    """Number of skipped folders that are links, whose targets are read anyway."""
    packed: int = 0
    """Number of skipped `.tgz` files, which may be charts. Not those that a chart depends on."""
    again: int = 0
    """Number of skipped links whose target is read anyway."""
    folders: list[str] = field(default_factory=list)
    """Folders that the user named."""
    charts: dict[str, str] = field(default_factory=dict)
    """Folders with a Helm chart, each with the folder that the user named."""
    kustomizations: dict[str, str] = field(default_factory=dict)
    """Files that Kustomize builds from, each with the folder that the user named."""
    deploying: list[str] = field(default_factory=list)
    """Files of Terraform and templates of helmfiles, which may deploy charts."""
    scripts: list[str] = field(default_factory=list)
    """Scripts, which may install operators."""
    links: list["_Link"] = field(default_factory=list)
    """Links to folders."""


@dataclass(frozen=True, slots=True)
class _Link:
    """A link to a folder, or with the name of a file to read."""

    path: str
    folder: str
    """The named folder."""


def find_files(paths: Iterable[str]) -> FoundFiles:
    """List the files to read: named files, and the contents of folders, sorted."""
    found, roots = FoundFiles(), list[str]()
    listed: list[str | Unreadable | _Link] = []
    read: set[str] = set()
    for path in dict.fromkeys(paths):  # a file that is named twice is one file
        if path == STDIN or not os.path.isdir(path):  # noqa: PTH112 - a path may be too long
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
    for link in found.links:
        why = _unread(os.path.realpath(link.path), link, roots)
        if why:
            found.files.append(_refused(link, why, "folder"))
        else:
            found.linked += 1
    return found


def _below(root: str, found: FoundFiles) -> Iterator[str | Unreadable | _Link]:
    """List one folder, level by level.

    Not with os.walk, which recurses for each level and so can raise a RecursionError.
    """
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(folder) as scanned:
                entries = sorted(scanned, key=lambda entry: entry.name)
            folders = [entry for entry in entries if _is_folder(entry, root, found)]
        except OSError as error:
            yield Unreadable(file=folder, because=f"cannot be listed: {error.strerror}")
            continue
        for entry in entries:
            _note_source(entry, root, found)
            # kubectl reads a file named `.yaml`, too, which has no suffix for pathlib.
            if entry.name.lower().endswith(SUFFIXES) and not _leads_to_folder(entry):
                yield _entry(entry, root)
        waiting += [entry.path for entry in reversed(folders)]


def _note_source(entry: os.DirEntry[str], root: str, found: FoundFiles) -> None:
    """Record a chart or a kustomization, also if its file is a link: both programs follow one."""
    if entry.name.endswith(PACKED):
        folder = Path(entry).parent
        found.packed += not (folder.name == SUBCHARTS and str(folder.parent) in found.charts)
    if _may_deploy(entry) and entry.is_file(follow_symlinks=False):
        found.deploying.append(str(Path(entry)))
    if entry.name.endswith(SCRIPTS) and entry.is_file(follow_symlinks=False):
        found.scripts.append(str(Path(entry)))
    if entry.name != CHART and entry.name not in KUSTOMIZATIONS:
        return
    if not Path(entry).is_file():
        return
    if entry.name == CHART:
        found.charts[str(Path(entry).parent)] = root
    else:
        found.kustomizations[str(Path(entry))] = root


def _may_deploy(entry: os.DirEntry[str]) -> bool:
    if not entry.name.endswith(TEMPLATE):
        return entry.name.endswith(TERRAFORM)
    return entry.name.startswith(HELMFILE) or Path(entry).parent.name == HELMFILES


def _is_folder(entry: os.DirEntry[str], root: str, found: FoundFiles) -> bool:
    """Return whether an entry is a folder to read; note the others."""
    if not _leads_to_folder(entry):
        return False
    if entry.name.startswith("."):
        found.hidden += 1
        return False
    if entry.is_symlink():
        found.links.append(_Link(str(Path(entry)), root))
        return False
    return True


def _leads_to_folder(entry: os.DirEntry[str]) -> bool:
    # For a link cycle, entry.is_dir() would raise, and the remaining entries would not be listed.
    return entry.is_dir(follow_symlinks=False) or (entry.is_symlink() and Path(entry).is_dir())


def _entry(entry: os.DirEntry[str], root: str) -> str | Unreadable | _Link:
    path = str(Path(entry))
    if entry.is_symlink():
        return _Link(path, root)
    return path if entry.is_file(follow_symlinks=False) else _odd(path)


def _follow(link: _Link, roots: list[str], read: set[str]) -> str | Unreadable | None:
    """Decide about a link: read it, report it, or return None if its target is read anyway.

    A file that is read twice would be checked twice, and an object in two files is a finding. A
    link is read if nothing else reads its target: one with another name, or in a hidden folder, as
    in Kubernetes' mounts of ConfigMaps.
    """
    real = os.path.realpath(link.path)
    if not any(_is_below(real, root) for root in roots):
        return _refused(link, _leads_out(link))
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


def _unread(real: str, link: _Link, roots: list[str]) -> str:
    """Return why nothing reads the folder that a link leads to; empty if it is read anyway."""
    around = [root for root in roots if _is_below(real, root)]
    if not around:
        return _leads_out(link)
    parts = (Path(real).relative_to(root).parts for root in around)
    if all(any(part.startswith(".") for part in each) for each in parts):
        return "is in a folder whose name begins with a dot"
    return ""


def _leads_out(link: _Link) -> str:
    return f"leads out of the folder {link.folder} that is checked"


def _refused(link: _Link, why: str, kind: str = "file") -> Unreadable:
    """Write why a link is not read, with the file to which it leads."""
    try:
        target = str(Path(link.path).readlink())
    except OSError:
        target = "?"
    return Unreadable(
        file=link.path,
        because=f"is a link to '{target}', which {why}, and is not read: remove the link, or pass "
        f"the {kind} as its own argument",
    )


def _odd(path: str) -> Unreadable:
    """Write why something that is not a regular file, such as a device, is not read."""
    try:
        kind = odd_kind(Path(path).stat())
    except OSError as error:
        return Unreadable(file=path, because=f"cannot be read: {error.strerror}")
    return Unreadable(
        file=path,
        because=f"is {kind or 'not a regular file'}, and only regular files in a folder are read: "
        "remove it, or pass it as its own argument",
    )


def _empty(folder: str) -> Unreadable:
    return Unreadable(file=folder, because=f"contains no file that ends in {' or '.join(SUFFIXES)}")


def _real(path: str, root: str, real_root: str) -> str:
    """Return the real path of a file below a folder with no link on the way."""
    start = _start(root)
    if path.startswith(start):  # mostly, and quicker than to take it apart
        return os.path.join(real_root, path[len(start) :])  # noqa: PTH118
    return str(Path(real_root, Path(path).relative_to(root)))


@lru_cache(maxsize=16)
def _start(root: str) -> str:
    """Return what the paths of the files below a folder begin with."""
    return str(Path(root, "x"))[:-1]


def is_of_git(path: str, boundary: str) -> bool:
    """Return whether a real path in a checkout is git's own, which holds addresses and tokens."""
    return ".git" in (part.casefold() for part in Path(path).parts[len(Path(boundary).parts) :])


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)
