"""The tags of images before and after an update. No other part of an image's name is shown."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.cli.review.preview import Step
from kthena_components.core.values.images import read_image
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import is_unresolved

_TAG = regex(r"v?[0-9][A-Za-z0-9._-]{0,63}|latest|nightly|main", re.ASCII)
"""Tags of releases, and usual others."""
_MOST = 10_000
"""Most parts of an object that are read."""

Change = tuple[str, str]


def changed_tags(step: Step) -> list[Change]:
    """Return the tags that containers have before and after, each pair once.

    A container counts whose image keeps its repository, and that has a tag at both times. An image
    that Pulumi treats as a secret is no text here, so it does not count.
    """
    before, after = (dict(_images(body)) for body in (step.old, step.new))
    pairs = ((before[path], after[path]) for path in after if path in before)
    return list(dict.fromkeys(filter(None, (_change(*pair) for pair in pairs))))


def _change(before: str, after: str) -> Change | None:
    old, new = read_image(before), read_image(after)
    if old.repository != new.repository or old.tag == new.tag:
        return None
    tags = old.tag or "", new.tag or ""
    return tags if all(map(_TAG.fullmatch, tags)) else None


def _images(body: Mapping[str, Any]) -> Iterator[tuple[tuple[object, ...], str]]:
    """Yield the images of an object by their paths."""
    waiting: list[tuple[tuple[object, ...], object]] = [((), body)]
    for path, value in waiting:
        if len(waiting) > _MOST:
            return
        if isinstance(value, Mapping):
            image = value.get("image")
            if isinstance(image, str) and "name" in value and not is_unresolved(image):
                yield path, image
            waiting += [((*path, key), item) for key, item in value.items()]
        elif isinstance(value, list):
            waiting += [((*path, index), item) for index, item in enumerate(value)]
