"""Reads releases of the Helm chart vllm-stack, by Pulumi, Flux or Argo CD, as models.

The chart's objects do not contain the command of an engine on Ray, which is in a ConfigMap; the
values do. A values file alone is not read: it does not name its chart. Source:
vllm-project/production-stack helm/templates.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.objects.object import GroupKind, Object
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display
from kthena_components.core.values.embedded import read_yaml_text
from kthena_components.core.values.images import Version
from kthena_components.core.values.read import (
    first_unknown,
    inside,
    is_name,
    mapping,
    sequence,
    unknown_in,
)
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import Unknown, is_unresolved

RELEASE: GroupKind = ("helm.sh", "Release")
"""How policies name Pulumi's Release, whose type is kubernetes:helm.sh/v3:Release."""
HELM_RELEASE: GroupKind = ("helm.toolkit.fluxcd.io", "HelmRelease")
APPLICATION: GroupKind = ("argoproj.io", "Application")
CHART = "vllm-stack"
_GIT_PATH = ("vllm-project/production-stack", "helm")
"""Path of the chart in its repository."""
_MODELS = "servingEngineSpec.modelSpec"
_BESIDE = Unknown("the models may be in other values")
_WITH_RAY, _BY_MODEL, _ENABLED = (0, 1, 3), (0, 1, 4), (0, 1, 11)
"""The first release with Ray, with a raySpec of each model, and with raySpec.enabled: the tags
vllm-stack-0.1.2 to 0.1.12, helm/templates/ray-cluster.yaml and deployment-vllm-multi.yaml."""
_RELEASE_OF = regex(r"(?:vllm-stack-|[v=])?([0-9]{1,4})\.([0-9]{1,4})\.([0-9]{1,4})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One entry of servingEngineSpec.modelSpec."""

    path: str
    fields: Mapping[str, Any]
    version: Version | Unknown | None = None
    """The chart's release. None: not stated, so the newest."""
    over_ray: object = None
    """servingEngineSpec.raySpec, which release 0.1.3 reads."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Values:
    """The values of one release of the chart."""

    path: str
    values: object
    beside: bool
    """Whether there are values elsewhere, too."""
    namespace: object
    version: object
    """Version of the chart, as stated."""


def read_releases(found: Object) -> Releases:
    """Read the releases of the chart; never raises."""
    return Releases(object=found, releases=tuple(map(_release, _values(found))))


def _release(given: _Values) -> Release:
    spec, models = mapping(mapping(given.values).get("servingEngineSpec")), _models(given)
    silent = spec.get("enableEngine") is False or spec.get("modelSpec") is None
    return Release(
        path=given.path,
        models=_BESIDE if models == () and given.beside and silent else models,
        scheduler=spec.get("schedulerName"),
        namespace=given.namespace if is_name(given.namespace) else "",
    )


def _models(given: _Values) -> tuple[Model, ...] | Unknown:
    spec = mapping(given.values).get("servingEngineSpec")
    listed = mapping(spec).get("modelSpec")
    if gap := first_unknown(given.values, spec, listed):
        return gap
    if mapping(spec).get("enableEngine") is False:
        return ()
    version, over_ray = _version(given.version), mapping(spec).get("raySpec")
    models = (
        Model(
            path=f"{given.path}.{_MODELS}[{index}]",
            fields=mapping(item),
            version=version,
            over_ray=over_ray,
        )
        for index, item in enumerate(listed if isinstance(listed, list | tuple) else ())
    )
    return tuple(model for model in models if model.fields.get("enabled") is not False)


def _version(stated: object) -> Version | Unknown | None:
    """Read the chart's version; one that is a range is unknown."""
    if stated is None:
        return None
    found = _RELEASE_OF.fullmatch(stated.strip()) if isinstance(stated, str) else None
    if found is not None:
        return tuple(map(int, found.groups()))
    return unknown_in(stated) or Unknown(f"{display(stated)} may be several releases of the chart")


def _values(found: Object) -> Iterator[_Values]:
    """Find the values of the chart, in each place where its tool keeps them."""
    body, kind, spec = found.body, found.group_kind, mapping(found.body.get("spec"))
    if kind == RELEASE and _is_chart(body.get("chart")):
        yield _Values(
            path="values",
            values=body.get("values"),
            beside=bool(body.get("valueYamlFiles")),
            namespace=body.get("namespace"),
            version=body.get("version"),
        )
    elif kind == HELM_RELEASE and _is_flux_chart(spec):
        yield _Values(
            path="spec.values",
            values=spec.get("values"),
            beside=bool(spec.get("valuesFrom")),
            namespace=spec.get("targetNamespace") or found.metadata.get("namespace"),
            version=inside(inside(spec.get("chart"), "spec"), "version"),
        )
    elif kind == APPLICATION:
        sources = [("spec.source", spec.get("source"))]
        sources += [(f"spec.sources[{i}]", v) for i, v in enumerate(sequence(spec.get("sources")))]
        goes = mapping(spec.get("destination")).get("namespace")
        for at, source in sources:
            if _is_argo_chart(mapping(source)):
                yield _argo(mapping(source), f"{at}.helm", goes)


def _is_chart(value: object) -> bool:
    """Return whether a chart's name, path or URL belongs to vllm-stack."""
    if not isinstance(value, str) or is_unresolved(value):
        return False
    last = value.rstrip("/").rpartition("/")[2].partition(":")[0]
    return last == CHART or (last.startswith(f"{CHART}-") and last.endswith(".tgz"))


def _is_flux_chart(spec: Mapping[str, Any]) -> bool:
    named = mapping(mapping(spec.get("chart")).get("spec")).get("chart")
    return _is_chart(named) or _is_chart(mapping(spec.get("chartRef")).get("name"))


def _is_argo_chart(source: Mapping[str, Any]) -> bool:
    repository, place = source.get("repoURL"), source.get("path")
    if isinstance(repository, str) and isinstance(place, str):
        own = repository.removesuffix(".git").endswith(_GIT_PATH[0])
        if own and place.strip("./") == _GIT_PATH[1]:
            return True
    return _is_chart(source.get("chart")) or _is_chart(place)


def _argo(source: Mapping[str, Any], path: str, namespace: object) -> _Values:
    """Read Argo CD's values: an object overrides a text, and parameters override both."""
    helm, version = mapping(source.get("helm")), source.get("targetRevision")
    if version in ("", "HEAD", "main"):
        version = None
    names = [mapping(item).get("name") for item in sequence(helm.get("parameters"))]
    values, key = helm.get("valuesObject"), "valuesObject"
    if values is None:
        values, key = read_yaml_text(helm.get("values"), "values"), "values"
    if any(is_unresolved(name) or str(name).startswith(_MODELS) for name in names):
        values = Unknown("parameters change the models")
    return _Values(
        path=f"{path}.{key}",
        values=values,
        beside=bool(helm.get("valueFiles")),
        namespace=namespace,
        version=version,
    )
