"""Finds out from the files of a kustomization whether it may build a serving.

Kustomize needs seconds for each megabyte of definitions that it patches, as in the repository of a
controller. If nothing serves a model, its objects are checked as they are in the files.

A word of an engine or its devices in what is built must be a word in a file, unless Kustomize joins
it from parts: most fields put whole values into objects, but variables and replacements behind a
delimiter join parts of values, and some fields change the kind of an object.
Source: sigs.k8s.io/kustomize/api v0.20, types/kustomization.go, types/replacement.go (FieldOptions)
and internal/builtins/PatchTransformer.go; kustomize/api/filters/replacement.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from kthena_components.core.values.read import group_kind, mapping, sequence
from kthena_components.core.values.regex import regex
from kthena_components.core.values.values_in_text import may_have
from kthena_components.reading.documents import Document, read_documents
from kthena_components.reading.files import POINTER, Unreadable, read_text
from kthena_components.reading.kustomization import Kustomization
from kthena_components.systems import find_kind

_BUILT_OF = frozenset({"resources", "bases", "components"})
_WHOLE = _BUILT_OF | {
    *("apiversion", "kind", "metadata", "namespace", "nameprefix", "namesuffix", "images"),
    *("commonlabels", "labels", "commonannotations", "replicas", "generatoroptions", "crds"),
    *("patches", "patchesstrategicmerge", "patchesjson6902", "configurations", "replacements"),
    *("configmapgenerator", "secretgenerator", "buildmetadata", "sortoptions"),
}
"""Fields that put only whole values into objects, with the exceptions below."""
_SETTINGS, _REPLACEMENTS = "configurations", "replacements"
_IN_PODS = regex(r"containers|template|\*")
"""Fields in which the settings of transformers could join names with prefixes."""
_APART = regex(r"[^\w\s-]+")
"""Delimiters that are in no word of an engine."""
_KIND_PATHS = regex(r"/(?:kind|apiVersion)(?![\w/-])|path[\"']?\s*:\s*(?:\"\"|'')|allowKindChange")
_REPLACEMENT = frozenset({"source", "targets"})
_LARGE = frozenset({None, "CustomResourceDefinition"})
"""Sources of a replacement in which no signs are searched: a definition, or an unknown kind."""
_KIND_FIELDS = regex(r"(?:kind|apiVersion|\*).*")


def may_compose(made: Kustomization) -> bool:
    """Return whether a kustomization may make words that are in none of its files."""
    fields = {str(name).casefold(): value for name, value in made.stated.items()}
    if any(value and name not in _WHOLE for name, value in fields.items()):
        return True
    if fields.get(_SETTINGS) and any(map(_reaches_pods, made.parts)):
        return True
    return any(map(_joins, map(mapping, sequence(fields.get(_REPLACEMENTS)))))


def _reaches_pods(file: str) -> bool:
    text = read_text(file, named=False)
    return not isinstance(text, Unreadable) and may_have(
        text, lambda each: _IN_PODS.search(each) is not None
    )


def _joins(replacement: Mapping[str, Any]) -> bool:
    """Return whether a replacement may join parts of values, change a kind, or is in a file."""
    kind = mapping(replacement.get("source")).get("kind")
    if not _REPLACEMENT.issuperset(replacement) or kind in _LARGE:
        return True
    for target in map(mapping, sequence(replacement.get("targets"))):
        delimiter = mapping(target.get("options")).get("delimiter", ".")
        fields = sequence(target.get("fieldPaths"))
        odd = any(_KIND_FIELDS.fullmatch(str(each)) for each in fields)
        if odd or not _APART.fullmatch(str(delimiter)):
            return True
    return False


def moves_values(made: Kustomization) -> bool:
    """Return whether a kustomization puts values of objects of any kind into others."""
    return any(str(name).casefold() == _REPLACEMENTS and made.stated[name] for name in made.stated)


def changes_kind(text: str) -> bool:
    """Return whether a patch may change the kind of an object."""
    return _KIND_PATHS.search(text) is not None


def stated_texts(stated: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts of a kustomization, keys included, without the names of what it builds on."""
    for key, value in stated.items():
        yield str(key)
        if str(key).casefold() not in _BUILT_OF:
            yield from texts_in(value)


def texts_in(value: object) -> Iterator[str]:
    """Yield all strings in a value, keys included, each once."""
    waiting: list[object] = [value]
    seen: set[int] = set()
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, Mapping | list | tuple) and id(part) not in seen:
            seen.add(id(part))
            if isinstance(part, Mapping):
                waiting += [*map(str, part), *part.values()]
            else:
                waiting += part


