"""The state of a cluster that `doctor` checks, and the lines that it prints. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from enum import StrEnum
from functools import cached_property

from tabulate import tabulate

from kthena_components.cluster.objects import Listed, known, name_of, node_labels
from kthena_components.cluster.requirements import Body, Kind, Right
from kthena_components.core.topology.domains import Domain, read_domains
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.unknown import Unknown


class Status(StrEnum):
    """Result of one check."""

    OK = "ok"
    WARN = "warn"
    """Works, but perhaps not as expected, or not for all users."""
    FAIL = "fail"
    """An update would fail, or its pods would never run."""
    UNKNOWN = "unknown"
    """Could not be checked; the text says why."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """Result of checking one subject."""

    mark: Status
    subject: str
    text: str
    """The observation with its numbers, and the remedy."""


@dataclass(frozen=True, kw_only=True)  # without slots: cached properties need a __dict__
class Snapshot:
    """Everything that is checked. Unknown, with the reason, where it could not be read."""

    server: str
    version: str
    """Version of Kubernetes, such as v1.34.4."""
    user: str
    now: datetime
    served: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Served kinds of the groups that we use, by apiVersion."""
    schemas: Mapping[Kind, Body | Unknown] = field(default_factory=dict)
    """Published OpenAPI schema of a kind."""
    deployments: Listed = ()
    leases: Listed = ()
    queues: Listed = ()
    hyper_nodes: Listed = ()
    nodes: Listed = ()
    pods: Listed = ()
    pod_groups: Listed = ()
    model_servings: Listed = ()
    scheduler_config: Body | Unknown | None = None
    rights: Mapping[Right, bool | Unknown] = field(default_factory=dict)
    namespaces: Mapping[str, bool | Unknown] = field(default_factory=dict)
    secrets: Mapping[tuple[str, str], frozenset[str] | Unknown | None] = field(default_factory=dict)
    """Keys of each Secret, never values; None for a missing Secret."""

    @cached_property
    def labels(self) -> Mapping[str, Mapping[str, str]]:
        """Labels of each node."""
        return node_labels(self.nodes)

    def domains(self, more: Iterable[Body] = ()) -> list[Domain] | Unknown:
        """HyperNodes with their nodes; HyperNodes of a stack replace those of the same name."""
        for listed in (self.hyper_nodes, self.nodes):
            if isinstance(listed, Unknown):
                return listed
        return read_domains(self.all_hyper_nodes(more), self.labels)

    def all_hyper_nodes(self, more: Iterable[Body] = ()) -> list[Body]:
        """List the cluster's HyperNodes; others replace those of the same name."""
        named = {name_of(body): body for body in (*known(self.hyper_nodes), *more)}
        return list(named.values())


def serves(seen: Snapshot, kind: Kind) -> bool:
    """Return whether the cluster serves a kind in the version that we write."""
    return kind[1] in seen.served.get(kind[0], ())


def render_lines(lines: Sequence[Diagnostic]) -> str:
    """Write one line for each diagnostic."""
    rows = [[line.mark, line.subject, line.text] for line in lines]
    return tabulate(rows, tablefmt="plain", disable_numparse=True)


def exit_status(lines: Sequence[Diagnostic]) -> int:
    """Return 1 when a check failed, else 0."""
    return int(any(line.mark is Status.FAIL for line in lines))
