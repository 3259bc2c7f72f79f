"""Knative Serving: a Service, and the Configuration that it creates."""

from kthena_components.core.objects.retained_fields import kept_pods
from kthena_components.systems.contract import PRODUCTION, Kind, Restart, System
from kthena_components.systems.knative.view import as_it_is, facts, pods

SYSTEM = System(
    name="knative",
    title="Knative Serving",
    kinds=tuple(
        Kind(
            group="serving.knative.dev",
            name=name,
            view=as_it_is,
            facts=facts,
            pods=pods,
            kept=kept_pods,
            restarts=Restart(
                paths=r"spec\.template\b",
                how="a new revision starts beside the old one, which then ends",
            ),
            unscalable="Knative scales by itself",
            without={
                "templates": "Knative fills in what Kubernetes asks for, such as names of "
                "containers",
                PRODUCTION: "Knative gives its pods probes and time to drain",
            },
        )
        for name in ("Service", "Configuration")
    ),
)
