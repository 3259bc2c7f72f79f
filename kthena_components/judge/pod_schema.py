"""Checks the types of fields in pod templates, in any object."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from kthena_components.core.findings import Finding, Level, join_path
from kthena_components.core.schema.pod import ROOT_TYPE, shape_of
from kthena_components.core.schema.quick import judge_quickly
from kthena_components.core.values.unknown import is_unresolved

_RULE = "pod-schema"


def pod_schema(manifest: Mapping[str, Any], templates: Iterable[str]) -> Iterator[Finding]:
    """The fields of a pod template have the types that Kubernetes 1.34 requires.

    The rule checks templates in Kubernetes' own workloads, LeaderWorkerSets, KubeRay's clusters,
    RoleBasedGroups, ModelInfers and Volcano Jobs, but not patches; a ModelServing's schema covers
    its own templates. Fields that are not in the table are ignored: another server may know them.
    Values that are not known yet are skipped: rules that need them report it.

    Pass: env value "8", in quotes; cpu 0.5; livenessProbe.periodSeconds 10.
    Fail: env value 8, without quotes; livenessProbe 5; a container without a name; no containers.
    Level: mandatory. The API server, or the controller that creates the pods, rejects it.
    Source: the OpenAPI document of Kubernetes 1.34, io.k8s.api.core.v1.PodTemplateSpec.
    """
    shape = shape_of(ROOT_TYPE, by_crd=False)
    for place in templates:
        for path, template in places_of(manifest, place):
            if template is None:
                continue
            yield from _empty(template, path)
            for finding in judge_quickly(template, shape, path):
                if finding.level is not Level.UNKNOWN:
                    yield replace(finding, rule=_RULE)


def _empty(template: object, path: str) -> Iterator[Finding]:
    """Report pods without containers. A spec that lacks the field does not have the shape."""
    if not isinstance(template, Mapping) or any(map(is_unresolved, template.values())):
        return
    spec = template.get("spec")
    listed = spec.get("containers") if isinstance(spec, Mapping) else None
    if spec is None or listed in ([], ()):
        where, seen = join_path(path, "spec.containers"), "is empty"
        remedy = "write at least one container"
        yield Finding(path=where, seen=seen, remedy=remedy, rule=_RULE)


def places_of(manifest: Mapping[str, Any], place: str) -> Iterator[tuple[str, object]]:
    """Find the values at a place, each with its path."""
    yield from _at(manifest, place.split("."), "")


def _at(value: object, keys: list[str], path: str) -> Iterator[tuple[str, object]]:
    """Find the values at a path; `[]` after a key is each member of a list."""
    if keys in ([], [""]):
        yield path, value
        return
    key, *rest = keys
    if not isinstance(value, Mapping):
        return
    name = key.removesuffix("[]")
    inner, at = value.get(name), join_path(path, name)
    if name == key:
        yield from _at(inner, rest, at)
    elif isinstance(inner, list | tuple):
        for index, item in enumerate(inner):
            yield from _at(item, rest, f"{at}[{index}]")
