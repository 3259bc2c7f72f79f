"""The fields of custom resources, as the CRDs of each release of a system declare them.

`make crd-tables` writes a system's crds.json from the CRDs that its project publishes: each type
once, without descriptions. A table is loaded for the first object of its system, not before.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cache
from importlib import resources
from itertools import chain
from typing import Any, TypeVar

from kthena_components.core.findings import Finding, Level, suggest
from kthena_components.core.remedies import Remedy, either, fixes_of, remove
from kthena_components.core.schema.fast_check import Test, quick_test
from kthena_components.core.schema.language import (
    MISSING,
    UNDECLARED,
    Amount,
    Budget,
    Fields,
    Free,
    Items,
    Number,
    Schema,
    Switch,
    Table,
    Text,
    Whole,
    check_shape,
)
from kthena_components.core.schema.metadata import METADATA
from kthena_components.core.schema.misplaced_fields import moves
from kthena_components.core.schema.versions import Release, read_release
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display

V = TypeVar("V")
_SCALARS: Mapping[str, Schema] = {
    "any": Free(),
    "boolean": Switch(),
    "int-or-string": Budget(),
    "int32": Whole(),
    "int64": Whole(bits=64),
    "metadata": METADATA,
    "number": Number(),
    "object": Table(Free()),
    "quantity": Amount(),
    "string": Text(),
}
_OF_EVERY_KIND: Mapping[str, Schema] = {
    "apiVersion": Text(),
    "kind": Text(),
    "metadata": METADATA,
    "status": Free(),
}
"""Fields of every kind, whatever its CRD says. Who applies an object does not write its status."""
_AMOUNT_IN_GO = Amount(fractions=True)
_LONGEST_LIST = 160
"""Maximum length of a list of fields in a remedy, in characters."""
_ZEROS: Mapping[type[Schema], object] = {Text: "", Whole: 0, Switch: False, Budget: 0}


@dataclass(slots=True)
class CrdTable:
    """What the CRDs of one system declare, release by release."""

    title: str
    releases: tuple[Release, ...]
    """Oldest first."""
    kinds: Mapping[str, Mapping[str, Sequence[tuple[int, int | None]]]]
    """By kind and apiVersion: the indexes of the releases that changed its type, with the new type;
    None if it is no longer served."""
    scaled: Mapping[str, Mapping[str, Sequence[tuple[int, bool]]]]
    """By kind and apiVersion: the indexes of the releases with which it got or lost the scale
    subresource."""
    filled: Mapping[str, Sequence[str]]
    """Kinds that a mutating webhook rewrites before validation, and fields that it fills in."""
    unsigned: Sequence[str]
    """Fields that the system's webhooks read as uint32."""
    _written: list[Mapping[str, Any]]
    nulls: bool = False
    """Whether a null in a list is an empty string or 0, as Kubernetes reads its own kinds."""
    like: str = ""
    """For a CRD among the files: the release whose fields are nearest to its own. Empty for the
    newest."""
    _shapes: dict[tuple[int, str], Schema] = field(default_factory=dict)
    _roots: dict[tuple[int, str], tuple[Fields, Test]] = field(default_factory=dict)

    @property
    def patterns(self) -> frozenset[str]:
        """The regular expressions of its strings."""
        return frozenset(made["pattern"] for made in self._written if "pattern" in made)

    def place(self, asked: Release | None) -> int:
        """Return the index of the newest release up to the given one, by default of the newest."""
        last = len(self.releases) - 1
        if asked is None:
            return last
        same = [at for at, known in enumerate(self.releases) if known[:2] <= asked[:2]]
        return same[-1] if same else 0

    def number(self, kind: str, served: str, place: int) -> int | None:
        """Return the type of a kind in a release; None if the release does not serve it."""
        return _newest(self.kinds.get(kind, {}).get(served, ()), place)

    def is_scaled(self, kind: str, served: str, place: int) -> bool:
        """Return whether a kind has the scale subresource in a release."""
        return _newest(self.scaled.get(kind, {}).get(served, ()), place) is True

    def root(self, number: int, kind: str) -> tuple[Fields, Test]:
        """Return the shape of a kind by the number of its type, and its quick test."""
        kind = kind if kind in self.filled else ""
        if (number, kind) not in self._roots:
            shape = self._shape(number, kind)
            if not isinstance(shape, Fields):
                raise TypeError(f"type {number} of {self.title} is not a kind")
            fields = {**shape.fields, **_OF_EVERY_KIND}
            spec = fields.get("spec")
            needed = ("spec",) if isinstance(spec, Fields) and spec.required else ()
            required = tuple(dict.fromkeys((*shape.required, *needed)))
            shape = replace(shape, fields=fields, required=required)
            self._roots[number, kind] = shape, quick_test(shape)
        return self._roots[number, kind]

    def name(self, place: int) -> str:
        """Format a release: `Kthena 0.4`."""
        return f"{self.title} {'.'.join(map(str, self.releases[place][:2]))}".rstrip()

    def _shape(self, node: str | int, kind: str) -> Schema:
        if isinstance(node, str):
            # A webhook in Go accepts 0.5 as a quantity, and writes it in quotes.
            return _AMOUNT_IN_GO if kind and node == "quantity" else _SCALARS[node]
        if (node, kind) not in self._shapes:
            self._shapes[node, kind] = self._read(self._written[node], kind)
        return self._shapes[node, kind]

    def _read(self, made: Mapping[str, Any], kind: str) -> Schema:
        """Return the schema of one entry of a table of CRDs."""
        if "fields" in made:
            fields = {
                name: self._field(name, made["fields"][name], kind) for name in made["fields"]
            }
            required = tuple(made.get("required", ()))
            if kind:
                known = [name for name in required if name in fields]
                filled = {n for n in known if self._is_filled(n, fields[n], kind)}
                required = tuple(n for n in required if n not in filled)
            open_ = made.get("open", False)
            return Fields(fields=fields, required=required, partial=open_, **_numbers(made))
        if "map" in made:
            return Table(self._shape(made["map"], kind), **_numbers(made))
        if "list" in made:
            return Items(
                of=self._shape(made["list"], kind),
                keys=tuple(made.get("keys", ())),
                is_set=made.get("set", False),
                nulls=self.nulls,
                **_numbers(made),
            )
        if made["scalar"] == "string":
            return Text(
                one_of=tuple(made.get("enum", ())),
                shortest=made.get("shortest", 0),
                longest=made.get("longest"),
                pattern=made.get("pattern", ""),
                format=made.get("format", ""),
            )
        bits, words = 32 if made["scalar"] == "int32" else 64, tuple(made.get("enum", ()))
        return Whole(bits=bits, least=made.get("least"), most=made.get("most"), one_of=words)

    def _field(self, name: str, node: str | int, kind: str) -> Schema:
        shape = self._shape(node, kind)
        if name in self.unsigned and isinstance(shape, Whole):
            return replace(shape, bits=64, least=max(shape.least or 0, 0), most=2**32 - 1)
        return shape

    def _is_filled(self, name: str, shape: Schema, kind: str) -> bool:
        """Return whether a webhook fills in a missing field with a valid value."""
        if name in self.filled[kind]:
            return True
        zero = next((zero for of, zero in _ZEROS.items() if isinstance(shape, of)), None)
        return zero is not None and next(check_shape(zero, shape), None) is None


