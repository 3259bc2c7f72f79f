"""How another file states that a chart is deployed, and the files that it names.

Finds the files of the repository that a release names. Nothing leads out of it.

A file names its repository by a URL. A checkout knows only the URL that it was cloned from, and a
fork has another owner. So the last part of the path is compared, if the checkout states one.
"""

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import Any

from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import list_of_texts, mapping, sequence
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import Unknown
from kthena_components.core.values.values_in_text import merged, parsed, steps_of, with_value
from kthena_components.reading.files import Unreadable, read_regular
from kthena_components.reading.settings import parse_kube_map, read_below

_ORIGIN = regex(r'^\[remote "origin"\]\s*$(?:\n(?!\[).*)*?\n\s*url\s*=\s*(\S+)', re.MULTILINE)
_OTHER_REVISION = regex(r"[0-9a-f]{7,40}|(?:.*[-/])?v?\d+\.\d+(?:\.\d+)?\S*|.*[*<>~^].*")
"""A commit, a version, or a range of versions."""
_ADDRESS = regex(r"[a-z][a-z0-9+.-]*://|[^/\s]+@[^/\s]+:", re.IGNORECASE)
_MOST = 20_000
"""Maximum number of files and folders that a pattern is compared with."""
_STARS = regex(r"\*+")
_SHOWN = 60
_NULL = "\0"
_FILLED = "{{"


class OutsideError(ValueError):
    """Something is not in the repository, or is not known without a cluster.

    The text is the reason.
    """

    folder: str = ""
    """The real path of what is released, if that is known."""

    @classmethod
    @contextmanager
    def of(cls, folder: str) -> Iterator[None]:
        """Add the folder of what is released to the errors inside."""
        try:
            yield
        except cls as error:
            error.folder = error.folder or folder
            raise


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a release is stated."""

    file: str
    what: str
    """The statement, such as `Application chat`."""
    boundary: str
    """The real path of the repository."""

    @property
    def name(self) -> str:
        """The name of the release in messages."""
        return f"{self.file} ({self.what})"

    @property
    def folder(self) -> str:
        """The real path of the file's folder, at which relative paths start."""
        return os.path.realpath(Path(self.file).parent)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartRelease:
    """A release of a chart with its values."""

    place: Place
    folder: str
    """The real path of the chart."""
    name: str
    namespace: str
    values: tuple[str, ...] = ()
    """Contents of values files. A later one overrides an earlier one."""
    options: tuple[str, ...] = ()
    """Options of helm that set single values after all files."""
    keeps_defaults: bool = True
    """Whether the values are added to the chart's own; False: they replace them."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Fields of a kustomization that changes the objects of the chart."""

    @property
    def key(self) -> str:
        """A string that is the same for releases of the same objects."""
        named = (self.folder, self.name, self.namespace, self.values, self.options)
        rest = (self.keeps_defaults, self.fields)
        return json.dumps([*named, *rest], sort_keys=True, default=str)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlay:
    """A kustomization that is built with further fields."""

    place: Place
    folder: str
    """The real path of the kustomization's folder."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Fields of a kustomization around it."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Values for `${NAME}` in the objects."""
    replaces: bool = False
    """Whether variables in the objects are replaced at all."""
    closed: bool = False
    """Whether these are all variables that are set: others have the default beside their name."""

    @property
    def key(self) -> str:
        """A string that is the same for overlays of the same objects."""
        stated = (self.folder, self.fields, self.variables, self.replaces, self.closed)
        return json.dumps(stated, sort_keys=True, default=str)

    @property
    def is_plain(self) -> bool:
        """Whether it adds nothing to the kustomization."""
        return not self.fields and not self.replaces


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """A release that cannot be rendered here."""

    place: Place
    why: str
    folder: str = ""
    """The real path of what it releases, if that is in the repository."""
    body: Mapping[str, Any] = field(default_factory=dict)
    """An object that states the same, which rules may read; empty if its values are not known."""
    values: tuple[str, ...] = ()
    """The contents of values files in it."""


Statement = ChartRelease | Overlay | Outside


_OPEN = Unknown("a file of values is not read")
_NOT_READ = "__VALUES_OF_HELM__"
"""A placeholder for values that are not known."""


