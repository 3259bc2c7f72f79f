"""Sorts the input of a conversion: the servings in it, and other objects, which are kept. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kthena_components import systems
from kthena_components.convert.lost_fields import Loss
from kthena_components.core import naming
from kthena_components.core.facts.context import Context
from kthena_components.core.objects.object import GroupKind, read_object
from kthena_components.core.plan.read_back import filled_map, namespaced
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import (
    group_kind,
    mapping,
    name_of,
    namespace_or_default,
    sequence,
)
from kthena_components.systems.emitter import Converter, Emitter, Pair
from kthena_components.systems.system import Body

SERVICE: GroupKind = ("", "Service")
Backend = tuple[str, Emitter, Converter]


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """An object with the other objects that its backend writes for the same serving."""

    source: Body
    whole: Body
    others: Mapping[int, Body]
    """The other objects, by index."""


def converters() -> Iterator[Backend]:
    """List the backends whose objects can be described."""
    for name in systems.EMITTERS:
        emitter = systems.find_emitter(name)
        if emitter is not None and emitter.converter is not None:
            yield name, emitter, emitter.converter


def kinds_to_read() -> list[GroupKind]:
    """List the kinds that `convert` reads from a cluster."""
    several = [d for _, _, d in converters() if d.gathered is None]
    found = (kind for d in several for kind in (*d.kinds, *d.beside))
    return list(dict.fromkeys((*found, SERVICE)))


def find_servings(objects: Sequence[Body]) -> dict[int, tuple[Merged, Backend]]:
    """Return the servings by the index of their first object."""
    found = {place: pair for backend in converters() for place, pair in _gathered(objects, backend)}
    taken = {index for merged, _ in found.values() for index in merged.others} | found.keys()
    rest = {index: body for index, body in enumerate(objects) if index not in taken}
    alone = {index: backend for index, body in rest.items() if (backend := _backend_of(body))}
    others = {index: body for index, body in rest.items() if index not in alone}
    found |= {i: (merge(objects[i], others, b[2]), b) for i, b in alone.items()}
    return dict(sorted(found.items()))


def _gathered(
    objects: Sequence[Body], backend: Backend
) -> Iterator[tuple[int, tuple[Merged, Backend]]]:
    """Join objects that together are one serving, such as StatefulSets of one engine."""
    gathered = backend[2].gathered
    for places in gathered.find(objects) if gathered is not None else ():
        bodies = {place: objects[place] for place in places}
        merged = Merged(
            source=objects[places[0]],
            whole=gathered.joined(list(bodies.values())) if gathered is not None else {},
            others={place: body for place, body in bodies.items() if place != places[0]},
        )
        yield places[0], (merged, backend)


def _backend_of(body: Body) -> Backend | None:
    kind = group_kind(body)
    return next((b for b in converters() if b[2].gathered is None and kind in b[2].kinds), None)


def merge(body: Body, others: Mapping[int, Body], converter: Converter) -> Merged:
    """Merge the other objects of the same serving into an object."""
    if converter.merged is None:
        return Merged(source=body, whole=body, others={})
    places = list(others)
    whole, used = converter.merged(body, list(others.values()))
    return Merged(source=body, whole=whole, others={places[i]: others[places[i]] for i in used})


def written_as_one(bodies: Sequence[Body], converter: Converter) -> Body:
    """Return the only serving among a backend's manifests, in the form of `Merged.whole`."""
    if converter.gathered is not None:
        (places,) = converter.gathered.find(bodies)
        return converter.gathered.joined([bodies[place] for place in places])
    (written,) = (body for body in bodies if group_kind(body) in converter.kinds)
    beside = {index: body for index, body in enumerate(bodies) if body is not written}
    return merge(written, beside, converter).whole


def runs_engines(body: Body, context: Context) -> bool:
    """Return whether an object runs engines, by its facts and the ConfigMaps in its context."""
    kind = systems.find_kind(group_kind(body))
    if kind is None or kind.facts is None:
        return False
    facts = kind.facts(kind.view(read_object(body, context=context)))
    return facts is not None and bool(facts.engines)


