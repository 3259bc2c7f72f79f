"""Reports options of the kserve backend that would have no effect."""

from collections.abc import Iterator

from kthena_components.core.findings import Finding, refuse
from kthena_components.core.plan.model import ServingPlan
from kthena_components.core.remedies import either, remove
from kthena_components.systems.kserve.options import KserveKind, is_llm, options_of


def refuse_options(plan: ServingPlan) -> Iterator[Finding]:
    """Reject options about configs of an object that has none."""
    if is_llm(plan):
        return
    options = options_of(plan)
    given = {
        "write_configs": (not options.write_configs, "false"),
        "replaces_presets": (options.replaces_presets, "true"),
    }
    for option, (stated, value) in given.items():
        if stated:
            yield refuse(
                f"backend_options.{option}",
                f"is {value}, but an {options.kind} has no LLMInferenceServiceConfigs",
                either(remove(), f"write kind: {KserveKind.LLM}"),
                "backend-options",
            )
