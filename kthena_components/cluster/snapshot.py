"""What `doctor` has seen of a cluster, and the lines that it says. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import cached_property

from tabulate import tabulate

from kthena_components.cluster.objects import Listed, known, name_of, node_labels
from kthena_components.cluster.requirements import Body, Kind, Right
from kthena_components.core.topology.domains import Domain, read_domains
from kthena_components.core.values.unknown import Unknown


class Status(StrEnum):
    """How a line ends up."""

    OK = "ok"
    WARN = "warn"
    """Works, but not as somebody may expect; or not for everybody."""
    FAIL = "fail"
    """An update would fail, or its pods would never run."""
    UNKNOWN = "unknown"
    """Could not be told, and why."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One thing that was looked at."""

    mark: Status
    subject: str
    text: str
    """What was seen with numbers, and what to do about it."""


@dataclass(frozen=True, kw_only=True)  # without slots, which hold no cache
class Snapshot:
    """Everything that is judged. What could not be read is Unknown, with the reason."""

    server: str
    version: str
    """Kubernetes' own, as v1.34.4."""
    user: str
    now: datetime
    served: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Kinds by apiVersion, of the groups that we use."""
    schemas: Mapping[Kind, Body | Unknown] = field(default_factory=dict)
    """What the API server publishes of a kind."""
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
    """Keys of each Secret, never its values; None for one that is not there."""

    @cached_property
    def labels(self) -> Mapping[str, Mapping[str, str]]:
        """Labels of each node."""
        return node_labels(self.nodes)

    def domains(self, more: Iterable[Body] = ()) -> list[Domain] | Unknown:
        """HyperNodes with their nodes, and those that a stack brings along in place of them."""
        for listed in (self.hyper_nodes, self.nodes):
            if isinstance(listed, Unknown):
                return listed
        return read_domains(self.all_hyper_nodes(more), self.labels)

    def all_hyper_nodes(self, more: Iterable[Body] = ()) -> list[Body]:
        """List the cluster's HyperNodes, and others in place of those of the same name."""
        named = {name_of(body): body for body in (*known(self.hyper_nodes), *more)}
        return list(named.values())


def serves(seen: Snapshot, kind: Kind) -> bool:
    """Tell whether the cluster knows a kind in our version of it."""
    return kind[1] in seen.served.get(kind[0], ())


def render_lines(lines: Sequence[Diagnostic]) -> str:
    """Write one line for each thing."""
    rows = [[line.mark, line.subject, line.text] for line in lines]
    return tabulate(rows, tablefmt="plain", disable_numparse=True)


def exit_status(lines: Sequence[Diagnostic]) -> int:
    """Give 1 when something failed, or else 0."""
    return int(any(line.mark is Status.FAIL for line in lines))
