"""Finds out from the files of a kustomization whether it may build a serving.

Kustomize needs seconds for each megabyte of definitions that it patches, as in the repository of a
controller. If nothing serves a model, its objects are checked as they are in the files.
"""

from collections.abc import Iterable
from pathlib import Path

from kthena_components.core.values.read import group_kind, mapping, sequence
from kthena_components.core.values.regex import regex
from kthena_components.reading.documents import Document, read_documents
from kthena_components.reading.files import Unreadable, read_text
from kthena_components.reading.kustomization import Kustomization
from kthena_components.systems import find_kind

_HINTS = ("gpu", "neuron", "gaudi", "vllm", "sglang", "trtllm", "tensorrt", "huggingface")
"""Signs of an engine or its devices, in a Kubernetes workload or a patch of one."""
_SHORT_HINT = regex(r"[^a-z](?:[tn]pu|ray\s+start)")
_DEFINITION, _SCHEMA = "CustomResourceDefinition", "openAPIV3Schema"
_OF_DEFINITIONS = (_DEFINITION, _SCHEMA)
"""Words in a patch of a definition, which names everything that it defines."""
_OWN_GROUPS = frozenset({"", "apps", "batch"})


def may_serve(made: Iterable[Kustomization], known: dict[str, bool]) -> bool:
    """Return whether one of some kustomizations may build a serving, or must not be built.

    Args:
        made: The kustomizations.
        known: The results for files, which overlays share. New results are added.
    """
    return any(each.problem or _files_may_serve(each, known) for each in made)


def _files_may_serve(made: Kustomization, known: dict[str, bool]) -> bool:
    for files, test in ((made.objects, holds_serving), (made.parts, _part_may_serve)):
        for file in files:
            if file not in known:
                known[file] = test(file)
            if known[file]:
                return True
    return False


def _part_may_serve(file: str) -> bool:
    text = read_text(file, named=False)
    if isinstance(text, Unreadable):
        return Path(file).exists()  # Kustomize reports it
    if not is_hinted(text):
        return False
    if not any(word in text for word in _OF_DEFINITIONS):
        return True
    documents = read_documents(text, file, lambda *_: True)
    return not all(_is_of_a_definition(document) for document in documents)


def _is_of_a_definition(document: Document | Unreadable) -> bool:
    """Return whether a document is a part of a CustomResourceDefinition."""
    if isinstance(document, Unreadable):
        return False
    changes = [mapping(each) for each in sequence(document.body)]  # a JSON patch
    if changes:
        return all(_SCHEMA in str(each.get("path")) for each in changes)
    return document.body is None or group_kind(document.body)[1] == _DEFINITION


def is_hinted(text: str) -> bool:
    """Return whether a text has a sign of an engine or its devices."""
    lower = text.lower()
    return any(hint in lower for hint in _HINTS) or _SHORT_HINT.search(lower) is not None


def holds_serving(file: str) -> bool:
    """Return whether a file may have an object that serves a model."""
    text = read_text(file, named=False)
    if isinstance(text, Unreadable):
        return text.is_object
    for document in read_documents(text, file, lambda *_: False):
        if isinstance(document, Unreadable):
            return True
        group, name = group_kind(document.body)
        kind = find_kind((group, name))
        is_checked = name.endswith("List") or (kind is not None and kind.is_checked)
        if is_checked and (group not in _OWN_GROUPS or is_hinted(text)):
            return True
    return False
