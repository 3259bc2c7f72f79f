"""Finds the engines of a template or of a part, and adds to each engine its pods, for any kind."""

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from kthena_components.core import naming
from kthena_components.core.facts.context import NO_CONTEXT, Context
from kthena_components.core.facts.listening import Listening, listening, listening_by_number
from kthena_components.core.facts.members import Numbers, Template, needs_rank, with_members
from kthena_components.core.facts.network import HostedPods
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.facts.split_engines import EnginePart, read_engine_part
from kthena_components.core.facts.workload import OnlyTemplate
from kthena_components.core.findings import paths_above
from kthena_components.core.objects.object import POD_GROUP, Object, PodSet, read_object
from kthena_components.core.plan.controller_variables import NOTHING, PodVariables
from kthena_components.core.values.dataclass import replace
from kthena_components.core.values.read import group_kind
from kthena_components.core.values.unknown import total
from kthena_components.systems import find_kind
from kthena_components.systems.system import Kind

_OTHERS = frozenset({("leaderworkerset.x-k8s.io", "LeaderWorkerSet"), ("argoproj.io", "Rollout")})
"""Kinds of other systems whose pods may all have one template."""

_GANG, PORTS = "gang-covers-engine", "leader-ports-agree"
COMPARED = frozenset(
    {
        PORTS,
        "leader-worker-same-gpus",
        "leader-worker-same-parallelism",
        "nnodes-equals-group",
        "one-gpu-vendor",
        "pods-joined",
        "ray-cluster-size-equals-group",
        "world-size-equals-gpus",
    }
)
"""The rules that compare the pods of an engine. The others were run for each object."""
COMPARED_IMAGES = "image-pinned"
"""A rule that refuses different images in an engine's pods, and advises on each single image."""
HALVES = frozenset({"kv-halves-alike", "kv-halves-parallel"})
"""The rules that compare a prefill and a decode engine."""


def rules_over_parts(body: Mapping[str, Any]) -> frozenset[str]:
    """Return the rules over one object that also check it as a part of an engine, or its gang."""
    if group_kind(body) == POD_GROUP:
        return frozenset({_GANG})
    over = {*COMPARED, *HALVES, COMPARED_IMAGES, _GANG, "pod-ranks"}
    return frozenset(over) if read_engine_part_of(body) else frozenset()


def read_engine_part_of(
    body: Mapping[str, Any], path: str = "", context: Context = NO_CONTEXT
) -> EnginePart | None:
    """Read an object with a part of an engine; None for anything else."""
    made = _template_of_other(body) if group_kind(body) in _OTHERS else None
    return read_engine_part(body, path, context, made)


def _template_of_other(body: Mapping[str, Any]) -> OnlyTemplate | None:
    """Return the only pod template of an object of another system; None if it has several."""
    kind = find_kind(group_kind(body))
    if kind is None or kind.pods is None:
        return None
    sets = [*kind.pods(kind.view(read_object(body)))]
    if not sets or len({pods.path for pods in sets}) > 1:
        return None
    first = sets[0]
    metadata = {"labels": first.labels, "annotations": first.annotations}
    number = total([pods.count for pods in sets])
    return OnlyTemplate({"metadata": metadata, "spec": first.spec}, first.path, number)


def with_pods(kind: Kind[Any], found: Object, view: Any, facts: ServingFacts) -> ServingFacts:
    """Return the facts with the pods of the engines whose command lines state a rank."""
    unread = (engine for engine in facts.engines if engine.siblings is None)
    if kind.pods is None or not any(map(needs_rank, unread)):
        return facts
    variables = NOTHING if kind.pod_variables is None else kind.pod_variables(view)
    numbers, owned, engines = _numbers(variables), dict[int, list[PodSet]](), list[EngineFacts]()
    places = Places(facts.engines)
    for pods in kind.pods(view):
        by = places.owners(pods)
        if len(by) == 1:
            owned.setdefault(by[0], []).append(pods)
    for number, engine in enumerate(facts.engines):
        own = owned.get(number, [])
        entry = _template(engine.entry, own, _hosted(engine.entry, facts, first=True))
        worker = None
        if engine.worker is not None:
            worker = _template(engine.worker, own[::-1], _hosted(engine.worker, facts))
        engines.append(
            engine
            if entry is None or (worker is None and engine.worker is not None)
            else with_members(engine, entry, worker, numbers, found.context)
        )
    return replace(facts, engines=tuple(engines))


def coscheduled(kind: Kind[Any], view: Any, facts: ServingFacts) -> ServingFacts:
    """Return the facts with a gang, if the engines' pods name a PodGroup of coscheduling."""
    several = [n for n, engine in enumerate(facts.engines) if engine.pods != 1]
    if kind.pods is None or facts.gang is not None or facts.gang_expected is not False:
        return facts
    if not several:
        return facts
    places, named = Places(facts.engines), dict[int, bool]()
    for pods in kind.pods(view):
        for number in places.owners(pods):
            named[number] = named.get(number, True) and naming.COSCHEDULING in pods.labels
    placed = all(named.get(number, False) for number in several)
    return replace(facts, gang_expected=True) if placed else facts


