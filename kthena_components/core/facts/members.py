"""Reads the pods of an engine one by one, where a controller gives each its number or name.

A pod of a group has a variable with its rank, such as LWS_WORKER_INDEX, and a pod of a Job one with
its number among the pods of its template.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from types import MappingProxyType
from typing import Any, NamedTuple

from kthena_components.core.engines import CommandFacts, merge
from kthena_components.core.facts.container_commands import HOST, read_commands
from kthena_components.core.facts.context import NO_CONTEXT, Context
from kthena_components.core.facts.engine_grouping import idle_workers, is_over_ray
from kthena_components.core.facts.network import HostedPods
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, SiblingFacts
from kthena_components.core.facts.workload import (
    NOT_STATED,
    engine_of,
    group_size,
    pods_of_template,
)
from kthena_components.core.values.dataclass import dataclass, replace
from kthena_components.core.values.read import count_or_unknown, mapping, sequence
from kthena_components.core.values.unknown import MaybeInt, Unknown, is_unresolved

_MOST = 64
"""Maximum number of pods that are read."""
_FEWEST = 2
_LONGEST_HOST = 63
"""Maximum characters of a host name: kubernetes pkg/kubelet/util/util.go truncatePodHostname."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """The names by which pods learn their numbers from a controller, each counted from 0."""

    size: tuple[str, ...] = ()
    """Variables with the number of pods of an engine."""
    rank: tuple[str, ...] = ()
    """Variables with the number of a pod in its engine."""
    rank_fields: tuple[str, ...] = ()
    """Paths of fields of a pod with that number, for `fieldRef`."""
    ordinal: tuple[str, ...] = ()
    """Variables with the number of a pod among the pods of its template."""
    fields: tuple[str, ...] = ()
    """Paths of fields of a pod with that number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A pod template, and the number of its pods that are numbered together."""

    body: Mapping[str, Any]
    count: MaybeInt
    hosted: HostedPods | None = None
    """The host names of its pods. None: not known, or those of nodes."""


def with_members(
    engine: EngineFacts,
    entry: Template,
    worker: Template | None,
    numbers: Numbers,
    context: Context = NO_CONTEXT,
    *,
    fewest: int = _FEWEST,
) -> EngineFacts:
    """Add the pods of one engine, if their ranks matter: their number, and their command lines.

    Args:
        engine: The engine. If its pods were read already, nothing is added.
        entry: The template of its first pod, and of the others if they have none.
        worker: The template of the other pods.
        numbers: How its pods learn their numbers.
        fewest: Pods from which on their command lines are read.
    """
    if engine.siblings is not None or not needs_rank(engine) or not isinstance(entry.count, int):
        return engine  # The engine's other pods may be those of another object.
    if _has_gaps(engine):
        read = _commands(engine, entry, worker, numbers, context)
        engine = _filled(engine, read, entry.body, engine.replicas)
        if not needs_rank(engine):
            return engine
    if engine.pods == 1 and engine.worker is None and not numbers.ordinal:
        return replace(engine, siblings=SiblingFacts(count=entry.count))
    read = _commands(engine, entry, worker, numbers, context)
    if not read and engine.worker is not None:
        every = _members(engine, entry, worker, numbers)
        idle = idle_workers(engine, [_command(*each, context) for each in every])
        return replace(engine, worker=replace(engine.worker, idle=idle)) if idle else engine
    if len(read) < fewest:
        return engine
    alike = worker is None and len(read) >= _FEWEST and all(each == read[0] for each in read)
    made = SiblingFacts(count=len(read), commands=read)
    return replace(engine, siblings=SiblingFacts(count=entry.count) if alike else made)


def needs_rank(engine: EngineFacts) -> bool:
    """Return whether the ranks of an engine's pods matter.

    They do if a pod states one, if all pods have one template that starts one part of several, or
    if a word of a command line may differ between the pods.
    """
    if _has_gaps(engine):
        return True
    command = engine.entry.joined or engine.entry.command
    if command is None or engine.worker is not None or _states_rank(engine):
        return _states_rank(engine) or _parts_by_number(engine)
    nodes, data, local = command.nnodes, command.data, command.data_local
    is_part = isinstance(nodes, int) and nodes >= _FEWEST
    has_part = isinstance(data, int) and isinstance(local, int) and 0 < local < data
    return is_part or has_part or _parts_by_number(engine)


def _parts_by_number(engine: EngineFacts) -> bool:
    """Return whether one script starts both the head of a Ray cluster and its workers."""
    command, worker = engine.entry.command, engine.worker
    if command is None or command.engine is None or command.ray_role != "head":
        return False
    if worker is None:
        return command.ray_address is not None
    return worker.command_path == engine.entry.command_path or worker.command == command


def _states_rank(engine: EngineFacts) -> bool:
    pods = [engine.entry] if engine.worker is None else [engine.entry, engine.worker]
    for command in filter(None, (pod.joined or pod.command for pod in pods)):
        if command.data_rank is not None or command.data_start_rank is not None:
            return True
        if isinstance(command.node_rank, Unknown):
            return True
    return False


def _has_gaps(engine: EngineFacts) -> bool:
    """Return whether a template's command line has words that may be any option."""
    pods = [engine.entry] if engine.worker is None else [engine.entry, engine.worker]
    return any(pod.command is not None and pod.command.hidden is not None for pod in pods)


