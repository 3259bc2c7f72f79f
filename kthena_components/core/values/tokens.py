"""Recognizes Hugging Face tokens in texts."""

import re

_TOKEN = re.compile(r"(?<![A-Za-z0-9_])hf_(?!([A-Za-z0-9])\1{5})[A-Za-z0-9]{20,}")


def looks_like_token(value: object) -> bool:
    """Return whether a text contains a string in the format of Hugging Face tokens."""
    return isinstance(value, str) and "hf_" in value and _TOKEN.search(value) is not None
