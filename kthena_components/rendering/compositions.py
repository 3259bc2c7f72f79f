"""Finds out whether a kustomization may make words and kinds that none of its files has.

Most fields put whole values into objects. Some join parts of values, such as variables and
replacements behind a delimiter, and some change the kind of an object.
Source: sigs.k8s.io/kustomize/api v0.20, types/kustomization.go, types/replacement.go (FieldOptions)
and internal/builtins/PatchTransformer.go; kustomize/api/filters/replacement.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.values.escapes import may_have
from kthena_components.core.values.read import mapping, sequence
from kthena_components.core.values.regex import regex
from kthena_components.reading.files import Unreadable, read_text
from kthena_components.reading.kustomization import Kustomization

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
    """Yield all texts in a value, keys included, each once."""
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
