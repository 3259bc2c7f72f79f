"""Reads what a stack has deployed from `pulumi stack export`."""

import json
from pathlib import Path

from kthena_components.cli.review.preview import Step
from kthena_components.core.values.read import mapping, sequence


class StateError(ValueError):
    """A file is not the state of a stack. The text is the reason."""


def read_state(path: str) -> dict[str, Step]:
    """Read the deployed resources from `pulumi stack export`, each as a step that changes nothing.

    A preview tells nothing of the resources that a stopped program did not register. The state has
    their inputs, by URN; secrets in it stay encrypted.

    Raises:
        StateError: The file is missing or is not a state.
    """
    try:
        stated = mapping(json.loads(Path(path).read_text(encoding="utf-8")))
    except (OSError, ValueError, RecursionError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise StateError(f"{path}: cannot read the state: {why}") from error
    deployment = stated.get("deployment")
    if not isinstance(deployment, dict):
        raise StateError(f"{path}: has no 'deployment'; write it with 'pulumi stack export --file'")
    found: dict[str, Step] = {}
    for item in sequence(deployment.get("resources")):
        resource = mapping(item)
        urn, inputs = resource.get("urn"), mapping(resource.get("inputs"))
        if isinstance(urn, str) and not resource.get("delete"):  # a leftover of a replacement
            outputs = mapping(resource.get("outputs"))
            found[urn] = Step(op="same", urn=urn, old=inputs, new=inputs, outputs=outputs, paths=())
    return found