def _numbers(made: Mapping[str, Any]) -> dict[str, Any]:
    """Return the limits on the number of items, entries or fields."""
    return {"fewest": made.get("fewest", 0), "most": made.get("most")}


def _newest(forms: Sequence[tuple[int, V]], place: int) -> V | None:
    """Return what applies to a release: the last change up to it."""
    return next((found for since, found in reversed(forms) if since <= place), None)


@cache
def load(system: str) -> CrdTable | None:
    """Load the table in the folder of a system, or beside its module; None if it has none.

    Args:
        system: Dotted name of its package or module.
    """
    parent, _, name = system.rpartition(".")
    folder = resources.files(parent)
    path = folder.joinpath(name, "crds.json")
    if not path.is_file():
        path = folder.joinpath(f"{name}.crds.json")
    if not path.is_file():
        return None
    table = json.loads(path.read_text(encoding="utf-8"))
    releases = [str(release["version"]) for release in table["releases"]]
    kinds, scaled = (
        {
            kind: {
                served: [(releases.index(since), found) for since, found in forms]
                for served, forms in versions.items()
            }
            for kind, versions in table[part].items()
        }
        for part in ("kinds", "scaled")
    )
    known = tuple(map(read_release, releases))
    return CrdTable(
        table["title"], known, kinds, scaled, table["filled"], table["unsigned"], table["types"],
        nulls=table.get("nulls", False),
    )  # fmt: skip


def check_crd(
    body: Mapping[str, Any], kind: str, table: CrdTable, asked: Release | None
) -> Iterator[tuple[Finding, bool]]:
    """Report where an object violates its CRD, and whether another release would accept it.

    Args:
        table: The CRDs of its system.
        asked: The release that the cluster runs. None: the newest.
    """
    place, served = table.place(asked), body.get("apiVersion")
    known = table.kinds.get(kind)
    if known is None or not isinstance(served, str):
        return
    number = table.number(kind, served, place)
    if number is None:
        yield _not_served(served, list(known), table, kind, place)
        return
    shape, surely = table.root(number, kind)
    if surely(body):
        return
    others: dict[int, frozenset[str]] = {}
    moved: dict[str, Remedy] | None = None
    for finding in check_shape(body, shape):
        taken = None
        if finding.level is Level.MANDATORY:
            taken = _taken_by(finding, body, table, (kind, served, place), others)
        removed = taken is not None and taken < place
        if removed and finding.seen == MISSING and asked is None:
            # An older release fills it in, and the files do not say which one the cluster runs.
            finding = replace(finding, level=Level.ADVISORY)  # noqa: PLW2901 - the same finding
        if finding.seen == UNDECLARED and (taken is None or removed):
            moved = dict(moves(body, shape)) if moved is None else moved
            # A field that was removed is not misspelt.
            usual = remove() if removed and not fixes_of(finding.remedy) else finding.remedy
            remedy = moved.get(finding.path, usual)
            finding = replace(finding, remedy=remedy)  # noqa: PLW2901 - the same finding
        yield _worded(finding, table, kind, place, taken), taken is not None


