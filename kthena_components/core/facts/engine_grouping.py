"""Decides which pod templates of a group form an engine: a leader and those that join it.

Some systems describe a group as a list of templates with counts and do not state which of them run
one model together. The commands show it, or it is unknown.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.context import NO_CONTEXT, Context
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts
from kthena_components.core.facts.workload import (
    NOT_STATED,
    group_size,
    is_serving,
    pods_of,
    pods_of_template,
    read_template,
)
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import mapping
from kthena_components.core.values.unknown import MaybeInt, Unknown, product, total

_BOTH = 2
_TOLD = Unknown("it is not stated which of the pods form one engine")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineTemplate:
    """One template of a group, and its number of pods."""

    path: str
    name: str
    count: MaybeInt
    template: object
    pod: PodFacts


def engines_of(parts: Iterable[EngineTemplate], replicas: MaybeInt = 1) -> tuple[EngineFacts, ...]:
    """Return the engines of one group.

    Args:
        parts: The templates of the group.
        replicas: Number of such groups.
    """
    serving = [part for part in parts if is_serving(part.pod)]
    started = [part for part in serving if part.pod.command and part.pod.command.engine]
    starts = {part.path for part in started}
    first = {part.path for part in started if _is_first(part.pod.command)}
    leaders, followers = _partition(lambda part: _follows(part, starts, first), serving)
    if not leaders:
        followers, leaders = _partition(lambda part: _is_silent_first(part, followers), followers)
    if not followers:
        leaders, followers = _idle_apart(leaders)
    if not followers and (len(leaders) == 1 or all(part.pod.command for part in leaders)):
        # The engines of one template share its size: it is read once, however many they are.
        templates = {id(part.template): part.template for part in leaders}
        sizes = {key: group_size(mapping(template)) for key, template in templates.items()}
        return tuple(_alone(part, replicas, sizes[id(part.template)]) for part in leaders)
    if len(leaders) == 1:
        return (_together(leaders[0], followers, replicas),)
    return tuple(_unknown(part, replicas) for part in leaders)


def _partition(
    follows: Callable[[EngineTemplate], bool], parts: Iterable[EngineTemplate]
) -> tuple[list[EngineTemplate], list[EngineTemplate]]:
    """Separate the templates that do not follow another one from those that do."""
    leaders, followers = list[EngineTemplate](), list[EngineTemplate]()
    for part in parts:
        (followers if follows(part) else leaders).append(part)
    return leaders, followers


def _idle_apart(parts: list[EngineTemplate]) -> tuple[list[EngineTemplate], list[EngineTemplate]]:
    """Separate pods that join nothing from the only template that waits for other pods.

    They do nothing, or start a Ray cluster of their own while the engine's lacks GPUs.
    """
    if len(parts) > 1 and all(is_second_head(parts[0].pod, part.pod) for part in parts[1:]):
        return parts[:1], parts[1:]
    first, idle = _partition(lambda part: bool(part.pod.idle) or _is_bare_head(part), parts)
    command = first[0].pod.command if len(first) == 1 else None
    if not idle or command is None or command.engine is None:
        return parts, []
    if command.ray_role == "head":
        is_short = lacks_gpus(first[0].pod) or not any(map(_is_bare_head, idle))
        return (first, idle) if is_short else (parts, [])
    is_first = _is_first(command) and not any(map(_is_bare_head, idle))
    return (first, idle) if is_first else (parts, [])


def _is_bare_head(part: EngineTemplate) -> bool:
    """Return whether a template's pods have GPUs, and start a Ray cluster and nothing else."""
    return part.pod.gpus != 0 and is_bare_head(part.pod.command)


def is_bare_head(command: CommandFacts | None) -> bool:
    """Return whether a command line starts the head of a Ray cluster, and no engine."""
    if command is None or command.engine is not None or command.hidden is not None:
        return False
    return command.ray_role == "head" and command.ray_address is None and not command.runs_others


def is_second_head(first: PodFacts, pod: PodFacts) -> bool:
    """Return whether two pods start the same engine, each with a Ray cluster that lacks GPUs."""
    commands = [one.command for one in (first, pod) if one.command is not None and lacks_gpus(one)]
    said = {(one.engine, one.model, one.per_rank_world) for one in commands}
    alone = all(one.ray_role == "head" and one.ray_address is None for one in commands)
    known = all(one.hidden is None and not one.runs_others for one in commands)
    return len(commands) == _BOTH and len(said) == 1 and alone and known


def lacks_gpus(pod: PodFacts) -> bool:
    """Return whether a copy of a model surely needs more GPUs than its first pod has."""
    copy, gpus = pod.command.per_rank_world if pod.command is not None else None, pod.gpus
    return isinstance(copy, int) and isinstance(gpus, int) and copy > gpus > 0


def templates_of(
    template: object, path: str, name: str, count: MaybeInt, context: Context = NO_CONTEXT
) -> list[EngineTemplate]:
    """Read a template of a group, once for each engine in it; nothing if it serves no model.

    Args:
        path: Its path, in the caller's coordinates.
        count: The number of its pods.
    """
    return [
        EngineTemplate(path=path, name=name, count=count, template=template, pod=pod)
        for pod in filter(is_serving, pods_of_template(template, path, context))
    ]


def engines_among(
    parts: Sequence[EngineTemplate], context: Context = NO_CONTEXT
) -> tuple[EngineFacts, ...]:
    """Return the engines of a single group, whose templates have fixed numbers of pods.

    A group with one template is read like any other workload: the command line of its pods says
    how many of them make an engine.
    """
    counts = {part.path: part.count for part in parts}
    if len(counts) > 1 or not parts:
        engines = list(engines_of(parts))
    else:
        one = parts[0]
        found = read_template(one.template, one.path, one.name, {}, context)
        engines = [replace(e, replicas=one.count) if e.pods == 1 else e for e in found]
    return tuple(_as_many_as_there_are(e, counts.get(e.path, e.pods)) for e in engines)


