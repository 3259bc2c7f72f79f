"""vLLM: what a command line of it says. The command lines that start it are in vllm_launch.py."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kthena_components.core.engines.facts import CommandFacts
from kthena_components.core.engines.files import as_flags, kaito_flag, vllm_flag
from kthena_components.core.engines.reading import Reading
from kthena_components.core.engines.vllm_flags import DIALECT, KSERVE_DIALECT
from kthena_components.core.engines.words import Scope
from kthena_components.core.known import MaybeText, Unknown


def read_vllm(
    words: Sequence[str], scope: Scope, *, engine: str = "vllm", positional: bool = True
) -> CommandFacts:
    """Read the arguments behind `vllm serve`, or those of a program that takes the same flags.

    A config file gives way to the command line (vllm/utils/argparse_utils.py
    `_pull_args_from_config`). KAITO puts its own file behind the command line, so that it wins.
    """
    dialect = KSERVE_DIALECT if engine == "huggingfaceserver" else DIALECT
    reading = Reading(dialect, scope).read(words)
    reading.take_model(positional=positional)
    _read_files(reading)
    facts = reading.facts(engine)
    return replace(facts, data_mode=_data_mode(reading, facts))


def _read_files(reading: Reading) -> None:
    config = reading.config_file()
    if config is not None:
        reading.add_file(as_flags(config, vllm_flag))
    kaito = reading.config_file("kaito_config", wins=True)
    vllm = {} if kaito is None else kaito.get("vllm")
    if isinstance(vllm, Mapping) and vllm:
        reading.add_file(as_flags(vllm, kaito_flag), "kaito_config", wins=True)


def _data_mode(reading: Reading, facts: CommandFacts) -> MaybeText:
    """Say who balances the copies' load (vllm/engine/arg_utils.py `create_engine_config`).

    A start rank without `--headless` means hybrid, but only beside a local size.
    """
    stated = reading.values
    if stated.get("external") or "data_rank" in stated:
        return "external"
    if stated.get("hybrid") or stated.get("many_ports"):
        return "hybrid"
    if {"data_start_rank", "data_local"} <= stated.keys() and facts.headless is not True:
        return facts.headless if isinstance(facts.headless, Unknown) else "hybrid"
    return reading.hidden or "internal"
