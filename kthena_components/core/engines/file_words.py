"""The words that an engine makes of its config file, by release.

Source: vllm/utils/argparse_utils.py (before 0.11.1: vllm/utils.py) `load_config_file`, of 0.6.0 to
0.33.0; sglang/srt/server_args_config_parser.py (since 0.5.8: sglang/srt/utils) of 0.5.3 to 0.5.23.
"""

from collections.abc import Callable, Mapping
from typing import Any

from kthena_components.core.engines.arguments import Reading
from kthena_components.core.engines.files import text_of
from kthena_components.core.engines.mistakes import Mistake
from kthena_components.core.engines.options import Dialect, Option
from kthena_components.core.values.images import Version

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
