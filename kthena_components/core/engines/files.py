"""Files that a command line names, where they come from a ConfigMap, and what YAML in them says.

Nothing is read from a disk: the caller says what each mount of the container holds.
"""

import json
import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from kthena_components.core.values.unknown import MaybeText, Unknown

_LONGEST = 1 << 20
"""Characters of the longest file: no ConfigMap holds more than 1 MiB."""
_DEEPEST = 20
_MOST_VALUES = 10_000
"""Keys and values of the longest file, each of which may become a word of a command line."""


@dataclass(frozen=True, slots=True)
class Absent:
    """A file that is surely not there."""

    because: str


class Contents(tuple[tuple[str, MaybeText], ...]):  # noqa: SLOT001 - it remembers
    """Files by path, each with its text. Many containers of a pod may have the same ones."""

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
    """What a container finds at a path and below it."""

    path: str
    """Without a slash at the end."""
    files: tuple[tuple[str, MaybeText], ...] = ()
    """Path below the mount, empty for the mount itself, and text."""
    gap: Unknown | None = None
    """Why there may be other files."""
    source: str = ""
    """Where the files are from, in words: ConfigMap 'x'."""

    def read(self, path: str) -> MaybeText | Absent:
        """Give the text of a file of this mount."""
        files = self.files if isinstance(self.files, Contents) else Contents(self.files)
        absent = self.gap or Absent(f"{self.source} has no key that becomes {path}")
        return files.by_path.get(path[len(self.path) :].lstrip("/"), absent)


Files = tuple[Mount, ...]
"""What is mounted in one container."""


def read_file(files: Files, path: str) -> MaybeText | Absent | None:
    """Give the text of a file by its path; None when nothing here is mounted there."""
    if not files or not path.startswith("/"):
        return None
    path = posixpath.normpath(path)
    around = [mount for mount in files if path == mount.path or path.startswith(f"{mount.path}/")]
    return max(around, key=lambda mount: len(mount.path)).read(path) if around else None


@lru_cache(maxsize=16)
def read_yaml(text: str) -> Mapping[Any, Any] | Unknown:
    """Read the map that a YAML file holds, as PyYAML's safe loader would; never raises.

    Aliases are not followed: a few of them can stand for a very large value.
    """
    import yaml  # noqa: PLC0415 - most command lines name no file

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    if len(text) > _LONGEST:
        return Unknown(f"it has more than {_LONGEST} characters")
    try:
        beyond = _beyond(yaml, yaml.parse(text, Loader=loader))
        found = {} if beyond else yaml.load(text, Loader=loader)  # noqa: S506 - a safe loader
    except Exception:  # noqa: BLE001 - PyYAML raises all sorts for odd scalars
        beyond, found = "it is no YAML that can be read", {}
    if beyond is None and not isinstance(found, dict | None):
        beyond = "it holds no map"
    return Unknown(beyond) if beyond else found or {}


def _beyond(yaml: Any, events: Iterable[Any]) -> str | None:
    """Say which limit a file goes beyond, if any."""
    depth = values = 0
    for event in events:
        if isinstance(event, yaml.AliasEvent):
            return "it has aliases, which are not followed here"
        values += isinstance(event, yaml.ScalarEvent)
        if values > _MOST_VALUES:
            return f"it has more than {_MOST_VALUES} keys and values"
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            return f"it is nested more deeply than {_DEEPEST} levels"
    return None


def as_flags(config: Mapping[Any, Any], write: Callable[[str, object], list[str]]) -> list[str]:
    """Write the map of a config file as the words of a command line, as the engines do."""
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
    except ValueError:  # an integer of more digits than Python writes
        return hex(value) if isinstance(value, int) else "?"


def engine_options(config: Mapping[Any, Any], names: Mapping[str, str]) -> Iterator[str]:
    """Write the entries of a file whose keys are fields of the engine, not flags.

    Args:
        config: The map of the file; `a.b` in names means key b of the map a.
        names: Field to flag.
    """
    for field, flag in names.items():
        value: object = config
        for part in field.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if value is not None and not isinstance(value, bool):
            yield from (flag, _text(value))
