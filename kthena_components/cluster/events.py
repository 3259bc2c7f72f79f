"""Reads the warnings that controllers and kubelets write as Events. Pure."""

from collections.abc import Mapping, Sequence

from kthena_components.cluster.objects import Body, name_of, namespace_of
from kthena_components.cluster.pending import short
from kthena_components.core.values.read import mapping

Key = tuple[str, str, str]
"""Kind, namespace and name."""
_SCHEDULER = frozenset({"FailedScheduling", "Unschedulable", "NotEnoughResources"})
"""What a pod's conditions say, too, and better."""


def newest_warnings(events: Sequence[Body]) -> dict[Key, str]:
    """Return the newest warning about each object, as `reason: message`."""
    found: dict[Key, tuple[str, str]] = {}
    for event in events:
        about = mapping(event.get("involvedObject"))
        key = (str(about.get("kind")), str(about.get("namespace", "")), str(about.get("name")))
        reason = str(event.get("reason") or "")
        if event.get("type") != "Warning" or reason in _SCHEDULER:
            continue
        said = (_time(event), short(f"{reason}: {event.get('message') or ''}".strip(": ")))
        if key not in found or found[key][0] <= said[0]:
            found[key] = said
    return {key: said for key, (_, said) in found.items()}


def key_of(kind: str, body: Body) -> Key:
    """Return the key of an object, whose kind a list leaves out."""
    return kind, namespace_of(body), name_of(body)


def _time(event: Mapping[str, object]) -> str:
    """Return when it last happened. Times in RFC 3339 and UTC sort as texts."""
    last = mapping(event.get("series")).get("lastObservedTime")
    stated = (last, event.get("lastTimestamp"), event.get("eventTime"))
    return next((str(time) for time in stated if time), "")
