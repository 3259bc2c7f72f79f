"""The review of one stack: what it has deployed, its preview, findings and result."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from kthena_components.checker.all_objects import memory_unchecked_in
from kthena_components.checker.secrecy import check_sealed
from kthena_components.cli.review.preview import STACK_TYPE, Preview, Said, Step, Weight
from kthena_components.cli.review.serving_sizes import Gpus, Pair, gpus_of, pairs_of, unregistered
from kthena_components.core.findings import RULE_FAULT, Finding, count_of
from kthena_components.core.hardware import NO_CHOICE, parse_choice
from kthena_components.core.objects.object import pulumi_identity
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import mapping, sequence
from kthena_components.core.values.unknown import Unknown
from kthena_components.reading.documents import broken_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviewed:
    """The review of one stack."""

    preview: Preview
    said: Sequence[Said]
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


def reviewed(preview: Preview, more: Iterable[Said] = ()) -> Reviewed:
    """Review a stack from its preview and further findings."""
    pairs = pairs_of(preview)
    if pairs and (preview.refusals or preview.errors):
        pairs += unregistered(preview)
    said = _once([*preview.said, *more])
    return Reviewed(preview=preview, said=said, pairs=pairs, gpus=gpus_of(pairs))


def unchecked_memory(preview: Preview) -> list[Finding]:
    """Say once that memory was not checked: what the policy pack says of a preview.

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


def _once(said: Iterable[Said]) -> list[Said]:
    """Keep one of several resources' equal findings, and count the others.

    It keeps the finding that is closest to the user's code: of the program, then of a component.
    The result is sorted, because the order of the engine's events is not stable.
    """
    found: dict[tuple[Weight, str, str, str], list[Said]] = {}
    for item in said:
        found.setdefault((item.weight, item.rule, item.sentence, item.of), []).append(item)
    ordered = [sorted(items, key=_nearness) for items in found.values()]
    kept = [replace(items[0], more=_others(items)) for items in ordered]
    weights = list(Weight)
    return sorted(kept, key=lambda item: (weights.index(item.weight), item.urn, item.of, item.text))


def _nearness(item: Said) -> tuple[int, str, str]:
    return item.urn.count("$") + bool(item.urn), item.urn, item.text


def _others(items: Sequence[Said]) -> int:
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
