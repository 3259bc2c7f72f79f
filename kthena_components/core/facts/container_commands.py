"""Reads what a container starts: its command line, or why that cannot be read."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from kthena_components.core.engines import CommandFacts, Files, Hidden, read_command, unread_script
from kthena_components.core.engines.facts import ALL_GPUS
from kthena_components.core.engines.shapes import split_command
from kthena_components.core.facts.claims import read_claims
from kthena_components.core.facts.container import read_volumes, sidecars, visible_gpus
from kthena_components.core.facts.context import NO_CONTEXT, Context
from kthena_components.core.facts.devices import name_in_pod
from kthena_components.core.facts.files import PodVolumes
from kthena_components.core.facts.inputs import Inputs, read_argv, read_inputs
from kthena_components.core.values.dataclass import replace
from kthena_components.core.values.read import mapping, sequence
from kthena_components.core.values.unknown import Unknown, is_unresolved

_REMEMBERED = 8_192
"""Maximum length of a command line that is cached, with its facts."""


class Started(NamedTuple):
    """What a container starts."""

    command: CommandFacts | None
    gap: Unknown | None
    """Why a command cannot be read."""
    given: Inputs
    words: Sequence[str]
    """The command and args, or what the image starts."""


def read_commands(
    template: object, env: Mapping[str, str], context: Context = NO_CONTEXT
) -> list[CommandFacts | None]:
    """Read the command lines of the pods that `read_pods` returns, and nothing else of them."""
    spec = mapping(template).get("spec")
    items = mapping(spec).get("containers")
    if any(map(is_unresolved, (template, spec, items, *sequence(items)))):
        return [None]
    spec = context.limits.fill(mapping(spec), context.namespace)
    volumes = PodVolumes(read_volumes(spec), context, spec)
    found = [read_started(mapping(item), volumes, "", env) for item in sequence(items)]
    beside = (read_started(sidecar, volumes, "", env) for sidecar, _ in sidecars(spec, ""))
    found += [start for start in beside if start.command and start.command.engine]
    return [
        found[i].command for i in engine_places([(each.command, each.gap) for each in found])
    ] or [None]


def read_started(
    container: Mapping[str, Any], pod: PodVolumes, path: str, env: Mapping[str, str]
) -> Started:
    """Read what a container starts, with the variables that will be injected into it."""
    words, given = tuple(read_argv(container)), read_inputs(container, pod, path, env)
    # Without a command the image decides what gets the words; it may well be a shell.
    split = split_command(words) if container.get("command") else None
    argv = words if split is None else split.words
    read = _command if sum(map(len, argv)) <= _REMEMBERED else _command.__wrapped__
    image, folder = _text(container.get("image")), _text(container.get("workingDir"))
    command = read(argv, tuple(given.env.items()), given.hidden, given.files, image, folder=folder)
    name = name_in_pod(container)
    if command is not None and split is not None:
        command = replace(command, problems=(split.problem, *command.problems))
    if command is not None and command.tensor == ALL_GPUS:
        command = replace(
            command, tensor=visible_gpus(container, read_claims(container, pod.spec, pod.context))
        )
    gap = None if command is None or command.engine else command.hidden
    if command is None and any(map(is_unresolved, argv)):
        gap = Unknown(f"the command line of container '{name}' is not known yet")
    elif command is None and argv and is_unresolved(container.get("image")):
        gap = Unknown(f"the image of container '{name}' decides what starts, and is not known yet")
    elif command is None and given.files:
        gap = unread_script(argv, given.files)
    return Started(command, gap, given, words)


def engine_places(found: Sequence[tuple[CommandFacts | None, Unknown | None]]) -> list[int]:
    """Return the indexes of the containers that start an engine, or may start one.

    If there is none, the first container with a command stands for the pod.

    Args:
        found: The command line of each container, and why it cannot be read.
    """
    commands = [i for i, (command, _) in enumerate(found) if command]
    engines = [i for i in commands if _may_start_engine(*found[i])]
    return engines or commands[:1]


def _may_start_engine(command: CommandFacts | None, gap: Unknown | None) -> bool:
    return command is not None and bool(command.engine or gap)


@lru_cache(maxsize=1024)
def _command(
    argv: tuple[str, ...],
    env: tuple[tuple[str, str | Unknown], ...],
    hidden: Hidden,
    files: Files,
    image: str | None,
    *,
    folder: str | None,
) -> CommandFacts | None:
    """Read a command once: the checks, the outputs and the table all need its facts."""
    return read_command(argv, dict(env), hidden=hidden, files=files, image=image, folder=folder)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value and not is_unresolved(value) else None
