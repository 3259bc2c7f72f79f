"""Checks Volcano Jobs for what their webhook rejects. The docstring of each rule documents it."""

from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

from kthena_components.core.findings import Finding, count_of, not_checked, refuse, suggest
from kthena_components.core.naming import DNS_LABEL
from kthena_components.core.objects.object import Object
from kthena_components.core.remedies import at_most, placed_at, write
from kthena_components.core.values.display import display
from kthena_components.core.values.read import (
    count,
    first_unknown,
    mapping,
    require_known,
    sequence,
    text,
)
from kthena_components.core.values.unknown import MaybeText, Unknown
from kthena_components.systems.volcano.rules.job_policies import job_parts, job_policies
from kthena_components.systems.volcano.rules.topology import TOPOLOGY_RULES
from kthena_components.systems.volcano.rules.volcano_name import volcano_name
from kthena_components.systems.volcano.view import Rule, Task, tasks_of

_SHOWN = 8
"""So many names are listed in a message."""


def job_minimum(found: Object) -> Iterator[Finding]:
    """A Volcano Job waits for at most as many pods as its tasks have.

    Pass: minAvailable 4, tasks of 1 and 3 replicas.
    Fail: minAvailable 5, tasks of 1 and 3 replicas.
    Level: mandatory. Volcano's webhook rejects it.
    Source: Volcano v1.14 pkg/webhooks/admission/jobs/validate/admit_job.go validateJobCreate.
    """
    path, least = "spec.minAvailable", count(found.spec.get("minAvailable"))
    sizes = [task.replicas for task in tasks_of(found)]
    if least is None or not sizes:
        return
    require_known(path, least, *sizes)
    total = sum(size for size in sizes if isinstance(size, int))
    if isinstance(least, int) and least > total:
        yield Finding(
            path=path,
            seen=f"is {least}, but the tasks have {count_of(total, 'pod')}",
            remedy=at_most(total),
        )


def job_partitions(found: Object) -> Iterator[Finding]:
    """A task has totalPartitions × partitionSize pods, and waits for minPartitions × partitionSize.

    Pass: replicas 8, totalPartitions 4, partitionSize 2.
    Fail: replicas 7, totalPartitions 4, partitionSize 2.
    Level: mandatory. Volcano's webhook rejects it.
    Source: Volcano v1.14 pkg/webhooks/admission/jobs/validate/admit_job.go
    validatePartitionPolicy.
    """
    for task in tasks_of(found):
        policy = mapping(task.fields.get("partitionPolicy"))
        size, least = count(policy.get("partitionSize")), count(task.fields.get("minAvailable"))
        for field, stated, parts, counted in (
            ("replicas", task.replicas, policy.get("totalPartitions"), "total"),
            ("minAvailable", least, policy.get("minPartitions"), "min"),
        ):
            path, number = f"{task.path}.{field}", count(parts)
            if None in {stated, number, size}:
                continue
            if gap := first_unknown(stated, number, size):
                yield not_checked(path, gap)
            elif not _equal(stated, number, size):
                yield Finding(
                    path=path,
                    seen=f"is {stated}, but {counted}Partitions {number} × partitionSize {size} = "
                    f"{_product(number, size)}",
                    remedy=write(_product(number, size)),
                )


def job_tasks(found: Object) -> Iterator[Finding]:
    """A Volcano Job has tasks with different names, without a cycle of dependencies.

    minAvailable of a task is at most its replicas. The name of a pod, which consists of the Job,
    the task and an index, has at most 63 characters. A task without a name is called default with
    its index.

    Pass: worker, which depends on master.
    Fail: two tasks worker; a and b, which depend on each other; a dependency that does not exist.
    Level: mandatory. Volcano's webhook rejects it.
    Source: Volcano v1.14.4 and v1.15.1 pkg/webhooks/admission/jobs/validate/admit_job.go
    validateJobCreate, util.go topoSort; jobs/mutate/mutate_job.go mutateSpec.
    """
    tasks = tasks_of(found)
    if not tasks and found.spec.get("tasks") in (None, []):
        yield refuse("spec.tasks", "has no task", "add one")
    names = [text(task.fields.get("name"), "") for task in tasks]
    named = [f"default{i}" if name == "" else name for i, name in enumerate(names)]
    first: dict[str, int] = {}
    for index, (task, name) in enumerate(zip(tasks, named, strict=True)):
        path, least = f"{task.path}.name", count(task.fields.get("minAvailable"))
        if isinstance(name, Unknown):
            yield not_checked(path, name)
        elif name is not None and first.setdefault(name, index) != index:
            seen = f"is {display(name)}, as that of task {first[name]}"
            yield refuse(path, seen, "rename one of them")
        if isinstance(least, int) and isinstance(task.replicas, int) and least > task.replicas:
            seen = f"is {least}, but the task has {count_of(task.replicas, 'pod')}"
            remedy = f"write at most {task.replicas}"
            yield refuse(f"{task.path}.minAvailable", seen, remedy)
        yield from _pod_name(found.name, name, index)
    yield from _order(tasks, named)


def _pod_name(job: object, task: object, index: int) -> Iterator[Finding]:
    if isinstance(job, str) and isinstance(task, str) and job and task:
        pod = f"{job}-{task}-{index}"
        if len(pod) > DNS_LABEL:
            seen = f"makes pods such as {display(pod)}, of {len(pod)} characters, but"
            seen += f" {DNS_LABEL} are allowed"
            remedy = f"shorten it, or the Job's name, by {len(pod) - DNS_LABEL}"
            yield refuse(f"spec.tasks[{index}].name", seen, remedy)


def _order(tasks: list[Task], named: list[MaybeText | None]) -> Iterator[Finding]:
    """Find a task that cannot start, because what it depends on never does."""
    waiting: dict[str, list[str]] = {}
    places: dict[str, str] = {}
    for task, name in zip(tasks, named, strict=True):
        listed = mapping(task.fields.get("dependsOn")).get("name")
        before = [text(word) for word in sequence(listed)]
        path = f"{task.path}.dependsOn.name"
        require_known(path, name, listed, *before)
        waiting[str(name)] = [word for word in before if isinstance(word, str)]
        places[str(name)] = path
    for name, others in waiting.items():
        if missing := [other for other in others if other not in waiting]:
            seen = f"names {display(missing[0])}, which is no task, so this one never starts"
            at = f"{places[name]}[{others.index(missing[0])}]"
            yield refuse(places[name], seen, placed_at(suggest(missing[0], waiting), at))
    try:
        TopologicalSorter(waiting).prepare()
    except CycleError as error:
        cycle = error.args[1]
        shown = " -> ".join(cycle[:_SHOWN])
        seen = f"goes in a cycle, {shown}, so none of these tasks ever starts"
        yield refuse(places[cycle[0]], seen, "remove one of the dependencies")


def _product(number: int | Unknown | None, size: int | Unknown | None) -> int:
    return number * size if isinstance(number, int) and isinstance(size, int) else 0


def _equal(
    stated: int | Unknown | None, number: int | Unknown | None, size: int | Unknown | None
) -> bool:
    return stated == _product(number, size)


JOB_RULES: tuple[Rule, ...] = (
    volcano_name,
    job_minimum,
    job_partitions,
    job_tasks,
    job_policies,
    job_parts,
    *TOPOLOGY_RULES,
)
