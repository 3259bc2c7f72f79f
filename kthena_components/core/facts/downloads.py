"""The model that an init container writes to the folder from which an engine loads it."""

from collections.abc import Iterable, Mapping
from typing import Any

from kthena_components.core.facts.inputs import read_argv
from kthena_components.core.models import ModelShape, find_by_folder, find_model
from kthena_components.core.values.read import mapping, sequence
from kthena_components.core.values.unknown import Unknown


def downloaded_model(spec: Mapping[str, Any], folder: object) -> ModelShape | None:
    """Return the model that an init container downloads to a folder; None if none is named.

    The container's words have the folder, or one above it, and name one model of the table by its
    name or by a URI: `--source hf://Qwen/Qwen3-8B --output-dir /models/mine`.

    Args:
        spec: The spec of the pod.
        folder: The model in the engine's command line.
    """
    if not isinstance(folder, str) or not folder.startswith("/"):
        return None
    for container in map(mapping, sequence(spec.get("initContainers"))):
        words = set(_words(read_argv(container)))
        if any(_holds(word, folder) for word in words):
            found = {shape.name: shape for word in words if (shape := _named(word))}
            if len(found) == 1:
                return next(iter(found.values()))
    return None


def _words(argv: Iterable[object]) -> Iterable[str]:
    """Return the words of a command or of its script, and the values behind `=`."""
    for text in argv:
        for word in text.split() if isinstance(text, str) else ():
            yield word.rpartition("=")[2].strip("\"'")


def _holds(word: str, folder: str) -> bool:
    return (
        len(word) > 1 and word.startswith("/") and f"{folder}/".startswith(f"{word.rstrip('/')}/")
    )


def _named(word: str) -> ModelShape | None:
    if word.startswith("/"):
        return None
    shape = find_model(word) if "://" not in word and "/" in word else find_by_folder(word)
    return None if isinstance(shape, Unknown) else shape
