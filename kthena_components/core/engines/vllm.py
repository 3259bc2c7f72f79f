"""Reads vLLM's command lines. vllm_launch.py writes them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kthena_components.core.engines.arguments import Reading
from kthena_components.core.engines.config_files import (
    add_file,
    as_words,
    config_of,
    is_read,
    kaito_words,
    vllm_words,
)
from kthena_components.core.engines.dialects import MODEL_IN_FRONT, dialect_inside, dialect_of
from kthena_components.core.engines.facts import CommandFacts
from kthena_components.core.engines.mistakes import Mistake
from kthena_components.core.engines.option_table import release_for
from kthena_components.core.engines.options import Release
from kthena_components.core.engines.placeholders import Scope, has_gap, stated_variable
from kthena_components.core.remedies import either, set_option
from kthena_components.core.values.read import is_map, mapping
from kthena_components.core.values.unknown import MaybeBool, MaybeInt, MaybeText, Unknown

MODEL_REQUIRED = (0, 8, 2)
"""The last release in which `vllm serve` exits without a bare word for the model."""
MODEL_FIRST = (0, 17, 0)
"""The first release in which `vllm serve` exits if the line has --served-model-name and begins with
an option, unless --model or a config file names the model."""
PLACED_SINCE = (0, 6, 4)
"""The first release in which `vllm serve` with --config takes the first word for the model."""
SERVE = "serve"
"""What the problem of such a release names in place of a flag."""
BARE_WORD_TAKEN = (0, 10, 0)
"""The first release whose API server accepts a bare word, and ignores it."""

_DP_SIZE, _DP_RANK, _DP_ADDRESS = "VLLM_DP_SIZE", "VLLM_DP_RANK", "VLLM_DP_MASTER_IP"
"""Variables with which processes form copies of one engine."""
_DP_SINCE = (0, 8, 0)
"""The first vLLM with these variables."""
_LOOPBACK = "127.0.0.1"
_MOST_DIGITS = 6


def read_vllm(words: Sequence[str], scope: Scope) -> CommandFacts:
    """Read the arguments behind `vllm serve`.

    The command line overrides a config file (vllm/utils/argparse_utils.py
    `_pull_args_from_config`).
    """
    release = release_for("vllm", scope.image)
    reading = Reading(dialect_of(release), scope).read(words)
    if len(reading.bare) > 1 and (started := _take_command(reading)):
        text = f"`vllm serve` takes the bare word '{started[0]}' for the model"
        remedy = f"remove '{' '.join(started)}': the program is started already"
        reading.problem(started[0], Mistake(text, remedy, by_release=True))
    _check_model(reading, release, words)
    reading.take_model(positional=True)
    return _facts(reading, "vllm", words, serve=True)


def read_api_server(words: Sequence[str], scope: Scope) -> CommandFacts:
    """Read the arguments behind `python -m vllm.entrypoints.openai.api_server`.

    Only --model sets the model: a bare word is rejected up to 0.9.2 and ignored since 0.10.0.
    """
    release = release_for("vllm", scope.image)
    reading = Reading(dialect_of(release, server=True), scope).read(words)
    given, one_ignored = len(reading.bare), release.version >= BARE_WORD_TAKEN
    if reading.hidden is None and (started := _take_command(reading)):
        text = f"the API server has no command '{started[-1]}' and takes its model from --model"
        remedy = f"remove '{' '.join(started)}'"
        if reading.bare and "model" not in reading.values and not has_gap(reading.bare[0]):
            word = scope.show(reading.bare.pop(0))
            remedy = f"write --model {word} without '{' '.join(started)}', or start "
            remedy += f"`vllm serve {word}`"
        hard = given > 1 or not one_ignored
        reading.problem(started[0], Mistake(text, remedy, hard=hard, by_release=True))
    taken = one_ignored and reading.hidden is None
    if taken and reading.bare and not has_gap(reading.bare[0]):
        word = scope.show(reading.bare.pop(0))
        text = f"the API server ignores the bare word '{word}' and takes its model from --model"
        remedy = either(set_option("--model", word), f"start `vllm serve {word}`")
        remedy = "remove it" if "model" in reading.values else remedy
        reading.problem(word, Mistake(text, remedy, hard=False))
    reading.take_model(positional=False)
    return replace(_facts(reading, "vllm", words), by_module=True)


def _take_command(reading: Reading) -> list[str]:
    """Remove `serve` or `vllm serve` from the bare words in front of the model, and return them.

    Images start the program themselves, so a container's args must not repeat it.
    """
    for started in (["vllm", SERVE], [SERVE]):
        if reading.bare[: len(started)] == started:
            del reading.bare[: len(started)]
            return started
    return []


def read_inside(words: Sequence[str], scope: Scope, *, engine: str = "vllm") -> CommandFacts:
    """Read the arguments of a program that accepts vLLM's options and its own.

    KAITO appends its own config file to the command line, so the file takes precedence.
    """
    program = "" if engine == "vllm" else engine
    reading = Reading(dialect_inside("vllm", program), scope).read(words)
    reading.take_model(positional=False)
    return _facts(reading, engine, words)


def _facts(
    reading: Reading, engine: str, words: Sequence[str], *, serve: bool = False
) -> CommandFacts:
    """Read vLLM's options with its config files, and what its variables add to them."""
    _read_files(reading, words, serve=serve)
    by_variables = _copies_of_processes(reading)
    return reading.facts(
        engine,
        data_mode="external" if by_variables else _data_mode(reading),
        host_offload=offloads(reading),
        long_context_allowed=is_set(reading.scope, "VLLM_ALLOW_LONG_MAX_MODEL_LEN"),
    )


