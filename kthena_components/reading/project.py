"""Reads a Pulumi project without Pulumi.

Anything that is not understood is an error, because the answer decides which files are checked.
Source: Pulumi v3.259.0, sdk/go/common/workspace: paths.go, loaders.go and project.go; and
pkg/workspace/config.go.
"""

import json
import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from decimal import Decimal
from pathlib import Path
from typing import Any

from kthena_components.core.findings import suggest
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.regex import regex
from kthena_components.reading.files import Unreadable
from kthena_components.reading.settings import parse_map, read_below

SUFFIXES = (".json", ".yaml", ".yml")
"""File suffixes of a project. Stack files have the suffix of Pulumi.*."""
_KEYS = (
    "name",
    "runtime",
    "main",
    "config",
    "stackConfigDir",
    "template",
    "backend",
    "options",
    "packages",
    "plugins",
    "requiredPulumiVersion",
)
_STACK_KEYS = ("secretsprovider", "encryptedkey", "encryptionsalt", "config", "environment")
PROGRAM_SUFFIXES = frozenset(
    {".py", ".go", ".cs", ".fs", ".vb", ".java", ".kt", ".kts", ".scala", ".groovy"}
    | {".js", ".jsx", ".cjs", ".mjs", ".ts", ".tsx", ".cts", ".mts"}
)
"""File suffixes of programs in the languages that Pulumi runs, except YAML."""
PROJECT_FILES = tuple(f"Pulumi{suffix}" for suffix in SUFFIXES)
_NAME = regex(r"[A-Za-z0-9_.-]{1,100}")
_VALUES = ("value", "default")
_PATH = regex(r"[].[\"\\]")
"""Characters of a path into a value, which Pulumi takes in the config keys of a project."""
_SECURE = "secure"
_LEAST_PLAIN = 1e-6
_SHOWN = 80


class ProjectError(ValueError):
    """A project or stack that is not understood. Its text is written for users."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """The paths of a project's parts, and the config that its stacks share."""

    name: str
    stacks: str = ""
    """Folder of its stack files, relative to the project's folder, with `/` as separator."""
    suffix: str = ".yaml"
    main: str = ""
    """Folder of its program, relative to the project's folder."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Default config of stacks, by `namespace:key`."""

    def stack_file(self, stack: str) -> str:
        """Return the path of a stack's file, relative to the project's folder."""
        return posixpath.normpath(posixpath.join(self.stacks, f"Pulumi.{stack}{self.suffix}"))


def read_project(folder: Path) -> Project:
    """Read the project in a folder.

    Raises:
        ProjectError: There is none, there are several, or it is not understood.
    """
    names = [name for name in PROJECT_FILES if _is_there(folder / name)]
    file = folder / only_project_file(names, str(folder.absolute()))
    return parse_project(read_mapping(file), str(file))


def only_project_file(names: Sequence[str], folder: str) -> str:
    """Return the only project file of a folder.

    Raises:
        ProjectError: There is none, or there are several.
    """
    if not names:
        message = "for manifests without a Pulumi program, use `kthena-components check`"
        raise ProjectError(f"{folder} contains no Pulumi project; {message}")
    if len(names) > 1:
        message = f"{folder} contains {' and '.join(names)}, of which Pulumi reads the first"
        raise ProjectError(f"{message}: remove the others")
    return names[0]


def parse_project(content: Mapping[str, Any], file: str) -> Project:
    """Parse a project file.

    Raises:
        ProjectError: It is not understood.
    """
    _require_spelling(content, _KEYS, file)
    name, config = content.get("name"), content.get("config")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        seen = f"name is {shown(name)}, but must be letters, digits, '-', '_' and '.'"
        raise ProjectError(f"{file}: {seen}, at most 100: write one")
    if isinstance(config, str):
        if "stackConfigDir" in content:
            seen = "config and stackConfigDir both set the folder of stack files"
            raise ProjectError(f"{file}: {seen}: remove config")
        content, config = {**content, "stackConfigDir": config}, None
    if not isinstance(config, Mapping | None):
        raise ProjectError(f"{file}: config is {shown(config)}, but must be a map of config keys")
    return Project(
        name=name,
        stacks=_inside(content.get("stackConfigDir"), "stackConfigDir", file),
        suffix=Path(file).suffix,
        main=_inside(content.get("main"), "main", file),
        defaults=_defaults(config or {}, name, file),
    )


def stack_config(folder: Path, project: Project, stack: str) -> dict[str, Any]:
    """Read the config of a stack, by `namespace:key`, including its project's defaults.

    Values are as written. An encrypted value is a map `{"secure": …}`.

    Raises:
        ProjectError: The stack does not exist, or is not understood.
    """
    path = folder / project.stack_file(stack)
    if not _is_there(path):
        known = _stacks(folder, project)
        meant = (
            suggest(stack, known) if known else f"the project has no {project.stack_file(stack)}"
        )
        raise ProjectError(f"there is no stack '{stack}': {meant}")
    return {**project.defaults, **config_of(read_mapping(path, folder), project.name, str(path))}


def config_of(content: Mapping[str, Any], project: str, file: str) -> dict[str, Any]:
    """Return the config in a stack's file, by `namespace:key`, however a key is written.

    Raises:
        ProjectError: It is not understood.
    """
    _require_spelling(content, _STACK_KEYS, file)
    stated = content.get("config")
    if not isinstance(stated, Mapping | None):
        message = f"config is {shown(stated)}, but must be a map of config keys"
        raise ProjectError(f"{file}: {message}")
    return _by_key((stated or {}).items(), project, file)