def _numbers(variables: PodVariables) -> Numbers:
    return Numbers(
        size=variables.size,
        rank=variables.rank,
        rank_fields=variables.rank_fields,
        ordinal=variables.ordinal,
        fields=variables.fields,
    )


def _hosted(pod: PodFacts, facts: ServingFacts, *, first: bool = False) -> HostedPods | None:
    """Return the host names of the pods of a template; None if they are not known.

    A template below the object's spec may also be the template of the first pod, which has its own
    name.
    """
    if facts.hosts is None or pod.on_host:
        return None
    above = set(paths_above(pod.command_path, "."))
    found = sorted((h for h in facts.hosts.pods if h.path in above), key=lambda h: len(h.path))
    return found[0 if first else -1] if found else None


def _template(pod: PodFacts, sets: Sequence[PodSet], hosted: HostedPods | None) -> Template | None:
    """Return the template that a pod is made from; the first one if no path shows which."""
    matching = [pods for pods in sets if runs_in(pod, pods)] or sets
    if not matching:
        return None
    pods = matching[0]
    metadata = {"labels": pods.labels, "annotations": pods.annotations}
    number = pods.count if pods.numbered is None else pods.numbered
    return Template(body={"metadata": metadata, "spec": pods.spec}, count=number, hosted=hosted)


# Finds the engines that run in the pods of a template, whatever the kind.


_CONTAINERS = ("spec.containers", "spec.initContainers")


class Places:
    """The engines of an object, by the paths that their facts were read from."""

    def __init__(self, engines: Iterable[EngineFacts]) -> None:
        """Index them once: an object may have many templates, and an engine in each."""
        self._named: dict[str, list[int]] = {}
        self._below: dict[str, list[int]] = {}
        self._read: dict[str, list[tuple[int, EngineFacts, PodFacts]]] = {}
        for number, engine in enumerate(engines):
            self._named.setdefault(engine.name, []).append(number)
            read = templates(engine)
            places = (engine.path, *(pod.gpus_path for pod in read))
            for path in dict.fromkeys(above for at in places for above in paths_above(at, ".")):
                self._below.setdefault(path, []).append(number)
            for pod in read:
                for path in paths_above(pod.gpus_path):
                    self._read.setdefault(path, []).append((number, engine, pod))

    def read_in(self, pods: PodSet) -> list[tuple[int, EngineFacts, PodFacts]]:
        """Return the facts that were read from a template, with their engines."""
        found = (each for path in _CONTAINERS for each in self._read.get(pods.at(path), ()))
        return sorted(found, key=itemgetter(0))

    def owners(self, pods: PodSet) -> list[int]:
        """Return the engines that run in the pods of a template, by number.

        Kinds write the paths of an engine differently, so the first way that finds one decides.
        """
        named = self._named.get(pods.name) if pods.name else None
        read = named or [*dict.fromkeys(number for number, _, _ in self.read_in(pods))]
        return read or self._below.get(pods.owner.at(pods.path), [])


def runs_in(pod: PodFacts, pods: PodSet) -> bool:
    """Return whether facts were read from a template, by their path."""
    return pod.gpus_path.startswith(tuple(pods.at(path) for path in _CONTAINERS))


def ports_in(sets: Iterable[PodSet], facts: ServingFacts | None) -> dict[str, Listening]:
    """Return where the pods of templates listen, by the path of each template in the object."""
    found: dict[str, Listening] = {}
    if facts is None or not (facts.engines or facts.servers):
        return found
    places = Places(facts.engines)
    for pods in sets:
        for server in facts.servers:
            if server.path.startswith(pods.at(_CONTAINERS[0])):
                found[pods.path] = server.listening
        for _, engine, pod in places.read_in(pods):
            if ports := _listening(engine, pod):
                found[pods.path] = ports
    return found


def _listening(engine: EngineFacts, pod: PodFacts) -> Listening | None:
    """Return where the pods of one template of an engine listen."""
    worker, siblings = engine.worker, engine.siblings
    alone = worker is None or worker.command_path == engine.entry.command_path
    if alone and siblings is not None and siblings.commands:
        by_number = listening_by_number(pod, siblings.commands)
        return by_number or (listening(pod, on_host=True) if worker is None else None)
    return listening(pod, first=None if worker is None else pod is engine.entry, on_host=True)


def templates(engine: EngineFacts) -> list[PodFacts]:
    """Return the templates of an engine."""
    return [engine.entry] if engine.worker is None else [engine.entry, engine.worker]
