"""What nobody reads: engines and accelerators in objects, or in parts of them, without a reader."""

from collections.abc import Iterator, Sequence
from typing import Any

from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Finding, Level, not_checked
from kthena_components.core.objects.object import Object
from kthena_components.core.objects.signs import Sign, signs_in
from kthena_components.core.values.display import display, key_text
from kthena_components.core.values.read import group_kind
from kthena_components.core.values.unknown import Unknown
from kthena_components.judge.pod_schema import places_of
from kthena_components.systems import find_kind
from kthena_components.systems.contract import Body, Kind

_RULE = "kind-read"
PART_READ = f"the rule {_RULE}"
"""What fails if `part_read` does."""
_NO_WORKLOADS = frozenset({("", "ConfigMap"), ("kustomize.config.k8s.io", "Kustomization")})
"""Kinds that hold commands and make no pods. A ConfigMap is read with the pod that mounts it."""
_QUOTE = "'"
_ENDS = ("", ".", "[")


def is_foreign(body: Body) -> bool:
    """Tell by its group and kind whether an object may make pods that nobody here reads."""
    known = group_kind(body)
    return known[1] != "" and known not in _NO_WORKLOADS and find_kind(known) is None


def kind_read(found: Object) -> Iterator[Finding]:
    """An object that starts an engine or asks for several GPUs is of a kind that is read here.

    Otherwise no other rule sees it, and a wrong TP × PP passes. It is told once for each object,
    with its kind and its first such place. In an object of a kind that is read, it is told of a
    part that is not, such as the values of another Helm chart. ConfigMaps, Kustomizations and
    definitions of kinds make no pods, and are passed over.

    Pass: a Deployment; an object of any kind that starts no engine and asks for 1 GPU.
    Fail: a PyTorchJob whose container asks for 8 nvidia.com/gpu.
    Level: not checked.
    Source: docs/kinds.md lists the kinds that are read.
    """
    if is_foreign(found.body):
        sign = next(signs_in(found.body), None)
        if sign is not None:
            version, name = display(found.body.get("apiVersion")), key_text(found.kind)
            kind = f"{name} ({version.strip(_QUOTE)})"
            yield _told(found, sign, f"no rule reads objects of kind {kind}; this one {sign.what}")


def part_read(
    kind: Kind[Any],
    found: Object,
    view: Any,
    facts: ServingFacts | None,
    said: Sequence[Finding],
) -> Iterator[Finding]:
    """Tell of the first engine, or the first accelerators, in a part of an object without a reader.

    Args:
        kind: The kind of the object, which is known.
        found: The object.
        view: What was read of it.
        facts: The facts of its engines.
        said: What else is found in it. Where no engine is, that may be the reason.
    """
    empty = facts is not None and not facts.engines
    if empty and any(finding.level is not Level.ADVISORY for finding in said):
        return
    signs = list(signs_in(found.body))
    read = [] if empty or not signs else list(_places(kind, found, view, facts))
    # Where anything is read, the kind's own reader knows its fields.
    asked = (sign for sign in signs if not (sign.by_field and read))
    sign = next((s for s in asked if not any(_meets(found.at(s.path), at) for at in read)), None)
    if sign is not None:
        part = "an engine in the object" if empty else "this part of the object"
        yield _told(found, sign, f"no rule reads {part}, which {sign.what}")


def _told(found: Object, sign: Sign, because: str) -> Finding:
    return not_checked(found.at(sign.path), Unknown(because), _RULE)


def _places(kind: Kind[Any], found: Object, view: Any, facts: ServingFacts | None) -> Iterator[str]:
    """Give the places that are read, in the caller's coordinates."""
    for place in kind.templates:
        yield from (found.at(path) for path, _ in places_of(found.body, place))
    for pods in kind.pods(view) if kind.pods is not None else ():
        yield from (found.at(pods.path), pods.at("spec.containers[0]"))
    for engine in facts.engines if facts is not None else ():
        for pod in filter(None, (engine.entry, engine.worker)):
            yield from (pod.command_path, pod.gpus_path, *(own.path for own in pod.others))
            yield from (device.path for device in pod.devices)
            if pod.own is not None:
                yield pod.own.path


def _meets(one: str, other: str) -> bool:
    """Tell whether one of two paths leads to the other, or on from it."""
    short, long = sorted((one, other), key=len)
    return long.startswith(short) and (not short or long[len(short) : len(short) + 1] in _ENDS)
