"""Values that a command line takes from variables which nothing sets in its pods."""

from collections.abc import Iterable

from kthena_components.core.engines.controller_env import LATE_VARIABLES, misspelled
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.values.images import read_image
from kthena_components.core.values.unknown import NotSet, OfController, SetLater, Varying


def no_value(told: Iterable[str] | None, pod: PodFacts, value: object) -> str:
    """Explain which variable of a value is not set in a pod; empty if it is, or if that is unclear.

    Args:
        told: Variables that the controller of the pod sets, and beginnings of them. None: unknown.
        pod: The pod.
        value: The value, from the pod's command line.
    """
    name = getattr(value, "name", "") if isinstance(value, NotSet | OfController | Varying) else ""
    if isinstance(value, SetLater):
        return f"and {name} follows in env, so the reference to it stays as it is"
    if told is None or not name or name in pod.stated or _sets(told, name):
        return ""
    if isinstance(value, NotSet):
        then = "is empty" if value.in_shell else "stays as it is"
        own = misspelled(name, told)
        other = f": the controller sets {own}" if own else ""
        return f"and nothing sets {name}, so it {then}{other}"
    if isinstance(value, OfController | Varying) and value.elsewhere:
        return ""
    return _by_controller(told, name)


def _by_controller(told: Iterable[str], name: str) -> str:
    by, own = LATE_VARIABLES[name], misspelled(name)
    if by in {LATE_VARIABLES.get(each) for each in told}:
        return f"and {by} does not set {name} in these pods" + (f", but {own}" if own else "")
    if own:
        return f"and nothing sets {name}: {by} sets {own}, in the pods that it creates"
    return f"but only {by} sets {name}, in the pods that it creates"


def _sets(told: Iterable[str], name: str) -> bool:
    """Return whether a controller sets a variable, which a slip in a name of its own is not."""
    names = tuple(told)
    return misspelled(name, names) is None and any(name.startswith(own) for own in names)


def in_order(value: object) -> str:
    """Say how a reference in an env gets its value; empty if the order is not what is wrong."""
    if not isinstance(value, SetLater):
        return ""
    return f"move {value.name} in front of the variable in env that refers to it"


def may_be_of_image(pod: PodFacts, value: object) -> bool:
    """Return whether an image that is not an engine's own may set the variable of a value."""
    image = pod.own.image if pod.own is not None else None
    if not isinstance(value, NotSet) or not value.in_shell:
        return False
    return not isinstance(image, str) or read_image(image).engine is None
