"""Finds amounts under names that the resources of a component in v1alpha1 do not have.

Source: ai-dynamo/dynamo deploy/operator/api/v1alpha1/common.go, ResourceItem.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.findings import Finding, join_path
from kthena_components.core.remedies import remove, together, write
from kthena_components.core.rules.support.admission import refuse
from kthena_components.core.values.display import key_text
from kthena_components.core.values.read import mapping, unknown_in
from kthena_components.systems.dynamo.view import Component

_NAMES = ("cpu", "memory", "gpu", "gpuType", "custom")
_GPU = "nvidia.com/gpu"


def misplaced_amounts(item: Component) -> Iterator[Finding]:
    """Report the amounts of a component that have the names of a container's resources."""
    resources = mapping(item.fields.get("resources")) if item.alpha else {}
    for kind in ("limits", "requests"):
        amounts, at = mapping(resources.get(kind)), f"{item.path}.resources.{kind}"
        for name in amounts:
            if not unknown_in(name) and name not in _NAMES:
                yield from _misplaced(at, name, amounts)


def _misplaced(at: str, name: str, amounts: Mapping[str, Any]) -> Iterator[Finding]:
    path, amount = join_path(at, key_text(name)), amounts[name]
    remedy = f"write it as custom: {{{key_text(name)}: …}}"
    if name == _GPU and amounts.get("gpu") is None:
        remedy, known = "write it as gpu", isinstance(amount, str | int)
        if known and not unknown_in(amount):
            moved = remove(at=path), write(str(amount), at=f"{at}.gpu")
            remedy = together(*moved, text=remedy)
    seen = f"is no field of Dynamo's CRD, whose names are {', '.join(_NAMES)}"
    yield from refuse(path, seen, remedy)