def _check_model(reading: Reading, release: Release, words: Sequence[str]) -> None:
    """Report how `vllm serve` treats --model (vllm/utils/argparse_utils.py `parse_args`)."""
    where = reading.where.get("model")
    if where is None:
        text = "" if reading.hidden else _without_model(reading, release, words)
        if text:
            remedy = "write the model right after `vllm serve`"
            reading.problem(SERVE, Mistake(text, remedy, by_release=True))
        return
    flag = where.partition(" ")[0].partition("=")[0]
    bare = bool(reading.bare) and not has_gap(reading.bare[0])
    moved = release.version >= MODEL_IN_FRONT
    remedy = "write the model once, right after `vllm serve`"
    if moved and bare:
        text = f"{release.title} takes one model, and has {where} and '{reading.bare[0]}'"
        text = reading.scope.show(text)
        if reading.bare[0] == reading.values["model"]:
            remedy = f"remove {flag}"
    elif not moved and ("--model" in words or release.version <= MODEL_REQUIRED):
        text = f"{release.title} takes the model of `vllm serve` as a bare word, not as {where}"
    else:
        return
    reading.problem(flag, Mistake(text, remedy, by_release=True))


def _without_model(reading: Reading, release: Release, words: Sequence[str]) -> str:
    """Explain why `vllm serve` exits without --model; empty if it does not."""
    if not reading.bare and release.version <= MODEL_REQUIRED:
        return f"`vllm serve` of {release.title} exits without a model as its first bare word"
    if not words or not words[0].startswith("-") or release.version < MODEL_FIRST:
        return ""
    heads = {word.partition("=")[0].replace("_", "-") for word in words}
    named = "--served-model-name" in heads and "--config" not in heads
    if named and not any(map(has_gap, heads)):
        first = reading.scope.show(words[0])
        text = f"{release.title} takes the model first in a line with --served-model-name"
        return f"{text}, and this line begins with '{first}'"
    return ""


def _read_files(reading: Reading, words: Sequence[str], *, serve: bool) -> None:
    """Add vLLM's own config file, and the one of KAITO, whose values win over the command line."""
    config = config_of(reading) if is_read(reading, words) else None
    if config is not None:
        if serve:
            _check_place(reading, words, config)
        add_file(reading, as_words(config, vllm_words(reading)))
    kaito = config_of(reading, "kaito_config", wins=True)
    vllm = {} if kaito is None else kaito.get("vllm")
    if isinstance(vllm, Mapping) and vllm:
        add_file(reading, as_words(vllm, kaito_words), "kaito_config", wins=True)


def _check_place(reading: Reading, words: Sequence[str], config: Mapping[Any, Any]) -> None:
    """Report a line with a config file in which `vllm serve` finds no model.

    With --config, it takes the very first word for the model, or the file's (vllm/utils/
    argparse_utils.py `_pull_args_from_config`). Since 0.11.1 it moves --model there before.
    """
    release, first = reading.dialect.release, words[0]
    if release is None or release.version < PLACED_SINCE or not first.startswith("-"):
        return
    moved = release.version >= MODEL_IN_FRONT and any(map(_is_model, words))
    in_file = release.version > MODEL_REQUIRED and "model" in config
    if moved or in_file or reading.hidden or any(map(has_gap, (first, *reading.bare))):
        return
    if release.version <= MODEL_REQUIRED and first != "--config":
        return
    shown = reading.scope.show(first)
    text = f"{release.title} with --config takes the model first, or from the file"
    text += f", and this line begins with '{shown}'"
    remedy = "write the model right after `vllm serve`"
    reading.problem(SERVE, Mistake(text, remedy, by_release=True))


