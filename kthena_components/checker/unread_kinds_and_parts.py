"""Reports what no rule reads: engines and accelerators of unknown kinds, and partial objects."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kthena_components.checker.pod_schema import places_of
from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Finding, Level, join_path, not_checked
from kthena_components.core.objects.engine_detection import Sign, documents_in, signs_in, sizes_in
from kthena_components.core.objects.object import Object
from kthena_components.core.values.display import display, key_text
from kthena_components.core.values.read import group_kind, is_map, mapping, pairs, sequence, spec_of
from kthena_components.core.values.unknown import Unknown, is_unresolved
from kthena_components.systems import INDEX, find_kind
from kthena_components.systems.system import Body, Kind

_RULE = "kind-read"
PART_READ = f"the rule {_RULE}"
"""Name of `part_read` in a report of its failure."""
_CONFIG_MAP = ("", "ConfigMap")
_NO_WORKLOADS = frozenset({("kustomize.config.k8s.io", "Kustomization")})
"""Kinds with commands that create no pods."""
_QUOTE = "'"
_ENDS = ("", ".", "[")


def is_foreign(body: Body) -> bool:
    """Return whether an object of this group and kind may create pods that no rule reads."""
    known = group_kind(body)
    return known[1] != "" and known not in _NO_WORKLOADS and find_kind(known) is None


def kind_read(found: Object) -> Iterator[Finding]:
    """An object that starts an engine or asks for several GPUs must be of a kind that rules read.

    Otherwise a wrong TP × PP in it is not found. Reported once for each object, with its kind and
    the first such place. In an object of a kind that rules read, this reports a part that they do
    not read, such as the values of another Helm chart. YAML and JSON in a field are read as well.
    Kustomizations and CustomResourceDefinitions create no pods, and are never reported. A ConfigMap
    is reported for whole objects in it, and for values such as `tensorParallelSize: 8`: a script is
    read with the pod that mounts it.

    A kind that differs from one that is read only in case is rejected by the API server, so that is
    mandatory.

    Pass: a Deployment; an object of any kind that starts no engine and requests 1 GPU.
    Fail: a PyTorchJob whose container requests 8 nvidia.com/gpu; the kind Modelserving.
    Level: not checked; mandatory for a kind that differs only in case.
    Source: docs/kinds.md lists the kinds that are read; names of kinds are compared as they are in
    k8s.io/apimachinery pkg/api/meta/restmapper.go.
    """
    if is_foreign(found.body):
        meant = meant_kind(found.body)
        if meant is not None:
            group, name = group_kind(found.body)
            seen = (
                f"is {name}, but {group} has {meant}, and the API server rejects any other spelling"
            )
            yield Finding(path=found.at("kind"), seen=seen, remedy=f"write {meant}", rule=_RULE)
            return
        sign = next(_signs(found.body), None)
        if sign is not None:
            version, name = display(found.body.get("apiVersion")), key_text(found.kind)
            kind = f"{name} ({version.strip(_QUOTE)})"
            yield _skip(found, sign, f"no rule reads objects of kind {kind}; this one {sign.what}")


def meant_kind(body: Body) -> str | None:
    """Return the kind that is read and differs from this one in upper and lower case only."""
    group, name = group_kind(body)
    known = (kind for each, kind in INDEX if group and each == group)
    return next((kind for kind in known if kind.lower() == name.lower()), None)


def _signs(body: Body) -> Iterator[Sign]:
    """List signs of engines in an object, also in documents inside of a ConfigMap."""
    if group_kind(body) != _CONFIG_MAP:
        yield from signs_in(body)
        return
    for key, text in pairs(body.get("data")):
        for document in documents_in(text) if isinstance(text, str) else ():
            is_object = "apiVersion" in document and "kind" in document
            signs = signs_in(document) if is_object else _values_in(document)
            path = join_path("data", key_text(key))
            yield from (replace(sign, path=path) for sign in signs)


def _values_in(document: Body) -> Iterator[Sign]:
    """Yield the sizes at the top of a chart's values. An engine's own options have no capitals."""
    return (sign for sign in sizes_in(document) if sign.path != sign.path.lower())


def part_read(
    kind: Kind[Any], found: Object, view: Any, facts: ServingFacts | None, said: Sequence[Finding]
) -> Iterator[Finding]:
    """Report the first engine or accelerators in a part of an object that no rule reads.

    Args:
        facts: The facts of its engines.
        said: Its other findings. They may explain why no engine was found.
    """
    empty = facts is not None and not facts.engines
    if empty and any(finding.level is not Level.ADVISORY for finding in said):
        return
    if kind.completes and found.context.referenced.is_named(found.body):
        return  # it is read with the object that refers to it
    places = _Places(found, () if empty else _places(kind, found, view, facts))
    # Where anything is read, the reader of the kind knows its fields.
    asked = (s for s in signs_in(found.body, places) if not (s.by_field and places))
    sign = next((sign for sign in asked if not places.meet(found.at(sign.path))), None)
    if sign is not None:
        part = "an engine in the object" if empty else "this part of the object"
        yield _skip(found, sign, f"no rule reads {part}, which {sign.what}")


def _skip(found: Object, sign: Sign, because: str) -> Finding:
    return not_checked(found.at(sign.path), Unknown(because), _RULE)


def _places(kind: Kind[Any], found: Object, view: Any, facts: ServingFacts | None) -> Iterator[str]:
    """Yield the places that rules read, in the caller's coordinates."""
    for engine in facts.engines if facts is not None else ():
        for pod in filter(None, (engine.entry, engine.worker)):
            yield from (pod.command_path, pod.gpus_path, *(own.path for own in pod.others))
            yield from (device.path for device in pod.devices)
            if pod.own is not None:
                yield pod.own.path
    for place in kind.templates:
        yield from (found.at(path) for path, _ in places_of(found.body, place))
    for pods in kind.pods(view) if kind.pods is not None else ():
        yield from (found.at(pods.path), pods.at("spec.containers[0]"))


