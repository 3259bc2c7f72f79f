"""Writes the commands and options of any engine, and reports what cannot be written."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from kthena_components.core.engines.arguments import Reading
from kthena_components.core.engines.dialects import dialect_of, option_elsewhere
from kthena_components.core.engines.kv_transfer import FLAGS
from kthena_components.core.engines.launch import Commands, Launch, Refusal
from kthena_components.core.engines.option_table import release_for
from kthena_components.core.engines.options import Dialect, understand
from kthena_components.core.engines.placeholders import Scope
from kthena_components.core.engines.sglang import unsupported_sglang, write_sglang
from kthena_components.core.engines.trtllm import unsupported_trtllm, write_trtllm
from kthena_components.core.engines.vllm_launch import (
    DRAIN,
    NNODES_SINCE,
    unsupported_vllm,
    write_vllm,
    writes_drain,
)
from kthena_components.core.values.images import Version, read_image
from kthena_components.core.values.unknown import Unknown, is_unresolved


class Writer(NamedTuple):
    """The functions that the module of an engine provides."""

    unsupported: Callable[[Launch], list[Refusal]]
    write: Callable[[Launch], Commands]


WRITERS: Mapping[str, Writer] = {
    "vllm": Writer(unsupported_vllm, write_vllm),
    "sglang": Writer(unsupported_sglang, write_sglang),
    "trtllm": Writer(unsupported_trtllm, write_trtllm),
}


def unsupported(launch: Launch) -> list[Refusal]:
    """Report what of a launch cannot be written. Empty: `write_commands` accepts it."""
    if launch.kind in WRITERS:
        return WRITERS[launch.kind].unsupported(launch)
    seen = f"is '{launch.kind}', for which no commands can be written"
    *others, last = (f"'{kind}'" for kind in WRITERS)
    remedy = f"write {', '.join(others)} or {last}, or use a template"
    return [Refusal("kind", seen, remedy, "engine-launch")]


def write_commands(launch: Launch) -> Commands:
    """Write an engine's commands. Pure: the same launch gives the same words.

    Raises:
        ValueError: `unsupported` reports the launch. Callers must check that first.
    """
    refusals = unsupported(launch)
    if refusals:
        raise ValueError("; ".join(f"{refusal.field} {refusal.seen}" for refusal in refusals))
    return WRITERS[launch.kind].write(launch)


def counted_flags(launch: Launch) -> list[str]:
    """Return the flags in a user's arguments that the package sets itself.

    This includes abbreviations, other spellings and ambiguous flags, each once and as written.
    Sizes, ranks, executor, model and port are always set, and the flags of the transfer of the KV
    cache and of the drain if the launch has them.
    """
    if launch.kind not in WRITERS:
        return []
    newest = dialect_of(release_for(launch.kind, None))
    reading = Reading(newest, Scope({})).read(launch.extra_args)
    counted = [flag for flag, option in reading.flags if option.counted]
    own = set(FLAGS.get(launch.kind, ())) if launch.transfer else set[str]()
    own |= {DRAIN} if writes_drain(launch) else set()
    return list(dict.fromkeys([*counted, *(name for name in reading.options if name in own)]))


def stated_release(kind: str, image: str) -> Version | None:
    """Return the engine's release that an image states.

    None if it states none: a third-party image, a moving tag, or an output that only the deployment
    knows.
    """
    return None if is_unresolved(image) else read_image(image).release_of(kind)


def default_launcher(kind: str, release: Version | None, data: int) -> str:
    """Choose a launcher: native if the engine can connect its pods by itself, else ray or mpi.

    Args:
        kind: vllm, sglang or trtllm.
        release: The engine's release; None means the newest.
        data: Copies of the model in the engine. vLLM connects copies that fit into pods without
            --nnodes, and could do so before it had --nnodes.
    """
    if kind == "trtllm":
        return "mpi"
    old = release is not None and release < NNODES_SINCE
    return "ray" if kind == "vllm" and data == 1 and old else "native"


# Writes options as words of a command line: the inverse of what `arguments.py` reads.


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
    """Write an option as words; a value that begins with a dash is joined to its name by `=`."""
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