_SERVICE = ("", "Service")
_SELECTORS = (_SERVICE, ("policy", "PodDisruptionBudget"))
"""Objects that select pods by labels with one value each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """A serving whose object is replaced by the objects of another backend."""

    sources: tuple[Body, ...]
    was: str
    """Label value with the serving's name on its pods before the conversion."""
    backend: str
    target: str
    name: str
    """The same label value after the conversion."""
    bodies: tuple[Body, ...]
    """The objects that replace it."""

    @property
    def is_same(self) -> bool:
        """Whether the object keeps its backend, kind and name."""
        titles = {_title(body) for body in self.bodies}
        return self.backend == self.target and _title(self.sources[0]) in titles


def read_front(body: Body, args: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the `expose` argument that would write this Service; None for other objects.

    The caller compiles it and compares the two Services.
    """
    metadata, spec = mapping(body.get("metadata")), mapping(body.get("spec"))
    same = metadata.get("name") == args.get("name") and namespace_or_default(body) == args.get(
        "namespace"
    )
    if group_kind(body) != _SERVICE or not same or len(sequence(spec.get("ports"))) != 1:
        return None
    port = mapping(spec["ports"][0])
    role = mapping(spec.get("selector")).get(naming.ROLE)
    return {
        "port": port.get("port"),
        "target_port": port.get("targetPort"),
        **({"role": role} if role is not None else {}),
    }


def short_title(body: Body) -> str:
    """Return the name of a loss that is about a whole object: `Service/chat`."""
    return f"{group_kind(body)[1]}/{name_of(body)}"


def filled_service(body: Body) -> dict[str, Any]:
    """Fill in the defaults of a Service."""
    spec = filled_map(body.get("spec"), {"type": "ClusterIP"})
    ports = [filled_map(port, {"protocol": "TCP"}) for port in sequence(spec.get("ports"))]
    metadata = namespaced(body.get("metadata"))
    return {**body, "metadata": metadata, "spec": {**spec, "ports": ports}}


def keep(body: Body, moved: Sequence[Moved]) -> tuple[Body, tuple[Loss, ...], tuple[str, ...]]:
    """Keep an object. Its selector is changed to find the pods of the converted servings."""
    losses, notes = list[Loss](), list[str]()
    name = short_title(body)
    for each in moved:
        if each.is_same or namespace_or_default(body) != namespace_or_default(each.sources[0]):
            continue
        if not each.backend:
            lost = list(_lost_selection(body, each))
        elif group_kind(body) in _SELECTORS:
            body, lost, more_notes = _reselect(body, each)
            notes += more_notes
        else:
            lost = [
                f"names the label {label}, which no pod has with {each.target}"
                for label in _lost_labels(body, each)
            ]
        losses += [Loss(name=name, seen=seen) for seen in lost]
        for kind, named in map(_title, each.sources):
            if _mentions(body, kind, named):
                seen = f"refers to {kind} {named}, which is converted"
                losses.append(Loss(name=name, seen=seen))
    return body, tuple(losses), tuple(notes)


def _title(body: Body) -> tuple[str, str]:
    return group_kind(body)[1], name_of(body)


def _reselect(body: Body, moved: Moved) -> tuple[Body, list[str], list[str]]:
    """Rewrite the labels of the source's controller in a selector of its pods."""
    converter = _converter(moved.backend)
    spec = mapping(body.get("spec"))
    stated = mapping(spec.get("selector"))
    selector = {str(k): str(v) for k, v in mapping(stated.get("matchLabels", stated)).items()}
    own = [pair for pair in selector.items() if pair[0].startswith(converter.labels)]
    mapped = {pair: converter.label(pair) for pair in own}
    named = [pair for pair, same in mapped.items() if same and same[0] == naming.NAME]
    if not any(value == moved.was for _, value in named):
        return body, [], []
    found, lost, notes = dict[str, str](), list[str](), list[str]()
    for pair in selector.items():
        same = mapped.get(pair, pair)
        if same is not None and same[0] == naming.NAME:
            same = (naming.NAME, moved.name)
        if same is None or (pair in mapped and not _is_given(same, moved)):
            lost.append(f"selects by {pair[0]}: {pair[1]}, which no pod has with {moved.target}")
            same = pair
        elif same != pair:
            notes.append(f"selects by {same[0]}: {same[1]} instead of {pair[0]}: {pair[1]}")
        found[same[0]] = same[1]
    whole = {**stated, "matchLabels": found} if "matchLabels" in stated else found
    return {**body, "spec": {**spec, "selector": whole}}, lost, notes


def _lost_selection(body: Body, moved: Moved) -> Iterator[str]:
    """Yield what an object selects by that pods had and the new ones do not have."""
    before, after = (list(_pod_labels(bodies)) for bodies in (moved.sources, moved.bodies))
    for selector in _selectors(body):
        if any(selector.items() <= labels.items() for labels in after):
            continue
        shared = any(labels.get(k) == v for labels in before for k, v in selector.items())
        for key, value in selector.items():
            named = "/" in key and str(value).startswith(moved.was)
            if (shared or named) and not any(labels.get(key) == value for labels in after):
                yield f"selects by {key}: {value}, which no pod has with {moved.target}"


def _selectors(body: Body) -> Iterator[Mapping[str, Any]]:
    """Yield the maps of labels by which an object selects others."""
    if group_kind(body) == _SERVICE:
        yield mapping(mapping(body.get("spec")).get("selector"))
    yield from (mapping(value) for key, value in _pairs(body) if key == "matchLabels")


def _lost_labels(body: Body, moved: Moved) -> list[str]:
    """List the labels of the source's pods that an object names and the new pods do not have."""
    converter = _converter(moved.backend)
    if not any(same and same[0] == naming.NAME for same in _labels(converter, body, moved)):
        return []
    named = sorted({text for text in _texts(body) if text.startswith(converter.labels)})
    kept = {label for labels in _pod_labels(moved.bodies) for label in labels}
    return [label for label in named if label not in kept]


def _labels(converter: Converter, body: Body, moved: Moved) -> Iterator[Pair | None]:
    """Yield the labels in an object that have the name of the source as their value."""
    for key, value in _pairs(body):
        if value == moved.was and key.startswith(converter.labels):
            yield converter.label((key, str(value)))


def _pairs(value: object) -> Iterator[tuple[str, object]]:
    """Yield the key and the value of all maps at any depth."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield str(key), item
            yield from _pairs(item)
    for item in value if isinstance(value, list) else ():
        yield from _pairs(item)


def _texts(value: object) -> Iterator[str]:
    """Yield each key of an object, and each string below one."""
    for key, item in _pairs(value):
        yield key
        if isinstance(item, str):
            yield item


def _converter(backend: str) -> Converter:
    emitter = systems.find_emitter(backend)
    assert emitter is not None and emitter.converter is not None  # noqa: S101, PT018
    return emitter.converter


def _is_given(pair: Pair, moved: Moved) -> bool:
    """Return whether a template or the target's controller gives a label to pods."""
    emitter = systems.find_emitter(moved.target)
    converter = emitter.converter if emitter is not None else None
    if converter is not None and pair[0].startswith(converter.labels):
        return True
    return any(labels.get(pair[0]) == pair[1] for labels in _pod_labels(moved.bodies))


def _pod_labels(bodies: Sequence[Body]) -> Iterator[Mapping[str, Any]]:
    for body in bodies:
        kind = systems.find_kind(group_kind(body))
        if kind is not None and kind.pods is not None:
            for pods in kind.pods(kind.view(read_object(body))):
                yield pods.labels


def _mentions(value: object, kind: str, name: str) -> bool:
    """Return whether a part of an object refers to another one by its kind and name."""
    if isinstance(value, Mapping):
        refers = value.get("kind") == kind and value.get("name") == name
        return refers or any(_mentions(item, kind, name) for item in value.values())
    return isinstance(value, list) and any(_mentions(item, kind, name) for item in value)
