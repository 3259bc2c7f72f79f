"""The versions of Kthena whose schemas are known."""

import re

KTHENA_VERSIONS = ("0.1", "0.2", "0.3", "0.4", "1.0")
"""Kthena's releases, oldest first."""

_RELEASE = re.compile(r"v?([0-9]+\.[0-9]+)(?:\.[0-9].*)?")


def known_version(asked: str) -> str | None:
    """Find the release of a version: `v1.0.3` belongs to 1.0."""
    found = _RELEASE.fullmatch(asked)
    return found[1] if found and found[1] in KTHENA_VERSIONS else None


def age(version: str) -> int:
    """Sort key of versions: older versions come first."""
    return KTHENA_VERSIONS.index(version)
