"""The versions of systems that may be asked for."""

import re
from collections.abc import Mapping

KTHENA_VERSIONS = ("0.1", "0.2", "0.3", "0.4", "1.0")
"""Kthena's releases, oldest first."""
VERSIONS: Mapping[str, tuple[str, ...]] = {
    "kthena": KTHENA_VERSIONS,
    "volcano": ("1.14", "1.15"),
}
"""The minor releases of each system whose version may be asked for, oldest first."""
TITLES = {"kthena": "Kthena", "volcano": "Volcano"}
"""What these systems are called."""
Release = tuple[int, ...]
"""A version as numbers. Without a patch it is the newest of its minor release."""
_RELEASE = re.compile(r"v?([0-9]+\.[0-9]+)(?:\.([0-9]+).*)?")


def known_version(asked: str, system: str = "kthena") -> str | None:
    """Find the release that a version belongs to: Kthena's `v1.0.3` is of 1.0."""
    found = _RELEASE.fullmatch(asked)
    return found[1] if found and found[1] in VERSIONS[system] else None


def read_release(version: str) -> Release:
    """Read a version as numbers: `v1.14.2` is (1, 14, 2), and `1.14` is (1, 14).

    Raises:
        ValueError: It is no version.
    """
    found = _RELEASE.fullmatch(version)
    if found is None:
        raise ValueError(f"'{version}' is no version")
    return tuple(int(part) for part in (*found[1].split("."), found[2]) if part)


def is_since(version: str, first: str) -> bool:
    """Tell whether a version has what came with another: `1.14` is the newest patch of it."""
    stated, least = read_release(version), read_release(first)
    return stated >= least[: len(stated)]


def age(version: str) -> int:
    """Order versions of Kthena: an older one has a lower age."""
    return KTHENA_VERSIONS.index(version)