def _is_model(word: str) -> bool:
    return word == "--model" or (word.startswith("--model=") and word != "--model=")


def offloads(reading: Reading) -> MaybeBool:
    """Return whether layers stay in host memory (--offload-group-size above 0)."""
    size = reading.get("offload_group", 0)
    return size if isinstance(size, Unknown) else isinstance(size, int) and size > 0


def is_set(scope: Scope, name: str, *others: str) -> MaybeBool:
    """Return whether a variable is true: 1 or true (vllm/envs.py), or one of some other words."""
    value = scope.look_up(name)
    if isinstance(value, Unknown):
        return value
    return (value or "").strip().lower() in {"1", "true", *others}


def _data_mode(reading: Reading) -> MaybeText:
    """Say who balances the copies' load (vllm/engine/arg_utils.py `create_engine_config`).

    A start rank without `--headless` means hybrid, but only with a local size, which --nnodes sets
    as well.
    """
    stated = reading.values
    ways = [stated.get(name) for name in ("external", "hybrid", "many_ports")]
    if ways[0] is True or "data_rank" in stated:
        return "external"
    if unknown := next((way for way in ways if isinstance(way, Unknown)), None):
        return unknown
    if any(ways):
        return "hybrid"
    nnodes, headless = reading.get("nnodes", 1), reading.get("headless", False)
    if isinstance(nnodes, Unknown) and "data_start_rank" in stated:
        return nnodes
    over_nodes = isinstance(nnodes, int) and nnodes > 1
    local = "data_local" in stated or over_nodes
    if "data_start_rank" in stated and local and headless is not True:
        return headless if isinstance(headless, Unknown) else "hybrid"
    return reading.hidden or "internal"


def _copies_of_processes(reading: Reading) -> bool:
    """Add the copies that variables state; return whether each process is one of several.

    Without --data-parallel-size above 1, vLLM takes the size, its rank and the address of rank 0
    from VLLM_DP_SIZE, VLLM_DP_RANK and VLLM_DP_MASTER_IP. They are added as the options that mean
    the same (vllm/config/parallel.py, __post_init__, of 0.8.0 to 0.33.0).
    """
    release = reading.dialect.release
    early = release is not None and release.version < _DP_SINCE
    by_flag = reading.values.get("data", 1) != 1 or reading.values.get("data_local") == 0
    size = _count(reading.scope, _DP_SIZE)
    if early or by_flag or reading.hidden is not None or size in {None, 0, 1}:
        return False
    rank = _count(reading.scope, _DP_RANK)
    reading.values["data"], reading.values["data_rank"] = size, 0 if rank is None else rank
    reading.where["data"] = f"{_DP_SIZE}={size}" if isinstance(size, int) else _DP_SIZE
    address = stated_variable(reading.scope, _DP_ADDRESS) or _LOOPBACK
    reading.options["--data-parallel-rank"] = reading.values["data_rank"]
    reading.options["--data-parallel-address"] = address
    return not isinstance(size, Unknown)


def _count(scope: Scope, name: str) -> MaybeInt | None:
    """Return a variable's number; None if it is not stated, or not a number."""
    text = stated_variable(scope, name)
    if isinstance(text, Unknown):
        return text
    return int(text) if text and text.isdecimal() and len(text) <= _MOST_DIGITS else None


_TEXT_ONLY, _LIMIT, _UNMEASURED = (
    "--language-model-only", "--limit-mm-per-prompt", "--skip-mm-profiling",
)  # fmt: skip


def may_see(options: Mapping[str, Any], kinds: Iterable[str] = ("image", "video")) -> bool:
    """Return whether the options let requests have inputs of one of the kinds."""
    if options.get(_TEXT_ONLY) is True:
        return False
    stated = mapping(options.get(_LIMIT))
    limits = [stated.get(kind, stated.get(f"{kind}.count")) for kind in kinds]
    return any((limit.get("count") if is_map(limit) else limit) != 0 for limit in limits)


def runs_encoder(options: Mapping[str, Any], kinds: Iterable[str] = ("image", "video")) -> bool:
    """Return whether they let vLLM run the encoder when it starts, for one of the kinds."""
    return options.get(_UNMEASURED) is not True and may_see(options, kinds)
