"""Reads AutoscalingPolicies, and the AutoscalingPolicyBindings that Kthena had before 1.0.

Both never raise. Source: volcano-sh/kthena v1.0.0 and v0.4.0 pkg/apis/workload/v1alpha1.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.objects.object import MODEL_SERVING, Object
from kthena_components.core.schema.versions import has_since
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import mapping, sequence, text
from kthena_components.core.values.unknown import MaybeText

POLICY, BINDING = (
    (MODEL_SERVING[0], kind) for kind in ("AutoscalingPolicy", "AutoscalingPolicyBinding")
)
ONE, SEVERAL, ROLES = "homogeneousTarget", "heterogeneousTarget", "disaggregatedTarget"
_FIRST = {"scalingConfiguration": ONE, "optimizerConfiguration": SEVERAL}
"""Names that Kthena 0.1 had for two of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaled:
    """What is scaled together: a whole ModelServing, or a role of one."""

    path: str
    """Path of minReplicas and maxReplicas, in the object."""
    fields: Mapping[str, Any]
    sources: Mapping[str, Any]
    """Where its metrics are read, by name of the metric."""
    ref: Mapping[str, Any]
    ref_path: str
    role: MaybeText | None = ""
    """Empty: the whole ModelServing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """An AutoscalingPolicy or an AutoscalingPolicyBinding."""

    object: Object
    has_targets: bool
    """Whether objects of this kind name targets in this release of Kthena."""
    metric_name: str
    """The field with the name of a metric."""
    targets: tuple[str, ...]
    """The fields of the spec that name targets and are there."""
    units: tuple[Scaled, ...]

    @property
    def spec(self) -> Mapping[str, Any]:
        """Its spec."""
        return self.object.spec


def read_policy(found: Object) -> Policy:
    """Read an object of either kind; its context states the version of Kthena."""
    joined = has_since(found.context.versions, "kthena", "1.0")
    binding = found.group_kind == BINDING
    known = (ONE, SEVERAL, *(_FIRST if binding else (ROLES,)))
    targets = tuple(key for key in known if found.spec.get(key) is not None)
    has_targets = binding or joined
    return Policy(
        object=found,
        has_targets=has_targets,
        metric_name="name" if joined else "metricName",
        targets=targets,
        units=tuple(unit for key in targets for unit in _units(found, key)) if has_targets else (),
    )


def _units(found: Object, key: str) -> Iterator[Scaled]:
    fields, path, shape = mapping(found.spec.get(key)), f"spec.{key}", _FIRST.get(key, key)
    if shape == ONE:
        yield _whole(path, fields)
    elif shape == SEVERAL:
        for index, param in enumerate(sequence(fields.get("params"))):
            yield _whole(f"{path}.params[{index}]", mapping(param))
    else:
        for name, role in _stated(fields.get("roles")).items():
            yield Scaled(
                path=f"{path}.roles.{name}",
                fields=mapping(role),
                sources=_stated(mapping(role).get("metricSources")),
                ref=mapping(fields.get("targetRef")),
                ref_path=f"{path}.targetRef",
                role=name if isinstance(name, str) else None,
            )


def _stated(values: object) -> dict[Any, Any]:
    """Return the entries of a map without null, which the API server drops."""
    return {key: value for key, value in mapping(values).items() if value is not None}


def _whole(path: str, fields: Mapping[str, Any]) -> Scaled:
    """Read a target. Before 1.0 it may name a role in `subTargets`."""
    target = mapping(fields.get("target"))
    return Scaled(
        path=path,
        fields=fields,
        sources=_stated(target.get("metricSources")),
        ref=mapping(target.get("targetRef")),
        ref_path=f"{path}.target.targetRef",
        role=text(mapping(target.get("subTargets")).get("name"), ""),
    )
