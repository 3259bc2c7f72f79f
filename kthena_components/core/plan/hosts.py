"""Finds host names of entry pods in templates: only Kthena and native give pods such names."""

import json
import re

from kthena_components.core.plan.model import RolePlan, ServingPlan


def entry_host_in(plan: ServingPlan, role: RolePlan) -> str | None:
    """Return the host name of an entry of this serving that a role's templates contain."""
    roles = "|".join(re.escape(each.name) for each in plan.roles)
    host = re.compile(rf"(?<![-.a-z0-9]){re.escape(plan.name)}-\d+-(?:{roles})-\d+-0(?![-a-z0-9])")
    found = host.search(json.dumps([role.entry, role.worker], default=str))
    return None if found is None else found[0]
