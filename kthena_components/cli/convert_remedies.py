"""Words remedies for `convert`, whose user has an object and no arguments of a ModelServing."""

import re
from dataclasses import replace

from kthena_components.core.findings import Finding, SpecError
from kthena_components.core.spec.model import ModelServingSpec

_REMOVE = re.compile(r"^remove (it|gang_policy)\b")
_VALUE = re.compile(r"^write ([A-Za-z0-9.-]+)(?=,|$)")
_BACKEND = re.compile(r"\b(?:(?:write|use a ModelServing with) )?backend: (?=[a-z])")
_OF_OBJECTS = "convertible"
"""The rule of findings about what only the object states."""


def in_flags(error: SpecError) -> str:
    """Return the text of an error, with options of `convert` for changes of arguments.

    The arguments come from the object, so that its file may not have the field at all.
    """
    return str(SpecError([_for_convert(each) for each in error.findings], error.subject))


def _for_convert(finding: Finding) -> Finding:
    first = re.split(r"[.\[]", finding.path, maxsplit=1)[0]
    if finding.rule == _OF_OBJECTS or first not in ModelServingSpec.model_fields:
        return finding
    found = _REMOVE.match(finding.remedy)
    removed = finding.path if found is None or found[1] == "it" else found[1]
    remedy = _REMOVE.sub(f"remove it with --set {removed}=null", finding.remedy)
    remedy = _VALUE.sub(rf"write --set {finding.path}=\1", remedy)
    return replace(finding, remedy=_BACKEND.sub("convert it to ", remedy))
