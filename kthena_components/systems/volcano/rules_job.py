"""Volcano Jobs: what their webhook refuses. The docstring of each rule is its documentation."""

from collections.abc import Iterator

from kthena_components.core.findings import Finding, count_of, not_checked
from kthena_components.core.objects.object import Object
from kthena_components.core.values.read import count, first_unknown, mapping
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems.volcano.rules import volcano_name
from kthena_components.systems.volcano.rules_topology import TOPOLOGY_RULES
from kthena_components.systems.volcano.view import Rule, tasks_of


def job_minimum(found: Object) -> Iterator[Finding]:
    """A Volcano Job waits for no more pods than its tasks have.

    Pass: minAvailable 4, tasks of 1 and 3 replicas.
    Fail: minAvailable 5, tasks of 1 and 3 replicas.
    Level: mandatory. Volcano's webhook refuses it.
    Source: Volcano v1.14 pkg/webhooks/admission/jobs/validate/admit_job.go validateJobCreate.
    """
    path, least = "spec.minAvailable", count(found.spec.get("minAvailable"))
    sizes = [task.replicas for task in tasks_of(found)]
    if least is None or not sizes:
        return
    if gap := first_unknown(least, *sizes):
        yield not_checked(path, gap, "job-minimum")
        return
    total = sum(size for size in sizes if isinstance(size, int))
    if isinstance(least, int) and least > total:
        yield Finding(
            path=path,
            seen=f"is {least}, but the tasks have {count_of(total, 'pod')}",
            remedy=f"write at most {total}",
            rule="job-minimum",
        )


def job_partitions(found: Object) -> Iterator[Finding]:
    """The partitions of a task hold all its pods, and its minimum is a minimum of partitions.

    Pass: replicas 8, totalPartitions 4, partitionSize 2.
    Fail: replicas 7, totalPartitions 4, partitionSize 2.
    Level: mandatory. Volcano's webhook refuses it.
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
                yield not_checked(path, gap, "job-partitions")
            elif not _equal(stated, number, size):
                yield Finding(
                    path=path,
                    seen=f"is {stated}, but {counted}Partitions {number} × partitionSize {size} = "
                    f"{_product(number, size)}",
                    remedy=f"write {_product(number, size)}",
                    rule="job-partitions",
                )


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
    *TOPOLOGY_RULES,
)