def is_encrypted(value: Any) -> bool:
    """Return whether a value of a config is encrypted as a whole: a map `{"secure": "…"}`."""
    return (
        isinstance(value, Mapping) and set(value) == {_SECURE} and isinstance(value[_SECURE], str)
    )


def config_text(value: object) -> str:
    """Return a value of a config as Pulumi passes it to a program: texts as they are, else JSON."""
    match value:
        case None:
            return ""
        case str():
            return value
        case float() if "e" in repr(value):
            # Go writes exponents only below 1e-6, and without a zero before one digit.
            small = abs(value) < _LEAST_PLAIN
            return repr(value).replace("e-0", "e-") if small else format(Decimal(repr(value)), "f")
        case _:
            return json.dumps(value, default=str)


def read_mapping(path: Path, root: Path | None = None) -> Mapping[str, Any]:
    """Read a settings file that was found: a regular file below a root.

    Args:
        root: Folder that must contain it, links followed; the file's own if left out.

    Raises:
        ProjectError: It cannot be read, or contains no map.
    """
    text = read_below(path, root or path.parent)
    if isinstance(text, Unreadable):
        raise ProjectError(str(text))
    return parse_mapping(text, str(path))


def parse_mapping(text: str, file: str) -> Mapping[str, Any]:
    """Parse the text of a settings file; its name tells whether it is JSON.

    Raises:
        ProjectError: It cannot be read, or contains no map.
    """
    content = parse_map(text, file)
    if isinstance(content, Unreadable):
        raise ProjectError(str(content))
    return content


def _is_there(path: Path) -> bool:
    """Return whether there is something that Pulumi treats as a file, even a broken link."""
    return (path.exists() or path.is_symlink()) and not path.is_dir()


def _stacks(folder: Path, project: Project) -> list[str]:
    found = (folder / project.stacks).glob(f"Pulumi.*{project.suffix}")
    return sorted(path.name.removeprefix("Pulumi.").removesuffix(project.suffix) for path in found)


def _require_spelling(content: Mapping[str, Any], known: Iterable[str], file: str) -> None:
    """Reject a key that differs only in case: Go reads it in JSON files, and this does not."""
    by_fold = {key.casefold(): key for key in known}
    for key in content:
        meant = by_fold.get(str(key).casefold())
        if meant is not None and key != meant:
            raise ProjectError(f"{file}: contains the key {shown(key)}: write '{meant}'")


def _inside(stated: object, key: str, file: str) -> str:
    """Join a path to the project's folder as Go does; it must stay inside."""
    if stated is None or stated == "":
        return ""
    if not isinstance(stated, str):
        raise ProjectError(f"{file}: {key} is {shown(stated)}, but must be a path: write one")
    # Pulumi reads stackConfigDir /x as the project's folder x, but main /x as /x.
    path = posixpath.normpath(stated if key == "main" else stated.lstrip("/"))
    if path.startswith("/") or path.split("/")[0] == "..":
        seen = f"{key} is {shown(stated)}, which leads out of the project's folder"
        raise ProjectError(f"{file}: {seen}: write a path inside of it")
    return "" if path == "." else path


def _defaults(config: Mapping[Any, Any], name: str, file: str) -> dict[str, Any]:
    """Read the default values of a project's config by their keys with namespace."""
    found: dict[str, Any] = {}
    for key, stated in _by_key(config.items(), name, file).items():
        if _PATH.search(key.partition(":")[2]):
            seen = f"contains the config key {shown(key)}, which Pulumi reads as a path"
            raise ProjectError(f"{file}: {seen}: set the whole value, in a stack file if need be")
        value = _default(stated, key, file)
        if value is not None:
            found[key] = value
    return found


def _default(stated: object, key: str, file: str) -> Any:
    """Return the project's default for a key, in one of Pulumi's forms."""
    if not isinstance(stated, Mapping):
        return stated
    _require_spelling(stated, _VALUES, file)
    values = [stated[name] for name in _VALUES if stated.get(name) is not None]
    if len(values) > 1:
        raise ProjectError(f"{file}: {key} has a value and a default: remove one of the two")
    return values[0] if values else None


def _by_key(items: Iterable[tuple[Any, Any]], project: str, file: str) -> dict[str, Any]:
    """Add the project's namespace to keys, and refuse a key that stands twice."""
    made: dict[str, Any] = {}
    for stated, value in items:
        key = ":".join(_parts(stated, project, file))
        if value is None and file.endswith(".json"):
            # Pulumi makes the text "null" of it, and an empty string of null in YAML.
            raise ProjectError(f"{file}: {key} is null: remove the key, or write an empty string")
        if key in made:
            raise ProjectError(f"{file}: states {shown(key)} twice: remove one of the two")
        made[key] = value
    return made


def _parts(key: object, project: str, file: str) -> Iterator[str]:
    """Return namespace and name of a key, in one of Pulumi's three forms."""
    match key.split(":") if isinstance(key, str) else ():
        case [name]:
            yield from (project, name)
        case [namespace, name] | [namespace, "config", name]:
            yield from (namespace, name)
        case _:
            seen = f"contains the config key {shown(key)}"
            raise ProjectError(f"{file}: {seen}: write it as {project}:name")


def shown(value: object) -> str:
    """Return a value as messages show it."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
