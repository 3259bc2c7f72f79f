"""What the checks of values in pods share: findings, known texts, names, words and labels."""

import re
from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from typing import Any

from kthena_components.core.findings import Finding, Level, join_path, suggest
from kthena_components.core.naming import (
    DNS_1123_LABEL,
    DNS_LABEL,
    NAME_LIMIT,
    dns_name,
    is_dns_name,
    least_length,
)
from kthena_components.core.schema.metadata import is_label_value, is_qualified
from kthena_components.core.values.display import display, key_text
from kthena_components.core.values.read import pairs
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import Blank, is_unresolved

RULE = "pod-values"
_LABEL = "which is not a DNS-1123 label: at most 63 lower-case letters, digits and dashes"
_DOMAIN = f"which is not a DNS-1123 subdomain of at most {NAME_LIMIT} characters"
_LEADING = regex(r"\b0+(?=[0-9])")


def say(path: str, seen: str, remedy: str, level: Level = Level.MANDATORY) -> Finding:
    """Report a value that no pod may have."""
    return Finding(path=path, seen=seen, remedy=remedy, rule=RULE, level=level)


def known(value: object) -> str | None:
    """Return a text whose value is known; None for anything else."""
    if isinstance(value, str) and type(value) is not Blank and not is_unresolved(value):
        return value
    return None


def check_words(
    fields: Mapping[str, Any], words: Mapping[str, tuple[str, ...]], path: str
) -> Iterator[Finding]:
    """Report fields with a word that Kubernetes does not know."""
    for field, allowed in words.items():
        value = fields.get(field)
        if value is None or value in allowed:
            continue
        if value == "" and field != "preemptionPolicy":
            continue  # the API server fills in its default
        if known(value) is not None:
            seen = f"is {display(value)}, but must be one of {', '.join(allowed)}"
            yield say(join_path(path, field), seen, suggest(value, allowed))


def check_labels(labels: object, path: str) -> Iterator[Finding]:
    """Report keys and values that no label may have."""
    for key, value in pairs(labels):
        if known(key) is not None and not is_qualified(str(key)):
            yield say(path, f"has the key {display(key)}, which no label may have", "rename it")
        if not (isinstance(value, str) and is_label_value(value)):
            yield from check_label_value(value, join_path(path, key_text(key)))


def check_label_value(value: object, path: str) -> Iterator[Finding]:
    """Report a value that no label may have."""
    if known(value) is not None and not is_label_value(str(value)):
        seen = f"is {display(value)}, but a label's value has at most 63 letters, digits, '-', "
        seen += "'_' and '.', with a letter or digit at both ends"
        yield say(path, seen, "write for example 'chat'")


def check_key(key: object, path: str) -> Iterator[Finding]:
    """Report a text that is not the key of a label."""
    if known(key) is not None and not is_qualified(str(key)):
        seen = f"is {display(key)}, which no label may have as a key"
        yield say(path, seen, "write for example 'kubernetes.io/hostname'")


def check_label_name(name: object, path: str, instead: str) -> Iterator[Finding]:
    """Report a name that is not a DNS label. An empty one is left to the schema of its kind."""
    text = known(name)
    if text and not is_label(text):
        yield say(path, f"is {display(text)}, {_LABEL}", f"write '{short_name(text) or instead}'")


def is_label(text: str) -> bool:
    """Return whether a text is a DNS-1123 label."""
    return least_length(text) <= DNS_LABEL and DNS_1123_LABEL.fullmatch(text) is not None


def short_name(text: str) -> str:
    """Turn a text into a DNS-1123 label; empty if nothing is left of it."""
    return re.sub("[^a-z0-9-]+", "-", text.lower()).strip("-")[:DNS_LABEL].strip("-")


def check_domain(name: object, path: str, *, empty: bool = False) -> Iterator[Finding]:
    """Report a name of an object that is not a DNS subdomain.

    Args:
        name: The name.
        path: Its path.
        empty: Whether an empty name counts as one that is not stated.
    """
    text = known(name)
    if text is None or (empty and not text) or is_dns_name(text):
        return
    yield say(path, f"is {display(text)}, {_DOMAIN}", f"write '{dns_name(text) or 'chat'}'")


def check_address(address: object, path: str) -> Iterator[Finding]:
    """Report a text that is no IP address. Kubernetes 1.34 accepts leading zeros here."""
    text = known(address)
    if text is None:
        return
    try:
        ip_address(_LEADING.sub("", text) if ":" not in text else text.partition("%")[0])
    except ValueError:
        yield say(path, f"is {display(text)}, which is not an IP address", "write an IP address")
    else:
        if "%" in text:
            yield say(path, f"is {display(text)}, but has a zone", "remove the zone")


def check_inner_path(
    place: object, path: str, *, reserved: bool = False, absolute: bool = False
) -> Iterator[Finding]:
    """Report a path that leaves its volume.

    Args:
        place: The path in the volume.
        path: The path of the field.
        reserved: Whether a name that begins with two dots is taken, as by a ConfigMap's volume.
        absolute: Whether it may begin with a slash.
    """
    text = known(place)
    if not text:
        return
    if text.startswith("/") and not absolute:
        seen = f"is {display(text)}, but must be relative to the volume"
        yield say(path, seen, f"write '{text.lstrip('/') or 'models'}'")
    if ".." in text.split("/"):
        yield say(path, f"is {display(text)}, but must not contain '..'", "write it without '..'")
    elif reserved and text.startswith(".."):
        yield say(path, f"is {display(text)}, but must not begin with '..'", "rename it")
