"""Reads the pods of a StatefulSet one by one: each gets its rank from its own name.

Source of names, labels and host names: kubernetes
pkg/controller/statefulset/stateful_set_utils.go, updateIdentity and initIdentity.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.context import NO_CONTEXT, Context
from kthena_components.core.facts.members import with_field
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, SiblingFacts
from kthena_components.core.facts.started import read_commands
from kthena_components.core.facts.workload import NOT_STATED, pods_of_template
from kthena_components.core.values.read import count_or_unknown, mapping, sequence
from kthena_components.core.values.unknown import Unknown, is_unresolved

_MOST = 64
"""Maximum number of pods that are read."""
_FEWEST = 2
_HOST = "HOSTNAME"


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
        template: The pod template.
        spec: The spec with the template and the number of its pods.
        name: Name of the StatefulSet. Empty for another kind, whose pods have no ordinals.
        context: The context of the object.
    """
    count = count_or_unknown(mapping(spec).get("replicas"), "replicas", 1)
    if len(engines) != 1 or not isinstance(count, int):
        return list(engines)
    engine, commands = engines[0], tuple[CommandFacts, ...]()
    if name and 0 < count <= _MOST and _differs(engine):
        made = _Made(mapping(template), name, _ordinals(mapping(spec), count), context)
        commands = made.commands()
        if _is_over_ray(engine, commands):
            entry, worker = made.pod(0, engine.path), made.pod(1, engine.path)
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
        found: list[CommandFacts] = []
        for number in range(len(self.ordinals)):
            read = read_commands(self._body(number), {}, self.context)
            if len(read) != 1 or read[0] is None:
                return ()
            found.append(read[0])
        return tuple(found)

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
    host = [] if spec.get("hostNetwork") is True else [{"name": _HOST, "value": name}]
    containers = [
        {**c, "env": [*host, *(with_field(e, values) for e in sequence(c.get("env")))]}
        if isinstance(c, Mapping) and not is_unresolved(c.get("env"))
        else c
        for c in sequence(spec.get("containers"))
    ]
    return {**template, "spec": {**spec, "containers": containers}}


def _is_over_ray(engine: EngineFacts, commands: Sequence[CommandFacts]) -> bool:
    """Return whether the first pod starts the engine with a Ray head, which all others join."""
    if engine.pods != NOT_STATED or len(commands) < _FEWEST:
        return False  # Workers of a single head are in other objects.
    first, *rest = commands
    joins = all(other.engine is None and other.ray_role == "worker" for other in rest)
    return joins and first.engine is not None and first.ray_role == "head"