def _filled(
    engine: EngineFacts, commands: Sequence[CommandFacts], template: object, copies: MaybeInt
) -> EngineFacts:
    """Return an engine with the command line of each pod; unchanged if one has gaps.

    A variable that a test on the rank sets, `[ $RANK = 0 ] || FLAG=--headless`, may be any option
    in the template, and is known in each pod.

    Args:
        engine: The engine, read from its templates.
        commands: The command line of each pod. Empty: they are not known.
        template: The template of its first pod.
        copies: The number of engines if each pod is one.
    """
    entry, worker = engine.entry, engine.worker
    if not commands or not _has_gaps(engine):
        return engine
    gap = None if entry.command is None else entry.command.hidden
    first, others = (commands, commands[:0]) if worker is None else (commands[:1], commands[1:])
    entry = replace(entry, command=_common(entry.command, first))
    if worker is not None:
        worker = replace(worker, command=_common(worker.command, others))
    elif gap is not None and engine.pods == gap:
        size = group_size(mapping(template))
        made = engine_of(
            engine.name, entry, template, size=size, path=engine.path, spec={"replicas": copies}
        )
        return replace(engine, pods=made.pods, replicas=made.replicas, entry=made.entry)
    return replace(engine, entry=entry, worker=worker)


def _common(command: CommandFacts | None, commands: Sequence[CommandFacts]) -> CommandFacts | None:
    """Return what the command lines of some pods have in common; else their template's."""
    gap = None if command is None else command.hidden
    if command is None or gap is None or not commands:
        return command
    kind = command.engine, command.ray_role
    if any(one.hidden is not None or (one.engine, one.ray_role) != kind for one in commands):
        return command
    differs = Unknown("the pods of its template differ in it")
    made = merge(commands, differs)
    stated: dict[str, Any] = {  # `--node-rank $RANK` is known better from the template
        field.name: value
        for field in fields(made)
        if getattr(made, field.name) == differs
        and isinstance(value := getattr(command, field.name), Unknown)
        and value != gap
    }
    where = {name: text for name, text in command.where.items() if name in stated}
    options = {
        name: command.options.get(name, value) if value == differs else value
        for name, value in made.options.items()
    }
    return replace(
        made,
        options=MappingProxyType(options),
        where=MappingProxyType({**made.where, **where}),
        written=MappingProxyType({**made.written, **command.written}),
        network=command.network,
        **stated,
    )


def _commands(
    engine: EngineFacts,
    entry: Template,
    worker: Template | None,
    numbers: Numbers,
    context: Context,
) -> tuple[CommandFacts, ...]:
    """Read the command line of each pod; nothing if one of them is not known."""
    read: list[CommandFacts] = []
    for body, variables, own in _members(engine, entry, worker, numbers):
        command = _command(body, variables, own, context)
        if command is None:
            return ()
        read.append(command)
    return tuple(read)


_Member = tuple[Mapping[str, Any], dict[str, str], dict[str, str]]
"""A pod's template, its variables, and the values of its fields."""


def _members(
    engine: EngineFacts, entry: Template, worker: Template | None, numbers: Numbers
) -> Iterator[_Member]:
    """List the pods of an engine in the order of ranks, with the variables and fields of each.

    Nothing is listed if the number of pods is unknown or above the limit.
    """
    pods = engine.pods
    if engine.worker is None and numbers.ordinal:
        pods = entry.count
    if not isinstance(pods, int) or pods > _MOST:
        return
    shared = {name: str(engine.pods) for name in numbers.size if isinstance(engine.pods, int)}
    for rank in range(pods):
        is_worker = rank > 0 and worker is not None
        template, ordinal = (worker, rank - 1) if is_worker and worker else (entry, rank)
        shares = pods if worker is None else pods - 1 if is_worker else 1
        variables = {name: str(rank) for name in numbers.rank}
        variables |= {name: str(ordinal) for name in numbers.ordinal}
        fields = {path: str(rank) for path in numbers.rank_fields}
        fields |= {path: str(ordinal) for path in numbers.fields}
        variables |= _host_name(template.hosted, ordinal, shares)
        yield template.body, {**shared, **variables}, fields


def _host_name(hosted: HostedPods | None, number: int, pods: int) -> dict[str, str]:
    """Return the variable with a pod's host name, if there is one copy of the engine."""
    if hosted is None or hosted.count != pods:
        return {}
    name = f"{hosted.prefix}{hosted.start + number}"
    return {HOST: name} if len(name) <= _LONGEST_HOST else {}


