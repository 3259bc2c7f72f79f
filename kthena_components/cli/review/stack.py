"""The review of one stack: what it has deployed, its preview, findings and result."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kthena_components.checker.check_cluster_objects import memory_unchecked_in
from kthena_components.checker.manifest import read_manifest
from kthena_components.checker.secrecy import SECRET_SIGNATURE, SIGNATURE, check_sealed
from kthena_components.checker.sizes import sizes_of
from kthena_components.cli.review.preview import STACK_TYPE, Preview, PreviewFinding, Step, Weight
from kthena_components.core.findings import RULE_FAULT, Finding, count_of
from kthena_components.core.hardware import NO_CHOICE, parse_choice
from kthena_components.core.objects.object import pulumi_identity
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display
from kthena_components.core.values.read import mapping, sequence
from kthena_components.core.values.unknown import Unknown, is_unresolved
from kthena_components.reading.documents import broken_json

# Sizes of servings before and after a change, from components and from any manifests.
#
# A row contains only counts and names. No other value of a manifest leaves this module.


UNKNOWN = "?"
ARROW = " → "
_MOST = 2**53
_SIZES = ("tensor", "pipeline", "data", "context")
_NAMES = ("serving", "namespace", "role", "backend")
_LONGEST_NAME = 253
_COUNTS = ("groups", "engines", "pods", "gpus_per_pod", "world_size", "gpus")

Row = Mapping[str, Any]
Key = tuple[str, str, str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One role of a serving, before and after. None if it does not exist at that time."""

    before: Row | None
    after: Row | None
    is_registered: bool = True
    """Whether the program registered it; if not, both are as deployed."""
    is_refused: bool = False
    """Whether the program stopped because of it. Both are as deployed, or None if it is new."""

    @property
    def is_changed(self) -> bool:
        """Whether any of its numbers changes."""
        return self.before is None or self.after is None or _key(self.before) != _key(self.after)

    def cell(self, key: str) -> str:
        """Write one value, or two with an arrow."""
        return between(*(None if row is None else _cell(row, key) for row in self._rows))

    @property
    def sizes(self) -> str:
        """Write the parallelism as the table of `up` does."""
        return between(*(None if row is None else _parallelism(row) for row in self._rows))

    @property
    def _rows(self) -> tuple[Row | None, Row | None]:
        return self.before, self.after


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpus:
    """GPUs of a stack."""

    before: int
    after: int
    not_known: int
    """Number of rows whose GPUs are unknown. The sums do not include them."""

    def __add__(self, other: "Gpus") -> "Gpus":
        return Gpus(
            before=self.before + other.before,
            after=self.after + other.after,
            not_known=self.not_known + other.not_known,
        )

    def __str__(self) -> str:
        added = self.after - self.before
        text = between(str(self.before), str(self.after))
        text += f" ({added:+d})" if added else ""
        roles = count_of(self.not_known, "role")
        missing = f", plus {roles} with an unknown number" if self.not_known else ""
        return f"{text}{missing}"


def between(before: str | None, after: str | None) -> str:
    """Write the value before and after, or one value if they are the same."""
    if before is None or after is None or before == after:
        return next(text for text in (after, before, "") if text is not None)
    return f"{before}{ARROW}{after}"


def pairs_of(preview: Preview) -> list[Pair]:
    """Pair the rows of a preview, sorted by serving: the engine's order is not stable."""
    before = _numbered(row for step in preview.steps.values() for row in _rows(step, step.old))
    after = _numbered(row for step in preview.steps.values() for row in _rows(step, step.new))
    keys = sorted(dict.fromkeys([*after, *before]), key=lambda key: key[:2])
    return [Pair(before=before.get(key), after=after.get(key)) for key in keys]


def unregistered(preview: Preview) -> list[Pair]:
    """Return the deployed sizes of resources that a program did not register before it stopped.

    A component that was refused and is new has a row with its name alone.
    """
    refused = {said.of for said in preview.said if said.of}
    refused -= set(map(_title, preview.steps.values()))
    steps = [step for urn, step in preview.deployed.items() if urn not in preview.steps]
    pairs = []
    for step in steps:
        is_refused = _title(step) in refused
        refused -= {_title(step)}
        pairs += [
            Pair(before=row, after=row, is_registered=False, is_refused=is_refused)
            for row in _rows(step, step.old)
        ]
    pairs += [Pair(before=None, after=_unknown(of), is_registered=False, is_refused=True)
              for of in refused if of.startswith("ModelServing ")]  # fmt: skip
    return sorted(pairs, key=lambda pair: _place(pair.after or {}))


