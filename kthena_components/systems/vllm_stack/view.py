"""Reads releases of the Helm chart vllm-stack, by Pulumi, Flux or Argo CD, as models.

The chart's objects do not contain the command of an engine on Ray, which is in a ConfigMap; the
values do. Source: vllm-project/production-stack helm/templates.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from kthena_components.core.objects.object import Object
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.images import Version
from kthena_components.core.values.read import first_unknown, is_name, mapping
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems.vllm_stack.values import (
    BESIDE,
    MODELSERVICE,
    VLLM_STACK,
    ChartValues,
    values_of,
)

_MODELS = "servingEngineSpec.modelSpec"
_WITH_RAY, _BY_MODEL, _ENABLED = (0, 1, 3), (0, 1, 4), (0, 1, 11)
"""The first release with Ray, with a raySpec of each model, and with raySpec.enabled: the tags
vllm-stack-0.1.2 to 0.1.12, helm/templates/ray-cluster.yaml and deployment-vllm-multi.yaml."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One entry of servingEngineSpec.modelSpec."""

    path: str
    fields: Mapping[str, Any]
    version: Version | Unknown | None = None
    """The chart's release. None: not stated, so the newest."""
    over_ray: object = None
    """servingEngineSpec.raySpec, which release 0.1.3 reads."""
    overridden: Mapping[str, str] = field(default_factory=dict)
    """Values that a parameter of Argo CD sets, with the path of the parameter."""

    def at(self, *fields: str) -> str:
        """Return the path of the first field that is set by a parameter, or of the first."""
        entry = self.path[self.path.rindex(_MODELS) :]
        below = [self.overridden.get(f"{entry}.{name}") for name in fields]
        return next(filter(None, below), f"{self.path}.{fields[0]}")

    @property
    def config(self) -> Mapping[str, Any]:
        """Its vllmConfig."""
        return mapping(self.fields.get("vllmConfig"))

    @property
    def head(self) -> Mapping[str, Any]:
        """The requests of its Ray head."""
        return mapping(mapping(self.fields.get("raySpec")).get("headNode"))

    @property
    def ray(self) -> bool | Unknown:
        """Whether it becomes a RayCluster instead of a Deployment.

        Since 0.1.11 raySpec.enabled decides; from 0.1.4 on, whether there is a raySpec; in 0.1.3,
        whether servingEngineSpec has one.
        """
        spec, version = self.fields.get("raySpec"), self.version
        enabled = mapping(spec).get("enabled")
        if isinstance(version, tuple) and version < _BY_MODEL:
            return first_unknown(self.over_ray) or (
                version >= _WITH_RAY and self.over_ray is not None
            )
        if isinstance(version, tuple) and version < _ENABLED:
            return "raySpec" in self.fields or first_unknown(spec) or False
        if isinstance(version, Unknown) and "raySpec" in self.fields and enabled is not True:
            return version
        return first_unknown(spec, enabled) or bool(enabled)

    @property
    def switch(self) -> str:
        """The field that makes it a RayCluster, for messages."""
        is_old = isinstance(self.version, tuple) and self.version < _ENABLED
        return "raySpec" if is_old else "raySpec.enabled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """One release of the chart, with its values."""

    path: str
    """Path of the values."""
    models: tuple[Model, ...] | Unknown
    """The enabled models."""
    scheduler: object
    """The scheduler of the pods, as stated."""
    namespace: str
    """Namespace of the chart's objects; empty if it is not stated or not known yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Releases:
    """The releases of the chart in one object; empty for another chart."""

    object: Object
    releases: tuple[Release, ...]
    modelservices: tuple[ChartValues, ...] = ()
    """The releases of llm-d-modelservice."""


def read_releases(found: Object) -> Releases:
    """Read the releases of the chart; never raises."""
    given = tuple(values_of(found))
    return Releases(
        object=found,
        releases=tuple(_release(each) for each in given if each.chart == VLLM_STACK),
        modelservices=tuple(each for each in given if each.chart == MODELSERVICE),
    )


def _release(given: ChartValues) -> Release:
    spec, models = mapping(mapping(given.values).get("servingEngineSpec")), _models(given)
    silent = spec.get("enableEngine") is False or spec.get("modelSpec") is None
    return Release(
        path=given.path,
        models=BESIDE if models == () and given.beside and silent else models,
        scheduler=spec.get("schedulerName"),
        namespace=given.namespace if is_name(given.namespace) else "",
    )


def _models(given: ChartValues) -> tuple[Model, ...] | Unknown:
    spec = mapping(given.values).get("servingEngineSpec")
    listed = mapping(spec).get("modelSpec")
    if gap := first_unknown(given.values, spec, listed):
        return gap
    if mapping(spec).get("enableEngine") is False:
        return ()
    models = (
        Model(
            path=f"{given.path}.{_MODELS}[{index}]",
            fields=mapping(item),
            version=given.version,
            over_ray=mapping(spec).get("raySpec"),
            overridden=given.overridden,
        )
        for index, item in enumerate(listed if isinstance(listed, list | tuple) else ())
    )
    return tuple(model for model in models if model.fields.get("enabled") is not False)
