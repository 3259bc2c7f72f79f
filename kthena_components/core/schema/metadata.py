"""Checks names, labels and other strings of metadata and pods.

Source: k8s.io/apimachinery pkg/apis/meta/v1/types.go ObjectMeta,
pkg/api/validation/objectmeta.go ValidateObjectMetaAccessor and
pkg/util/validation/validation.go IsQualifiedName and IsValidLabelValue.
"""

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
from kthena_components.core.schema.language import Fields, Free, Table, Text
from kthena_components.core.values.caches import cached_by_text
from kthena_components.core.values.display import display, key_text
from kthena_components.core.values.read import mapping, pairs, unknown_in
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import PREVIEW_LENGTH, Blank, is_unresolved

_SERVERS_OWN = (
    "creationTimestamp deletionGracePeriodSeconds deletionTimestamp finalizers generation "
    "managedFields ownerReferences resourceVersion selfLink uid"
)
METADATA = Fields(
    fields={
        **dict.fromkeys(_SERVERS_OWN.split(), Free()),
        "name": Text(),
        "generateName": Text(),
        "namespace": Text(),
        "labels": Table(Text()),
        "annotations": Table(Text()),
    }
)
_WORD = regex(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
STEM = 58
"""Characters of a generateName that the API server keeps in front of its five random ones."""
_ANNOTATIONS = 256 * 1024
_WHAT = "of at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends"


def check_metadata(
    metadata: object, rule: str, *, of_kubernetes: bool = False
) -> Iterator[Finding]:
    """Check the values of the fields; METADATA checks their types.

    Args:
        of_kubernetes: Whether the object is of Kubernetes' own kinds, whose names object-name
            checks: not all are DNS-1123 subdomains. `kubectl patch` takes files without a name.
    """
    fields = mapping(metadata)
    named = any(fields.get(key) not in (None, "") for key in ("name", "generateName"))
    if not named and not of_kubernetes and (metadata is None or isinstance(metadata, Mapping)):
        seen = "is missing, but every object needs a name"
        yield Finding(path="metadata.name", seen=seen, remedy="add metadata.name", rule=rule)
    name = None if of_kubernetes else fields.get("name")
    if isinstance(name, str) and name and not unknown_in(name) and not is_dns_name(name):
        seen = f"is {display(name)}, which is not a DNS-1123 subdomain of at most 253 characters"
        remedy = "write lower-case letters, digits, dashes and dots, for example 'chat'"
        remedy = remedy if len(name) <= NAME_LIMIT else f"shorten it to {NAME_LIMIT} characters"
        yield Finding(path="metadata.name", seen=seen, remedy=remedy, rule=rule)
    yield from () if of_kubernetes else _stem(fields.get("generateName"), rule)
    for kind in ("labels", "annotations"):
        for key in mapping(fields.get(kind)):
            yield from _key(kind, key, rule)
    for key, value in mapping(fields.get("labels")).items():
        if isinstance(value, str) and not unknown_in(value) and not is_label_value(value):
            path = join_path("metadata.labels", key_text(key))
            seen = f"is {display(value)}, but a label's value is empty or {_WHAT}"
            yield Finding(path=path, seen=seen, remedy="write, for example, 'chat'", rule=rule)
    yield from _size(mapping(fields.get("annotations")), rule)


def _stem(stem: object, rule: str) -> Iterator[Finding]:
    """Check generateName, to which the API server adds five characters."""
    if not isinstance(stem, str) or not stem or unknown_in(stem):
        return
    # The API server allows a trailing dash, and does not check the character before it.
    whole = f"{stem[:-2]}a" if len(stem) > 1 and stem.endswith("-") else stem
    if not is_dns_name(whole) or not is_dns_name(f"{stem[:STEM]}aaaaa"):
        seen = f"is {display(stem)}, which is not the beginning of a DNS-1123 subdomain"
        remedy = "write lower-case letters, digits and dashes, for example 'chat-'"
        yield Finding(path="metadata.generateName", seen=seen, remedy=remedy, rule=rule)


def _key(kind: str, key: object, rule: str) -> Iterator[Finding]:
    name = key.lower() if isinstance(key, str) and kind == "annotations" else key
    if isinstance(name, str) and not is_qualified(name) and not unknown_in(name):
        seen = f"has the key {display(key)}, which is not a name {_WHAT}"
        seen += ", perhaps after a DNS-1123 subdomain and one '/'"
        yield Finding(path=f"metadata.{kind}", seen=seen, remedy="rename it", rule=rule)


@cached_by_text
def is_qualified(name: str) -> bool:
    """Return whether a string is a name, optionally after a domain and a slash."""
    domain, slash, word = name.rpartition("/")
    return _is_word(word) and (not slash or is_dns_name(domain))


def is_label_value(text: str) -> bool:
    """Tell whether a string may be the value of a label; an empty one may."""
    return not text or _is_word(text)


def _is_word(text: str) -> bool:
    return least_length(text) <= DNS_LABEL and bool(text) and _WORD.fullmatch(text) is not None


def _size(annotations: Mapping[str, Any], rule: str) -> Iterator[Finding]:
    texts = [text for pair in annotations.items() for text in pair if isinstance(text, str)]
    size = sum(len(text.encode(errors="replace")) for text in texts)
    if size > _ANNOTATIONS:
        seen = f"have {size} bytes, but all of an object together may have {_ANNOTATIONS}"
        yield Finding(path="metadata.annotations", seen=seen, remedy="shorten them", rule=rule)


RULE = "pod-values"
_LABEL = "which is not a DNS-1123 label: at most 63 lower-case letters, digits and dashes"
_DOMAIN = f"which is not a DNS-1123 subdomain of at most {NAME_LIMIT} characters"
_LEADING = regex(r"\b0+(?=[0-9])")


def say(path: str, seen: str, remedy: str, level: Level = Level.MANDATORY) -> Finding:
    """Report a value that no pod may have."""
    return Finding(path=path, seen=seen, remedy=remedy, rule=RULE, level=level)


def known(value: object) -> str | None:
    """Return a string whose value is known; None for anything else."""
    if type(value) is str and value.isascii() and len(value) != PREVIEW_LENGTH:
        return value  # most strings, and quicker to tell
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
        yield say(path, seen, "write, for example, 'chat'")


def check_key(key: object, path: str) -> Iterator[Finding]:
    """Report a string that is not the key of a label."""
    if known(key) is not None and not is_qualified(str(key)):
        seen = f"is {display(key)}, which no label may have as a key"
        yield say(path, seen, "write, for example, 'kubernetes.io/hostname'")


def check_label_name(name: object, path: str, instead: str) -> Iterator[Finding]:
    """Report a name that is not a DNS label. An empty one is left to the schema of its kind."""
    text = known(name)
    if text and not is_label(text):
        yield say(path, f"is {display(text)}, {_LABEL}", f"write '{short_name(text) or instead}'")


def is_label(text: str) -> bool:
    """Return whether a string is a DNS-1123 label."""
    return least_length(text) <= DNS_LABEL and DNS_1123_LABEL.fullmatch(text) is not None


def short_name(text: str) -> str:
    """Turn a string into a DNS-1123 label; empty if nothing is left of it."""
    return re.sub("[^a-z0-9-]+", "-", text.lower()).strip("-")[:DNS_LABEL].strip("-")


def check_domain(name: object, path: str, *, empty: bool = False) -> Iterator[Finding]:
    """Report a name of an object that is not a DNS subdomain.

    Args:
        empty: Whether an empty name counts as one that is not stated.
    """
    text = known(name)
    if text is None or (empty and not text) or is_dns_name(text):
        return
    yield say(path, f"is {display(text)}, {_DOMAIN}", f"write '{dns_name(text) or 'chat'}'")


def check_address(address: object, path: str) -> Iterator[Finding]:
    """Report a string that is not an IP address. Kubernetes 1.34 accepts leading zeros here."""
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
