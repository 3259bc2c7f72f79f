"""Facts of a ModelInfer: those of the equivalent ModelServing, with its own paths."""

from dataclasses import replace

from kthena_components.core.facts.serving import ServingFacts
from kthena_components.systems.kthena import facts as kthena
from kthena_components.systems.kthena.view import Serving


def facts(view: Serving) -> ServingFacts:
    """Return the facts of all roles."""
    found = kthena.facts(view)
    if found.gang is None:
        return found
    at = view.object.at("spec.template.gangSchedule")
    return replace(found, gang=replace(found.gang, path=at))
