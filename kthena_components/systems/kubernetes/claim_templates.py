"""Writes the ResourceClaimTemplates of a serving, which all backends share."""

from collections.abc import Iterator

from kthena_components.core import naming
from kthena_components.core.plan.manifest import Manifest
from kthena_components.core.plan.serving_plan import ServingPlan


def emit_claims(plan: ServingPlan) -> Iterator[Manifest]:
    """Write the template of each device request of each role."""
    for role in plan.roles:
        for body in role.claim_templates:
            metadata = {**body["metadata"], "labels": {naming.NAME: plan.name}}
            # Its name changes with its content, so each change replaces it.
            yield Manifest(body={**body, "metadata": metadata}, renewed=True)
