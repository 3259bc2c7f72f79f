"""The schema of a pod template, as in Kubernetes.

pod_fields.json lists every field with its type, the required ones, and the keys of lists, as an API
server of Kubernetes 1.34 publishes them in its OpenAPI document; a conformance test compares the
table with it.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from typing import Any

from kthena_components.core.findings import Finding, Level, with_same_end
from kthena_components.core.remedies import remove
from kthena_components.core.schema.language import (
    Amount,
    Budget,
    Fields,
    Free,
    Items,
    Schema,
    Switch,
    Table,
    Text,
    Whole,
)
from kthena_components.core.values.regex import regex

TABLE = Path(__file__).parent / "pod_fields.json"
ROOT_TYPE = "PodTemplateSpec"
_ALIKE = 0.9
"""Similarity of two names, 0 to 1, from which one is the other with a slip."""
_WRITE = regex(r"write '([^']+)'")
_NO_FIELD = "is no field of a pod in Kubernetes 1.34"
_SCALARS: Mapping[str, Schema] = {
    "boolean": Switch(),
    "int-or-string": Budget(),
    "int32": Whole(),
    "int64": Whole(bits=64),
    "object": Free(),
    "string": Text(),
}


@cache
def shape_of(
    kind: str = ROOT_TYPE, *, by_crd: bool = True, whole: bool = False, patch: bool = False
) -> Fields:
    """Return the shape of a type in the table.

    Args:
        kind: The name of the type.
        whole: Whether fields that are not in the table are reported. A CRD has its own fields.
        by_crd: Whether a CRD validates: it rejects duplicates in lists with keys, and fractional
            amounts. Kubernetes' own kinds accept both.
        patch: Whether the value is merged into another one, so that it may lack required fields.
    """
    stated = _table()[kind]
    keys = stated["keys"] if by_crd else {}
    how = {"by_crd": by_crd, "whole": whole, "patch": patch}
    fields: dict[str, Schema] = {
        name: _shape(written, how, tuple(keys.get(name, ())))
        for name, written in stated["fields"].items()
    }
    required = () if patch else tuple(stated["required"])
    return Fields(fields=fields, required=required, partial=not whole)


def unknown_field(finding: Finding, rule: str) -> Finding:
    """Word a finding about a field that is not in the table.

    One that is nearly spelt like a known field is a mistake. Any other may be of a newer
    Kubernetes: schedulingGroup is, and resembles schedulingGates.
    """
    written = finding.path.rpartition(".")[2]
    meant = _WRITE.match(finding.remedy)
    if meant is not None and _is_misspelt(written, meant[1]):
        return replace(finding, rule=rule, seen=_NO_FIELD)
    remedy = remove("remove it, unless the cluster runs a newer Kubernetes that knows it")
    return replace(finding, rule=rule, seen=_NO_FIELD, remedy=remedy, level=Level.ADVISORY)


def _is_misspelt(written: str, meant: str) -> bool:
    one, other = (word.replace("_", "").replace("-", "").casefold() for word in (written, meant))
    return SequenceMatcher(None, one, other).ratio() >= _ALIKE or bool(with_same_end(one, [other]))


def _shape(written: str, how: Mapping[str, bool], keys: tuple[str, ...] = ()) -> Schema:
    """Read a type: `string`, `int32`, `Probe`, `[]EnvVar`, `[set]int32`, `{}quantity`."""
    by_crd = how["by_crd"]
    if written.startswith("[set]"):
        return Items(of=_shape(written[5:], how), is_set=by_crd)
    if written.startswith("[]"):
        return Items(of=_shape(written[2:], how), keys=keys)
    if written.startswith("{}"):
        return Table(_shape(written[2:], how))
    scalar = Amount(fractions=not by_crd) if written == "quantity" else _SCALARS.get(written)
    return shape_of(written, **how) if scalar is None else scalar


@cache
def _table() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(TABLE.read_text())
    return found
