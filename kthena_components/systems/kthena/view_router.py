"""Reads the objects of Kthena's router: ModelServers and ModelRoutes. It never raises.

Source: volcano-sh/kthena v1.0.0 pkg/apis/networking/v1alpha1.
"""

from collections.abc import Mapping
from typing import Any

from kthena_components.core.objects.object import MODEL_SERVER, Object
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import mapping, sequence

MODEL_ROUTE = (MODEL_SERVER[0], "ModelRoute")


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A ModelServer: the pods of one model, for the router."""

    object: Object
    labels: Any
    """matchLabels, as stated."""
    pair: Any
    """pdGroup, as stated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteRule:
    """One rule of a ModelRoute."""

    path: str
    fields: Mapping[str, Any]
    targets: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A ModelRoute: names of models, and the ModelServers that serve them."""

    object: Object
    rules: tuple[RouteRule, ...]


def read_server(found: Object) -> Server:
    """Read a ModelServer."""
    selector = mapping(found.spec.get("workloadSelector"))
    return Server(object=found, labels=selector.get("matchLabels"), pair=selector.get("pdGroup"))


def read_route(found: Object) -> Route:
    """Read a ModelRoute."""
    return Route(
        object=found,
        rules=tuple(
            RouteRule(
                path=f"spec.rules[{index}]",
                fields=mapping(rule),
                targets=tuple(map(mapping, sequence(mapping(rule).get("targetModels")))),
            )
            for index, rule in enumerate(sequence(found.spec.get("rules")))
        ),
    )