def deployed(preview: Preview) -> list[Pair]:
    """Return the rows that the last update exported, or else those of the state."""
    roots = (step for step in preview.steps.values() if step.type == STACK_TYPE)
    rows = [_whole(mapping(row)) for s in roots for row in sequence(s.outputs.get("servings"))]
    return [Pair(before=row, after=row) for row in rows] or [
        replace(pair, is_registered=True) for pair in unregistered(preview)
    ]


def _title(step: Step) -> str:
    """Write a component as its refusal names it."""
    return f"{step.kind} {step.name}" if step.type.startswith("kthena:") else ""


def _unknown(of: str) -> Row:
    return _whole({"serving": of.partition(" ")[2], **dict.fromkeys((*_COUNTS, *_SIZES))})


def _place(row: Row) -> tuple[str, str]:
    return str(row.get("namespace")), str(row.get("serving"))


def gpus_of(pairs: Iterable[Pair]) -> Gpus:
    """Sum the GPUs of pairs."""
    total = Gpus(before=0, after=0, not_known=0)
    for pair in pairs:
        counts = [0 if row is None else row.get("gpus") for row in (pair.before, pair.after)]
        known = [n if isinstance(n, int) and not isinstance(n, bool) else None for n in counts]
        missing = int(None in known)
        total += Gpus(before=known[0] or 0, after=known[1] or 0, not_known=missing)
    return total


def _rows(step: Step, inputs: Mapping[str, Any]) -> list[Row]:
    """Return the rows of a resource: from a component's `shape`, or read from a manifest."""
    if step.type.startswith("kthena:"):
        return [_whole(mapping(row)) for row in sequence(inputs.get("shape"))]
    if not inputs or not step.type.startswith("kubernetes:") or step.is_ours:
        return []
    body = {**inputs, **pulumi_identity(step.type)}
    spec, metadata = mapping(body.get("spec")), mapping(body.get("metadata"))
    namespace = metadata.get("namespace")
    named = isinstance(namespace, str) and not is_unresolved(namespace)
    if _is_sealed(spec) and read_manifest(body) is not None:
        return [_whole({"serving": metadata.get("name"), "namespace": namespace,
                        "backend": step.kind, **dict.fromkeys((*_COUNTS, *_SIZES))})]  # fmt: skip
    rows = sizes_of(body, namespace=str(namespace) if named else "", backend=step.kind)
    return [_whole(row) for row in rows]


def _is_sealed(part: Any) -> bool:
    """Return whether a value contains a secret. The provider hides whole lists for one secret."""
    parts = [part]
    while parts:
        item = parts.pop()
        if isinstance(item, Mapping):
            if item.get(SIGNATURE) == SECRET_SIGNATURE:
                return True
            parts += item.values()
        elif isinstance(item, list):
            parts += item
    return False


def _whole(row: Row) -> Row:
    """Keep the columns of the table, as counts and names."""
    kept = {key: row[key] for key in (*_COUNTS, *_SIZES) if key in row}
    named = {key: _name(row.get(key)) for key in _NAMES}
    return {**{key: _count(value) for key, value in kept.items()}, **named}


def _name(value: object) -> str:
    if isinstance(value, str) and not is_unresolved(value):
        return value[:_LONGEST_NAME]
    return UNKNOWN


def _count(value: object) -> int | str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return UNKNOWN
    return int(value) if -1 < value < _MOST else UNKNOWN


def _numbered(rows: Iterable[Row]) -> dict[Key, Row]:
    """Return rows by serving and role, numbered if several have the same names."""
    known: dict[Key, Row] = {}
    counts: dict[tuple[str, str, str], int] = {}
    for row in rows:
        whose = row["namespace"], row["serving"], row["role"]
        number = counts[whose] = counts.get(whose, -1) + 1
        known[*whose, number] = row
    return known


def _key(row: Row) -> list[Any]:
    return [row.get(key) for key in (*_COUNTS, *_SIZES, "backend")]


def _cell(row: Row, key: str) -> str:
    value = row.get(key, UNKNOWN)
    return value if isinstance(value, str) else display(value)


