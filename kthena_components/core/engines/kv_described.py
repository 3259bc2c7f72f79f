"""Reads how an engine shares its KV cache: the inverse of what `kv_transfer.py` writes."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from kthena_components.core.engines.kv_transfer import (
    FLAGS,
    ROLES,
    SGLANG_CONNECTORS,
    VLLM_CONNECTORS,
    transfer_env,
    transfer_words,
)
from kthena_components.core.engines.launch import Transfer
from kthena_components.core.values.read import mapping

_DIGITS = len("65535")
Env = tuple[Mapping[str, Any], ...]


def read_transfer(
    kind: str, options: Mapping[str, Any], env: Sequence[Any]
) -> tuple[Transfer, Env] | None:
    """Return the transfer that is written as these options and variables, and its variables.

    Args:
        kind: vllm, sglang or trtllm.
        options: `CommandFacts.options`.
        env: Variables of the container, as Kubernetes writes them.

    Returns:
        None if there is no transfer, or if it has settings that `kv_transfer` cannot state.
    """
    flags = {name: options[name] for name in FLAGS.get(kind, ()) if name in options}
    for transfer in _all_transfers(kind, flags, env) if flags else ():
        words = transfer_words(kind, transfer)
        written = dict(zip(words[::2], map(_value, words[1::2]), strict=True))
        variables = transfer_env(kind, transfer)
        if written == flags and all(each in env for each in variables):
            return transfer, variables
    return None


def _all_transfers(kind: str, flags: Mapping[str, Any], env: Sequence[Any]) -> Iterator[Transfer]:
    """Yield the transfers that may be meant, those with the engine's default port first."""
    stated = [*flags.values(), *(mapping(each).get("value") for each in env)]
    written = (text for text in map(str, stated) if text.isdecimal() and len(text) <= _DIGITS)
    ports = (None, *sorted(set(map(int, written))))
    connectors = SGLANG_CONNECTORS if kind == "sglang" else VLLM_CONNECTORS
    for port, role, connector in product(ports, ROLES, connectors):
        yield Transfer(role=role, connector=connector, port=port)


def _value(word: str) -> Any:
    """Return a written value as it is in `CommandFacts.options`."""
    return json.loads(word) if word.startswith("{") or word.isdecimal() else word
