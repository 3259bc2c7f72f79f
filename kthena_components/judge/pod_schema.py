"""Whether pod templates have the types of fields that Kubernetes gives them, in whatever object."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from kthena_components.core.findings import Finding, Level, join_path
from kthena_components.core.schema.language import Fields, judge_shape
from kthena_components.core.schema.pod import ROOT_TYPE, shape_of
from kthena_components.core.schema.quick import Test, quick_test

_RULE = "pod-schema"


def pod_schema(manifest: Mapping[str, Any], templates: Iterable[str]) -> Iterator[Finding]:
    """A pod template has the types of fields that Kubernetes 1.34 gives them.

    Templates in Kubernetes' own workloads, LeaderWorkerSets, KubeRay's clusters, RoleBasedGroups,
    ModelInfers and Volcano Jobs are judged; patches are not, and a ModelServing's schema says it of
    its own. Fields that are not in the table are passed over: another server may know them. So are
    values that are not known yet: rules that need one say so.

    Pass: env value "8", in quotes; cpu 0.5; livenessProbe.periodSeconds 10.
    Fail: env value 8, without quotes; livenessProbe 5; a container without a name.
    Level: mandatory. The API server, or the controller that makes the pods, refuses it.
    Source: the OpenAPI document of Kubernetes 1.34, io.k8s.api.core.v1.PodTemplateSpec.
    """
    for place in templates:
        for path, template in _at(manifest, place.split("."), ""):
            if template is None or _test()(template):
                continue
            for finding in judge_shape(template, _shape(), path):
                if finding.level is not Level.UNKNOWN:
                    yield replace(finding, rule=_RULE)


def _at(value: object, keys: list[str], path: str) -> Iterator[tuple[str, object]]:
    """Find what stands at a place; `[]` after a key is each member of a list."""
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


@cache
def _shape() -> Fields:
    return shape_of(ROOT_TYPE, by_crd=False)


@cache
def _test() -> Test:
    return quick_test(_shape())
