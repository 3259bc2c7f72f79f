"""The pods and releases of an engine, and what rules about its start share."""

from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any, NamedTuple

from kthena_components.core.engines import CommandFacts
from kthena_components.core.engines.options import TITLES
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts, SiblingFacts
from kthena_components.core.findings import Finding, Level
from kthena_components.core.rules.support.messages import part_of_engine, title
from kthena_components.core.values.caches import cached_last
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.images import Version
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import OwnAddress, Unknown, all_known, product

ALWAYS = Level.MANDATORY
"""The level if every release with the options rejects it."""


def since(command: CommandFacts, first: Version, before: Version | None = None) -> Level | None:
    """Return the level of what some releases reject, None if the command's release does not.

    Args:
        command: The command line, with the release by which it is read.
        first: The first release that rejects it.
        before: The first release that no longer does. None: the newest one does.
    """
    release = command.release
    if release is None or release.version < first:
        return None
    if before is not None and release.version >= before:
        return None
    return Level.MANDATORY if release.sure else Level.ADVISORY


@dataclass(frozen=True, slots=True)
class Start:
    """One engine and its command line, while a rule checks it."""

    engine: EngineFacts
    command: CommandFacts
    worker: PodFacts | None = None
    """The worker with the command line. None: it is the entry's."""

    @property
    def pod(self) -> PodFacts:
        """The pod with the command line."""
        return self.worker or self.engine.entry

    @property
    def product(self) -> str:
        """The engine and its release, for messages: vLLM 0.26.0."""
        if self.command.release is not None:
            return self.command.release.title
        return TITLES.get(self.command.engine or "", "the engine")

    def since(self, first: Version, before: Version | None = None) -> Level | None:
        """Return the level of what some releases reject."""
        return since(self.command, first, before)

    def option(self, *names: str) -> Any:
        """Return the value of an option, by any of its spellings.

        None: not stated. Unknown: stated and not readable, or stated where it cannot be read.
        """
        stated = self.command.options
        for name in names:
            if name in stated:
                return stated[name]
        return self.command.hidden

    def states(self, field: str) -> bool:
        """Return whether the command line is known to state a field of CommandFacts."""
        return field in self.command.where

    def is_on(self, *names: str) -> bool | Unknown:
        """Return whether a switch is on; without the flag it is off."""
        value = self.option(*names)
        return value if isinstance(value, Unknown) else value is True

    def number(self, *names: str) -> int | None:
        """Return an option's number; None if it is not stated or unknown."""
        value = self.option(*names)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    @property
    def hidden(self) -> bool:
        """Whether options may be set where they are not read: in a config file or a variable."""
        return self.command.hidden is not None

    def refused(self, seen: str, remedy: str, level: Level = ALWAYS) -> Iterator[Finding]:
        """Report what the engine rejects; if advisory, with the release that does."""
        release = self.command.release
        note = release.note if release is not None and level is Level.ADVISORY else ""
        yield Finding(
            path=self.pod.command_path,
            seen=f"{title(self.engine)} {seen}{note}",
            remedy=remedy,
            level=level,
        )


def starts(facts: ServingFacts, *engines: str) -> Iterable[Start]:
    """Return the engines of some kinds that a command line starts."""
    return [start for start in _starts(facts) if start.command.engine in engines]


@cached_last  # every rule about a start asks for those of the same facts
def _starts(facts: ServingFacts) -> list[Start]:
    commands = ((engine, engine.entry.command) for engine in facts.engines)
    return [Start(engine, command) for engine, command in commands if command is not None]


def all_starts(facts: ServingFacts, *engines: str) -> Iterator[Start]:
    """Return also what workers start, for options that may differ between the pods of an engine."""
    for start in starts(facts, *engines):
        yield start
        worker = start.engine.worker
        command = None if worker is None else worker.command
        if command is not None and command.engine in engines:
            yield Start(start.engine, command, worker)


def each_start(
    *engines: str,
) -> Callable[[Callable[[Start], Iterable[Finding]]], Callable[[ServingFacts], Iterator[Finding]]]:
    """Make a rule that checks each start of some kinds of engines."""

    def of(
        check: Callable[[Start], Iterable[Finding]],
    ) -> Callable[[ServingFacts], Iterator[Finding]]:
        """Turn a check of one engine's start into a rule of all engines of a serving."""
        part = part_of_engine(check)

        @wraps(check)
        def rule(facts: ServingFacts) -> Iterator[Finding]:
            for start in starts(facts, *engines):
                yield from part(start)

        return rule

    return of


POSITIVE = (0, 11, 1)
"""The first vLLM that rejects sizes and shares of 0 and less."""


