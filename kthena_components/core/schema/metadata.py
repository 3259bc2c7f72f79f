"""Checks the metadata of any object as every API server does: names, labels and annotations.

Source: k8s.io/apimachinery pkg/apis/meta/v1/types.go ObjectMeta,
pkg/api/validation/objectmeta.go ValidateObjectMetaAccessor and
pkg/util/validation/validation.go IsQualifiedName and IsValidLabelValue.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.findings import Finding, join_path
from kthena_components.core.naming import DNS_LABEL, is_dns_name, least_length
from kthena_components.core.schema.language import Fields, Free, Table, Text
from kthena_components.core.values.caches import cached_by_text
from kthena_components.core.values.display import display, key_text
from kthena_components.core.values.read import mapping, unknown_in
from kthena_components.core.values.regex import regex

_SERVERS_OWN = (
    "creationTimestamp deletionGracePeriodSeconds deletionTimestamp finalizers generation "
    "managedFields namespace ownerReferences resourceVersion selfLink uid"
)
METADATA = Fields(
    fields={
        **dict.fromkeys(_SERVERS_OWN.split(), Free()),
        "name": Text(),
        "generateName": Text(),
        "labels": Table(Text()),
        "annotations": Table(Text()),
    },
)
_WORD = regex(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
STEM = 58
"""Characters of a generateName that the API server keeps in front of its five random ones."""
_ANNOTATIONS = 256 * 1024
_WHAT = "of at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends"


def check_metadata(metadata: object, rule: str) -> Iterator[Finding]:
    """Check the values of the fields; METADATA checks their types."""
    fields = mapping(metadata)
    named = any(fields.get(key) not in (None, "") for key in ("name", "generateName"))
    if not named and (metadata is None or isinstance(metadata, Mapping)):
        seen = "is missing, and no object is without a name"
        yield Finding(path="metadata.name", seen=seen, remedy="add metadata.name", rule=rule)
    name = fields.get("name")
    if isinstance(name, str) and name and not unknown_in(name) and not is_dns_name(name):
        seen = f"is {display(name)}, which is not a DNS-1123 subdomain of at most 253 characters"
        remedy = "write lower-case letters, digits and dashes, for example 'chat'"
        yield Finding(path="metadata.name", seen=seen, remedy=remedy, rule=rule)
    yield from _stem(fields.get("generateName"), rule)
    for kind in ("labels", "annotations"):
        for key in mapping(fields.get(kind)):
            yield from _key(kind, key, rule)
    for key, value in mapping(fields.get("labels")).items():
        if isinstance(value, str) and not unknown_in(value) and not is_label_value(value):
            path = join_path("metadata.labels", key_text(key))
            seen = f"is {display(value)}, but a label's value is empty or {_WHAT}"
            yield Finding(path=path, seen=seen, remedy="write for example 'chat'", rule=rule)
    yield from _size(mapping(fields.get("annotations")), rule)


def _stem(stem: object, rule: str) -> Iterator[Finding]:
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
    """Return whether a text is a name, optionally after a domain and a slash."""
    domain, slash, word = name.rpartition("/")
    return _is_word(word) and (not slash or is_dns_name(domain))


def is_label_value(text: str) -> bool:
    """Tell whether a text may be the value of a label; an empty one may."""
    return not text or _is_word(text)


def _is_word(text: str) -> bool:
    return least_length(text) <= DNS_LABEL and bool(text) and _WORD.fullmatch(text) is not None


def _size(annotations: Mapping[str, Any], rule: str) -> Iterator[Finding]:
    texts = [text for pair in annotations.items() for text in pair if isinstance(text, str)]
    size = sum(len(text.encode(errors="replace")) for text in texts)
    if size > _ANNOTATIONS:
        seen = f"have {size} bytes, but all of an object together may have {_ANNOTATIONS}"
        yield Finding(path="metadata.annotations", seen=seen, remedy="shorten them", rule=rule)
