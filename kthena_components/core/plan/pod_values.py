"""Checks the values in the pods of a plan, with paths in the user's input."""

import re
from collections.abc import Iterator
from dataclasses import replace

from kthena_components.core.findings import Finding, join_path
from kthena_components.core.plan.model import RolePlan, ServingPlan
from kthena_components.core.schema.pod_values import judge_values
from kthena_components.core.templates.overlay import MERGE_KEYS, Template
from kthena_components.core.values.read import mapping, sequence

_STEP = re.compile(r"([A-Za-z]+)\[([0-9]+)\]")


def plan_values(plan: ServingPlan) -> Iterator[Finding]:
    """Report values that Kubernetes rejects in any pod, after overlays are merged."""
    for role in plan.roles:
        fields = {"entry_template": role.entry}
        if role.worker is not None and role.worker_replicas:
            fields["worker_template"] = role.worker
        for field, template in fields.items():
            for finding in judge_values(template, ""):
                yield replace(
                    finding, path=join_path(role.path, _place(role, field, template, finding))
                )


def _place(role: RolePlan, field: str, template: Template, finding: Finding) -> str:
    """Write a path as the user can find it: an engine's list items by their names."""
    if role.engine is None:
        return f"{field}.{finding.path}"
    named: list[str] = []
    value: object = template
    for step in finding.path.split("."):
        match = _STEP.fullmatch(step)
        value = mapping(value).get(match[1] if match else step)
        if match:
            items, index = sequence(value), int(match[2])
            value = items[index] if index < len(items) else None
            name = mapping(value).get(MERGE_KEYS.get(match[1], ""), index)
            named.append(f"{match[1]}[{name}]")
        else:
            named.append(step)
    return f"{'' if role.stated.overlay is None else 'overlay.'}{'.'.join(named)}"
