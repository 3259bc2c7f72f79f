"""The releases of systems that `check` knows."""

from collections.abc import Mapping

from kthena_components.core.values.regex import regex

KTHENA_VERSIONS = ("0.1", "0.2", "0.3", "0.4", "1.0")
"""Kthena's releases, oldest first."""
VERSIONS: Mapping[str, tuple[str, ...]] = {
    "kthena": KTHENA_VERSIONS,
    "volcano": ("1.14", "1.15"),
    "lws": ("0.6", "0.7", "0.8", "0.9", "0.10"),
    "kserve": ("0.15", "0.16", "0.17", "0.18", "0.19", "0.20"),
    "kaito": ("0.6", "0.7", "0.8", "0.9", "0.10", "0.11", "0.12"),
    "ray": ("1.3", "1.4", "1.5", "1.6", "1.7"),
    "rbg": ("0.5", "0.6", "0.7", "0.8"),
    "grove": ("0.1",),
    "nim": ("2.0", "3.0", "3.1"),
}
"""The minor releases of each system whose CRDs are known, oldest first."""
NAMED = ("kthena", "volcano")
"""Systems whose rules differ by version, too: each has its own option and setting."""
TITLES = {
    "kthena": "Kthena",
    "volcano": "Volcano",
    "lws": "LWS",
    "kserve": "KServe",
    "kaito": "KAITO",
    "ray": "KubeRay",
    "rbg": "RBG",
    "grove": "Grove",
    "nim": "NIM operator",
}
"""Names of these systems in messages."""
Release = tuple[int, ...]
"""A version as numbers. Without a patch, it means the newest patch of its minor release."""
_RELEASE = regex(r"v?([0-9]+\.[0-9]+)(?:\.([0-9]+).*)?")


def known_version(asked: str, system: str = "kthena") -> str | None:
    """Find the release of a version: Kthena's `v1.0.3` belongs to 1.0."""
    found = _RELEASE.fullmatch(asked)
    return found[1] if found and found[1] in VERSIONS[system] else None


def read_release(version: str) -> Release:
    """Read a version as numbers: `v1.14.2` is (1, 14, 2), and `1.14` is (1, 14).

    Raises:
        ValueError: It is not a version.
    """
    found = _RELEASE.fullmatch(version)
    if found is None:
        raise ValueError(f"'{version}' is not a version")
    return tuple(int(part) for part in (*found[1].split("."), found[2]) if part)


def is_older(system: str, release: str) -> bool:
    """Return whether a release of a system is older than those that are known.

    Raises:
        ValueError: It is not a version.
    """
    return read_release(release)[:2] < read_release(VERSIONS[system][0])


def has_since(versions: Mapping[str, str], system: str, first: str) -> bool:
    """Return whether the given release of a system is at least another one.

    Args:
        versions: The given releases, by system. Default: the newest.
        system: The system, as in VERSIONS.
        first: The other release.
    """
    asked = versions.get(system, VERSIONS[system][-1])
    return _RELEASE.fullmatch(asked) is None or is_since(asked, first)


def is_since(version: str, first: str) -> bool:
    """Return whether a version is at least another: `1.14` means its newest patch."""
    stated, least = read_release(version), read_release(first)
    return stated >= least[: len(stated)]


def age(version: str) -> int:
    """Sort key of versions: older versions come first."""
    return KTHENA_VERSIONS.index(version)
