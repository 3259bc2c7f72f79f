"""Counts the pods and accelerators of each engine of an object, for the table of a review.

The pods and GPUs are those of `Kind.pods` and `Kind.demand`, so the table's total equals what the
rule gpu-budget counts. The facts only add which pods form one engine.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from kthena_components.checker.manifest import Whole, read_whole
from kthena_components.checker.members import Places, templates
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.plan.report import Counts, counts_of, shape_of
from kthena_components.core.values.read import count_or_unknown
from kthena_components.core.values.unknown import MaybeInt, Unknown, product, total
from kthena_components.systems.kubernetes.rules.gpu_budget_and_type_rwx import gpus_of_pods
from kthena_components.systems.system import Body

_NOTHING = Counts(engines=0, pods=0, gpus=0)
_NO_ENGINE = Unknown("no engine is known in these pods")


def sizes_of(body: Body, *, namespace: str, backend: str) -> list[dict[str, Any]]:
    """Return a row for each engine of an object, and for its other pods with accelerators.

    Nothing for an object that neither starts an engine nor asks for accelerators.

    Args:
        namespace: Its namespace, as shown.
        backend: What runs it, in one word.
    """
    whole = read_whole(body)
    if whole is None or whole.facts is None:
        return []
    facts, made = whole.facts, _Made(whole)
    groups = _groups(whole)
    rows = shape_of(
        facts, namespace=namespace, backend=backend, groups=groups, counts=made.of_engines()
    )
    others = [
        {"serving": facts.name, "namespace": namespace, "role": name, "backend": backend,
         "groups": groups, "engines": _NO_ENGINE, "pods": counts.pods, "gpus": counts.gpus}
        for name, counts in made.of_others()
    ]  # fmt: skip
    return [*rows, *others] if others or _serves(facts) else []


def _groups(whole: Whole) -> MaybeInt:
    """Return the copies of all engines: of the field that states them, or else of the facts."""
    copies, facts = whole.kind.copies, whole.facts
    if whole.kind.kept is None:
        return 0
    if copies:
        return count_or_unknown(whole.found.spec.get(copies), copies, 1)
    return facts.copies if facts is not None else 1


def _serves(facts: ServingFacts) -> bool:
    """Return whether a manifest has accelerators or engines. Most objects of a stack do not."""
    pods = [pod for engine in facts.engines for pod in templates(engine)]
    started = (pod.command is not None and pod.command.engine is not None for pod in pods)
    return any(started) or any(pod.asks_for_gpus for pod in pods)


class _Made:
    """The pods of an object by engine, and its accelerators that belong to no engine."""

    def __init__(self, whole: Whole) -> None:
        """Assign each set of pods to engines; `alone` are the engines without a set."""
        facts, pods = whole.facts, whole.kind.pods
        self.engines = facts.engines if facts else ()
        self.copies: MaybeInt = facts.copies if facts else 1
        self.is_counted = whole.kind.kept is not None
        self.demand = whole.demand
        self.sets = [*pods(whole.view)] if pods is not None and self.is_counted else []
        # Where the demand is stated apart, pods without accelerators are part of it.
        self.gpus = [gpus_of_pods(one) for one in self.sets]
        if self.demand is not None:
            self.sets = [one for one, gpus in zip(self.sets, self.gpus, strict=True) if gpus != 0]
            self.gpus = [gpus for gpus in self.gpus if gpus != 0]
        found = zip(self.sets, self.gpus, strict=True)
        places = Places(self.engines)
        self.owners = [self._owners(places.owners(one), gpus) for one, gpus in found]
        self.sets_of: dict[int, list[int]] = {}
        for k, owners in enumerate(self.owners):
            for number in owners:
                self.sets_of.setdefault(number, []).append(k)
        self.alone = [k for k in range(len(self.engines)) if k not in self.sets_of]

    def _owners(self, found: list[int], gpus: MaybeInt) -> list[int]:
        """Return the engines that run in some pods; an object's only one has all accelerators."""
        return found or ([0] if len(self.engines) == 1 and gpus != 0 else [])

    def of_engines(self) -> list[Counts]:
        """Count the pods of each engine."""
        if not self.is_counted:
            return [_NOTHING for _ in self.engines]
        made = [self._of_engine(number, engine) for number, engine in enumerate(self.engines)]
        if self.demand is not None and len(self.alone) == 1:
            only = self.alone[0]
            made[only] = replace(made[only], gpus=self.demand.gpus)
        return made

    def _of_engine(self, number: int, engine: EngineFacts) -> Counts:
        mine = self.sets_of.get(number)
        if mine is None:
            return counts_of(engine, self.copies)
        pods = total(self.sets[k].count for k in mine)
        gpus = total(self._share(k, number) for k in mine)
        return Counts(engines=_engines(engine, pods), pods=pods, gpus=gpus)

    def _share(self, of: int, number: int) -> MaybeInt:
        """Count an engine's accelerators in the pods of one template.

        The first engine of a template has what the template's other engines do not have.
        """
        count, (first, *others) = self.sets[of].count, self.owners[of]
        if number != first:
            return product(count, self.engines[number].entry.all_gpus)
        beside = (product(count, self.engines[other].entry.all_gpus) for other in others)
        return _minus(self.gpus[of], total(beside))

    def of_others(self) -> Iterator[tuple[str, Counts]]:
        """Count the accelerators of no engine, with the name of their part of the object."""
        for pods, gpus, by in zip(self.sets, self.gpus, self.owners, strict=True):
            if not by and gpus != 0:
                yield pods.name, Counts(engines=_NO_ENGINE, pods=pods.count, gpus=gpus)
        if self.demand is not None and len(self.alone) != 1:
            counted = total(counts_of(self.engines[k], self.copies).gpus for k in self.alone)
            rest = 0 if isinstance(counted, Unknown) else _minus(self.demand.gpus, counted)
            if rest != 0:
                yield "", Counts(engines=_NO_ENGINE, pods=_NO_ENGINE, gpus=rest)


def _minus(one: MaybeInt, other: MaybeInt) -> MaybeInt:
    if isinstance(one, Unknown) or isinstance(other, Unknown):
        return one if isinstance(one, Unknown) else other
    return one - other


def _engines(engine: EngineFacts, pods: MaybeInt) -> MaybeInt:
    """Count the engines that some pods form. The other pods of one may be in another object."""
    if pods == 0 or isinstance(pods, Unknown):
        return pods
    each = engine.pods
    return each if isinstance(each, Unknown) else -(-pods // max(each, 1))
