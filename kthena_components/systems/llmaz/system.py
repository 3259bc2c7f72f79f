"""llmaz: Service and Playground."""

from kthena_components.core.objects.retained_fields import kept_pods
from kthena_components.core.plan.controller_variables import TOLD_BY_LWS
from kthena_components.systems.contract import Kind, Restart, System
from kthena_components.systems.llmaz.facts import facts, facts_of_playground
from kthena_components.systems.llmaz.sketch import pods, sketch, sketch_of_playground
from kthena_components.systems.llmaz.view import GROUP, TEMPLATE, read_playground, read_service

_MADE = "llmaz makes a Service of it and of other objects"


SYSTEM = System(
    name="llmaz",
    title="llmaz",
    kinds=(
        Kind(
            group=GROUP,
            name="Service",
            view=read_service,
            facts=facts,
            pods=pods,
            tells=lambda _: TOLD_BY_LWS,
            sketch=sketch,
            templates=tuple(f"spec.{TEMPLATE}.{part}Template" for part in ("leader", "worker")),
            # The loader of the model: pkg/controller_helper/modelsource/modelsource.go.
            adds_volumes=("model-volume",),
            kept=kept_pods,
            restarts=Restart(paths=rf"spec\.{TEMPLATE}\b", how="group after group restarts"),
        ),
        Kind(
            group=GROUP,
            name="Playground",
            view=read_playground,
            facts=facts_of_playground,
            sketch=sketch_of_playground,
            without={"pods": _MADE, "templates": _MADE, "restarts": _MADE},
        ),
    ),
)
