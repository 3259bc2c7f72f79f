"""`backend_options` of the kthena backend, and how the CRDs spell options.

Source: Kthena v0.3.0 to v1.0.0 pkg/apis/workload/v1alpha1 and pkg/model-serving-controller/plugins.
"""

from collections.abc import Iterator
from enum import Enum, StrEnum
from typing import Annotated, Any

from pydantic import Field

from kthena_components.core.findings import Finding, nearest
from kthena_components.core.plan.serving_plan import ServingPlan
from kthena_components.core.remedies import write
from kthena_components.core.spec.fields import Spec, Text
from kthena_components.systems.kthena.options_autoscaling import AutoscalingSpec
from kthena_components.systems.kthena.options_router import ModelRouteSpec, ModelServerSpec


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
        {
            "type": "BuiltIn",
            **plugin.model_dump(mode="json", exclude_none=True, exclude_unset=True),
        }
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
