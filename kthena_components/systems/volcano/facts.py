"""Reads a Volcano Job: an engine is a pod of one task, or the pods of a leader's and other tasks.

Source: Volcano v1.14 pkg/controllers/job/job_controller_util.go createJobPod,
pkg/controllers/job/plugins, pkg/webhooks/admission/jobs/mutate/mutate_job.go.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kthena_components.core.facts.engine_grouping import EngineTemplate, engines_among
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.facts.serving import EngineFacts, GangFacts, ServingFacts, StartOrder
from kthena_components.core.facts.workload import NO_SCHEDULER, is_serving, pods_of_template
from kthena_components.core.objects.object import Object
from kthena_components.core.remedies import remove, write
from kthena_components.core.templates import HIDDEN
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import (
    count_or_unknown,
    is_name,
    mapping,
    name_of,
    sequence,
    unknown_in,
    unknown_inside,
)
from kthena_components.core.values.unknown import MaybeBool, MaybeInt, Unknown, product, total
from kthena_components.systems.volcano.plugins import (
    INDEX,
    hosts,
    injects_hosts,
    pytorch_ranks,
    pytorch_variables,
)
from kthena_components.systems.volcano.view import Task, tasks_of

_VOLCANO = "volcano"
_LATE_TASKS = Unknown("the tasks are not known yet")
_REPLACED = Unknown("Volcano's plugin ray replaces the commands of the templates")
Variables = Sequence[Mapping[str, str | Unknown]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A task, with its pods' template."""

    task: Task
    path: str
    """Path of the template, in the caller's input."""
    name: str
    count: MaybeInt
    template: object
    pods: Sequence[PodFacts]
    """One for each engine in a pod, empty if there is nothing to check."""


def facts(found: Object) -> ServingFacts:
    """Read the facts of a Volcano Job."""
    parts = _parts(found)
    serving = [part for part in parts if part.pods]
    engines, placed = _engines(found, serving), _scheduled_by_volcano(found, serving)
    return ServingFacts(
        path=found.at("spec"),
        name=name_of(found.body),
        engines=engines,
        gang=_gang(found, parts, engines) if placed is True else None,
        gang_expected=placed,
        hosts=hosts(found),
        numbered_with=(
            write([], "add the plugin env: []", at=found.at("spec.plugins.env")),
            INDEX[0],
        ),
    )


def _parts(found: Object) -> list[_Part]:
    """Read each task with its pods and the variables that plugins give it."""
    named = [
        (task, _name(task, index), _count(task.fields, "replicas", 1))
        for index, task in enumerate(tasks_of(found))
    ]
    of_pytorch = ({"name": key, "value": value} for key, value in pytorch_variables(found).items())
    variables, ranks = [*_variables(found, named), *of_pytorch], pytorch_ranks(found)
    return [
        _part(found, task, name, number, [*variables, *_rank(ranks.get(name))])
        for task, name, number in named
    ]


def _rank(rank: str | Unknown | None) -> Variables:
    return [] if rank is None else [{"name": "RANK", "value": rank}]


def _part(found: Object, task: Task, name: str, number: MaybeInt, variables: Variables) -> _Part:
    path = found.at(f"{task.path}.template")
    template = HIDDEN if unknown_in(task.template) else _as_made(task.template, variables)
    pods = [*filter(is_serving, pods_of_template(template, path, found.context))]
    return _Part(task=task, path=path, name=name, count=number, template=template, pods=pods)


def _name(task: Task, index: int) -> str:
    """Return the name of a task; Volcano's webhook numbers unnamed ones."""
    name = task.fields.get("name")
    return name if is_name(name) else "?" if unknown_in(name) else f"default{index}"


def _count(fields: Mapping[str, Any], field: str, default: int) -> MaybeInt:
    value = fields.get(field)
    return value if isinstance(value, Unknown) else count_or_unknown(value, field, default)


def _engines(found: Object, parts: Sequence[_Part]) -> tuple[EngineFacts, ...]:
    """Group the tasks to engines; pods are unknown where the plugin ray replaces commands."""
    if unknown_in(found.spec.get("tasks")):
        path = found.at("spec.tasks")
        entry = read_pod(HIDDEN, path)
        late = EngineFacts(
            path=path, name="?", pods=_LATE_TASKS, replicas=1, entry=entry, worker=None
        )
        return (late,)
    engines = engines_among([*_templates(parts)], found.context)
    plugins = found.spec.get("plugins")
    gap = unknown_in(plugins) or (_REPLACED if "ray" in mapping(plugins) else None)
    if gap is not None:
        return tuple(replace(e, pods=gap, worker=None) for e in engines)
    return tuple(_in_order(engines, parts))


