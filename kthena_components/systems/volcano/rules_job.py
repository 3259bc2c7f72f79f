"""Volcano Jobs: what their webhook refuses. The docstring of each rule is its documentation."""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.findings import Finding, count_of, not_checked
from kthena_components.core.values.read import count, first_unknown, items, mapping, spec_of
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems.volcano.view import Rule


def job_minimum(manifest: Mapping[str, Any]) -> Iterator[Finding]:
    """A Volcano Job waits for no more pods than its tasks have.

    Pass: minAvailable 4, tasks of 1 and 3 replicas.
    Fail: minAvailable 5, tasks of 1 and 3 replicas.
    Level: mandatory. Volcano's webhook refuses it.
    Source: Volcano v1.14 pkg/webhooks/admission/jobs/validate/admit_job.go validateJobCreate.
    """
    spec, path = spec_of(manifest), "spec.minAvailable"
    least, tasks = count(spec.get("minAvailable")), items(spec.get("tasks"))
    sizes = [count(mapping(task).get("replicas"), 1) for task in tasks]
    if least is None or not tasks:
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


def job_partitions(manifest: Mapping[str, Any]) -> Iterator[Finding]:
    """The partitions of a task hold all its pods, and its minimum is a minimum of partitions.

    Pass: replicas 8, totalPartitions 4, partitionSize 2.
    Fail: replicas 7, totalPartitions 4, partitionSize 2.
    Level: mandatory. Volcano's webhook refuses it.
    Source: Volcano v1.14 pkg/webhooks/admission/jobs/validate/admit_job.go
    validatePartitionPolicy.
    """
    for i, item in enumerate(items(spec_of(manifest).get("tasks"))):
        task = mapping(item)
        policy = mapping(task.get("partitionPolicy"))
        size = count(policy.get("partitionSize"))
        for field, stated, parts, counted in (
            ("replicas", count(task.get("replicas"), 1), policy.get("totalPartitions"), "total"),
            ("minAvailable", count(task.get("minAvailable")), policy.get("minPartitions"), "min"),
        ):
            path, number = f"spec.tasks[{i}].{field}", count(parts)
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


JOB_RULES: tuple[Rule, ...] = (job_minimum, job_partitions)
