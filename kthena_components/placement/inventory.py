"""Reads what a cluster has from files: an inventory, or objects as kubectl lists them.

docs/inventory.md documents the format.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import field, replace
from typing import Any

from kthena_components.core.findings import Finding, SpecError
from kthena_components.core.spec.parse import parse_spec
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import group_kind, mapping
from kthena_components.placement.from_objects import READ_KINDS, cluster_of
from kthena_components.placement.inventory_build import build
from kthena_components.placement.inventory_fields import API_VERSION, KIND, InventoryFields
from kthena_components.placement.model import Cluster
from kthena_components.reading.documents import read_documents
from kthena_components.reading.files import STDIN, STDIN_NAME, Unreadable, read_text
from kthena_components.reading.folders import find_files
from kthena_components.reading.settings import parse_kube_map

_OURS = API_VERSION.partition("/")[0]
_MARK = re.compile(rf"^[\"']?kind[\"']?\s*:\s*[\"']?{KIND}\b", re.MULTILINE)
_LIST = "List"
_NEWER = re.compile(rf"{_OURS}/v([0-9]+)")
_NAMING = re.compile(r"\b(racks?|nodes?|nodes_per_rack|names?|children|hyper_nodes|running)\b")
"""Words of fields that decide which nodes there are, and who refers to them."""
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


class InventoryError(ValueError):
    """An inventory that cannot be used, with one sentence for each reason."""

    def __init__(self, reasons: Sequence[str]) -> None:
        """Keep the reasons."""
        self.reasons = tuple(reasons)
        super().__init__("\n".join(self.reasons))


@dataclass(slots=True)
class _FilesContent:
    """What the files contain."""

    inventories: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    objects: list[Mapping[str, Any]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def read_inventory(paths: Iterable[str], *, racks_from: Sequence[str] = ()) -> Cluster:
    """Read a cluster from files and folders.

    Args:
        paths: One file with an inventory, or files and folders with objects. `-`: standard input.
        racks_from: Node labels whose values are racks, if there are no HyperNodes.

    Raises:
        InventoryError: With all reasons at once.
    """
    asked, found = list(paths), _FilesContent()
    for file in find_files(asked).files:
        text = file if isinstance(file, Unreadable) else read_text(file)
        name = STDIN_NAME if file == STDIN else str(file)
        if isinstance(text, Unreadable):
            found.wrong.append(f"{text}.")
        elif asked == [file]:
            return parse_inventory(text, name, racks_from=racks_from)
        else:
            _add(text, name, found)
    return _cluster(found, " ".join(asked), racks_from)


def parse_inventory(
    text: str, file: str = "inventory", *, racks_from: Sequence[str] = ()
) -> Cluster:
    """Read a cluster from one string.

    Raises:
        InventoryError: With all reasons at once.
    """
    found = _FilesContent()
    _add(text, file, found)
    return _cluster(found, file, racks_from)


def _add(text: str, file: str, found: _FilesContent) -> None:
    """Add what a string contains."""
    if _MARK.search(text) or (_OURS in text and f'"{KIND}"' in text):
        body = parse_kube_map(text, file)
        if isinstance(body, Unreadable):
            found.wrong.append(f"{body}.")
        else:
            found.inventories.append((file, body))
        return
    before = len(found.objects)
    for document in read_documents(text, file, _is_wanted):
        if isinstance(document, Unreadable):
            found.wrong.append(f"{document}.")
        else:
            found.objects += _items(document.body)
    if len(found.objects) == before and not found.wrong:
        found.wrong.append(
            f"{file}: contains no node and no inventory: write `kind: {KIND}` and `apiVersion: "
            f"{API_VERSION}`, or name the output of `kubectl get nodes -o yaml`."
        )


def _is_wanted(version: object, kind: object, _text: str) -> bool:
    body = {"apiVersion": version, "kind": kind}
    return group_kind(body) in READ_KINDS or str(kind).endswith(_LIST)


def _items(body: Any) -> Iterator[Mapping[str, Any]]:
    """Return an object, or the items of a list, which may leave out their kind."""
    fields = mapping(body)
    items = fields.get("items")
    if not isinstance(items, list):
        if group_kind(fields) in READ_KINDS:
            yield fields
        return
    kind = str(fields.get("kind", ""))
    typed = {"apiVersion": fields.get("apiVersion"), "kind": kind.removesuffix(_LIST)}
    for item in items:
        if isinstance(item, Mapping):
            yield from _items(item if kind == _LIST else {**typed, **item})


def _cluster(found: _FilesContent, source: str, racks_from: Sequence[str]) -> Cluster:
    """Read the cluster from one inventory or from objects; both together are an error."""
    if found.wrong:
        raise InventoryError(found.wrong)
    files = [file for file, _ in found.inventories]
    if len(files) > 1 or (files and found.objects):
        others = files[1:] or ["objects of a cluster"]
        message = f"{files[0]} is an inventory, and {others[0]} is given, too: name one of them."
        raise InventoryError([message])
    if files:
        return _described(*found.inventories[0], racks_from)
    cluster, findings = cluster_of(found.objects, racks_from=racks_from, source=source)
    if not cluster.nodes and not findings:
        raise InventoryError([f"{source}: contains no node."])
    _raise(findings, source)
    return cluster


def _described(file: str, body: Mapping[str, Any], racks_from: Sequence[str]) -> Cluster:
    """Read an inventory; raise all that is wrong with it at once."""
    version, wrong = body.get("apiVersion"), list[Finding]()
    if version != API_VERSION:
        newer = isinstance(version, str) and _NEWER.fullmatch(version)
        remedy = "update kthena-components" if newer else f"write {API_VERSION}"
        problem = "is missing" if version is None else f"is {version!r}"
        problem = f"apiVersion {problem}, but this version reads {API_VERSION}"
        wrong.append(Finding(path="", seen=problem, remedy=remedy))
        if newer:
            _raise(wrong, file)
    stated = {**body, "apiVersion": API_VERSION}
    stated |= {"racks_from": list(racks_from)} if racks_from else {}
    try:
        fields = parse_spec(InventoryFields, stated)
    except SpecError as error:
        found = [*wrong, *error.findings, *_rest(stated, error.findings)]
        raise InventoryError(sentences(found, file)) from None
    cluster, findings = build(fields)
    _raise([*wrong, *findings], file)
    if not cluster.nodes:
        raise InventoryError(
            [f"{file}: contains no node: state racks and nodes_per_rack, or nodes."]
        )
    return replace(cluster, source=file)


def _rest(body: Mapping[str, Any], wrong: Iterable[Finding]) -> list[Finding]:
    """Return what else is wrong in an inventory, apart from fields that cannot be read.

    Nothing is returned if one of these decides which nodes there are: others would seem wrong.
    """
    left = deepcopy(dict(body))
    for finding in wrong:
        last = finding.path.rpartition(".")[2]
        if _NAMING.search(f"{last} {finding.remedy}") or not _removed(left, finding.path):
            return []
    try:
        return build(parse_spec(InventoryFields, left))[1]
    except SpecError:
        return []


def _removed(body: Any, path: str) -> bool:
    """Remove the field at a path, and say whether it was there."""
    *above, last = _STEP.findall(path)
    for name, index in above:
        at = body.get(name) if name and isinstance(body, dict) else None
        at = body[int(index)] if index and isinstance(body, list) else at
        body = at
    return isinstance(body, dict) and body.pop(last[0], None) is not None


def _raise(findings: Sequence[Finding], file: str) -> None:
    if findings:
        raise InventoryError(sentences(findings, file))


def sentences(findings: Iterable[Finding], file: str) -> list[str]:
    """Write one sentence for each finding: `file: path: what is wrong: what to write`."""
    return [
        f"{': '.join(filter(None, (file, each.path, each.seen, str(each.remedy))))}."
        for each in findings
    ]
