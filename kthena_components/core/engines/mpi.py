"""Reads how an MPI launcher in front of an engine starts its ranks: how many, and on which hosts.

Options: mpirun(1) of Open MPI 4 and 5, mpiexec of MPICH (-ppn), srun(1).
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType

from kthena_components.core.engines.facts import CommandFacts
from kthena_components.core.engines.placeholders import Scope, has_gap
from kthena_components.core.engines.programs import MPI, RANK_LAUNCHER, base_name
from kthena_components.core.engines.ray import flag_value, read_size

_RANKS = ("-n", "-np", "--np", "--ntasks")
_PER_HOST = ("-npernode", "--npernode", "-ppn", "--ntasks-per-node")
_MAPPED = ("--map-by", "-map-by")
_PER_NODE = re.compile(r"ppr:([0-9]{1,6}):node(?::.*)?")
_HOSTS = ("-H", "-host", "--host")
_HOST = re.compile(r"[-A-Za-z0-9_.]+(?::([0-9]{1,6}))?")


def with_ranks(facts: CommandFacts, launcher: Sequence[str], scope: Scope) -> CommandFacts:
    """Add what an MPI launcher states.

    Args:
        facts: The engine behind it.
        launcher: The words in front of the engine.
        scope: The variables.
    """
    names = [base_name(word) for word in launcher]
    if not MPI.intersection(names):
        return facts
    found = flag_value(launcher, _RANKS)
    facts = replace(
        facts,
        mpi_session=RANK_LAUNCHER in names,
        mpi_per_host=_per_host(launcher, slurm="srun" in names),
        mpi_slots=None if any(map(has_gap, launcher)) else _slots(launcher),
    )
    if not found:
        return facts
    ranks = read_size(found[0].partition(" ")[0], *found, scope)
    where = MappingProxyType({**facts.where, "mpi_ranks": ranks.where})
    return replace(
        facts, mpi_ranks=ranks.size, where=where, problems=facts.problems + ranks.problems
    )


def _per_host(launcher: Sequence[str], *, slurm: bool) -> int | None:
    """Read how many ranks a host gets; None if that is not stated as a number."""
    found = flag_value(launcher, (*_PER_HOST, *(() if slurm else ("-N",))))
    mapped = flag_value(launcher, _MAPPED)
    per_node = _PER_NODE.fullmatch(mapped[1]) if mapped else None
    text = per_node[1] if per_node else found[1] if found else ""
    return int(text) if text.isdecimal() and text.isascii() and len(text) <= 6 else None  # noqa: PLR2004 - as in the patterns


def _slots(launcher: Sequence[str]) -> tuple[int, ...] | None:
    """Read the slots of each host; None if the hosts are not all stated, or may have more."""
    found = flag_value(launcher, _HOSTS)
    if found is None or "oversubscribe" in " ".join(launcher).casefold():
        return None
    slots: dict[str, int] = {}
    for item in found[1].split(","):
        host = _HOST.fullmatch(item)
        if host is None:
            return None
        name = item.partition(":")[0]
        slots[name] = slots.get(name, 0) + int(host[1] or 1)
    return tuple(slots.values())