def elsewhere(why: str, stated: ChartRelease, chart: object, version: object) -> Outside:
    """Describe a release of a chart elsewhere, with Pulumi's Release, whose values rules may read.

    Null removes a value of the chart. Source: helm/helm v3 pkg/chartutil/coalesce.go.
    """
    values: Any = {}
    for text in stated.values:
        content = parse_kube_map(text, "") if text.strip() else {}
        values = _OPEN if isinstance(content, Unreadable) else merged(values, content)
    for option in stated.options:
        flag, name, value = option.split("=", 2)
        steps = steps_of(name)
        given = parsed(value, as_text=flag == "--set-string")
        values = steps if isinstance(steps, Unknown) else with_value(values, steps, given)
    body = {
        "apiVersion": "helm.sh/v3",
        "kind": "Release",
        "metadata": {"name": stated.name},
        "chart": chart,
        "values": json.loads(json.dumps(values, default=lambda _: _NOT_READ)),
        **({"namespace": stated.namespace} if stated.namespace else {}),
        **({"version": str(version)} if version else {}),
    }
    return Outside(place=stated.place, why=why, body=body, values=stated.values)


def read_or_outside(
    read: Callable[[], Iterable[Statement]],
    place: Place,
    stated: Callable[[str], ChartRelease],
    chart: object,
    version: object,
) -> list[Statement]:
    """Read a release, or describe one that cannot be rendered.

    Args:
        stated: Reads what it states for a chart in a folder, or elsewhere if the folder is empty.
        chart: The chart, as it is stated. If it is elsewhere, the values are described, too.
        version: Its version, as it is stated.
    """
    try:
        return [*read()]
    except OutsideError as error:
        if not error.folder and isinstance(chart, str):
            with suppress(OutsideError):
                return [elsewhere(str(error), stated(""), chart, version)]
        return [Outside(place=place, why=str(error), folder=error.folder)]


# Fields of a kustomization that a release states. Only those that name no file and no address.


_TARGET = frozenset(
    {"group", "version", "kind", "name", "namespace", "labelSelector", "annotationSelector"}
)
_IMAGE = frozenset({"name", "newName", "newTag", "digest"})
_WRITTEN = regex(r"(?:(?P<name>[^=]+)=)?(?P<new>[^@]*?)(?::(?P<tag>[^:/@]+))?(?:@(?P<id>.+))?")
"""An image in Argo CD's notation: `old=new:tag@digest`, each part but one optional."""


def stated_patches(stated: object) -> dict[str, Any]:
    """Return the patches that are stated as text."""
    made = []
    for each in map(mapping, sequence(stated)):
        if not isinstance(each.get("patch"), str):
            raise OutsideError("it has a patch in a file, which is not read")
        kept: dict[str, Any] = {"patch": each["patch"]}
        target = mapping(each.get("target"))
        if target:
            kept["target"] = {key: str(target[key]) for key in target if key in _TARGET}
        if isinstance(each.get("options"), Mapping):
            kept["options"] = {k: v for k, v in each["options"].items() if isinstance(v, bool)}
        made.append(kept)
    return {"patches": made} if made else {}


def images_of(stated: object) -> dict[str, Any]:
    """Return the replacements of images."""
    made = []
    for each in sequence(stated):
        if isinstance(each, str):
            found = _WRITTEN.fullmatch(each)
            parts = found.groupdict() if found is not None else {}
            named = {
                "name": parts.get("name") or parts.get("new"),
                "newName": parts.get("new"),
                "newTag": parts.get("tag"),
                "digest": parts.get("id"),
            }
        else:
            named = {key: mapping(each).get(key) for key in _IMAGE}
        made.append({key: str(value) for key, value in named.items() if value})
    return {"images": made} if made else {}


