"""What a JobSet tells its pods, for `convert`.

Source: kubernetes-sigs/jobset v0.10 pkg/util/placement/placement.go GenPodName, and
pkg/controllers/jobset_controller.go labelAndAnnotateObject.
"""

from dataclasses import replace

from kthena_components.core.plan.controller_variables import Told
from kthena_components.core.values.read import mapping, name_of
from kthena_components.systems.jobset.facts import facts
from kthena_components.systems.jobset.view import JobSet
from kthena_components.systems.kubernetes.pod_variables import (
    COMPLETION_FIELDS,
    COMPLETION_INDEX,
    first_pod,
)

_JOB = "jobset.sigs.k8s.io/job-index"


def tells(view: JobSet) -> Told:
    """Return the number of a pod in its Job, or of its Job if each has one pod."""
    engines, found = facts(view).engines, view.object
    name, network = name_of(found.body), mapping(found.spec.get("network"))
    addresses = [
        first_pod(f"{name}-{engines[0].name}-0-0", domain, found.metadata.get("namespace"))
        for domain in (network.get("subdomain") or name,)
        if len(engines) == 1
    ]
    others = ("JOB_COMPLETION_INDEX", "JOBSET_")
    told = Told(addresses=tuple(addresses), others=others)
    if all(job.jobs == 1 for job in view.jobs):
        return replace(told, ordinal=(COMPLETION_INDEX,), fields=COMPLETION_FIELDS)
    by_job = (f"metadata.labels['{_JOB}']", f"metadata.annotations['{_JOB}']")
    return replace(told, fields=by_job if all(job.each == 1 for job in view.jobs) else ())
