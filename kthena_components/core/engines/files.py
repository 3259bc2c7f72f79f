"""Files that a command line names, mounted from ConfigMaps, and the options in their YAML.

Nothing is read from disk: the caller passes the content of each mount.
"""

import json
import posixpath
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Any

from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.unknown import MaybeText, Unknown

_LONGEST = 1 << 20
"""Maximum characters of a file: a ConfigMap has at most 1 MiB."""
_LONGEST_TWICE = 1 << 16
"""Maximum characters of a file that is read again with the slower loader."""
_DEEPEST = 20
_MOST_VALUES = 10_000
"""Maximum keys and values of a file: each may become a word of a command line."""


class Broken(Unknown):
    """A file that no engine can read, and why."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Absent:
    """A file that definitely does not exist."""

    because: str


class Contents(tuple[tuple[str, MaybeText], ...]):  # noqa: SLOT001 - it remembers
    """Files by path, with their text. Many containers of a pod may share them."""

    @cached_property
    def by_path(self) -> Mapping[str, MaybeText]:
        """The first of each path."""
        return dict(reversed(self))

    @cached_property
    def _mentioned(self) -> dict[str, bool]:
        return {}

    def mention(self, word: str) -> bool:
        """Return whether a string contains a word."""
        if word not in self._mentioned:
            texts = (text for _, text in self if isinstance(text, str))
            self._mentioned[word] = any(word in text for text in texts)
        return self._mentioned[word]

    @cached_property
    def _hash(self) -> int:
        return super().__hash__()

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True, slots=True)
class Mount:
    """The content of a mount path."""

    path: str
    """Mount path without trailing slash."""
    files: tuple[tuple[str, MaybeText], ...] = ()
    """Text by path below the mount; the empty path is the mount itself."""
    gap: Unknown | None = None
    """Why other files may exist."""
    source: str = ""
    """Source of the files, for messages: ConfigMap 'x'."""

    @property
    def contents(self) -> Contents:
        """Its files, which remember what was looked up."""
        return self.files if isinstance(self.files, Contents) else Contents(self.files)

    def read(self, path: str) -> MaybeText | Absent:
        """Return the text of a file of this mount."""
        absent = self.gap or Absent(f"{self.source} has no key that becomes {path}")
        return self.contents.by_path.get(path[len(self.path) :].lstrip("/"), absent)


Files = tuple[Mount, ...]
"""The mounts of one container."""


def read_file(files: Files, path: str) -> MaybeText | Absent | None:
    """Return the text of a file by its path; None if nothing known is mounted there."""
    if not files or not path.startswith("/"):
        return None
    path = posixpath.normpath(path)
    around = [mount for mount in files if path == mount.path or path.startswith(f"{mount.path}/")]
    return max(around, key=lambda mount: len(mount.path)).read(path) if around else None


@lru_cache(maxsize=16)
def read_yaml(text: str) -> Mapping[Any, Any] | Unknown:
    """Read the map in a YAML file, as PyYAML's safe loader would; never raises.

    Aliases are not resolved: a few of them can expand to a very large value. What the
    engines' loader rejects, or reads as another value than a map, is Broken.
    """
    import yaml  # noqa: PLC0415 - most command lines name no file

    if len(text) > _LONGEST:
        return Unknown(f"it has more than {_LONGEST} characters")
    # The engines use the slower one. libyaml may reject what it takes.
    loaders = dict.fromkeys((getattr(yaml, "CSafeLoader", yaml.SafeLoader), yaml.SafeLoader))
    for loader in loaders if len(text) <= _LONGEST_TWICE else list(loaders)[:1]:
        try:
            beyond = _beyond(yaml, yaml.parse(text, Loader=loader))
            found = None if beyond else yaml.load(text, Loader=loader)  # noqa: S506 - a safe loader
        except Exception:  # noqa: BLE001, S112 - PyYAML raises all sorts for odd scalars
            continue
        if beyond:
            return Unknown(beyond)
        return found or {} if isinstance(found, dict | None) else Broken("it contains no map")
    kind = Broken if len(text) <= _LONGEST_TWICE else Unknown
    return kind("it is not valid YAML")


def _beyond(yaml: Any, events: Iterable[Any]) -> str | None:
    """Return the limit that a file exceeds, if any."""
    depth = values = 0
    for event in events:
        if isinstance(event, yaml.AliasEvent):
            return "it has aliases, which are not resolved here"
        values += isinstance(event, yaml.ScalarEvent)
        if values > _MOST_VALUES:
            return f"it has more than {_MOST_VALUES} keys and values"
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            return f"it is nested more deeply than {_DEEPEST} levels"
    return None


def text_of(value: object, *, json_maps: bool = True) -> str:
    """Write a value of a file as one word."""
    if isinstance(value, dict) and json_maps:
        return json.dumps(value, default=str)
    try:
        return str(value)
    except ValueError:  # an integer with more digits than Python converts
        return hex(value) if isinstance(value, int) else "?"


def engine_options(config: Mapping[Any, Any], names: Mapping[str, str]) -> Iterator[str]:
    """Write a file's entries as flags, where keys are fields of the engine.

    Args:
        config: The map of the file; `a.b` in names means key b of the map a.
        names: Flag by field.
    """
    for field, flag in names.items():
        value: object = config
        for part in field.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if value is not None and not isinstance(value, bool):
            yield from (flag, text_of(value))