def _as_many_as_there_are(engine: EngineFacts, count: MaybeInt) -> EngineFacts:
    """Return an engine with all pods of its template if these do not make whole engines.

    If the pods take their rank from a variable, the template is the engine's only one. If the
    command states a rank, other templates have the other ranks, perhaps in another object.
    """
    command, pods = engine.entry.command, engine.pods
    if command is None or engine.worker is not None or not isinstance(command.node_rank, Unknown):
        return engine
    if isinstance(pods, Unknown) or isinstance(count, Unknown) or pods < 2 or count == 0:  # noqa: PLR2004 - one pod is whole
        return engine
    return replace(engine, pods=count) if count % pods else engine


def _follows(part: EngineTemplate, starts: set[str], first: set[str]) -> bool:
    """Return whether a template's pods join an engine that another template starts.

    Args:
        starts: Paths of templates that start engines.
        first: Paths of templates that start rank 0 of several.
    """
    command = part.pod.command
    if command is None or not starts or starts == {part.path}:
        return False
    if command.engine is None:
        return command.ray_role == "worker"
    return command.headless is True or (_is_ranked(command) and first not in (set(), {part.path}))


def _is_silent_first(part: EngineTemplate, parts: Iterable[EngineTemplate]) -> bool:
    """Return whether a template states the first rank of several, and --headless.

    The first of several copies may be in a worker of a server elsewhere, if copies are missing.
    """
    command = part.pod.command
    if command is None or command.hidden is not None:
        return False
    if command.nnodes not in {None, 1}:
        return command.data == 1 and command.node_rank == 0
    made = total([product(each.count, _copies(each.pod.command)) for each in parts])
    return command.data_start_rank == 0 and command.data not in {None, 1} and made == command.data


def _copies(command: CommandFacts | None) -> MaybeInt:
    """Return how many copies a pod starts."""
    local = None if command is None else command.data_local
    return 0 if local is None else local


def _is_ranked(command: CommandFacts) -> bool:
    return command.nnodes not in {None, 1} and command.node_rank not in {None, 0}


def _is_first(command: CommandFacts | None) -> bool:
    return command is not None and command.nnodes not in {None, 1} and not _is_ranked(command)


def _unknown(part: EngineTemplate, replicas: MaybeInt) -> EngineFacts:
    return EngineFacts(
        path=part.path, name=part.name, pods=_TOLD, replicas=replicas, entry=part.pod, worker=None
    )


def _alone(part: EngineTemplate, replicas: MaybeInt, size: MaybeInt | None) -> EngineFacts:
    """Return the engine of a template that no other one joins; its command states the pods."""
    pods: MaybeInt = pods_of(size, part.pod.command)
    if pods == 1:
        replicas = _times(replicas, part.count)
    return replace(_unknown(part, replicas), pods=pods)


def _together(
    leader: EngineTemplate, followers: Sequence[EngineTemplate], replicas: MaybeInt
) -> EngineFacts:
    """Join a leader and its followers to one engine; its pods are unknown if followers differ."""
    pods: MaybeInt = leader.count
    for part in followers:
        pods = _plus(pods, part.count)
    if leader.count != 1 or len({_alike(part) for part in followers}) != 1:
        pods = leader.count if isinstance(leader.count, Unknown) else _TOLD
    worker = None if pods == 1 else followers[0].pod
    return replace(_unknown(leader, replicas), pods=pods, worker=worker)


def _alike(part: EngineTemplate) -> tuple[object, ...]:
    """Return what followers must have in common to be reported as one."""
    command = part.pod.command
    sizes = (command.engine, command.tensor, command.pipeline, command.data) if command else ()
    return (part.pod.gpus, *sizes)


def _plus(one: MaybeInt, other: MaybeInt) -> MaybeInt:
    if isinstance(one, Unknown):
        return one
    return other if isinstance(other, Unknown) else one + other


def _times(one: MaybeInt, other: MaybeInt) -> MaybeInt:
    if isinstance(one, Unknown):
        return one
    return other if isinstance(other, Unknown) else one * other


_TWO = 2


# Tells which pods of one template are the head of a Ray cluster, and which join it or sleep.


def is_over_ray(engine: EngineFacts, commands: Sequence[CommandFacts]) -> bool:
    """Return whether the first pod starts an engine over Ray, and the other pods only Ray."""
    if engine.pods != NOT_STATED or len(commands) < _TWO:
        return False  # Workers of a single head are in other objects.
    first, *rest = commands
    roles = {other.ray_role for other in rest}  # Pods that all start heads join nothing.
    if not first.engine or any(other.engine for other in rest):
        return False
    if roles == {"worker"}:
        return first.ray_role == "head" or (first.ray_role is None and first.executor == "ray")
    ranks, gpus = first.per_rank_world, engine.entry.gpus
    spans = isinstance(ranks, int) and isinstance(gpus, int) and ranks > gpus
    return spans and roles == {first.ray_role} == {"head"}


def idle_workers(engine: EngineFacts, commands: Sequence[CommandFacts | None]) -> str:
    """Return what the other pods do in place of joining the Ray cluster that the first one starts.

    Their script sleeps in the branch of all pods but the first. Empty if that is not sure.
    """
    first, *rest = commands or (None,)
    over_ray = first is not None and first.engine is not None and first.ray_role == "head"
    if not over_ray or not rest or any(rest):
        return ""
    return engine.entry.idle_branch
