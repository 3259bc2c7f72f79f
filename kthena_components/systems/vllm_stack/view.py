"""Reads releases of the charts by Pulumi, Flux, Argo CD or K3s: values, and vllm-stack's models.

The chart's objects do not contain the command of an engine on Ray, which is in a ConfigMap; the
values do. Source: vllm-project/production-stack helm/templates.

A values file alone is not read: it does not name its chart.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any

from kthena_components.core.objects.object import GroupKind, Object
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display
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
from kthena_components.core.values.unknown import UNKNOWN_WORD, Unknown, is_unresolved
from kthena_components.core.values.values_in_text import (
    merged,
    parsed,
    read_yaml_text,
    steps_of,
    typed,
    with_value,
)

RELEASE: GroupKind = ("helm.sh", "Release")
"""How policies name Pulumi's Release, whose type is kubernetes:helm.sh/v3:Release."""
HELM_RELEASE: GroupKind = ("helm.toolkit.fluxcd.io", "HelmRelease")
HELM_CHART: GroupKind = ("helm.cattle.io", "HelmChart")
"""A release by the controller of K3s and RKE2."""
APPLICATION: GroupKind = ("argoproj.io", "Application")
VLLM_STACK = "vllm-stack"
MODELSERVICE = "llm-d-modelservice"
_GIT_PATHS = {VLLM_STACK: ("vllm-project/production-stack", "helm")}
"""The repository and the folder of a chart that the folder does not name."""
_CHARTS = (VLLM_STACK, MODELSERVICE)
_RELEASE_OF = regex(r"(?:[a-z-]{1,40}-)?[v=]?([0-9]{1,4})\.([0-9]{1,4})\.([0-9]{1,4})")
_COMMA = regex(r"(?<!\\)((?:\\\\)*),")
"""A comma that no backslash escapes."""
BESIDE = Unknown("the models may be in other values")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartValues:
    """The values of one release of a chart."""

    chart: str
    path: str
    values: object
    beside: bool
    """Whether there are values elsewhere, too."""
    namespace: object
    version: Version | Unknown | None
    """Version of the chart. None: not stated, so the newest."""
    overridden: Mapping[str, str] = field(default_factory=dict)
    """Values that a parameter of Argo CD or `set` of K3s sets, with its path."""


def values_of(found: Object) -> Iterator[ChartValues]:
    """Find the values of the charts, in each place where its tool keeps them."""
    body, kind, spec = found.body, found.group_kind, mapping(found.body.get("spec"))
    if kind == RELEASE and (chart := _chart_of(body.get("chart"))):
        yield ChartValues(
            chart=chart,
            path="values",
            values=body.get("values"),
            beside=bool(body.get("valueYamlFiles")),
            namespace=body.get("namespace"),
            version=_version(body.get("version"), body.get("chart")),
        )
    elif kind == HELM_RELEASE and (chart := _flux_chart(spec)):
        yield ChartValues(
            chart=chart,
            path="spec.values",
            values=spec.get("values"),
            beside=bool(spec.get("valuesFrom")),
            namespace=spec.get("targetNamespace") or found.metadata.get("namespace"),
            version=_version(inside(inside(spec.get("chart"), "spec"), "version")),
        )
    elif kind == HELM_CHART and (chart := _chart_of(spec.get("chart"))):
        yield _k3s(chart, spec, found.metadata.get("namespace"))
    elif kind == APPLICATION:
        sources = [("spec.source", spec.get("source"))]
        sources += [(f"spec.sources[{i}]", v) for i, v in enumerate(sequence(spec.get("sources")))]
        goes = mapping(spec.get("destination")).get("namespace")
        for at, source in sources:
            if chart := _argo_chart(mapping(source)):
                yield _argo(chart, mapping(source), f"{at}.helm", goes)


def _chart_of(value: object) -> str:
    """Return which chart a name, a path or a URL is; empty for another one."""
    if not isinstance(value, str) or is_unresolved(value):
        return ""
    last = value.rstrip("/").rpartition("/")[2].partition(":")[0]
    packed = last.endswith(".tgz")
    return next((c for c in _CHARTS if last == c or (packed and last.startswith(f"{c}-"))), "")


def _k3s(chart: str, spec: Mapping[str, Any], namespace: object) -> ChartValues:
    """Read the values of a HelmChart: `set` overrides `values`, which overrides `valuesContent`.

    A comma in `set` separates no items: what is in braces is one.
    Source: k3s-io/helm-controller v0.17.9 pkg/apis/helm.cattle.io/v1/types.go, and args and
    escapeComma in pkg/controllers/chart/chart.go.
    """
    stated, key = spec.get("values"), "values"
    if (content := read_yaml_text(spec.get("valuesContent"), "valuesContent")) is not None:
        key = "values" if stated else "valuesContent"
        stated = content if stated is None else merged(content, stated)
    beside = bool(spec.get("valuesSecrets"))
    parameters = (
        (f"spec.set.{name}", name, _set_value(value))
        for name, value in sorted(mapping(spec.get("set")).items())
    )
    values, overridden = _with_parameters(stated, parameters, beside=beside)
    return ChartValues(
        chart=chart,
        path=f"spec.{key}",
        values=values,
        beside=beside,
        namespace=spec.get("targetNamespace") or namespace,
        version=_version(spec.get("version"), spec.get("chart")),
        overridden=overridden,
    )


