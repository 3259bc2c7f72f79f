"""Finds the fields of an object that state an argument of its description. Pure.

A reader sees the object, and not the arguments that it is described by.
"""

import copy
import re
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

from kthena_components.convert.lost_fields import Steps, leaves, others_of, replaced
from kthena_components.core.findings import SpecError, path_of

_MOST = 2
_LARGEST = 400
"""Values of the largest object that is searched: each is changed and described again."""
_NONE = "None"
"""A word that fields with a choice of words often have."""
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
_CANNOT = (SpecError, AssertionError, AttributeError, KeyError, IndexError, TypeError, ValueError)
Body = Mapping[str, Any]
Describe = Callable[[Any], Mapping[str, Any]]


def origin(body: Body, filled: Callable[[Any], Any], describe: Describe, argument: str) -> str:
    """Say which field of an object states an argument, or by default does, as a clause.

    Args:
        body: The object.
        filled: Fills in the defaults of an object.
        describe: Describes an object with its defaults by arguments.
        argument: The path of the argument.
    """
    if stated := stated_by(body, lambda one: describe(filled(one)), argument):
        return f"{stated} of the object"
    usual = stated_by(filled(body), describe, argument)
    return f"by default: the object does not state {usual}" if usual else ""


def stated_by(body: Mapping[str, Any], describe: Describe, argument: str) -> str:
    """Name the fields of an object on which an argument depends, or the part with all of them.

    Args:
        body: The object.
        describe: Describes an object by arguments.
        argument: The path of the argument.

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
