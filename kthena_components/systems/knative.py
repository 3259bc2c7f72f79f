"""Knative Serving: a Service, and the Configuration that it creates.

Each is one pod template, whose number of pods follows the requests.
Source: knative/serving v1.19 pkg/apis/serving/v1/revision_types.go, pkg/apis/autoscaling.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.ports import BY_KNATIVE
from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.facts.workload import with_default_probe
from kthena_components.core.findings import Finding, refuse
from kthena_components.core.objects.object import Object, PodSet, pod_set
from kthena_components.core.objects.retained_fields import kept_pods
from kthena_components.core.remedies import write
from kthena_components.core.values.display import INT32, display
from kthena_components.core.values.read import mapping, pairs, require_known, sequence
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import MaybeInt, Unknown
from kthena_components.systems.kubernetes.facts import facts_of_copies
from kthena_components.systems.kubernetes.rules.autoscalers_and_coscheduling_pods import in_order
from kthena_components.systems.system import PRODUCTION, Kind, Restart, System, as_it_is

_SCALED = Unknown("Knative decides how many pods there are")
_GROUP = "autoscaling.knative.dev"
_BOUNDS = (("min-scale", "minScale"), ("max-scale", "maxScale"))
"""Annotations of a template, with their former names."""
_OF_KNATIVE = frozenset(
    {
        *("containerConcurrency", "timeoutSeconds"),
        *("responseStartTimeoutSeconds", "idleTimeoutSeconds"),
    }
)
"""Fields of a revision beside those of a pod."""
_CONTAINER = "user-container"
"""Name that Knative gives a container without one."""


def pods(found: Object) -> Iterator[PodSet]:
    """Yield the pods of a Knative Service. Their number is known if its bounds are equal."""
    template = found.spec.get("template")
    made = pod_set(found, "spec.template", template, _number(template))
    spec = {key: item for key, item in made.spec.items() if key not in _OF_KNATIVE}
    if isinstance(spec.get("containers"), list):
        spec["containers"] = [
            {"name": _CONTAINER, **one} if isinstance(one, Mapping) else one
            for one in spec["containers"]
        ]
    own = {k: v for k, v in made.annotations.items() if not str(k).startswith(_GROUP)}
    yield replace(made, spec=spec, annotations=own)


def facts(found: Object) -> ServingFacts:
    """Return the facts of a Knative Service, with as many engines as pods."""
    made, number = facts_of_copies(found), _number(found.spec.get("template"))
    spec = mapping(mapping(found.spec.get("template")).get("spec"))
    engines = (
        replace(one, replicas=number, entry=_with_served_port(one.entry, spec))
        for one in made.engines
    )
    return replace(made, engines=tuple(engines))


def _with_served_port(pod: PodFacts, spec: Mapping[str, Any]) -> PodFacts:
    """Add what Knative asks: the port of the container that has one, else 8080 of the only one.

    It waits until something listens there, and sends requests there.
    Source: knative/serving pkg/reconciler/revision/resources/deploy.go (makePodSpec, getUserPort).
    """
    own, listed = pod.own, [mapping(each) for each in sequence(spec.get("containers"))]
    served = [each for each in listed if each.get("ports")] if len(listed) > 1 else listed
    if own is None or len(served) != 1 or listed.index(served[0]) != _index(own.path):
        return pod
    return with_default_probe(pod, served[0].get("ports"), BY_KNATIVE)


def _index(path: str) -> int:
    """Return the number of a container, from its path."""
    return int(path.rpartition("[")[2].rstrip("]") or -1) if path.endswith("]") else -1


def _number(template: object) -> MaybeInt:
    (_, low), (_, high) = _bounds(template)
    fixed = isinstance(low, str) and low == high and low.isdecimal() and len(low) < len(str(2**31))
    return int(low) if fixed and isinstance(low, str) else _SCALED


def _bounds(template: object) -> list[tuple[str, Any]]:
    """Return the annotations with the least and the most pods: their names and values."""
    annotations = mapping(mapping(mapping(template).get("metadata")).get("annotations"))
    found = []
    for names in _BOUNDS:
        name = next((n for n in names if annotations.get(f"{_GROUP}/{n}") is not None), names[0])
        found.append((f"{_GROUP}/{name}", annotations.get(f"{_GROUP}/{name}")))
    return found


_ANNOTATIONS = "spec.template.metadata.annotations"
_COUNT = regex(r"\+?[0-9]{1,19}|-0{1,19}")


def knative_scale(found: Object) -> Iterator[Finding]:
    """min-scale and max-scale are at least 0, in order, and annotations of the template.

    min-scale is at most max-scale, which is unlimited if it is 0. Annotations of
    autoscaling.knative.dev stand at the template, and not at the object itself.

    Pass: min-scale "1", max-scale "4"; min-scale "2", max-scale "0".
    Fail: min-scale "4", max-scale "2"; min-scale "-1"; min-scale in metadata.annotations.
    Level: mandatory. Knative's webhook rejects it.
    Source: knative/serving v1.19 pkg/apis/autoscaling/annotation_validation.go validateMinMaxScale;
    pkg/apis/serving/metadata_validation.go ValidateHasNoAutoscalingAnnotation.
    """
    for key, _ in pairs(found.metadata.get("annotations")):
        if isinstance(key, str) and key.startswith(_GROUP):
            seen = "is not an annotation of the template, and Knative's webhook rejects the object"
            remedy = f"write it below {_ANNOTATIONS}"
            yield refuse(f"metadata.annotations.{key}", seen, remedy)
    bounds = [(f"{_ANNOTATIONS}.{name}", v) for name, v in _bounds(found.spec.get("template"))]
    numbers = [0, 0]
    for place, (path, value) in enumerate(bounds):
        require_known(path, value)
        if isinstance(value, str) and _COUNT.fullmatch(value) and int(value) < INT32:
            numbers[place] = int(value)
        elif value is not None:
            seen = f"is {display(value)}, but must be a number of pods in quotes, from '0' on"
            yield refuse(path, seen, write(str(max(1, numbers[0]))))
            return
    if numbers[1]:
        yield from in_order(bounds[0][0], numbers[0], bounds[1][0], numbers[1], str)


SYSTEM = System(
    name="knative",
    title="Knative Serving",
    kinds=tuple(
        Kind(
            group="serving.knative.dev",
            name=name,
            view=as_it_is,
            facts=facts,
            pods=pods,
            rules=(knative_scale,),
            kept=kept_pods,
            restarts=Restart(
                paths=r"spec\.template\b",
                how="a new revision starts beside the old one, which then ends",
            ),
            number_in="autoscaling.knative.dev/min-scale and max-scale in the annotations of its "
            "template",
            unscalable="Knative scales by itself",
            without={
                "templates": "Knative fills in what Kubernetes asks for, such as names of "
                "containers",
                PRODUCTION: "Knative gives its pods probes and time to drain",
            },
        )
        for name in ("Service", "Configuration")
    ),
)