def _set_value(value: object) -> Any:
    """Read a value of `set`. The controller writes a backslash before each comma, also in a list.

    Only numbers, true, false and null are not texts. Source: args, typedVal and escapeComma there.
    """
    word = typed(value) if isinstance(value, str) else value
    if not isinstance(value, str) or word is None or isinstance(word, bool):
        return word
    return parsed(_COMMA.sub(r"\1\,", value), as_text=True)


def _with_parameters(
    values: object, parameters: Iterable[tuple[str, object, object]], *, beside: bool
) -> tuple[object, dict[str, str]]:
    """Set values by parameters, and return the path of the parameter for each of them.

    Args:
        values: The values, which are not known any more if a parameter cannot be read.
        parameters: The path, the name and the value of each.
        beside: Whether there are values elsewhere, which may have the list that a name refers to.
    """
    overridden: dict[str, str] = {}
    for at, name, value in parameters:
        steps = steps_of(name)
        if isinstance(steps, Unknown):
            return steps, overridden
        if beside and not _has_lists(values, steps):
            return BESIDE, overridden
        values = with_value(values, steps, value)
        overridden[str(name)] = at
    return values, overridden


def _flux_chart(spec: Mapping[str, Any]) -> str:
    named = mapping(mapping(spec.get("chart")).get("spec")).get("chart")
    return _chart_of(named) or _chart_of(mapping(spec.get("chartRef")).get("name"))


def _argo_chart(source: Mapping[str, Any]) -> str:
    repository, place = source.get("repoURL"), source.get("path")
    if isinstance(repository, str) and isinstance(place, str):
        for chart, (own, folder) in _GIT_PATHS.items():
            if repository.removesuffix(".git").endswith(own) and place.strip("./") == folder:
                return chart
    return _chart_of(source.get("chart")) or _chart_of(place)


def _version(stated: object, chart: object = None) -> Version | Unknown | None:
    """Read the chart's version, which a packed `chart` has in its name; a range is unknown."""
    if stated is None and isinstance(chart, str) and chart.endswith(".tgz"):
        stated = chart.rpartition("/")[2].removesuffix(".tgz")
    if stated is None:
        return None
    found = _RELEASE_OF.fullmatch(stated.strip()) if isinstance(stated, str) else None
    if found is not None:
        return tuple(map(int, found.groups()))
    return unknown_in(stated) or Unknown(f"{display(stated)} may be several releases of the chart")


def _argo(chart: str, source: Mapping[str, Any], path: str, namespace: object) -> ChartValues:
    """Read Argo CD's values: an object overrides a string, and parameters override both."""
    helm, version = mapping(source.get("helm")), source.get("targetRevision")
    if version in ("", "HEAD", "main"):
        version = None
    values, key = helm.get("valuesObject"), "valuesObject"
    if values is None:
        values, key = read_yaml_text(helm.get("values"), "values"), "values"
    beside = bool(helm.get("valueFiles"))
    parameters = ((f"{path}.{at}.value", name, value) for at, name, value in _parameters(helm))
    values, overridden = _with_parameters(values, parameters, beside=beside)
    return ChartValues(
        chart=chart,
        path=f"{path}.{key}",
        values=values,
        beside=beside,
        namespace=namespace,
        version=_version(version),
        overridden=overridden,
    )


def _parameters(helm: Mapping[str, Any]) -> Iterator[tuple[str, object, object]]:
    """List the path, the name and the value of each parameter, in the order of Helm's options.

    Helm applies --set, then --set-string, then --set-file. Source: helm v3 pkg/cli/values;
    argo-cd util/helm/cmd.go (template).
    """
    stated = [
        (f"parameters[{i}]", mapping(v)) for i, v in enumerate(sequence(helm.get("parameters")))
    ]
    for forced in (False, True):
        for at, item in stated:
            if (item.get("forceString") is True) is forced:
                yield at, item.get("name"), parsed(item.get("value", ""), as_text=forced)
    for i, item in enumerate(sequence(helm.get("fileParameters"))):
        yield f"fileParameters[{i}]", mapping(item).get("name"), UNKNOWN_WORD


def _has_lists(values: object, steps: tuple[str | int, ...]) -> bool:
    """Return whether the lists on the way to a value are in these values, with its items."""
    lists = [at for at, step in enumerate(steps) if isinstance(step, int)]
    for step in steps[: lists[-1] + 1] if lists else ():
        if isinstance(step, int):
            if not isinstance(values, list | tuple) or step >= len(values):
                return False
            values = values[step]
        else:
            values = mapping(values).get(step)
    return True


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
    """Values that a parameter of Argo CD or `set` of K3s sets, with its path."""

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
    """Read one release of vllm-stack; a chart beside it may have its models."""
    spec, models = mapping(mapping(given.values).get("servingEngineSpec")), _models(given)
    silent = spec.get("enableEngine") is False or spec.get("modelSpec") is None
    return Release(
        path=given.path,
        models=BESIDE if models == () and given.beside and silent else models,
        scheduler=spec.get("schedulerName"),
        namespace=given.namespace if is_name(given.namespace) else "",
    )


def _models(given: ChartValues) -> tuple[Model, ...] | Unknown:
    """Return the enabled models of a chart's values."""
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