_HINTS = (
    *("gpu", "neuron", "gaudi", "vllm", "sglang", "trtllm", "tensorrt", "huggingface"),
    *("nvidia.com", "huawei.com", "rebellions.ai", "furiosa.ai", "habana.ai"),
    *("lmdeploy", "tritonserver", "text-generation"),
)
"""Signs of an engine or its devices, in a Kubernetes workload or a patch of one."""
_SHORT_HINT = regex(r"(?:\A|[^a-z])(?:[tnx]pu|ray\s+start)")
_DEFINITION, _SCHEMA = "CustomResourceDefinition", "openAPIV3Schema"
_OF_DEFINITIONS = (_DEFINITION, _SCHEMA)
"""Words in a patch of a definition, which names everything that it defines."""
KUBERNETES_GROUPS = frozenset({"", "apps", "batch"})
Test = Callable[[str], bool]
Known = dict[tuple[Test, str], bool]
"""Whether a file may be of a serving, by the test for its use and the file."""


def may_serve(made: Iterable[Kustomization], known: Known) -> bool:
    """Return whether one of some kustomizations may build a serving, or must not be built.

    Args:
        known: The results for files, which overlays share. New results are added.
    """
    every = list(made)
    if any(each.problem or _states_serving(each) for each in every):
        return True
    of_any = any(map(moves_values, every))
    for test, file in (found for each in every for found in _tests(each, of_any=of_any)):
        if (test, file) not in known:
            known[test, file] = test(file)
        if known[test, file]:
            return True
    return False


def _states_serving(made: Kustomization) -> bool:
    """Return whether a kustomization has a sign itself, or may make one."""
    texts = stated_texts(made.stated)
    return may_compose(made) or any(is_hinted(each) or changes_kind(each) for each in texts)


def _tests(made: Kustomization, *, of_any: bool) -> Iterator[tuple[Test, str]]:
    """Yield the files of a kustomization, each with its test."""
    for file in made.objects:
        yield (_holds_sign if of_any else holds_serving), file
    for file in made.parts:
        yield (_aimed_part_may_serve if file in made.aimed else _part_may_serve), file


def _aimed_part_may_serve(file: str) -> bool:
    return _may_change_serving(file, is_aimed=True)


def _part_may_serve(file: str) -> bool:
    return _may_change_serving(file, is_aimed=False)


def _may_change_serving(file: str, *, is_aimed: bool) -> bool:
    """Return whether a file of a kustomization may make an object a serving, or no longer one."""
    text = read_text(file, named=False)
    if isinstance(text, Unreadable):
        return Path(file).exists()  # Kustomize reports it
    if may_have(text, changes_kind):
        return True
    if not is_hinted(text):
        return False
    if is_aimed or not any(word in text for word in _OF_DEFINITIONS):
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


def _holds_sign(file: str) -> bool:
    """Return whether a file may have a serving, or a sign of one in an object of any kind."""
    if holds_serving(file):
        return True
    text = read_text(file, named=False)
    if isinstance(text, Unreadable) or not is_hinted(text):
        return False
    documents = read_documents(text, file, lambda *_: False)
    return not all(_is_of_a_definition(document) for document in documents)


def is_hinted(text: str) -> bool:
    """Return whether a parser may read a sign of an engine or its devices in a string."""
    return may_have(text, _has_hint)


def _has_hint(text: str) -> bool:
    lower = text.lower()
    return any(hint in lower for hint in _HINTS) or _SHORT_HINT.search(lower) is not None


def is_output_hinted(output: Path) -> bool:
    """Return whether what a program rendered has a sign."""
    text = read_text(str(output), named=False)
    return isinstance(text, Unreadable) or is_hinted(text)


def holds_serving(file: str) -> bool:
    """Return whether a file may have an object that serves a model."""
    text = read_text(file, named=False)
    if isinstance(text, Unreadable):
        return text.is_object or text.because == POINTER
    for document in read_documents(text, file, lambda *_: False):
        if isinstance(document, Unreadable):
            return True
        group, name = group_kind(document.body)
        kind = find_kind((group, name))
        is_list = name.endswith("List") or "items" in mapping(document.body)
        is_checked = is_list or (kind is not None and kind.is_checked)
        if is_checked and (group not in KUBERNETES_GROUPS or is_hinted(text)):
            return True
    return False
