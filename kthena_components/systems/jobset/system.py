"""JobSet: several Jobs as one workload."""

from kthena_components.core.objects.retained_fields import kept_pods
from kthena_components.systems.contract import PRODUCTION, Kind, System
from kthena_components.systems.jobset.facts import facts
from kthena_components.systems.jobset.pod_variables import tells
from kthena_components.systems.jobset.pods import pods
from kthena_components.systems.jobset.view import read_job_set

SYSTEM = System(
    name="jobset",
    title="JobSet",
    kinds=(
        Kind(
            group="jobset.x-k8s.io",
            name="JobSet",
            view=read_job_set,
            facts=facts,
            pods=pods,
            tells=tells,
            templates=("spec.replicatedJobs[].template.spec.template",),
            kept=kept_pods,
            without={
                "restarts": "JobSet's webhook refuses other templates while it runs",
                PRODUCTION: "its pods end by themselves",
            },
        ),
    ),
)
