"""Reads Volcano's objects, and every object that may have a network topology.

Reading never raises. A value that is not known yet is Unknown, one of the wrong type is None: the
schema reports it, and the rules between fields skip it.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from kthena_components.core.findings import Finding, not_checked
from kthena_components.core.naming import dns_name, is_dns_name
from kthena_components.core.objects.object import Object
from kthena_components.core.remedies import write
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import (
    count,
    group_kind,
    mapping,
    sequence,
    spec_of,
    text,
    unknown_in,
    whole,
)
from kthena_components.core.values.unknown import MaybeInt, MaybeText, Unknown

NAME_LIMIT = 253


@dataclass(frozen=True, slots=True)
class Topology:
    """One networkTopology, and its path."""

    path: str
    fields: Mapping[str, Any]

    @property
    def mode(self) -> MaybeText | None:
        """The mode, hard or soft; the CRD's default is hard."""
        return text(self.fields.get("mode"), "hard")

    @property
    def tier(self) -> MaybeInt | None:
        """The highest allowed tier, if given by number."""
        return whole(self.fields.get("highestTierAllowed"))

    @property
    def tier_name(self) -> MaybeText | None:
        """The highest allowed tier, if given by name."""
        name = text(self.fields.get("highestTierName"))
        return None if name == "" else name


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One task of a Volcano Job: equal pods."""

    path: str
    """In the object."""
    fields: Mapping[str, Any]
    replicas: MaybeInt | None
    """Its pods, 1 by default."""

    @property
    def template(self) -> object:
        """The template of its pods, even if invalid."""
        return self.fields.get("template")


class HasBody(Protocol):
    """An object, or another system's view of one."""

    @property
    def body(self) -> Mapping[str, Any]:
        """The object as it would be applied."""


Rule = Callable[[Object], Iterator[Finding]]


def tasks_of(found: Object) -> list[Task]:
    """List the tasks of a Volcano Job."""
    listed = [mapping(item) for item in sequence(found.spec.get("tasks"))]
    return [
        Task(path=f"spec.tasks[{i}]", fields=task, replicas=count(task.get("replicas"), 1))
        for i, task in enumerate(listed)
    ]


def topologies(manifest: Mapping[str, Any]) -> Iterator[Topology]:
    """List the network topologies of a PodGroup, or of an object whose controller creates one."""
    spec = spec_of(manifest)
    match group_kind(manifest):
        case ("scheduling.volcano.sh", "PodGroup"):
            places = [("spec.networkTopology", spec.get("networkTopology"))]
            for i, policy in enumerate(sequence(spec.get("subGroupPolicy"))):
                at = f"spec.subGroupPolicy[{i}].networkTopology"
                places.append((at, mapping(policy).get("networkTopology")))
        case ("batch.volcano.sh", "Job"):
            places = [("spec.networkTopology", spec.get("networkTopology"))]
            for i, task in enumerate(sequence(spec.get("tasks"))):
                policy = mapping(mapping(task).get("partitionPolicy"))
                at = f"spec.tasks[{i}].partitionPolicy.networkTopology"
                places.append((at, policy.get("networkTopology")))
        case ("workload.serving.volcano.sh", "ModelServing"):
            both = mapping(mapping(spec.get("template")).get("networkTopology"))
            at = "spec.template.networkTopology"
            places = [(f"{at}.{key}", both.get(key)) for key in ("groupPolicy", "rolePolicy")]
        case (_, "ModelInfer"):
            gang = mapping(mapping(spec.get("template")).get("gangSchedule"))
            places = [("spec.template.gangSchedule.networkTopology", gang.get("networkTopology"))]
        case _:
            places = []
    for path, fields in places:
        if isinstance(fields, Mapping) or unknown_in(fields):
            yield Topology(path, mapping(fields))


def name_problem(value: object, path: str, what: str) -> Iterator[Finding]:
    """Report a name that is not a DNS-1123 subdomain. A missing name is not reported here."""
    rule, name = "volcano-name", text(value)
    if isinstance(name, Unknown):
        yield not_checked(path, name, rule)
    elif name is not None and not is_dns_name(name[: NAME_LIMIT + 1]):
        near = dns_name(name[:40])
        shown = name if len(name) <= NAME_LIMIT else f"{name[:40]}…"
        yield Finding(
            path=path,
            seen=f"'{shown}' is not a DNS-1123 subdomain (at most {NAME_LIMIT} of a-z, 0-9, '-' "
            f"and '.', each part starting and ending with a letter or digit), as {what} is",
            remedy=write(near) if near else "write for example 'research'",
            rule=rule,
        )
