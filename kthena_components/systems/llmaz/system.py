"""llmaz: Service and Playground."""

from collections.abc import Iterator
from dataclasses import replace

from kthena_components.core.objects.object import PodSet
from kthena_components.core.objects.reduction import kept_pods
from kthena_components.systems.contract import Kind, Restart, System
from kthena_components.systems.llmaz.facts import facts, facts_of_playground
from kthena_components.systems.llmaz.view import (
    GROUP,
    TEMPLATE,
    LlmazService,
    in_service,
    read_playground,
    read_service,
)
from kthena_components.systems.lws.pods import pods_of_groups

_MADE = "llmaz makes a Service of it and of other objects"


def pods(view: LlmazService) -> Iterator[PodSet]:
    """Yield the leaders and the workers."""
    for one in pods_of_groups(view.sets):
        yield replace(one, owner=view.object, path=in_service(one.path))


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
            not_whole="llmaz adds containers to its pods that load the models of modelClaims",
            templates=tuple(f"spec.{TEMPLATE}.{part}Template" for part in ("leader", "worker")),
            kept=kept_pods,
            restarts=Restart(paths=rf"spec\.{TEMPLATE}\b", how="group after group restarts"),
        ),
        Kind(
            group=GROUP,
            name="Playground",
            view=read_playground,
            facts=facts_of_playground,
            without={"pods": _MADE, "templates": _MADE, "restarts": _MADE},
        ),
    ),
)
