"""Reads Go's durations, such as 15s or 1m30s.

Source: Go's time.ParseDuration; k8s.io/apimachinery pkg/apis/meta/v1/duration.go.
"""

import re

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600}
_PART = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_WHOLE = re.compile(rf"[+-]?(?:0|(?:{_PART.pattern})+)", re.ASCII)
_LONGEST = 64
"""Maximum length of a duration. Longer texts are not read."""
_MOST = 2**63 / 1e9


def read_duration(written: str) -> float | None:
    """Parse a duration to seconds; None for what Go rejects."""
    if len(written) > _LONGEST or _WHOLE.fullmatch(written) is None:
        return None
    seconds = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(written))
    if seconds >= _MOST:
        return None
    return -seconds if written.startswith("-") else seconds
