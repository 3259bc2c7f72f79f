"""MatrixInfer's ModelInfer, the predecessor of Kthena's ModelServing."""

from kthena_components.core.objects.retained_fields import kept_pods
from kthena_components.core.plan.controller_variables import TOLD_BY_KTHENA
from kthena_components.systems.kthena.facts import pods
from kthena_components.systems.kthena.system import ROLE_PATHS
from kthena_components.systems.matrixinfer.rules import RULES
from kthena_components.systems.matrixinfer.view import MODEL_INFERS, facts, read_model_infer
from kthena_components.systems.system import Kind, Restart, System

SYSTEM = System(
    name="matrixinfer",
    title="MatrixInfer ModelInfer",
    kinds=tuple(
        Kind(
            group=group,
            name=name,
            view=read_model_infer,
            facts=facts,
            pods=pods,
            tells=lambda _: TOLD_BY_KTHENA,
            rules=RULES,
            templates=(
                "spec.template.roles[].entryTemplate",
                "spec.template.roles[].workerTemplate",
            ),
            kept=kept_pods,
            restarts=Restart(paths=ROLE_PATHS, how="group after group restarts"),
            copies="replicas",
            unscalable="has no scale subresource",
            without={"rollouts": "its controller ignores maxSurge"},
        )
        for group, name in MODEL_INFERS
    ),
)
