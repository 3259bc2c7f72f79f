"""Host names that only some backends give to pods."""

import json
import re
from collections.abc import Iterator

from kthena_components.core.findings import Finding
from kthena_components.core.plan.model import ServingPlan
from kthena_components.core.remedies import elsewhere

_SERVICE = "use a Service that selects the entries by their labels"


def refuse_hosts(plan: ServingPlan, system: str, remedy: str = _SERVICE) -> Iterator[Finding]:
    """Reject templates with the host name of an entry: only Kthena and native have such a name.

    Args:
        plan: The plan.
        system: What runs the pods, in a user's words.
        remedy: What to write instead.
    """
    roles = "|".join(re.escape(role.name) for role in plan.roles)
    host = re.compile(rf"(?<![-.a-z0-9]){re.escape(plan.name)}-\d+-(?:{roles})-\d+-0(?![-a-z0-9])")
    for role in plan.roles:
        found = host.search(json.dumps([role.entry, role.worker], default=str))
        if found is not None:
            yield Finding(
                path=role.path,
                seen=f"contains the host name '{found[0]}', but {system} gives entry pods other "
                "names",
                remedy=elsewhere(remedy),
                rule="backend-loss",
            )
