"""Files that a command line names, mounted from ConfigMaps, and the options in their YAML.

Nothing is read from disk: the caller passes the content of each mount.
"""

import json
import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from kthena_components.core.values.unknown import MaybeText, Unknown

_LONGEST = 1 << 20
"""Maximum characters of a file: a ConfigMap has at most 1 MiB."""
_DEEPEST = 20
_MOST_VALUES = 10_000
"""Maximum keys and values of a file: each may become a word of a command line."""


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

    def read(self, path: str) -> MaybeText | Absent:
        """Return the text of a file of this mount."""
        files = self.files if isinstance(self.files, Contents) else Contents(self.files)
        absent = self.gap or Absent(f"{self.source} has no key that becomes {path}")
        return files.by_path.get(path[len(self.path) :].lstrip("/"), absent)


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

    Aliases are not resolved: a few of them can expand to a very large value.
    """
    import yaml  # noqa: PLC0415 - most command lines name no file

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    if len(text) > _LONGEST:
        return Unknown(f"it has more than {_LONGEST} characters")
    try:
        beyond = _beyond(yaml, yaml.parse(text, Loader=loader))
        found = {} if beyond else yaml.load(text, Loader=loader)  # noqa: S506 - a safe loader
    except Exception:  # noqa: BLE001 - PyYAML raises all sorts for odd scalars
        beyond, found = "it is not valid YAML", {}
    if beyond is None and not isinstance(found, dict | None):
        beyond = "it contains no map"
    return Unknown(beyond) if beyond else found or {}


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


def as_flags(config: Mapping[Any, Any], write: Callable[[str, object], list[str]]) -> list[str]:
    """Write the map of a config file as command line words, as the engines do."""
    named = ((key, value) for key, value in config.items() if isinstance(key, str))
    return [word for key, value in named for word in write(key, value)]


def vllm_flag(key: str, value: object) -> list[str]:
    """Write one entry as vLLM does (vllm/utils/argparse_utils.py `load_config_file`)."""
    if isinstance(value, bool):
        return [f"--{key}" if value else f"--no-{key}"]
    if isinstance(value, list):
        return [f"--{key}", *map(_text, value)] if value else []
    return [f"--{key}", _text(value)]


def sglang_flag(key: str, value: object) -> list[str]:
    """Write one entry as SGLang does (sglang/srt/server_args_config_parser.py)."""
    if isinstance(value, bool):
        return [f"--{key}"] if value else []
    if isinstance(value, list):
        return [f"--{key}", *map(_text, value)] if value else []
    return [f"--{key}", _text(value)]


def kaito_flag(key: str, value: object) -> list[str]:
    """Write one entry as KAITO does (kaito presets/workspace/inference/vllm/inference_api.py)."""
    return [f"--{key}", _text(value)]


def _text(value: object) -> str:
    if isinstance(value, dict):
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
            yield from (flag, _text(value))