def accepted_by(
    finding: Finding, body: Mapping[str, Any], kind: str, table: CrdTable
) -> str | None:
    """Return the newest release that accepts what a CRD among the files rejects."""
    served = body.get("apiVersion")
    if not isinstance(served, str):
        return None
    places = range(len(table.releases) - 1, -1, -1)
    found = _accepting(finding, body, table, (kind, served), places, others={})
    return None if found is None else table.name(found)


def _not_served(
    served: str, known: list[str], table: CrdTable, kind: str, place: int
) -> tuple[Finding, bool]:
    """Report a version that the release does not serve, and whether another release ever did.

    If no version of the kind is served, the remedy names the nearest release that serves it.
    """
    here = [word for word in known if table.number(kind, word, place) is not None]
    ever = served in known
    seen = f"is {display(served)}, in which {table.name(place)} serves no {kind}"
    remedy = suggest(served, here)
    if not here:
        remedy = f"use {table.name(_nearest_serving(kind, table, place))}"
    return Finding(path="apiVersion", seen=seen, remedy=remedy, rule="crd-schema"), ever


def _nearest_serving(kind: str, table: CrdTable, place: int) -> int:
    """Find the next release that serves a kind; for a removed kind, the last one that did."""
    serving = [
        at
        for at in range(len(table.releases))
        if any(table.number(kind, word, at) is not None for word in table.kinds[kind])
    ]
    return next((at for at in serving if at > place), serving[-1])


def _taken_by(
    finding: Finding,
    body: Mapping[str, Any],
    table: CrdTable,
    at: tuple[str, str, int],
    others: dict[int, frozenset[str]],
) -> int | None:
    """Find a release that accepts a rejected field or value: a newer one, or else an older one.

    An older one counts only if it has the field: it may have accepted a value without checking it.
    """
    kind, served, place = at
    older: Iterable[int] = range(place - 1, -1, -1) if finding.seen in (UNDECLARED, MISSING) else ()
    if finding.seen == MISSING:
        keys = finding.path.split(".")
        roots = ((other, table.number(kind, served, other)) for other in older)
        older = [
            other
            for other, number in roots
            if number is not None and _declares(table.root(number, kind)[0], keys)
        ]
    places = chain(range(place + 1, len(table.releases)), older)
    return _accepting(finding, body, table, (kind, served), places, others=others)


def _declares(shape: Schema, keys: Iterable[str]) -> bool:
    """Return whether a schema has the field at a path."""
    for key in keys:
        known = shape.fields.get(key.partition("[")[0]) if isinstance(shape, Fields) else None
        if known is None:
            return False
        shape = known.of if isinstance(known, Items) else known
    return True


def _accepting(
    finding: Finding,
    body: Mapping[str, Any],
    table: CrdTable,
    of: tuple[str, str],
    places: Iterable[int],
    *,
    others: dict[int, frozenset[str]],
) -> int | None:
    """Return the first of some releases that does not report a finding at its place."""
    kind, served = of
    for other in places:
        number = table.number(kind, served, other)
        if number is None:
            continue
        if other not in others:
            found = check_shape(body, table.root(number, kind)[0])
            others[other] = frozenset(f.path for f in found if f.level is Level.MANDATORY)
        if others[other].isdisjoint(_upwards(finding.path)):
            return other
    return None


def _upwards(path: str) -> Iterator[str]:
    """Yield a path and its parents."""
    yield path
    for at in range(len(path) - 1, 0, -1):
        if path[at] in ".[":
            yield path[:at]


def _worded(finding: Finding, table: CrdTable, kind: str, place: int, taken: int | None) -> Finding:
    """Name the checked release, and one that accepts what this one rejects."""
    seen, remedy, here = finding.seen, finding.remedy, table.name(place)
    undeclared = seen == UNDECLARED
    if undeclared:
        seen = f"is not a field of {kind} in {here}, which server-side apply and kubectl reject"
        remedy = remedy if len(remedy) <= _LONGEST_LIST else remove()
    if taken is None:
        return replace(finding, seen=seen, remedy=remedy)
    version = ".".join(map(str, table.releases[taken][:2]))
    seen += f"; {version} has it" if undeclared else f" in {here}; {version} accepts it"
    if taken > place:
        # A field of a newer release is not misspelt.
        remedy = either(remove() if undeclared else remedy, f"use {table.title} {version}")
    return replace(finding, seen=seen, remedy=remedy)
