"""The model that a command line does not name, but that something else in its pod suggests."""

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.models import ModelShape, find_by_folder, find_by_spelling, find_model


def assumed_model(pod: PodFacts, command: CommandFacts) -> ModelShape | None:
    """Return the model that the pod downloads, or that a folder or the served name is named after.

    None: nothing suggests one.
    """
    if pod.downloaded is not None:
        return pod.downloaded
    served = served_name(command)
    paths = (command.model, command.options.get("--model"))  # two if the command is wrong
    by_folder = (find_by_folder(path, served) for path in paths)
    found = (*by_folder, *map(find_by_spelling, (command.model, served)))
    known = next(filter(None, found), None)
    stated = None if known or served is None else find_model(served)
    return stated if isinstance(stated, ModelShape) else known


def served_name(command: CommandFacts) -> str | None:
    """Return the first name under which an engine serves its model, if it is stated."""
    stated = command.options.get("--served-model-name")
    first = stated[0] if isinstance(stated, tuple) and stated else stated
    return first if isinstance(first, str) else None