def _parallelism(row: Row) -> str:
    sizes = [_cell(row, key) for key in _SIZES[:3]]
    return " × ".join(sizes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviewed:
    """The review of one stack."""

    preview: Preview
    said: Sequence[PreviewFinding]
    """Findings of the policies, the program and the review, without duplicates."""
    pairs: Sequence[Pair]
    gpus: Gpus
    placement: Sequence[str] = ()
    """Whether its pods fit into a cluster, as parts of the comment; none without an inventory."""

    @property
    def mandatory(self) -> int:
        """The number of mandatory findings."""
        return sum(said.weight is Weight.MANDATORY for said in self.said)

    @property
    def is_broken(self) -> bool:
        """Whether the preview did not finish, failed without a finding, or a rule failed."""
        preview = self.preview
        unexplained = preview.failed and not self.mandatory
        faulty = any(said.rule == RULE_FAULT for said in self.said)
        return not preview.ended or preview.errors > 0 or unexplained or faulty

    @property
    def is_stopped(self) -> bool:
        """Whether the program stopped early, so that some resources are missing."""
        return self.preview.refusals > 0 or self.preview.errors > 0

    @property
    def verdict(self) -> str:
        """The result in a few words."""
        if self.mandatory:
            return f"**fails**, {count_of(self.mandatory, 'mandatory finding')}"
        return "**not checked**, the preview failed" if self.is_broken else "**passes**"


def reviewed(preview: Preview, more: Iterable[PreviewFinding] = ()) -> Reviewed:
    """Review a stack from its preview and further findings."""
    pairs = pairs_of(preview)
    if pairs and (preview.refusals or preview.errors):
        pairs += unregistered(preview)
    said = _once([*preview.said, *more])
    return Reviewed(preview=preview, said=said, pairs=pairs, gpus=gpus_of(pairs))


def unchecked_memory(preview: Preview) -> list[Finding]:
    """Return the policy pack's findings about memory that was not checked, each once.

    A stopped preview lacks objects, and one with the pack has the pack's answer.
    """
    if preview.packs or preview.refusals or preview.errors:
        return []
    gpus = parse_choice([preview.gpu] if preview.gpu else [])
    if isinstance(gpus, Unknown):
        gpus = NO_CHOICE
    bodies = {
        step.urn: {**step.new, **pulumi_identity(step.type)}
        for step in preview.steps.values()
        if step.new and step.op != "delete" and step.type.startswith("kubernetes:")
    }
    return check_sealed(lambda found: list(memory_unchecked_in(found.values(), gpus)), bodies)


def _once(said: Iterable[PreviewFinding]) -> list[PreviewFinding]:
    """Keep one of several resources' equal findings, and count the others.

    It keeps the finding that is closest to the user's code: of the program, then of a component.
    The result is sorted, because the order of the engine's events is not stable.
    """
    found: dict[tuple[Weight, str, str, str], list[PreviewFinding]] = {}
    for item in said:
        found.setdefault((item.weight, item.rule, item.sentence, item.of), []).append(item)
    ordered = [sorted(items, key=_nearness) for items in found.values()]
    kept = [replace(items[0], more=_others(items)) for items in ordered]
    weights = list(Weight)
    return sorted(kept, key=lambda item: (weights.index(item.weight), item.urn, item.of, item.text))


def _nearness(item: PreviewFinding) -> tuple[int, str, str]:
    return item.urn.count("$") + bool(item.urn), item.urn, item.text


def _others(items: Sequence[PreviewFinding]) -> int:
    """Count the other findings. A program reports all findings of its servings at one resource."""
    first = items[0]
    others = len({item.urn for item in items if item.urn} - {first.urn})
    if first.urn and first.urn.split("::")[2:3] != [STACK_TYPE]:
        return others
    return others + len({item.text for item in items if item.urn == first.urn}) - 1


class StateError(ValueError):
    """A file is not the state of a stack. The text is the reason."""


def read_state(path: str) -> dict[str, Step]:
    """Read the deployed resources from `pulumi stack export`, each as a step that changes nothing.

    A preview tells nothing of the resources that a stopped program did not register. The state has
    their inputs, by URN; secrets in it stay encrypted.

    Raises:
        StateError: The file is missing or is not a state.
    """
    try:
        stated = mapping(json.loads(Path(path).read_text(encoding="utf-8")))
    except (OSError, ValueError, RecursionError) as error:
        why = error.strerror if isinstance(error, OSError) else f"it {broken_json(error)}"
        raise StateError(f"{path}: cannot read the state: {why}") from error
    deployment = stated.get("deployment")
    if not isinstance(deployment, dict):
        raise StateError(f"{path}: has no 'deployment'; write it with 'pulumi stack export --file'")
    found: dict[str, Step] = {}
    for item in sequence(deployment.get("resources")):
        resource = mapping(item)
        urn, inputs = resource.get("urn"), mapping(resource.get("inputs"))
        if isinstance(urn, str) and not resource.get("delete"):  # a leftover of a replacement
            outputs = mapping(resource.get("outputs"))
            found[urn] = Step(op="same", urn=urn, old=inputs, new=inputs, outputs=outputs, paths=())
    return found