class _Places:
    """The places that rules read."""

    def __init__(self, found: Object, places: Iterable[str]) -> None:
        self._object = found
        self._known = frozenset(places)

    def __contains__(self, path: object) -> bool:
        """Return whether a path is one of these places. It may miss some: it only searches fast."""
        return self._object.at(str(path)) in self._known

    def __bool__(self) -> bool:
        return bool(self._known)

    def meet(self, path: str) -> bool:
        """Return whether a path contains one of these places, or is inside one."""
        return any(_meets(path, place) for place in self._known)


def _meets(one: str, other: str) -> bool:
    """Return whether one of two paths is inside the other."""
    short, long = (one, other) if len(one) <= len(other) else (other, one)
    return long.startswith(short) and (not short or long[len(short) : len(short) + 1] in _ENDS)


_SELECTING = ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet")
"""Kinds that the API server rejects without a selector."""
_PLAIN = frozenset({str, int, bool, float, type(None)})
"""Types of values without fields."""
_EMPTY = "its spec is empty"
_FRAME = frozenset({"apiVersion", "kind", "metadata", "spec", "status"})


def partial_object(body: Mapping[str, Any]) -> Finding | None:
    """Return a finding for a part of an object; None for a complete object.

    In a part, no pod template has containers, or a workload has no selector and a container has no
    image. The API server would reject both. A field such as `$patch` is for another program, and a
    scaffold of a custom resource has an empty spec to be filled in.
    """
    kind = find_kind(group_kind(body))
    if kind is None:
        return None
    order = _order(body) if _has_order(body) else None
    why = f"the field '{order}' is for another program" if order else _part(kind, body)
    return _partial(why) if why else None


def scaffold(body: Mapping[str, Any]) -> Finding | None:
    """Return a finding for an object whose spec is still to be filled in; None for others."""
    return _partial(_EMPTY) if find_kind(group_kind(body)) and _is_scaffold(body) else None


def _is_scaffold(body: Mapping[str, Any]) -> bool:
    return "spec" in body and body["spec"] is None and _FRAME.issuperset(body)


def _part(kind: Kind[Any], body: Mapping[str, Any]) -> str:
    """Explain why an object is not a whole one, by its spec and pod templates; empty if it is."""
    if _is_scaffold(body):
        return _EMPTY
    places = (each for place in kind.templates for _, each in places_of(body, place))
    found = [spec for each in places if (spec := _spec(each))]
    if not found or any(map(is_unresolved, found)):
        return ""
    listed = [mapping(spec).get("containers") for spec in found]
    if not any(listed):
        return "no pod template in it has containers"
    images = [_image(container) for one in listed for container in sequence(one)]
    if {} in images:
        return "the image of a container is {}"
    without = body.get("kind") in _SELECTING and "selector" not in spec_of(body)
    return "it has no selector, and a container has no image" if without and None in images else ""


def _image(container: object) -> object:
    return container if is_unresolved(container) else mapping(container).get("image")


def _has_order(body: Mapping[str, Any]) -> bool:
    """Return whether any field begins with `$`: quicker than to find the first one."""
    todo: list[Any] = [body]
    for part in todo:
        if type(part) is list:
            todo += [item for item in part if type(item) not in _PLAIN]
            continue
        for key, item in part.items() if type(part) is dict or is_map(part) else ():
            if type(key) is str and key[:1] == "$":
                return True
            if type(item) not in _PLAIN:
                todo.append(item)
    return False


def _order(value: object) -> str | None:
    """Return a field that no API has: one that begins with `$`."""
    if isinstance(value, list):
        return next(filter(None, map(_order, value)), None)
    if not isinstance(value, Mapping):
        return None
    own = next((key for key in value if isinstance(key, str) and key.startswith("$")), None)
    return own or next(filter(None, map(_order, value.values())), None)


def _spec(template: object) -> Any:
    """Return the spec of a pod template, or the template if it has none; None if it is empty."""
    return mapping(template).get("spec") or mapping(template) or None


def _partial(why: str) -> Finding:
    seen = f"not checked, because it looks like a patch or a part of a template: {why}"
    return Finding(path="", seen=seen, remedy="", rule="partial-object", level=Level.UNKNOWN)
