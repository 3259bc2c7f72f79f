"""Amounts of resources as tuples of whole numbers, which compare and add fast.

Source: Volcano v1.14.1 pkg/scheduler/api/resource_info.go. It counts CPU and devices in
thousandths, and memory and pods in units.
"""

from collections.abc import Iterable, Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from operator import add, le, sub

from kthena_components.cluster.node_fit import USUAL_PODS, Amounts
from kthena_components.core.values.dataclass import dataclass

Vector = tuple[int, ...]
PODS = "pods"
CPU = "cpu"
MEMORY = "memory"
_WHOLE = frozenset({PODS, MEMORY})
_THOUSAND = Decimal(1000)
_MOST = Decimal(2**63 - 1)
"""The largest quantity: Kubernetes reads larger ones as this one."""


def plus(left: Vector, right: Vector) -> Vector:
    """Add two amounts."""
    return tuple(map(add, left, right))


def minus(left: Vector, right: Vector) -> Vector:
    """Subtract one amount from another; the result may be negative."""
    return tuple(map(sub, left, right))


def within(wanted: Vector, room: Vector) -> bool:
    """Say whether there is room for all of an amount."""
    return all(map(le, wanted, room))


@dataclass(frozen=True, slots=True)
class Dimensions:
    """The resources that a cluster and its pods speak of, in the order of every vector."""

    names: tuple[str, ...]

    @classmethod
    def of(cls, stated: Iterable[Mapping[str, object]]) -> "Dimensions":
        """Collect all names; pods, CPU and memory come first."""
        first = (PODS, CPU, MEMORY)
        others = {name for amounts in stated for name in amounts}.difference(first)
        return cls((*first, *sorted(others)))

    def request(self, amounts: Amounts, pods: int = 1) -> Vector:
        """Write what a pod requests, with its slot, rounded up."""
        return self._vector({**amounts, PODS: Decimal(pods)}, ROUND_CEILING)

    def capacity(self, amounts: Amounts) -> Vector:
        """Write what a node allows, rounded down. Nodes usually have 110 slots for pods."""
        return self._vector({PODS: USUAL_PODS, **amounts}, ROUND_FLOOR)

    def use(self, amounts: Amounts) -> Vector:
        """Write what is held, rounded up."""
        return self._vector(amounts, ROUND_CEILING)

    def amount(self, name: str, number: int) -> Decimal:
        """Turn a number of a vector into the base unit of its resource."""
        return Decimal(number) if name in _WHOLE else Decimal(number) / _THOUSAND

    @property
    def nothing(self) -> Vector:
        """Zero of each."""
        return (0,) * len(self.names)

    def _vector(self, amounts: Amounts, rounding: str) -> Vector:
        return tuple(
            int((amount if name in _WHOLE else amount * _THOUSAND).to_integral_value(rounding))
            for name in self.names
            for amount in [min(_MOST, amounts.get(name, Decimal(0)))]
        )
