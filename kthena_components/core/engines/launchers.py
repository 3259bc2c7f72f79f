"""Reads what starts the ranks of an engine: MPI launchers, and commands of Ray."""

import difflib
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from types import MappingProxyType

from kthena_components.core.engines.facts import MAX_PROBLEMS, CommandFacts, Problem, capped
from kthena_components.core.engines.option_table import load
from kthena_components.core.engines.options import Option, Use
from kthena_components.core.engines.placeholders import Scope, has_gap
from kthena_components.core.engines.programs import MPI, RANK_LAUNCHER, RAY_SCRIPT_NAME, base_name
from kthena_components.core.engines.values import Refused, convert, out_of_range
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import MaybeInt, MaybeText, Unknown

# Reads how an MPI launcher in front of an engine starts its ranks: how many, and on which hosts.
#
# Options: mpirun(1) of Open MPI 4 and 5, mpiexec of MPICH (-ppn), srun(1).


_RANKS = ("-n", "-np", "--np", "--ntasks")
_PER_HOST = ("-npernode", "--npernode", "-ppn", "--ntasks-per-node")
_MAPPED = ("--map-by", "-map-by")
_PER_NODE = regex(r"ppr:([0-9]{1,6}):node(?::.*)?")
_HOSTS = ("-H", "-host", "--host")
_HOST = regex(r"[-A-Za-z0-9_.]+(?::([0-9]{1,6}))?")
_HIDDEN = Unknown("a word of the MPI launcher is not known")


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
    is_known = not any(map(has_gap, launcher))
    facts = replace(
        facts,
        mpi_session=RANK_LAUNCHER in names or (False if is_known else _HIDDEN),
        mpi_per_host=_per_host(launcher, slurm="srun" in names),
        mpi_slots=_slots(launcher) if is_known else None,
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


# Reads commands that start or join a Ray cluster.
#
# vLLM's helper script (examples/online_serving/multi-node-serving.sh) reads `--name=value` only;
# it passes every other word to `ray start`.


RAY_PORT = 6379
"""The port at which Ray's head listens unless it states another one."""


@dataclass(frozen=True, slots=True)
class Ray:
    """Ray's part of a command."""

    role: str | None = None
    size: MaybeInt | None = None
    where: str = ""
    problems: tuple[Problem, ...] = ()
    gpus: MaybeInt | None = None
    """GPUs that Ray counts in the pod (`--num-gpus`). None: not stated, so all that it finds."""

    address: MaybeText | None = None
    """Where it joins a cluster. None: it joins none."""
    written: str = ""
    """The address as written."""
    port: MaybeText | None = None
    """Port of the cluster that it starts. None: it starts none."""
    blocks: bool = False
    """Whether it stays in the foreground (`--block`)."""
    may_block: bool = False
    """Whether a word that is not known may be --block."""
    joins_and_returns: bool = False
    """Whether it joins a cluster and surely returns then, without --block."""

    def join(self, other: "Ray") -> "Ray":
        """Combine two commands of one script: the head takes precedence."""
        head = other if other.role == "head" or self.role is None else self
        size = other if other.size is not None else self
        problems = tuple(capped(self.problems + other.problems))
        stated = dict.fromkeys(ray.gpus for ray in (self, other) if ray.gpus is not None)
        gpus = next(iter(stated), None)
        if len(stated) > 1:
            gpus = Unknown("its Ray commands state different --num-gpus")
        joins = other if self.address is None else self
        starts = other if self.port is None else self
        return Ray(
            head.role,
            size.size,
            size.where,
            problems,
            gpus,
            address=joins.address,
            written=joins.written,
            port=starts.port,
        )


def read_size(flag: str, written: str, given: str, scope: Scope, *, least: int = 1) -> Ray:
    """Read a number of pods, ranks or GPUs."""
    shown = scope.show(given)
    option = Option(flag, type="int", use=Use("size", least=least))
    value = convert(option, shown, scope.read(given), in_shell=scope.in_shell)
    value = out_of_range(option, shown, value) or value
    where = scope.show(written)
    if isinstance(value, Refused):
        problem = Problem(flag=flag, text=value.text, remedy=value.remedy, hard=value.hard)
        return Ray(size=Unknown(value.text), where=where, problems=(problem,))
    return Ray(size=value, where=where)


def read_ray_script(line: Sequence[str], scope: Scope) -> Ray:
    """Read a script that starts Ray and its arguments: leader or worker, and the size."""
    name, *words = line
    role = {"leader": "head", "worker": "worker"}.get(words[0] if words else "")
    needed = "--ray_cluster_size" if role == "head" else "--ray_address"
    if role is None:
        return Ray()
    stated = [word for word in words if word.startswith(f"{needed}=")]
    port = _script_port(words, scope)
    if stated and role == "head":
        given = stated[-1].partition("=")[2]
        return replace(read_size(needed, stated[-1], given, scope), role=role, port=port)
    if stated:
        host = stated[-1].partition("=")[2]
        written = f"{scope.show(host)}:{port}" if isinstance(port, str) else scope.show(host)
        return Ray(role, address=scope.read(host), written=written, blocks=True)
    opaque = next((word for word in words if has_gap(word)), None)
    if opaque is not None:
        size = None if role == "worker" else Unknown(f"{scope.show(opaque)} may contain it")
        unknown = Unknown(f"{scope.show(opaque)} may contain it")
        return Ray(role, size, port=unknown if role == "head" else None)
    if base_name(name) != RAY_SCRIPT_NAME:
        return Ray()  # Another script of that name.
    text = f"{RAY_SCRIPT_NAME} {words[0]} ends at once without {needed}=…"
    remedy = f"write {needed}= and the value in one word"
    problem = Problem(flag=needed, text=text, remedy=remedy, hard=True)
    size = Unknown(text) if role == "head" else None
    return Ray(role, size, problems=(problem,))


def read_ray(words: Sequence[str], scope: Scope) -> Ray:
    """Read `ray start --head`, `ray start --address=…` or `ray symmetric-run --min-nodes N`."""
    if words[0] == "start":
        flags = [word.partition("=")[0] for word in words if word.startswith("--")]
        joins = "worker" if "--address" in flags else None
        head = "--head" in flags
        unknown = [flag for flag in flags if not _is_known(flag)]
        problems = tuple(map(_no_option, unknown[:MAX_PROBLEMS]))
        ray = Ray(
            "head" if head else joins,
            problems=problems,
            port=_flag_or_default(words, "--port", scope, str(RAY_PORT)) if head else None,
            blocks="--block" in flags,
            may_block=_may_block(words),
            joins_and_returns=joins is not None and not head and not _may_block(words),
        )
        if joins and not head and (found := flag_value(words, ("--address",))):
            ray = replace(ray, address=scope.read(found[1]), written=scope.show(found[1]))
        return _with_gpus(ray, words, scope)
    own = words[: words.index("--")] if "--" in words else words
    found = flag_value(own, ("--min-nodes",))
    ray = read_size("--min-nodes", *found, scope) if found else Ray()
    return _with_gpus(ray, own, scope)


_SWITCHES = frozenset({"--disable-usage-stats", "--head", "--no-monitor"})
"""Options of `ray start` without a value."""


def _may_block(words: Sequence[str]) -> bool:
    """Return whether `ray start` has --block or --help, or a word that may be any option."""
    for before, word in pairwise(words):
        is_value = before.startswith("--") and "=" not in before and before not in _SWITCHES
        if word in {"--block", "--help"} or (has_gap(word.partition("=")[0]) and not is_value):
            return True
    return False


def _script_port(words: Sequence[str], scope: Scope) -> MaybeText:
    """Return the port that multi-node-serving.sh uses; --ray_port states another one."""
    stated = [word for word in words if word.startswith("--ray_port=")]
    if not stated and (opaque := next((word for word in words[1:] if word[:1] != "-"), None)):
        return Unknown(f"{scope.show(opaque)} may contain it") if has_gap(opaque) else str(RAY_PORT)
    return scope.read(stated[-1].partition("=")[2]) if stated else str(RAY_PORT)


def _flag_or_default(words: Sequence[str], name: str, scope: Scope, usual: str) -> MaybeText:
    found = flag_value(words, (name,))
    if found is not None:
        return scope.read(found[1])
    opaque = next((word for word in words if has_gap(word.partition("=")[0])), None)
    return usual if opaque is None else Unknown(f"{scope.show(opaque)} may contain it")


def _with_gpus(ray: Ray, words: Sequence[str], scope: Scope) -> Ray:
    found = flag_value(words, ("--num-gpus",))
    if not found:
        return ray
    read = read_size("--num-gpus", *found, scope, least=0)
    return replace(ray, gpus=read.size, problems=ray.problems + read.problems)


def _is_known(flag: str) -> bool:
    """Return whether any release of Ray has an option; no image states Ray's release."""
    return has_gap(flag) or flag in {"--", "--help"} or bool(load("ray").history(flag))


def _no_option(flag: str) -> Problem:
    near = difflib.get_close_matches(flag, load("ray").spellings, n=1)
    text = f"`ray start` has no option '{flag}' in any release from {load('ray').texts[0]}"
    remedy = f"write {near[0]}" if near else "remove it"
    return Problem(flag=flag, text=text, remedy=remedy, hard=False, option=True)


def flag_value(words: Sequence[str], names: Sequence[str]) -> tuple[str, str] | None:
    """Find the first of some flags: its text as written, and its value."""
    for at, word in enumerate(words):
        head, equals, value = word.partition("=")
        if head in names and equals:
            return word, value
        if head in names and at + 1 < len(words):
            return f"{word} {words[at + 1]}", words[at + 1]
    return None
