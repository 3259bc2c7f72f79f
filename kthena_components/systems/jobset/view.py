"""Reads a JobSet as several sets of equal Jobs.

Source: kubernetes-sigs/jobset v0.10 api/jobset/v1alpha2/jobset_types.go, and
pkg/controllers/jobset_controller.go for the pods that a Job has at a time.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kthena_components.core.objects.object import Object, copies_in
from kthena_components.core.values.arithmetic import product
from kthena_components.core.values.read import inside, is_name, mapping, sequence
from kthena_components.core.values.unknown import MaybeInt, Unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicatedJob:
    """One entry of replicatedJobs: equal Jobs."""

    path: str
    """Path of its pod template, in the object."""
    name: str
    template: object
    jobs: MaybeInt
    each: MaybeInt
    """Pods of one Job that run at a time: at most its completions."""

    @property
    def pods(self) -> MaybeInt:
        """Return the pods of all its Jobs."""
        return product(self.jobs, self.each)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSet:
    """A JobSet."""

    object: Object
    jobs: tuple[ReplicatedJob, ...]


def read_job_set(found: Object) -> JobSet:
    """Read the Jobs, whatever the object contains."""
    listed = enumerate(sequence(found.spec.get("replicatedJobs")))
    return JobSet(object=found, jobs=tuple(_job(item, index) for index, item in listed))


def _job(item: object, index: int) -> ReplicatedJob:
    fields = mapping(item)
    spec = inside(inside(item, "template"), "spec")
    name = fields.get("name")
    return ReplicatedJob(
        path=f"spec.replicatedJobs[{index}].template.spec.template",
        name=name if is_name(name) else "?",
        template=inside(spec, "template"),
        jobs=copies_in(fields.get("replicas"), 1),
        each=_at_a_time(mapping(spec)),
    )


def _at_a_time(spec: Mapping[str, Any]) -> MaybeInt:
    pods, done = (spec.get(key) for key in ("parallelism", "completions"))
    most, wanted = copies_in(pods, 1), copies_in(done, 1)
    if done is None or isinstance(most, Unknown):
        return most
    return wanted if isinstance(wanted, Unknown) else min(most, wanted)
