"""Reads a Knative Service as one pod template, whose number of pods follows the requests.

Source: knative/serving v1.19 pkg/apis/serving/v1/revision_types.go, pkg/apis/autoscaling.
"""

from collections.abc import Iterator

from kthena_components.core.objects.object import Object, PodSet, pod_set
from kthena_components.core.values.read import mapping
from kthena_components.core.values.unknown import MaybeInt, Unknown

_SCALED = Unknown("Knative decides how many pods there are")
_GROUP = "autoscaling.knative.dev"
_BOUNDS = (("min-scale", "minScale"), ("max-scale", "maxScale"))
"""Annotations of a template, with their former names."""


def as_it_is(found: Object) -> Object:
    """Return the object. Its template has the same path as that of a Deployment."""
    return found


def pods(found: Object) -> Iterator[PodSet]:
    """Yield the pods of a Knative Service. Their number is known if its bounds are equal."""
    template = found.spec.get("template")
    yield pod_set(found, "spec.template", template, _number(template))


def _number(template: object) -> MaybeInt:
    annotations = mapping(mapping(mapping(template).get("metadata")).get("annotations"))
    low, high = (
        next((v for n in names if (v := annotations.get(f"{_GROUP}/{n}")) is not None), None)
        for names in _BOUNDS
    )
    fixed = isinstance(low, str) and low == high and low.isdecimal() and len(low) < len(str(2**31))
    return int(low) if fixed and isinstance(low, str) else _SCALED
