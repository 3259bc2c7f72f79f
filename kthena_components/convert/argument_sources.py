"""Finds what an argument stands for in the input: other objects, or fields of its own object. Pure.

An argument that adds objects is tried. If all of them are among the given ones, and equal, it
replaces them; all other objects are kept. A message about an argument names the fields that state
it, because a reader sees the object, and not the arguments.
"""

import copy
import re
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

from kthena_components.compiler.compile import Compiled, compile_serving
from kthena_components.convert.conversion import Changes
from kthena_components.convert.lost_fields import (
    Steps,
    find_additions,
    find_losses,
    leaves,
    others_of,
    replaced,
)
from kthena_components.convert.sources_and_kept import filled_service, read_front, short_title
from kthena_components.core.findings import SpecError, path_of
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


_MOST = 2
_LARGEST = 400
"""Values of the largest object that is searched: each is changed and described again."""
_NONE = "None"
"""A word that fields with a choice of words often have."""
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
_CANNOT = (SpecError, AssertionError, AttributeError, KeyError, IndexError, TypeError, ValueError)
Describe = Callable[[Any], Mapping[str, Any]]


def origin(body: Body, filled: Callable[[Any], Any], describe: Describe, argument: str) -> str:
    """Say which field of an object states an argument, or by default does, as a clause.

    Args:
        filled: Fills in the defaults of an object.
        describe: Describes an object with its defaults by arguments.
    """
    if stated := stated_by(body, lambda one: describe(filled(one)), argument):
        return f"{stated} of the object"
    usual = stated_by(filled(body), describe, argument)
    return f"by default: the object does not state {usual}" if usual else ""


def stated_by(body: Mapping[str, Any], describe: Describe, argument: str) -> str:
    """Name the fields of an object on which an argument depends, or the part with all of them.

    Args:
        describe: Describes an object by arguments.

    Returns:
        Empty if no field does, if many do, or if one of them has the argument's path itself.
    """
    usual = _at(describe(dict(body)), argument)
    every = [*leaves(body)]
    if usual is None or len(every) > _LARGEST:
        return ""
    tried = copy.deepcopy(dict(body))

    def decides(steps: Steps, value: object) -> bool:
        others = (replaced(tried, steps, other) for other in (*others_of(value), _NONE))
        return any(_changed(other, describe, argument, usual) for other in others)

    # One more than there may be, so that an argument of many fields takes no longer.
    deciding = (path_of(steps) for steps, value in every if decides(steps, value))
    found = [*islice(deciding, _MOST + 1)]
    if not 0 < len(found) <= _MOST or any(path.endswith(argument) for path in found):
        return ""
    parents = {path.rpartition(".")[0] for path in found}
    return parents.pop() if len(found) > len(parents) else " and ".join(found)


def _changed(body: dict[str, Any], describe: Describe, argument: str, usual: object) -> bool:
    try:
        return _at(describe(body), argument) != usual
    except _CANNOT:  # another object cannot be described, which says nothing of this argument
        return False


def _at(args: object, path: str) -> object:
    """Return the value at a path; None if there is none."""
    for name, index in _STEP.findall(path):
        if name and isinstance(args, Mapping):
            args = args.get(name)
        elif index and isinstance(args, list | tuple) and int(index) < len(args):
            args = args[int(index)]
        else:
            return None
    return args
