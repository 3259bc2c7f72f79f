"""Adds the options of an engine's config file to those of its command line."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kthena_components.core.engines.arguments import Reading
from kthena_components.core.engines.facts import capped
from kthena_components.core.engines.files import Broken, read_yaml, text_of
from kthena_components.core.engines.mistakes import Mistake
from kthena_components.core.engines.options import Dialect, Option
from kthena_components.core.engines.placeholders import Scope
from kthena_components.core.remedies import set_option
from kthena_components.core.values.images import Version
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
    problems = (replace(problem, text=f"in {path}, {problem.text}") for problem in file.problems)
    reading.problems = capped([*reading.problems, *problems])


# The words that an engine makes of its config file, by release.
#
# Source: vllm/utils/argparse_utils.py (before 0.11.1: vllm/utils.py) `load_config_file`, of 0.6.0
# to 0.33.0; sglang/srt/server_args_config_parser.py (since 0.5.8: sglang/srt/utils) of 0.5.3 to
# 0.5.23.


SWITCHES_SINCE = (0, 6, 4)
"""The first vLLM that writes `a: true` as --a. Older ones write --a True."""
LISTS_SINCE = (0, 10, 2)
"""The first vLLM that writes several words for a list. Older ones write Python's text of it."""
MAPS_SINCE = (0, 16, 0)
"""The first vLLM that writes JSON for a map. Older ones write Python's text of it."""
OFF_SINCE = (0, 28, 0)
"""The first vLLM that writes `a: false` as --no-a, if it has this option. Older ones ignore it."""
SGLANG_CHECKS_SINCE = (0, 5, 8)
"""The first SGLang that knows its switches, and that rejects options of a third kind."""
SGLANG_MAPS_SINCE = (0, 5, 14)
"""The first SGLang that writes JSON for a map. Older ones write Python's text of it."""
_UNSUPPORTED = frozenset({"--lora-paths"})
"""Options of SGLang with an action of their own. The others have a spelling that turns them off."""

Write = Callable[[str, object], list[str]]


def as_words(config: Mapping[Any, Any], write: Write) -> list[str]:
    """Write the map of a config file as command line words, as an engine does."""
    named = ((key, value) for key, value in config.items() if isinstance(key, str))
    return [word for key, value in named for word in write(key, value)]


def vllm_words(reading: Reading) -> Write:
    """Return a function that writes one entry as the release of vLLM does."""
    dialect = reading.dialect

    def write(key: str, value: object) -> list[str]:
        if isinstance(value, bool):
            return _vllm_switch(reading, key, on=value)
        if isinstance(value, list) and _since(dialect, LISTS_SINCE):
            return [f"--{key}", *map(text_of, value)] if value else []
        return [f"--{key}", text_of(value, json_maps=_since(dialect, MAPS_SINCE))]

    return write


def sglang_words(reading: Reading) -> Write:
    """Return a function that writes one entry as the release of SGLang does."""
    dialect = reading.dialect

    def write(key: str, value: object) -> list[str]:
        """Write an entry of SGLang's config file as words of a command line, by its release."""
        option = dialect.options.get(f"--{key.replace('_', '-')}")
        checks = _since(dialect, SGLANG_CHECKS_SINCE)
        if option is not None and checks and _is_unsupported(option, dialect):
            text = f"{dialect.engine} does not take {option.name} from a config file"
            remedy = f"write {option.name} on the command line"
            reading.problem(option.name, Mistake(text, remedy, by_release=True))
            return []
        if isinstance(value, bool) and checks and (option is None or option.arity != "0"):
            return [f"--{key}", str(value).lower()]
        if isinstance(value, bool):
            return [f"--{key}"] if value else []
        if isinstance(value, list):
            return [f"--{key}", *map(text_of, value)] if value else []
        return [f"--{key}", text_of(value, json_maps=_since(dialect, SGLANG_MAPS_SINCE))]

    return write


def kaito_words(key: str, value: object) -> list[str]:
    """Write one entry as KAITO does (kaito presets/workspace/inference/vllm/inference_api.py)."""
    return [f"--{key}", text_of(value)]


def _since(dialect: Dialect, first: Version) -> bool:
    return dialect.release is None or dialect.release.version >= first


def _vllm_switch(reading: Reading, key: str, *, on: bool) -> list[str]:
    """Write a boolean entry of vLLM's config file as words, as its release does.

    Older releases write `--key True`, and later ones the switch or its `no-` form.
    """
    dialect = reading.dialect
    option = dialect.options.get(f"--{key.replace('_', '-')}")
    # It compares the key with the parser's own name, which has underscores.
    takes_words = option is not None and option.arity != "0" and "-" not in key
    if not _since(dialect, SWITCHES_SINCE) or (takes_words and option and option.type == "bool"):
        return [f"--{key}", str(on)]
    if on:
        return [f"--{key}"]
    opposite = f"--no-{key}"
    if opposite in dialect.options and _since(dialect, OFF_SINCE):
        return [opposite]
    opposite = opposite.replace("_", "-")
    if opposite in dialect.options:
        text = f"{dialect.engine} does not read '{key}: false' in a config file"
        remedy = f"write {opposite.removeprefix('--')}: true in the file"
        reading.problem(opposite, Mistake(text, remedy, hard=False, by_release=True))
    return []


def _is_unsupported(option: Option, dialect: Dialect) -> bool:
    paired = f"--no-{option.name.removeprefix('--')}" in dialect.options
    return option.name in _UNSUPPORTED or (option.arity == "0" and paired)
