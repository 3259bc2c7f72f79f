"""One stack, judged: what its preview tells, and how it ended."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kthena_components.cli.gpu_table import Gpus, Pair, gpus_of, pairs_of
from kthena_components.cli.preview import Preview, Said, Weight
from kthena_components.core.findings import RULE_FAULT, count_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviewed:
    """One stack, judged."""

    preview: Preview
    said: Sequence[Said]
    """What policies, the program and the review said, each thing once."""
    pairs: Sequence[Pair]
    gpus: Gpus

    @property
    def mandatory(self) -> int:
        """Mandatory findings."""
        return sum(said.weight is Weight.MANDATORY for said in self.said)

    @property
    def is_broken(self) -> bool:
        """Whether it came to no end, failed without a finding that says why, or a rule failed."""
        preview = self.preview
        unexplained = preview.failed and not self.mandatory
        faulty = any(said.rule == RULE_FAULT for said in self.said)
        return not preview.ended or preview.errors > 0 or unexplained or faulty

    @property
    def is_stopped(self) -> bool:
        """Whether the program stopped, so that what it had not registered yet is not known."""
        return self.preview.refusals > 0 or self.preview.errors > 0

    @property
    def verdict(self) -> str:
        """Say in a few words how it ended."""
        if self.mandatory:
            return f"**refused**, {count_of(self.mandatory, 'mandatory finding')}"
        return "**not judged**, its preview failed" if self.is_broken else "**passes**"


def reviewed(preview: Preview, more: Iterable[Said] = ()) -> Reviewed:
    """Put together what is known of a stack."""
    pairs = pairs_of(preview)
    said = _once([*preview.said, *more])
    return Reviewed(preview=preview, said=said, pairs=pairs, gpus=gpus_of(pairs))


def _once(said: Iterable[Said]) -> list[Said]:
    """Keep one of the findings that say the same of several resources, and count the others.

    The one kept is the nearest to what the user wrote: the program's, the component's. The order
    is always the same, because the engine's own is not.
    """
    found: dict[tuple[Weight, str, str], list[Said]] = {}
    for item in said:
        found.setdefault((item.weight, item.rule, item.sentence), []).append(item)
    ordered = [sorted(items, key=_nearness) for items in found.values()]
    kept = [replace(items[0], more=_others(items)) for items in ordered]
    weights = list(Weight)
    return sorted(kept, key=lambda item: (weights.index(item.weight), item.urn, item.text))


def _nearness(item: Said) -> tuple[int, str, str]:
    return item.urn.count("$") + bool(item.urn), item.urn, item.text


def _others(items: Sequence[Said]) -> int:
    return len({item.urn for item in items if item.urn} - {items[0].urn})
