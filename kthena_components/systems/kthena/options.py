"""`backend_options` of the kthena backend, with its autoscaling, and how the CRDs spell them.

Source: Kthena v0.3.0 to v1.0.0 pkg/apis/workload/v1alpha1 and pkg/model-serving-controller/plugins.

The names of the fields of autoscaling are those of the CRD. Source: Kthena v1.0.0
pkg/apis/workload/v1alpha1/autoscalingpolicy_types.go and pkg/autoscaler; for earlier versions
v0.4.0 pkg/apis/workload/v1alpha1/autoscalingpolicybinding_types.go.
"""

from collections.abc import Iterator
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from kthena_components.core.findings import Finding, nearest
from kthena_components.core.plan.serving_plan import ServingPlan
from kthena_components.core.remedies import write
from kthena_components.core.spec.fields import (
    LabelKey,
    LabelValue,
    Port,
    Quantity,
    Spec,
    Text,
    Word,
)
from kthena_components.core.values.quantity import parse_quantity, read_duration
from kthena_components.core.values.unknown import is_unresolved
from kthena_components.systems.kthena.options_router import ModelRouteSpec, ModelServerSpec

_LONGEST = 1800


def _duration(value: str) -> str:
    seconds = read_duration(value)
    if seconds is None or not 0 <= seconds <= _LONGEST:
        raise ValueError("a duration from 0s to 30m, such as 15s or 1m30s")
    return value


def _url(value: str) -> str:
    if not is_unresolved(value) and not value.startswith(("http://", "https://")):
        raise ValueError("an address, such as http://prometheus.monitoring:9090")
    return value


def _positive(value: str) -> str:
    if (parse_quantity(value) or Decimal(0)) <= 0:
        raise ValueError("more than 0")
    return value


Period = Annotated[str, AfterValidator(_duration)]
Target = Annotated[Quantity, AfterValidator(_positive)]
Least = Annotated[int, Field(ge=0, le=1_000_000)]
Most = Annotated[int, Field(ge=1, le=1_000_000)]
Percent = Annotated[int, Field(ge=0, le=1000)]


class SelectPolicy(StrEnum):
    """Whether a step keeps to the larger of two limits, or to the smaller."""

    OR = "Or"
    AND = "And"


class StablePolicySpec(Spec):
    """How fast the number of replicas changes."""

    instances: Annotated[int, Field(ge=0, le=2**31 - 1)] = 1
    """Most replicas of a step."""
    percent: Percent = 100
    """Most replicas of a step, in percent of the current ones."""
    period: Period = "15s"
    """How long a step takes: 0s to 30m."""
    select_policy: Annotated[SelectPolicy, Field(strict=False)] = SelectPolicy.OR
    stabilization_window: Period | None = None
    """How long a recommendation must hold: 0s to 30m. Default: 0s to add replicas, 5m to remove
    them.
    """


class PanicPolicySpec(Spec):
    """How replicas are added in a sudden surge."""

    period: Period
    """How long a step takes: 0s to 30m."""
    percent: Percent | None = None
    """Most replicas of a step, in percent of the current ones. Default 1000."""
    panic_threshold_percent: Annotated[int, Field(ge=110, le=1000)] | None = None
    """Percentage of the current replicas from which on a recommendation is a surge. Default 200."""
    panic_mode_hold: Period | None = None
    """How long a surge lasts at least. Default 60s."""


class ScaleUpSpec(Spec):
    """How replicas are added."""

    stable_policy: StablePolicySpec | None = None
    panic_policy: PanicPolicySpec | None = None


class BehaviorSpec(Spec):
    """How replicas are added and removed. Default: 4 or 100% more each minute, and 100% less."""

    scale_up: ScaleUpSpec | None = None
    scale_down: StablePolicySpec | None = None


class MetricSpec(Spec):
    """A metric, and the value per replica that the autoscaler aims at."""

    name: Text
    target_value: Target
    """A quantity above 0, in quotes: "5", "500m"."""


class LabelSelectorSpec(Spec):
    """Labels of pods."""

    match_labels: dict[LabelKey, LabelValue] = Field(default_factory=dict)


class PodSourceSpec(Spec):
    """A metric that the entry pods of the serving show."""

    name: Text | None = None
    """Its name there, such as vllm:num_requests_waiting. Default: the name of the metric."""
    uri: Annotated[str, Field(pattern="^/")] = "/metrics"
    port: Port | None = None
    """Default: the port of the engine, if all scaled engines have the same."""
    label_selector: LabelSelectorSpec | None = None
    """Further labels of the pods. Default for a role: the role."""


class PrometheusSourceSpec(Spec):
    """A metric that a Prometheus server calculates."""

    server_url: Annotated[str, AfterValidator(_url)]
    query: Text
    """PromQL that returns one number: the sum over all replicas."""


class MetricSourceSpec(Spec):
    """Where a metric is read: from pods or from Prometheus."""

    pod: PodSourceSpec | None = None
    prometheus: PrometheusSourceSpec | None = None


class RoleScalingSpec(Spec):
    """How one role is scaled, in each ServingGroup."""

    min_replicas: Least
    max_replicas: Most
    metrics: list[MetricSpec] = Field(default_factory=list)
    """Default: those of the serving."""
    metric_sources: dict[Text, MetricSourceSpec] = Field(default_factory=dict)
    """By name of the metric. Default: those of the serving."""


class RatioSpec(Spec):
    """Replicas of one role in relation to another."""

    numerator_role: Word
    denominator_role: Word
    min_ratio: Quantity
    max_ratio: Quantity


