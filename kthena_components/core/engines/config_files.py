"""Adds the options of an engine's config file to those of its command line."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kthena_components.core.engines.arguments import Reading
from kthena_components.core.engines.facts import capped
from kthena_components.core.engines.files import read_yaml
from kthena_components.core.engines.options import Dialect
from kthena_components.core.engines.placeholders import Scope
from kthena_components.core.values.unknown import Unknown


def config_of(
    reading: Reading, name: str = "config", *, wins: bool = False
) -> Mapping[Any, Any] | None:
    """Return the map of the file that a flag names; None without the flag.

    Also None if the file cannot be read. Options that the command line leaves open are then
    unknown; if the file overrides the command line, all but the model are.
    """
    if name not in reading.values:
        return None
    path = reading.values[name]
    text = reading.scope.file(path) if isinstance(path, str) else None
    config = read_yaml(text) if isinstance(text, str) else text
    if config is not None and not isinstance(config, Unknown):
        return config
    because = f"the file of {reading.where[name]} "
    because += "cannot be read" if isinstance(text, str) else "is not available"
    because += ", and it overrides the command line" if wins else ""
    reading.hide(because if config is None else f"{because}: {config.because}")
    if wins:
        reading.values = {key: value for key, value in reading.values.items() if key == "model"}
    return None


def add_file(
    reading: Reading,
    words: Sequence[str],
    name: str = "config",
    *,
    wins: bool = False,
    dialect: Dialect | None = None,
) -> None:
    """Add the options of a config file.

    Args:
        reading: The command line.
        words: The file as flags and values.
        name: The field of the flag that names the file.
        wins: Whether the file overrides the command line. Otherwise the command line overrides
            it.
        dialect: The flags in `words`. None: those of the command line.
    """
    path = reading.scope.show(str(reading.values.get(name)))
    file = Reading(dialect or reading.dialect, Scope({}, {}, in_shell=True)).read(words)
    where = {key: f"{written} in {path}" for key, written in file.where.items()}
    first, last = (reading, file) if wins else (file, reading)
    reading.doubts = {**first.doubts, **last.doubts}
    reading.options = {**first.options, **last.options}
    if wins:
        kept = {key: value for key, value in reading.values.items() if key not in file.doubts}
        reading.values, reading.where = {**kept, **file.values}, {**reading.where, **where}
    else:
        reading.values, reading.where = (
            {**file.values, **reading.values},
            {**where, **reading.where},
        )
    told = (replace(problem, text=f"in {path}, {problem.text}") for problem in file.problems)
    reading.problems = capped([*reading.problems, *told])
