"""The facts of a JobSet: an engine on one pod, or on the pods of several Jobs."""

from kthena_components.core.facts.engine_grouping import engines_among, templates_of
from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.facts.workload import NO_SCHEDULER, admitted_together
from kthena_components.core.values.read import mapping, name_of, unknown_in
from kthena_components.core.values.unknown import MaybeBool
from kthena_components.systems.jobset.view import JobSet


def facts(view: JobSet) -> ServingFacts:
    """Read the facts of a JobSet."""
    found = view.object
    parts = [
        part
        for job in view.jobs
        for part in templates_of(
            job.template, found.at(job.path), job.name, job.pods, found.context
        )
    ]
    return ServingFacts(
        path=found.at("spec"),
        name=name_of(found.body),
        engines=engines_among(parts, found.context),
        gang_expected=_placed_together(view),
    )


def _placed_together(view: JobSet) -> MaybeBool:
    if admitted_together(view.object.metadata):
        return True
    specs = [mapping(mapping(job.template).get("spec")) for job in view.jobs]
    schedulers = [spec.get("schedulerName") for spec in specs]
    return NO_SCHEDULER if any(map(unknown_in, schedulers)) else "volcano" in schedulers
