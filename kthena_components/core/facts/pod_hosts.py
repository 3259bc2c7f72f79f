"""The names by which the pods of one object find each other, where its controller makes them."""

import re
from collections.abc import Mapping
from dataclasses import field

from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import MaybeInt

_VARIABLE = regex(r"\$(?:\((\w+)\)|\{(\w+)(%%,\*)?\}|(\w+))")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostedPods:
    """The pods of one template, whose host names differ in a number."""

    path: str
    """Path of the template, or of the part of an object with it."""
    prefix: str
    """Their host names without the number."""
    count: MaybeInt
    start: int = 0
    """The number of the first one."""
    written: str = ""
    """How the address of the first one is written for every copy; empty if there is one copy."""

    @property
    def first(self) -> str:
        """The host name of the first one."""
        return f"{self.prefix}{self.start}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodHosts:
    """The host names of the pods of one copy of an object, in the DNS of the cluster."""

    domain: str
    """The name of the Service below which they are."""
    pods: tuple[HostedPods, ...]
    missing: str = ""
    """Why the DNS has none of them, as a clause; empty if it has."""
    remedy: str = ""
    """What to do about that."""
    namespace: str = ""
    """The namespace of the pods; empty if the object states none, or it is not known."""
    late: str = ""
    """Why it has only those of ready pods, as a clause; empty if it has all."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Values of variables that the controller sets in the pods of the first copy."""

    def resolve(self, text: str) -> str:
        """Replace the controller's variables in an address, as its pods do."""
        return _VARIABLE.sub(self._value, text) if "$" in text else text

    def _value(self, found: re.Match[str]) -> str:
        name = found[1] or found[2] or found[4]
        if name not in self.variables:
            return found[0]
        value = self.variables[name]
        return value.partition(",")[0] if found[3] else value