def _in_order(engines: Iterable[EngineFacts], parts: Sequence[_Part]) -> Iterator[EngineFacts]:
    """Return the engines, with why their workers wait for their leaders.

    Source: Volcano v1.14 pkg/controllers/job/job_controller_actions.go isDependsOnPodsReady.
    """
    paths = {part.name: part.path for part in parts if part.task.fields.get("minAvailable") != 0}
    edges = {
        part.path: {paths[name] for name in stated if isinstance(name, str) and name in paths}
        for part in parts
        if (stated := sequence(mapping(part.task.fields.get("dependsOn")).get("name")))
    }
    why = "names the leader's task, so Volcano creates these pods only when the leader is ready"
    for engine in engines:
        late = engine.worker_template(edges)
        waits = engine.path in edges.get(late, ())
        at = f"{late.removesuffix('.template')}.dependsOn"
        order = StartOrder(path=at, why=why, remedy=remove()) if waits else None
        yield replace(engine, order=order)


def _templates(parts: Sequence[_Part]) -> Iterator[EngineTemplate]:
    for part in parts:
        for pod in part.pods:
            yield EngineTemplate(
                path=part.path, name=part.name, count=part.count, template=part.template, pod=pod
            )


def _variables(found: Object, named: Sequence[tuple[Task, str, MaybeInt]]) -> Variables:
    """Return the variables VC_<task>_NUM, which the plugin svc appends to a container's.

    Source: Volcano v1.14 pkg/controllers/job/plugins/svc/svc.go GenerateHosts.
    """
    plugins = mapping(found.spec.get("plugins"))
    if unknown_inside(plugins.get("svc")) or not injects_hosts(plugins):
        return []
    return [
        {"name": f"VC_{name.replace('-', '_').upper()}_NUM", "value": str(number)}
        for task, name, number in named
        # With a host name in its template, all pods of a task are one host.
        if isinstance(number, int) and "hostname" not in mapping(mapping(task.template).get("spec"))
    ]


def _as_made(template: object, variables: Variables) -> object:
    """Return a template with variables added to each of its containers."""
    spec = mapping(mapping(template).get("spec"))
    containers = spec.get("containers")
    if not variables or not isinstance(containers, list | tuple):
        return template
    made = [_with_variables(container, variables) for container in containers]
    return {**mapping(template), "spec": {**spec, "containers": made}}


def _with_variables(container: Any, variables: Variables) -> Any:
    env = mapping(container).get("env")
    if not mapping(container) or not (env is None or isinstance(env, list | tuple)):
        return container
    return {**container, "env": [*(env or ()), *variables]}


def _scheduled_by_volcano(found: Object, parts: Sequence[_Part]) -> MaybeBool:
    """Return whether Volcano schedules the pods: by default, unless template or Job differ."""
    usual = found.spec.get("schedulerName") or _VOLCANO
    specs = [mapping(mapping(part.template).get("spec")) for part in parts]
    asked = [spec.get("schedulerName") or usual for spec in specs]
    return NO_SCHEDULER if any(map(unknown_in, asked)) else all(n == _VOLCANO for n in asked)


def _gang(
    found: Object, parts: Sequence[_Part], engines: Sequence[EngineFacts]
) -> GangFacts | None:
    """Return the gang if it is stated which engines it covers; otherwise None.

    minAvailable counts pods of any task: the engines are clear if it is all pods of the Job, or if
    all are of one engine. Tasks that wait for others do not start at once, and partitions have
    their own minima.
    """
    fields = [part.task.fields for part in parts]
    if any(task.get(key) for task in fields for key in ("dependsOn", "partitionPolicy")):
        return None
    ours = total([product(engine.replicas, engine.pods) for engine in engines])
    made = total([part.count for part in parts if part.pods])
    every, least = total([part.count for part in parts]), _least_pods(found, parts)
    names = {engine.name for engine in engines}
    if not engines or isinstance(ours, Unknown) or ours != made or len(names) != len(engines):
        return None
    if least == every:
        least = ours
    elif ours != every or len(engines) != 1 or engines[0].pods == 1:
        return None
    if isinstance(least, int) and least > ours:
        return None  # job-minimum reports it
    minima = {engine.name: engine.replicas for engine in engines}
    return GangFacts(path=found.at("spec.minAvailable"), min_member=least, minima=minima)


def _least_pods(found: Object, parts: Sequence[_Part]) -> MaybeInt:
    """Return how many pods the Job waits for; the default is the sum of its tasks' minima."""
    stated = _count(found.spec, "minAvailable", 0)
    minima = (_count(part.task.fields, "minAvailable", -1) for part in parts)
    return stated or total(
        part.count if least == -1 else least for part, least in zip(parts, minima, strict=True)
    )