class AutoscalingSpec(Spec):
    """How Kthena's autoscaler scales the ServingGroups, or one or two roles of each of them."""

    min_replicas: Least | None = None
    """Fewest ServingGroups. Together with max_replicas, or else `roles` is needed."""
    max_replicas: Most | None = None
    roles: dict[str, RoleScalingSpec] = Field(default_factory=dict)
    """By role: one or two. Default: none, and whole ServingGroups are scaled."""
    metrics: list[MetricSpec] = Field(default_factory=list)
    metric_sources: dict[Text, MetricSourceSpec] = Field(default_factory=dict)
    """By name of the metric."""
    tolerance_percent: Annotated[int, Field(ge=0, le=100)] = 10
    """Deviation from the target at which nothing is scaled."""
    behavior: BehaviorSpec | None = None
    ratio_constraint: RatioSpec | None = None
    """Default: none. Needs two roles, and Kthena 1.0."""


def metrics_of(scaling: AutoscalingSpec, role: RoleScalingSpec | None) -> list[MetricSpec]:
    """Return the metrics of the serving, or those of a role that needs any."""
    if role is None:
        return scaling.metrics
    return [] if role.min_replicas == role.max_replicas else role.metrics or scaling.metrics


def sources_of(
    scaling: AutoscalingSpec, role: RoleScalingSpec | None
) -> dict[str, MetricSourceSpec]:
    """Return where the metrics of the serving or of a role are read."""
    own = scaling.metric_sources if role is None else role.metric_sources
    names = {metric.name for metric in metrics_of(scaling, role)}
    common = {name: scaling.metric_sources[name] for name in names & scaling.metric_sources.keys()}
    return {name: source for name, source in sorted({**common, **own}.items()) if name in names}


def units(scaling: AutoscalingSpec) -> Iterator[tuple[str, str | None, RoleScalingSpec | None]]:
    """List what is scaled: its path in the options, and its role."""
    if not scaling.roles:
        yield "autoscaling", None, None
    for name, role in scaling.roles.items():
        yield f"autoscaling.roles.{name}", name, role


class PluginTarget(StrEnum):
    """The pods of an engine to which a plugin is applied."""

    ALL = "All"
    ENTRY = "Entry"
    WORKER = "Worker"


class PluginScopeSpec(Spec):
    """Where a plugin is applied."""

    roles: list[Text] = Field(default_factory=list)
    """Default: all roles."""
    target: Annotated[PluginTarget, Field(strict=False)] = PluginTarget.ALL


class PluginSpec(Spec):
    """A plugin that Kthena's controller runs when it creates a pod, and when one is ready."""

    name: Text
    """As the controller registers it: pods of an unknown one are not created."""
    config: dict[str, Any] | None = None
    """Read by the plugin. Default: none."""
    scope: PluginScopeSpec | None = None
    """Default: all pods."""


class KthenaOptions(Spec):
    """Fields of ModelServings that no other backend has."""

    plugins: list[PluginSpec] = Field(default_factory=list)
    """Run in this order. Needs Kthena 0.3. Default: none."""
    autoscaling: AutoscalingSpec | None = None
    """What Kthena's autoscaler scales. Needs Kthena 0.2. Default: nothing."""
    model_server: ModelServerSpec | None = None
    """The pods of the serving, for Kthena's router. Default: none."""
    model_route: ModelRouteSpec | None = None
    """The names of models in requests to Kthena's router. Default: none."""


def options_of(plan: ServingPlan) -> KthenaOptions:
    """Return the options of a plan."""
    return plan.options if isinstance(plan.options, KthenaOptions) else KthenaOptions()


def render_plugins(plan: ServingPlan) -> list[dict[str, Any]]:
    """Write the plugins; BuiltIn is the only type."""
    return [
        {"type": "BuiltIn", **plugin.model_dump(mode="json", exclude_none=True, exclude_unset=True)}
        for plugin in options_of(plan).plugins
    ]


def refuse_plugins(plan: ServingPlan) -> Iterator[Finding]:
    """Report plugins of one name, and roles that the serving does not have."""
    known, seen = [role.name for role in plan.roles], dict[str, int]()
    for index, plugin in enumerate(options_of(plan).plugins):
        at = f"backend_options.plugins[{index}]"
        first = seen.setdefault(plugin.name, index)
        if first != index:
            yield wrong(
                f"{at}.name",
                f"is '{plugin.name}', already the name of plugins[{first}]",
                "remove one of them",
            )
        for place, role in enumerate(plugin.scope.roles if plugin.scope else ()):
            if role not in known:
                close = nearest(role, known)
                yield wrong(
                    f"{at}.scope.roles[{place}]",
                    f"is '{role}', but the roles are {', '.join(known)}, so the plugin would not "
                    "run there",
                    write(close) if close else "write the name of a role",
                )


def wrong(path: str, seen: str, remedy: str) -> Finding:
    """Report an option that does not fit."""
    return Finding(path=path, seen=seen, remedy=remedy, rule="backend-options")


_SPELLED = {"server_url": "serverURL"}


def render(value: object) -> Any:
    """Write an option without the fields that are not stated. Keys of maps stay as they are."""
    if isinstance(value, Spec):
        stated = {name: getattr(value, name) for name in type(value).model_fields}
        return {
            _name(field): render(one)
            for field, one in stated.items()
            if one is not None and one not in ({}, [])
        }
    if isinstance(value, dict):
        return {key: render(one) for key, one in value.items()}
    if isinstance(value, list):
        return [render(one) for one in value]
    return value.value if isinstance(value, Enum) else value


def _name(field: str) -> str:
    first, *others = field.rstrip("_").split("_")
    return _SPELLED.get(field) or first + "".join(map(str.capitalize, others))
