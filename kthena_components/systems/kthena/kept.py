"""What the rules over a stack read of a ModelServing: also where its pods listen.

The command lines are dropped, so this is derived before.
"""

from collections.abc import Mapping
from typing import Any

from kthena_components.core.facts.listening import Listening, listening
from kthena_components.core.facts.pod import read_pod
from kthena_components.core.objects.object import PodSet
from kthena_components.core.objects.retained_fields import LISTENS, kept_pods
from kthena_components.core.values.read import is_map, mapping, sequence

_TEMPLATES = ("entryTemplate", "workerTemplate")


def kept_serving(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Keep the spec with reduced pod templates, and where the pods of each listen."""
    kept = kept_pods(body)
    for role, reduced in zip(_roles(body), _roles(kept), strict=True):
        for field in _TEMPLATES:
            template, inside = mapping(role).get(field), mapping(mapping(reduced).get(field))
            if is_map(template) and isinstance(spec := inside.get("spec"), dict):
                spec[LISTENS] = _listening(template, field)
    return kept


def listening_of(pods: PodSet) -> Listening | None:
    """Return where the pods of a ModelServing listen; None if nothing is known."""
    field = pods.path.rpartition(".")[2]
    if LISTENS in pods.spec:
        found = pods.spec[LISTENS]
        return found if isinstance(found, Listening) else None
    return _listening({"metadata": {"annotations": pods.annotations}, "spec": pods.spec}, field)


def _roles(body: Mapping[str, Any]) -> Any:
    return sequence(mapping(mapping(body.get("spec")).get("template")).get("roles"))


def _listening(template: Mapping[str, Any], field: str) -> Listening | None:
    return listening(read_pod(template, ""), first=field == "entryTemplate")
