"""The engines of an object: in its containers, or sketched if a controller completes its pods.

Rules about production read fields that no engine needs, such as probes. They find the containers by
the facts, and the fields in the object's pods: both have the same paths.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any

from kthena_components.core import naming
from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.objects.object import Object, PodSet
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import mapping, sequence
from kthena_components.core.values.unknown import MaybeInt, Unknown

_LISTS = ("containers", "initContainers")
_COPIES = Unknown("the number of engines is not stated")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineContainer:
    """A container that starts an engine, or joins one."""

    path: str
    """Its path in the caller's input."""
    name: str
    command: CommandFacts
    fields: Mapping[str, Any]
    """The container as the pods have it."""
    pods: PodSet
    serves: bool
    """Whether it is known to answer requests: it is the entry of an engine."""
    copies: MaybeInt
    """Number of engines whose entry it is; 0 in a worker."""

    @property
    def pod(self) -> Mapping[str, Any]:
        """Spec of its pods."""
        return self.pods.spec


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviewed:
    """An object with engines."""

    object: Object
    engines: tuple[EngineContainer, ...]
    """Not empty."""


def review(found: Object, facts: ServingFacts, pods: Iterable[PodSet]) -> Reviewed | None:
    """Find the containers with engines in the pods of an object; None if it starts no engine.

    Containers that the object does not contain as such are left out: a controller writes those.
    """
    placed: dict[str, tuple[PodSet, Mapping[str, Any]]] = {}
    for one in pods:
        for at, fields in _containers(one):
            placed.setdefault(at, (one, fields))  # leaders may have the template of the workers
    engines: dict[str, EngineContainer] = {}
    for engine in facts.engines:
        for pod in (engine.entry, engine.worker if engine.pods != 1 else None):
            own = pod.own if pod is not None else None
            if pod is None or own is None or own.path not in placed:
                continue
            container = _container(engine, pod, *placed[own.path])
            if container is not None:
                engines.setdefault(own.path, container)
    listed = tuple(engines.values())
    starts = any(c.command.engine or naming.WORKER in c.pods.labels for c in listed)
    return Reviewed(object=found, engines=listed) if starts else None


def _containers(pods: PodSet) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name in _LISTS:
        for index, fields in enumerate(sequence(pods.spec.get(name))):
            yield pods.at(f"spec.{name}[{index}]"), mapping(fields)


def _container(
    engine: EngineFacts, pod: PodFacts, pods: PodSet, fields: Mapping[str, Any]
) -> EngineContainer | None:
    """Describe an engine in a container, with its copies if it answers requests."""
    own, command = pod.own, pod.command
    if own is None or command is None or not (command.engine or command.ray_role):
        return None
    # The first pod of an engine with other workers has rank 0, however its command counts.
    other = engine.worker.own if engine.worker is not None else None
    is_first = (other is not None and other.path != own.path) or _states_first(command, fields)
    serves = pod is engine.entry and _serves(command, is_first=is_first)
    return EngineContainer(
        path=own.path,
        name=own.name,
        command=command,
        fields=fields,
        pods=pods,
        serves=serves,
        copies=_copies(engine, pods) if serves else 0,
    )


def _states_first(command: CommandFacts, fields: Mapping[str, Any]) -> bool:
    """Return whether a container's own env says that its pod has rank 0.

    Facts cover all pods of an engine, so they do not have the value of this variable.
    """
    by_index = naming.WORKER_INDEX in command.where.get("node_rank", "")
    listed = map(mapping, sequence(fields.get("env")))
    values = [item.get("value") for item in listed if item.get("name") == naming.WORKER_INDEX]
    return by_index and values == ["0"]


def _serves(command: CommandFacts, *, is_first: bool) -> bool:
    """Return whether all pods with a command are known to answer requests."""
    ranked = command.nnodes not in {None, 1} and command.node_rank not in {None, 0}
    answers = command.engine is not None and command.headless is False
    return answers and (is_first or not ranked)


def _copies(engine: EngineFacts, pods: PodSet) -> MaybeInt:
    """Count the engines that start in the pods of a template."""
    size = 1 if engine.worker is not None else engine.pods
    if isinstance(size, Unknown) or isinstance(pods.count, Unknown) or size == 0:
        return _COPIES
    return pods.count // size


@dataclass(frozen=True, slots=True, kw_only=True)
class Sketch:
    """The pods of engines, as far as an object states them.

    Each engine of the object's facts has pods here. Their path equals the path of the engine's
    GPUs, or is a prefix of it.
    """

    sets: tuple[PodSet, ...]
    roles: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Arguments of roles, from fields that only this kind has. By the path of the pods."""
    unsaid: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Arguments that the object leaves to others, each with who decides, as a clause. By the path
    of the pods."""
    beside: Mapping[str, str] = field(default_factory=dict)
    """Objects that the controller makes for clients, by title, each with its use as a clause."""
    known: tuple[str, ...] = ()
    """Paths of fields that repeat other fields: either is enough for the description."""
    refused: str = ""
    """Why its engines cannot be described, as a clause. Empty: they can."""