# The images of engines: their releases, and those for AMD.


def sglang_for_amd(pod: PodFacts) -> bool:
    """Return whether a pod has SGLang's own image for AMD.

    It sets SGLANG_USE_AITER and SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN (docker/rocm.Dockerfile).
    """
    image = pod.image
    return image is not None and image.engine == "sglang" and "rocm" in (image.tag or "")


def release_of(engine: EngineFacts) -> Version | None:
    """Return the release of vLLM that an engine runs; None if nothing states it."""
    image = engine.entry.image
    return image.vllm_version if image else None


def pods_of(engine: EngineFacts) -> tuple[PodFacts, ...]:
    """Return the templates of an engine's pods."""
    worker = engine.worker if engine.pods != 1 else None
    return (engine.entry,) if worker is None else (engine.entry, worker)


_TWO = 2


def others(engine: EngineFacts) -> Iterator[tuple[PodFacts, CommandFacts]]:
    """Return the command lines of pods that do not have the first rank."""
    entry, worker, siblings = engine.entry, engine.worker, engine.siblings
    if worker is not None and worker.command is not None:
        read = siblings.commands[1:] if siblings is not None else ()
        differ = isinstance(worker.command.headless, Unknown)
        found = [(worker, each) for each in (differ and read) or (worker.command,)]
    elif siblings is not None and siblings.commands:
        # A single pod whose rank is unknown may be the first one.
        one = len(siblings.commands) == 1
        unclear = one and isinstance(siblings.commands[0].node_rank, Unknown)
        found = [] if unclear else [(entry, command) for command in siblings.commands]
    elif entry.command is not None and (_are_several(siblings) or _is_elsewhere(entry)):
        found = [(entry, entry.command)]
    else:
        found = []
    return ((pod, command) for pod, command in found if _is_other(command))


def _are_several(siblings: SiblingFacts | None) -> bool:
    return siblings is not None and siblings.count >= _TWO


def _is_elsewhere(pod: PodFacts) -> bool:
    """Return whether the first rank of the engine in a pod is surely in no container beside."""
    rank = pod.command.node_rank if pod.command is not None else None
    is_other = isinstance(rank, int) and rank > 0
    return is_other and pod.own is not None and pod.own.ports.alone


def _is_other(command: CommandFacts) -> bool:
    if command.hidden is not None:
        return command.headless is True
    # Of several pods with one command line, all but one have another rank, whatever it is.
    return command.headless is True or command.node_rank not in {None, 0}


# Engines whose ranks Ray spreads over several pods.


class Spread(NamedTuple):
    """A copy of a model that spans pods with Ray."""

    version: Version
    copy: int
    stages: int
    gpus: int


def spread_of(engine: EngineFacts, first: Version, until: Version) -> Spread | Unknown | None:
    """Return how a copy spans pods with Ray; None if it does not, or for another release."""
    command, version = engine.entry.command, release_of(engine)
    if command is None or version is None or not first <= version < until:
        return None
    if command.engine != "vllm" or command.executor != "ray" or engine.pods == 1:
        return None
    sizes = all_known(command.per_rank_world, command.pipeline, engine.entry.gpus)
    if isinstance(sizes, Unknown):
        return sizes
    copy, stages, gpus = sizes
    return Spread(version, copy, stages, gpus) if copy > gpus else None


LOOPBACK = regex(
    r"(?:(?:tcp://)?(?:127(?:\.\d+){3}|localhost|0\.0\.0\.0|\[::1\])(?::\d+)?|::1|auto|(?::\d+)?)"
)
"""Also nothing, and what makes Ray look for a cluster in the pod."""
_PORT = regex(r":(\d{1,5})$")
RAY = "ray start --address"
WITH_PORT = frozenset({RAY, "--dist-init-addr"})
"""Options whose address has a port."""
LEADERS = ("ENTRY_ADDRESS", "LWS_LEADER_ADDRESS", "RBG_LWP_LEADER_ADDRESS", "HEAD_SVC")
"""Variables of controllers with the name of an engine's first pod in the cluster."""


def first_pod(controller_env: Iterable[str] | None) -> str:
    """Return how pods name the first pod of their engine; empty if no controller tells them.

    Args:
        controller_env: Variables that their controller sets. None: not known.
    """
    # A controller names the variable of its own before those of another one below it.
    return next((f"$({name})" for name in controller_env or () if name in LEADERS), "")