def _command(
    body: Mapping[str, Any],
    variables: Mapping[str, str],
    fields: Mapping[str, str],
    context: Context,
) -> CommandFacts | None:
    """Read the command line of one pod; None if it has not exactly one part in an engine."""
    spec = mapping(body.get("spec"))
    containers = [_with_fields(item, fields) for item in sequence(spec.get("containers"))]
    made = {**body, "spec": {**spec, "containers": containers}}
    found = read_commands(made, variables, context)
    return found[0] if len(found) == 1 else None


def _with_fields(container: object, fields: Mapping[str, str]) -> object:
    if not isinstance(container, Mapping) or is_unresolved(container.get("env")):
        return container
    return {**container, "env": [with_field(e, fields) for e in sequence(container.get("env"))]}


def with_field(entry: object, fields: Mapping[str, str]) -> object:
    """Return a variable with the value that one pod of the template gets from its own field."""
    path = mapping(mapping(mapping(entry).get("valueFrom")).get("fieldRef")).get("fieldPath")
    value = fields.get(path) if isinstance(path, str) else None
    return entry if value is None else {"name": mapping(entry).get("name"), "value": value}


# Reads the pods of a StatefulSet one by one: each gets its rank from its own name.
# Source of names, labels and host names: kubernetes
# pkg/controller/statefulset/stateful_set_utils.go, updateIdentity and initIdentity.


def with_siblings(
    engines: Sequence[EngineFacts],
    template: object,
    spec: object,
    *,
    name: str = "",
    context: Context = NO_CONTEXT,
) -> list[EngineFacts]:
    """Add the pods of one template to its engine: their number, and the command line of each.

    Args:
        engines: The engines of the template. With several, nothing is added.
        spec: The spec with the template and the number of its pods.
        name: Name of the StatefulSet. Empty for another kind, whose pods have no ordinals.
    """
    count = count_or_unknown(mapping(spec).get("replicas"), "replicas", 1)
    if len(engines) != 1 or not isinstance(count, int):
        return list(engines)
    engine, commands = engines[0], tuple[CommandFacts, ...]()
    if name and 0 < count <= _MOST and _differs(engine):
        made = _Made(mapping(template), name, _ordinals(mapping(spec), count), context)
        commands = made.commands()
        engine = _filled(engine, commands, template, count)
        idle = "" if commands or count < _FEWEST else idle_workers(engine, made.read())
        if idle or is_over_ray(engine, commands):
            entry, worker = made.pod(0, engine.path), made.pod(1, engine.path)
            worker = replace(worker, idle=idle or worker.idle)
            engine = replace(engine, pods=count, replicas=1, entry=entry, worker=worker)
    return [replace(engine, siblings=SiblingFacts(count=count, commands=commands))]


def _differs(engine: EngineFacts) -> bool:
    """Return whether the command may tell a pod's rank from its name."""
    command = engine.entry.joined or engine.entry.command
    if command is None:
        return False
    ranks = (command.node_rank, command.data_rank, command.data_start_rank)
    by_script = engine.pods == NOT_STATED and command.ray_role is not None
    return by_script or any(isinstance(rank, Unknown) for rank in ranks)


def _ordinals(spec: Mapping[str, Any], count: int) -> range:
    start = mapping(spec.get("ordinals")).get("start")
    first = start if isinstance(start, int) and not isinstance(start, bool) else 0
    return range(first, first + count)


class _Made(NamedTuple):
    """The pods that a StatefulSet makes of its template."""

    template: Mapping[str, Any]
    name: str
    ordinals: range
    context: Context

    def commands(self) -> tuple[CommandFacts, ...]:
        """Read each command line; nothing if any pod has not exactly one part in an engine."""
        found = tuple(filter(None, self.read()))
        return found if len(found) == len(self.ordinals) else ()

    def read(self) -> list[CommandFacts | None]:
        """Read each command line; None for a pod with no or several parts in engines."""
        every = (self._body(number) for number in range(len(self.ordinals)))
        found = (read_commands(body, {}, self.context) for body in every)
        return [each[0] if len(each) == 1 else None for each in found]

    def pod(self, number: int, path: str) -> PodFacts:
        """Read one pod."""
        return pods_of_template(self._body(number), path, self.context)[0]

    def _body(self, number: int) -> dict[str, Any]:
        ordinal = self.ordinals[number]
        return _pod(self.template, f"{self.name}-{ordinal}", str(ordinal))


def _pod(template: Mapping[str, Any], name: str, ordinal: str) -> dict[str, Any]:
    """Return the template with the values that one pod of it gets from its own fields."""
    values = {
        "metadata.name": name,
        "metadata.labels['statefulset.kubernetes.io/pod-name']": name,
        "metadata.labels['apps.kubernetes.io/pod-index']": ordinal,
    }
    spec = mapping(template.get("spec"))
    # A pod in the network of its node has the node's host name.
    host = [] if spec.get("hostNetwork") is True else [{"name": HOST, "value": name}]
    containers = [
        {**c, "env": [*host, *(with_field(e, values) for e in sequence(c.get("env")))]}
        if isinstance(c, Mapping) and not is_unresolved(c.get("env"))
        else c
        for c in sequence(spec.get("containers"))
    ]
    return {**template, "spec": {**spec, "containers": containers}}
