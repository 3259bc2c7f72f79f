"""Finds the arguments for which the package has written other objects, such as a Service. Pure.

Each argument is tried. If all objects that it adds are among the given ones, and equal, the
argument replaces them. All other objects are kept.
"""

import re
from collections.abc import Mapping
from typing import Any

from kthena_components.compiler.compile import Compiled, compile_serving
from kthena_components.convert.conversion import Changes
from kthena_components.convert.kept_objects import filled_service, read_front, short_title
from kthena_components.convert.lost_fields import find_additions, find_losses
from kthena_components.core.findings import SpecError
from kthena_components.core.plan.read_back import namespaced
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import mapping, sequence
from kthena_components.systems.system import Body

_SECONDS = re.compile(r"([1-9][0-9]{0,5})s")
_SWITCHES = ("pod_disruption_budget", "monitoring")
"""Arguments that only add objects, if they are true."""
_FOUND = (*_SWITCHES, "expose", "ready_timeout_seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class WithBeside:
    """A described serving, with the arguments that replace other objects."""

    compiled: Compiled
    """Compiled for the backend that the objects are written for."""
    args: dict[str, Any]
    used: tuple[int, ...]
    """Indices of the objects that these arguments write again."""


def read_beside(
    args: dict[str, Any],
    given: Mapping[str, Any],
    others: Mapping[int, Body],
    title: str,
    changes: Changes,
) -> WithBeside:
    """Find the arguments that replace other objects, and compile with them.

    Args:
        args: The arguments that describe the serving.
        given: The same for the backend that the objects are written for.
        others: The objects that are not part of a serving, by index.
        title: Title of the serving's object.
        changes: The options of the conversion.
    """
    compiled = compile_serving(given, title, today=changes.today)
    found = WithBeside(compiled=compiled, args=args, used=())
    tries: list[dict[str, Any]] = [{name: True} for name in _SWITCHES]
    tries += [{"monitoring": True, "ready_timeout_seconds": n} for n in _waits(others)]
    tries += [{"expose": front} for body in others.values() if (front := read_front(body, args))]
    for more in tries:
        if set(more) & set(found.args):
            continue
        try:
            wider = {**given, **_only(found.args, given), **more}
            other = compile_serving(wider, title, today=changes.today)
        except SpecError:
            continue
        known = {manifest.key for manifest in found.compiled.manifests}
        added = [m.body for m in other.manifests if m.key not in known]
        places = [_place(body, others) for body in added]
        if added and None not in places:
            used = (*found.used, *(place for place in places if place is not None))
            found = WithBeside(compiled=other, args={**found.args, **more}, used=used)
    return found


def _waits(others: Mapping[int, Body]) -> list[int]:
    """Return the seconds that alerts wait. Some wait for `ready_timeout_seconds`."""
    rules = (body for body in others.values() if body.get("kind") == "PrometheusRule")
    groups = (g for body in rules for g in sequence(mapping(body.get("spec")).get("groups")))
    alerts = (mapping(a) for group in groups for a in sequence(mapping(group).get("rules")))
    texts = (_SECONDS.fullmatch(str(alert.get("for"))) for alert in alerts)
    return sorted({int(text[1]) for text in texts if text is not None})


def _only(args: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that were found so far."""
    return {key: args[key] for key in _FOUND if key in args and key not in given}


def _place(body: Body, others: Mapping[int, Body]) -> int | None:
    """Return the index of an equal object."""
    for index, other in others.items():
        if short_title(other) == short_title(body) and _are_equal(other, body):
            return index
    return None


def _are_equal(there: Body, here: Body) -> bool:
    one, other = _filled(there), _filled(here)
    return not [*find_losses(one, other), *find_additions(one, other)]


def _filled(body: Body) -> dict[str, Any]:
    if body.get("kind") == "Service":
        return filled_service(body)
    return {**body, "metadata": namespaced(body.get("metadata"))}