def address_of_first(facts: ServingFacts, engine: EngineFacts) -> str:
    """Return how the pods of an engine name its first pod; empty if that is not known.

    It is not known if there are several copies that no variable tells apart, or if the first pod
    belongs to another object.
    """
    hosts, at, command = facts.hosts, engine.entry.command_path, engine.entry.command
    behind = engine.worker is None and command is not None and _is_behind(engine, command)
    if address := first_pod(facts.controller_env):
        return address
    if hosts is None or hosts.missing or behind:
        return ""
    first = next((one for one in hosts.pods if at.startswith(f"{one.path}.")), None)
    if first is None or first.written:
        return "" if first is None else first.written
    alone = product(engine.replicas, facts.copies) == 1
    return f"{first.first}.{hosts.domain}" if alone and hosts.domain else ""


def _is_behind(engine: EngineFacts, command: CommandFacts) -> bool:
    """Return whether the first pod of an engine is in another object than the given pods."""
    read = engine.siblings.commands if engine.siblings is not None else ()
    ranks = [each.node_rank for each in read or (command,)]
    above = all(isinstance(rank, int) and rank > 0 for rank in ranks)
    return above or (not read and command.headless is True)


@dataclass(frozen=True, slots=True)
class Meeting:
    """Where the ranks of an engine meet."""

    option: str
    address: object
    """None: not stated."""
    counted: str
    """The option that says that there are several."""
    written: str = ""
    """The address as written, if it has unknown parts."""

    @property
    def shown(self) -> str:
        """The address as it is written, for messages and for what stands in it."""
        return self.written or str(self.address or "")


def port_of(shown: str) -> int | None:
    """Return the port at the end of an address; None if it states none."""
    found = _PORT.search(shown)
    return int(found[1]) if found else None


def meeting_of(command: CommandFacts) -> Meeting | None:
    """Return where a command line looks for the first rank; None if that is not known."""
    options, nodes = command.options, command.nnodes
    if command.hidden is not None:
        return None
    if command.data_backend not in {None, "mp"} or command.executor not in {None, "mp"}:
        return None
    if isinstance(nodes, int) and nodes >= _TWO and command.engine in _OPTIONS:
        option = _OPTIONS[command.engine]
        stated = options.get(option) or _host(command)
        return Meeting(option, stated, f"--nnodes {nodes}", command.written.get(option, ""))
    data, local = command.data, command.data_local
    if command.headless is True and isinstance(data, int) and isinstance(local, int):
        address = options.get(_DATA) or options.get(_OPTIONS["vllm"])
        copies = f"--headless and --data-parallel-size {data}"
        written = command.written.get(_DATA, "")
        return Meeting(_DATA, address, copies, written) if 0 < local < data else None
    return None


def _host(command: CommandFacts) -> object:
    """Return the --host of SGLang, where newer releases meet if nothing else is said."""
    host = command.options.get("--host") if command.engine == "sglang" else None
    return None if is_itself(host) else host


_OPTIONS = {"vllm": "--master-addr", "sglang": "--dist-init-addr"}
_DATA = "--data-parallel-address"
DEFAULTS = {"--master-addr": "127.0.0.1", "--dist-init-addr": "the pod itself", _DATA: "127.0.0.1"}


def is_itself(address: object) -> bool:
    """Return whether an address names the pod that states it."""
    return (
        address is None
        or isinstance(address, OwnAddress)
        or (isinstance(address, str) and LOOPBACK.fullmatch(address) is not None)
    )


def meetings(engine: EngineFacts) -> Iterator[tuple[PodFacts, Meeting]]:
    """Return where the pods of an engine that do not have its first rank look for it."""
    for pod, command in others(engine):
        meeting = meeting_of(command)
        if meeting is not None:
            yield pod, meeting
    pod = engine.worker or engine.entry
    joins = pod.joined or pod.command
    if joins is None or joins.ray_address is None or engine.pods == 1:
        return
    # One script for all pods may start a head and join it in the same pod.
    may_be_itself = engine.worker is None and not _only_joins(pod, joins)
    if not may_be_itself or not is_itself(joins.ray_address):
        yield pod, Meeting(RAY, joins.ray_address, "a Ray cluster", joins.ray_written)


def _only_joins(pod: PodFacts, joins: CommandFacts) -> bool:
    """Return whether a pod joins a Ray cluster whose head is surely in no container beside."""
    alone = pod.own is not None and pod.own.ports.alone
    return alone and joins.ray_role == "worker"


def needs_gang(engine: EngineFacts) -> bool:
    """Return whether an engine has several pods, and one may have GPUs or starts an engine.

    Others, such as web servers, do not wait for each other.
    """
    if not isinstance(engine.pods, int) or engine.pods <= 1:
        return False
    pods = (engine.entry, engine.worker or engine.entry)
    known = any(command and command.engine for pod in pods for command in (pod.command, pod.joined))
    return known or any(pod.gpus != 0 for pod in pods)
