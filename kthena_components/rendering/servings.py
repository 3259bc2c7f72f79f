"""Whether a kustomization may build something that serves a model, by what its files say.

Kustomize takes seconds for each megabyte of definitions that it patches, as in the repository of
a controller. Where nothing serves a model, its objects are judged as their files hold them.
"""

import re
from collections.abc import Iterable

from kthena_components.core.values.read import group_kind
from kthena_components.reading.documents import read_documents
from kthena_components.reading.files import Unreadable, read_text
from kthena_components.reading.kustomization import Kustomization
from kthena_components.systems import find_kind

_HINT = re.compile(
    r"(?i:(?<![a-z])[gtn]pu|neuron|gaudi|vllm|sglang|trtllm|tensorrt|huggingface|ray\s+start)"
)
"""An engine, or what it runs on, in a workload of Kubernetes' own or in a patch of one."""
_OF_DEFINITIONS = ("CustomResourceDefinition", "openAPIV3Schema")
"""What a patch of a definition says, which names whatever it defines."""
_OWN_GROUPS = frozenset({"", "apps", "batch"})


def may_serve(made: Iterable[Kustomization]) -> bool:
    """Tell whether one of some kustomizations may build a serving, or takes in what is not here."""
    return any(
        each.problem
        or any(map(_object_may_serve, each.objects))
        or any(map(_part_may_serve, each.parts))
        for each in made
    )


def _part_may_serve(file: str) -> bool:
    text = read_text(file, named=False)
    if isinstance(text, Unreadable) or any(word in text for word in _OF_DEFINITIONS):
        return False
    return _HINT.search(text) is not None


def _object_may_serve(file: str) -> bool:
    text = read_text(file, named=False)
    if isinstance(text, Unreadable):
        return False
    hinted = _HINT.search(text) is not None
    for document in read_documents(text, file, lambda *_: False):
        if isinstance(document, Unreadable):
            return True
        group, name = group_kind(document.body)
        kind = find_kind((group, name))
        is_judged = name.endswith("List") or (kind is not None and kind.is_judged)
        if is_judged and (hinted or group not in _OWN_GROUPS):
            return True
    return False
