"""Writes options as words of a command line: the inverse of what `arguments.py` reads."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from kthena_components.core.engines.dialects import dialect_of, option_elsewhere
from kthena_components.core.engines.options import Dialect, understand
from kthena_components.core.engines.table import release_for
from kthena_components.core.values.unknown import Unknown


class Words(NamedTuple):
    """Options as words for `extra_args`."""

    words: list[str]
    options: list[str]
    """The options that these words set."""
    unknown: list[str]
    """Options whose values are not known, so that they are not among the words."""
    foreign: list[str]
    """Options that no known release of the engine's own program has, and not among the words:
    those of a program around it, or of a fork."""


def words_for(kind: str, options: Mapping[str, Any]) -> Words:
    """Write the options of an engine that the package does not set itself.

    Args:
        kind: vllm, sglang or trtllm.
        options: `CommandFacts.options`.
    """
    made, dialect = Words([], [], [], []), dialect_of(release_for(kind, None))
    for name, value in options.items():
        option = understand(name, dialect).option
        if option is not None and option.counted:
            continue
        if option is None and option_elsewhere(name, dialect) is None:
            made.foreign.append(name)
        elif _is_unknown(value):
            made.unknown.append(name)
        else:
            made.words.extend(_written(name, value, dialect))
            made.options.append(name)
    return made


def _written(name: str, value: Any, dialect: Dialect) -> Iterator[str]:
    if value is False:
        yield _off(name, dialect)
    elif value is True:
        yield name
    elif isinstance(value, tuple):
        yield from (name, *map(str, value))
    else:
        text = json.dumps(value) if isinstance(value, dict | list) else str(value)
        # A value that begins with a dash would be read as an option.
        yield from [f"{name}={text}"] if text.startswith("-") else [name, text]


def _off(name: str, dialect: Dialect) -> str:
    """Return the spelling that turns a switch off."""
    off = (word for word, option in dialect.options.items() if option.off and option.name == name)
    return next(off, f"--no-{name.removeprefix('--')}")


def _is_unknown(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_is_unknown, value.values()))
    if isinstance(value, list | tuple):
        return any(map(_is_unknown, value))
    return isinstance(value, Unknown)
