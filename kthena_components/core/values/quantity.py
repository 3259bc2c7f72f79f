"""Kubernetes quantities, durations and budgets, and the names of accelerator resources.

Source of the grammar: k8s.io/apimachinery/pkg/api/resource/quantity.go.
"""

import re
from collections.abc import Mapping
from decimal import ROUND_UP, Context, Decimal

from kthena_components.core.values.caches import cached_by_text
from kthena_components.core.values.read import count
from kthena_components.core.values.regex import regex

_SUFFIXES = {
    "": Decimal(1),
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "k": Decimal(10**3),
    "M": Decimal(10**6),
    "G": Decimal(10**9),
    "T": Decimal(10**12),
    "P": Decimal(10**15),
    "E": Decimal(10**18),
    "Ki": Decimal(2**10),
    "Mi": Decimal(2**20),
    "Gi": Decimal(2**30),
    "Ti": Decimal(2**40),
    "Pi": Decimal(2**50),
    "Ei": Decimal(2**60),
}
QUANTITY = regex(
    r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+))(?P<suffix>[KMGTPE]i|[numkMGTPE]|[eE][+-]?\d{1,3})?",
    re.ASCII,
)
_LONGEST = 64
"""Maximum length of a quantity. Longer strings are not read."""
_EXACT = Context(prec=2 * _LONGEST)
_NANO = 9
"""The decimals of a quantity. Kubernetes rounds what is finer up."""

ACCELERATOR = regex(
    r"^(?:nvidia\.com/(?:gpu(?:\.shared)?|mig-.+)|amd\.com/gpu|gpu\.intel\.com/.+|intel\.com/gpu"
    r"|habana\.ai/gaudi|huawei\.com/(?:ascend|npu).*|google\.com/tpu|aws\.amazon\.com/neuron.*"
    r"|rebellions\.ai/.+|furiosa\.ai/.+|[a-z0-9.-]+/(?:gpu|npu|xpu|tpu))$",
    re.IGNORECASE,
)
"""Extended resources that count as accelerators: the device plugins' published names."""


def parse_quantity(text: object) -> Decimal | None:
    """Parse a quantity such as `8`, `"125"`, `500m` or `1124Gi` to base units.

    Returns None for what the API server would reject.
    """
    if type(text) is str:  # the usual type, and a faster check
        return _read(text) if len(text) <= _LONGEST else None
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        return None
    if isinstance(text, int) and text.bit_length() > _LONGEST:
        return None
    written = str(text)
    return _read(written) if len(written) <= _LONGEST else None


@cached_by_text
def _read(written: str) -> Decimal | None:
    """Read a quantity as Kubernetes does: rounded up to a billionth of a unit."""
    match = QUANTITY.fullmatch(written.strip())
    if match is None:
        return None
    suffix = match["suffix"] or ""
    if suffix[:1] in {"e", "E"} and len(suffix) > 1 and suffix != "Ei":
        amount = Decimal(match["number"]).scaleb(int(suffix[1:]), _EXACT)
    else:
        amount = _EXACT.multiply(Decimal(match["number"]), _SUFFIXES[suffix])
    nanos = amount.scaleb(_NANO, _EXACT)
    whole = nanos.to_integral_value(ROUND_UP)
    return amount if whole == nanos else whole.scaleb(-_NANO, _EXACT)


def render_quantity(number: Decimal) -> str:
    """Write a number of base units as Kubernetes does: the largest exact suffix, or milli-units."""
    if number != number.to_integral_value():
        milli = number * 1000
        return f"{int(milli)}m" if milli == milli.to_integral_value() else f"{number:f}"
    whole = int(number)
    for suffix in ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki"):
        unit = int(_SUFFIXES[suffix])
        if whole and whole % unit == 0:
            return f"{whole // unit}{suffix}"
    return str(whole)


@cached_by_text
def is_accelerator(resource: str) -> bool:
    """Return whether a resource name counts devices for an engine's ranks."""
    return ACCELERATOR.match(resource) is not None


def add_resources(
    total: Mapping[str, Decimal], more: Mapping[str, Decimal], times: int = 1
) -> dict[str, Decimal]:
    """Add one resource list to another, a number of times."""
    result = dict(total)
    for resource, amount in more.items() if times else ():
        result[resource] = result.get(resource, Decimal(0)) + amount * times
    return result


# Reads Go's durations, such as 15s or 1m30s.
#
# Source: Go's time.ParseDuration; k8s.io/apimachinery pkg/apis/meta/v1/duration.go.


_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600}
_PART = regex(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_WHOLE = regex(rf"[+-]?(?:0|(?:{_PART.pattern})+)", re.ASCII)
_MOST = 2**63 / 1e9


def read_duration(written: str) -> float | None:
    """Parse a duration to seconds; None for what Go rejects."""
    if len(written) > _LONGEST or _WHOLE.fullmatch(written) is None:
        return None
    seconds = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(written))
    if seconds >= _MOST:
        return None
    return -seconds if written.startswith("-") else seconds


# Budgets of an update: a count of replicas, or a percentage of them, such as `1` or `25%`.
#
# Source: k8s.io/apimachinery pkg/util/intstr, IntOrString and GetScaledValueFromIntOrPercent;
# pkg/util/validation, IsValidPercent.


_PERCENT = regex(r"0*([0-9]{1,19})%")
_INT64 = 2**63 - 1
"""A percentage is read by strconv.Atoi; a count has 32 bits."""


def scaled(value: object, replicas: int, default: int | None = None, *, up: bool) -> int | None:
    """Convert a budget to a count of replicas; None if it is invalid or not known yet.

    Args:
        value: A count, which may be below 0, or a percentage, which may be above 100.
        replicas: The number that a percentage refers to.
        default: The result if nothing is stated.
        up: Whether to round up; otherwise down.
    """
    if value is None:
        return default
    percent = _percent(value)
    if percent is None:
        number = count(value)
        return number if isinstance(number, int) else None
    share = percent * replicas
    return -(-share // 100) if up else share // 100


def is_budget(value: object, most: int | None = None) -> bool:
    """Return whether a value is a count of at least 0, or a percentage.

    Args:
        value: Any value.
        most: The highest percentage; any if left out.

    Source: kubernetes pkg/apis/apps/validation ValidatePositiveIntOrPercent and, for 100%,
    IsNotMoreThan100Percent, which systems with their own webhooks have adopted.
    """
    percent, number = _percent(value), count(value)
    if percent is not None:
        return most is None or percent <= most
    return isinstance(number, int) and number >= 0


def _percent(value: object) -> int | None:
    match = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    number = int(match[1]) if match else None
    return number if number is not None and number <= _INT64 else None