@dataclass(slots=False)
class Repository:
    """A checkout."""

    boundary: str
    """Its real path."""
    _listed: list[tuple[str, bool]] = field(default_factory=list)

    @cached_property
    def name(self) -> str:
        """The name of the repository it was cloned from; empty if the checkout does not say."""
        text = read_regular(Path(self.boundary, ".git", "config"))
        found = _ORIGIN.search(text.decode(errors="replace")) if text is not None else None
        return _last(found[1]) if found else ""

    def require(self, url: object, revision: object = None) -> None:
        """Require that a URL names this repository, at the revision that is checked out.

        Raises:
            OutsideError: It is another repository or another revision.
        """
        if isinstance(url, str) and self.name and _last(url) != self.name:
            raise OutsideError(f"it is in the repository {url}")
        if isinstance(revision, str) and _OTHER_REVISION.fullmatch(revision):
            raise OutsideError(f"it is of the revision {revision}, and the checkout may be another")

    def folder(self, path: object, start: str = "") -> str:
        """Return the real path of a folder.

        Args:
            path: Its path as stated.
            start: The folder that the path starts at; the repository's if left out.

        Raises:
            OutsideError: There is none.
        """
        real = self._real(path, start)
        if not Path(real).is_dir():
            raise OutsideError(f"{path} is not in the repository")
        return real

    def known(self, path: object) -> str:
        """Return the real path of a folder, without what a template fills in; or nothing."""
        stated = str(path or "").partition(_FILLED)
        above = stated[0] if not stated[1] else stated[0].rpartition("/")[0] or "."
        return self.folder(above) if above and self.has(above) and self._is_folder(above) else ""

    def beside(self, folder: str, paths: object) -> list[str]:
        """List the folders in the repository at some paths that start at a folder."""
        texts = list_of_texts(paths) if folder else []
        found = [self._real(each, folder) for each in texts if self.has(each, folder)]
        return [each for each in found if Path(each).is_dir()]

    def _is_folder(self, path: str) -> bool:
        return Path(self._real(path, "")).is_dir()

    def read(self, path: object, start: str = "") -> str:
        """Read a file.

        Raises:
            OutsideError: It is not in the repository, or cannot be read.
        """
        real = self._real(path, start)
        if not Path(real).exists():
            raise OutsideError(f"its values are in {path}, which is not in the repository")
        text = read_below(Path(real), Path(self.boundary))
        if isinstance(text, Unreadable):
            raise OutsideError(f"its values are in {path}, which {text.because}")
        return text

    def has(self, path: object, start: str = "") -> bool:
        """Return whether a file or a folder is in the repository."""
        try:
            return Path(self._real(path, start)).exists()
        except OutsideError:
            return False

    def matching(self, pattern: str, *, folders: bool, greedy: bool = False) -> list[str]:
        """List the folders or the files that match a pattern, as paths from the repository's.

        Of files, `**` matches any folders; of folders, it means `*`, as in Go's path.Match.

        Args:
            folders: Whether it is of folders.
            greedy: Whether `*` matches any folders, too, as in `git ls-files`.
        """
        stated = pattern.removeprefix("./").strip("/")
        asked = _pattern(_STARS.sub("*", stated) if folders else stated, greedy=greedy)
        found = (path for path, is_folder in self._all() if is_folder is folders)
        return sorted(filter(asked.fullmatch, found))

    def _real(self, path: object, start: str) -> str:
        """Return the real path of a file in the repository; links out of it are refused."""
        if not isinstance(path, str) or _NULL in path:
            raise OutsideError("its path is not stated")
        if _ADDRESS.match(path):
            raise OutsideError(f"{path} is not in the repository")
        below = path.lstrip("/") if not start or path.startswith("/") else path
        begins = self.boundary if not start or path.startswith("/") else start
        real = os.path.realpath(Path(begins, below))
        try:
            Path(real).exists()
        except OSError as error:  # the name is too long
            raise OutsideError(f"{path[:_SHOWN]}… cannot be read: {error.strerror}") from error
        if not Path(real).is_relative_to(self.boundary):
            raise OutsideError(f"{path} leads out of the repository")
        return real

    def _all(self) -> list[tuple[str, bool]]:
        if not self._listed:
            self._listed.extend(self._walk())
        return self._listed

    def _walk(self) -> Iterator[tuple[str, bool]]:
        """List files and folders of the repository, up to a number, without hidden ones."""
        seen, waiting = 0, [self.boundary]
        while waiting:
            try:
                with os.scandir(waiting.pop()) as scanned:
                    entries = [each for each in scanned if not each.name.startswith(".")]
            except OSError:
                continue
            for entry in entries:
                seen += 1
                if seen > _MOST:
                    return
                is_folder = entry.is_dir(follow_symlinks=False)
                if is_folder:
                    waiting.append(entry.path)
                yield os.path.relpath(entry.path, self.boundary), is_folder


def _last(url: str) -> str:
    last = re.split(r"[/:]", url.rstrip("/"))[-1]
    return last.removesuffix(".git").casefold()


def _pattern(pattern: str, *, greedy: bool) -> re.Pattern[str]:
    """Compile a pattern of paths: `**` matches any folders, and so does a greedy `*`."""
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    known = {"**/": r"(?:[^/]+/)*", "**": ".*", "*": ".*" if greedy else "[^/]*", "?": "[^/]"}
    return re.compile("".join(known.get(part, re.escape(part)) for part in parts))
