"""Hides secret config values of a program in the paths and texts of findings.

An Output is never read, so it needs nothing here (_outputs.py).
"""

import json
import operator
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import pulumi

from kthena_components.checker.secrecy import conceal, hide
from kthena_components.core.findings import Finding
from kthena_components.core.values.display import SECRET

_SHORT = 4
"""Secret texts shorter than this are only hidden as whole values, not inside longer texts."""


def hide_values(values: Mapping[str, str], keys: Collection[str]) -> dict[str, str]:
    """Hide the config values of some keys, but not whether they exist."""
    return {key: _hidden(text) if key in keys else text for key, text in values.items()}


def _hidden(text: str) -> str:
    value = _structure(text)
    return json.dumps(hide(value)) if isinstance(value, list | dict) else SECRET if text else ""


def _structure(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def shown_of_args(
    findings: Sequence[Finding], check: Callable[[Any], Iterable[Finding]], args: Any
) -> Sequence[Finding]:
    """Return the findings of a component's args without secrets read as plain text.

    `config.get` returns the value of a secret key like any other text.
    """
    shadow = _without(args, config_secrets()) if findings else args
    return findings if shadow is args else conceal(findings, check, shadow)


def config_secrets() -> frozenset[str]:
    """Return every text and number among the secret config values of the running program."""
    values = pulumi.runtime.get_config_env()
    keys = pulumi.runtime.get_config_secret_keys_env()
    stated = [values[key] for key in keys if key in values]
    return frozenset(leaf for text in stated for leaf in (text, *_leaves(_structure(text)))) - {""}


def holds_secret(text: str, secrets: Iterable[str]) -> bool:
    """Return whether a text is or contains one of some secret texts."""
    return any(text == secret or (len(secret) >= _SHORT and secret in text) for secret in secrets)


def _leaves(value: Any) -> list[str]:
    if isinstance(value, list | dict):
        items = value.values() if isinstance(value, dict) else value
        return [leaf for item in items for leaf in _leaves(item)]
    return [] if value is None or isinstance(value, bool) else [str(value)]


def _without(value: Any, secrets: frozenset[str]) -> Any:
    """Hide texts and numbers that contain a secret, including keys; return other values as is."""
    if isinstance(value, Mapping):
        fields = {_shown(key, secrets): _without(item, secrets) for key, item in value.items()}
        same = fields.keys() == value.keys() and all(fields[key] is value[key] for key in fields)
        return value if same else fields
    if isinstance(value, list | tuple):
        items = [_without(item, secrets) for item in value]
        return value if all(map(operator.is_, items, value)) else items
    return _shown(value, secrets)


def _shown(value: Any, secrets: frozenset[str]) -> Any:
    known = isinstance(value, str | int | float) and not isinstance(value, bool)
    return SECRET if known and holds_secret(str(value), secrets) else value
