"""Finds the objects beside a serving that the package has written for one of its arguments. Pure.

An argument is tried: if the objects that it adds are all there, and equal, it is what they stand
for. Other objects stay what they are.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kthena_components.compiler.compile import Compiled, compile_serving
from kthena_components.convert.changes import Changes
from kthena_components.convert.kept_objects import filled_service, read_front, short_title
from kthena_components.convert.lost_fields import find_additions, find_losses
from kthena_components.core.findings import SpecError
from kthena_components.core.plan.read_back import filled_map
from kthena_components.core.values.read import mapping, sequence
from kthena_components.systems.contract import Body

_SECONDS = re.compile(r"([1-9][0-9]{0,5})s")
_SWITCHES = ("pod_disruption_budget", "monitoring")
"""Arguments that add objects of their own."""
_FOUND = (*_SWITCHES, "expose", "ready_timeout_seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class WithBeside:
    """A description with the arguments for objects beside its serving."""

    compiled: Compiled
    """For its own backend."""
    args: dict[str, Any]
    used: tuple[int, ...]
    """The objects that these arguments write again."""


def read_beside(
    args: dict[str, Any],
    given: Mapping[str, Any],
    others: Mapping[int, Body],
    title: str,
    changes: Changes,
) -> WithBeside:
    """Compile a description for its own backend, with what stands for the objects beside it.

    Args:
        args: The description.
        given: The part of it that its own backend gets.
        others: The objects beside the serving.
        title: Title of the serving's object.
        changes: What is asked for.
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
    """Return how long alerts wait: some for as long as an engine may take to start."""
    rules = (body for body in others.values() if body.get("kind") == "PrometheusRule")
    groups = (g for body in rules for g in sequence(mapping(body.get("spec")).get("groups")))
    alerts = (mapping(a) for group in groups for a in sequence(mapping(group).get("rules")))
    texts = (_SECONDS.fullmatch(str(alert.get("for"))) for alert in alerts)
    return sorted({int(text[1]) for text in texts if text is not None})


def _only(args: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that were found so far."""
    return {key: args[key] for key in _FOUND if key in args and key not in given}


def _place(body: Body, others: Mapping[int, Body]) -> int | None:
    """Return the place of an equal object."""
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
    return {**body, "metadata": filled_map(body.get("metadata"), {"namespace": "default"})}
