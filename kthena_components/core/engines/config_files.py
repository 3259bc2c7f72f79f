"""Adds the options of an engine's config file to those of its command line."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kthena_components.core.engines.arguments import Reading
from kthena_components.core.engines.facts import capped
from kthena_components.core.engines.files import Broken, read_yaml
from kthena_components.core.engines.mistakes import Mistake
from kthena_components.core.engines.options import Dialect
from kthena_components.core.engines.placeholders import Scope
from kthena_components.core.remedies import set_option
from kthena_components.core.values.unknown import Unknown

_BY_WORDS = frozenset({"vllm", "sglang"})
"""Engines that make words of their files. Keys of others are names of fields."""


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
    if isinstance(text, str) and isinstance(reading.scope.read(text), str):
        _report_broken(reading, name, config, empty="{" not in text)
    if config is not None and not isinstance(config, Unknown):
        return config
    because = f"the file of {reading.where[name]} "
    because += "cannot be read" if isinstance(text, str) else "is not available"
    because += ", and it overrides the command line" if wins else ""
    reading.hide(because if config is None else f"{because}: {config.because}")
    if wins:
        reading.values = {key: value for key, value in reading.values.items() if key == "model"}
    return None


def _report_broken(reading: Reading, name: str, config: object, *, empty: bool) -> None:
    """Report a file that ends the start: every engine's loader raises."""
    because = config.because if isinstance(config, Broken) else ""
    if isinstance(config, Mapping) and name == "config" and reading.dialect.table in _BY_WORDS:
        key = next((key for key in config if not isinstance(key, str)), None)
        because = "" if key is None else f"its key {key} is not text"
        if not config and empty and reading.dialect.table == "vllm":
            because = "it is empty"
    if because:
        where = reading.where[name]
        text = f"the file of {where} cannot be read: {because}"
        remedy = "write a map of options in YAML, or remove the option"
        reading.problem(where.partition(" ")[0], Mistake(text, remedy))


def is_read(reading: Reading, words: Sequence[str]) -> bool:
    """Return whether the engine reads the file that its config option names; report if not.

    vLLM and SGLang look for the word `--config` alone before they parse, and accept it once (vllm
    FlexibleArgumentParser `_pull_args_from_config`; sglang ConfigArgumentMerger). No release reads
    `--config=F` and abbreviations.
    """
    written, engine = reading.where.get("config", ""), reading.dialect.engine
    if not written:
        return False
    flag = written.partition(" ")[0].partition("=")[0]
    if any(problem.flag == flag and problem.hard for problem in reading.problems):
        return False  # The release has no --config.
    if list(words).count("--config") > 1:
        text = f"{engine} takes one config file, and has --config several times"
        reading.problem("--config", Mistake(text, "write one file"))
    if written.partition(" ")[0] == "--config":
        return True
    path = reading.values.get("config")
    shown = reading.scope.show(path) if isinstance(path, str) else "FILE"
    text = f"{written} is accepted and never read: {engine} looks for --config alone"
    reading.problem(flag, Mistake(text, set_option("--config", shown), hard=False))
    return False


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
    file.take_model(positional=False)
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
