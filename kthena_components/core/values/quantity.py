"""Kubernetes quantities and the names of accelerator resources.

Source of the grammar: k8s.io/apimachinery/pkg/api/resource/quantity.go.
"""

import re
from collections.abc import Mapping
from decimal import Decimal

from kthena_components.core.values.remembered import remembered

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
QUANTITY = re.compile(
    r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+))(?P<suffix>[KMGTPE]i|[numkMGTPE]|[eE][+-]?\d{1,3})?",
    re.ASCII,
)
_LONGEST = 64
"""Maximum length of a quantity. Longer texts are not read."""

ACCELERATOR = re.compile(
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
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        return None
    if isinstance(text, int) and text.bit_length() > _LONGEST:
        return None
    written = str(text)
    return _read(written) if len(written) <= _LONGEST else None


@remembered
def _read(written: str) -> Decimal | None:
    match = QUANTITY.fullmatch(written)
    if match is None:
        return None
    suffix = match["suffix"] or ""
    if suffix[:1] in {"e", "E"} and len(suffix) > 1 and suffix != "Ei":
        return Decimal(match["number"]) * Decimal(10) ** int(suffix[1:])
    return Decimal(match["number"]) * _SUFFIXES[suffix]


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


@remembered
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
