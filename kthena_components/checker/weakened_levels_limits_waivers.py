"""Rules about a branch that is to be merged: whether it weakens the checks.

The base's rules check the branch. Here the effects of the settings after the merge are compared
with the effects of those of the base, so that a person sees the difference.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import date
from typing import TYPE_CHECKING, Any

from kthena_components.checker.waivers import new_waivers
from kthena_components.core.findings import Finding, count_of, refuse
from kthena_components.core.hardware import NO_CHOICE, GpuChoice, parse_choice
from kthena_components.core.schema.versions import TITLES
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.regex import regex

if TYPE_CHECKING:  # enforcement reads the catalogue, which lists these rules
    from kthena_components.checker.enforcement import PackConfig, Reader

_RANKS: Mapping[str, int] = {"disabled": 0, "advisory": 1, "mandatory": 2}
_SHOWN, _LONGEST = 3, 80
_LEVELS, _WAIVER, _LIMITS = "levels-weakened", "waiver-new", "limits-weakened"
_BUDGET, _PLAIN, _SERVINGS = "gpu_budget", "allow_plain_secrets", "servings"
_GPU = "gpu"
_COUNT = regex(r"0|[1-9][0-9]{0,8}")
"""A count as every reader takes it: 08 is a string for some, and 1e1 a number for others."""
_APPROVE = "or let a person who may decide it approve the branch"


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelsChange:
    """The config of the policies for one stack in the base, and after the merge of the branch."""

    file: str
    before: "PackConfig | str"
    """The config, or a string with the reason why it cannot be used."""
    after: "PackConfig | str"
    is_deleted: bool = False
    """Whether only the base has the file."""
    rules: Mapping[str, tuple[str, ...]]
    """The levels that the findings of each rule may have before any config."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StackChange:
    """The config of one stack in the base, and in the branch; keys without their namespace."""

    file: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    today: date


def levels_weakened(change: LevelsChange) -> Iterator[Finding]:
    """A branch lowers no rule's level.

    The rule compares what the files of levels lead to, with Pulumi's and the policies' defaults:
    how each policy is enforced, how the findings of each rule end, gpuBudget, gpuTypes, the
    inventory into which pods must fit, the memory of the GPUs in gpu, and the releases of systems.
    A stack without a file has the defaults. A file that is not valid is a finding, too. The base's
    levels apply to the branch in any case, so this reports the change after the merge.

    Pass: gpu-requests-equal-limits from advisory to mandatory; disabled becomes advisory.
    Fail: world-size-equals-gpus from mandatory to disabled; gpuBudget from 32 to 64; inventory
    removed; a new "all": "disabled".
    Source: docs/security.md, Weaker checks.
    """
    if isinstance(change.before, str) or isinstance(change.after, str):
        yield _not_compared(change)
        return
    found = list(_others(change, change.before, change.after))
    pairs = {reader.title: reader for reader in change.after.readers}
    for before in change.before.readers:
        after = pairs.get(before.title)
        # The command line refuses a file without its entry, and repeats what the policies tell.
        if after is not None and (before.led or not found):
            found += _reader(change, before, after)
    yield from found


def _not_compared(change: LevelsChange) -> Finding:
    if isinstance(change.after, str):
        seen = (
            f"is not valid, so its levels were not compared with those of the base: {change.after}"
        )
        return refuse(change.file, seen, f"correct the file, {_APPROVE}", _LEVELS)
    seen = f"was not compared, because the file of the base is not valid: {change.before}"
    return refuse(change.file, seen, f"compare it by hand, {_APPROVE}", _LEVELS)


def _reader(change: LevelsChange, before: "Reader", after: "Reader") -> Iterator[Finding]:
    """Compare what one pair of policies, or the command line, does with the two configs."""
    path = f"{change.file}: {before.title}"
    yield from _rules(change, before, after)
    budget, asked = before.budget, after.settings.gpu_budget
    if budget is not None and (asked is None or asked > budget):
        yield _raised(f"{path}.gpuBudget", budget, asked, _LEVELS)
    yield from _types(f"{path}.gpuTypes", before, after)
    yield from _inventory(f"{path}.inventory", before.inventory, after.settings.inventory)
    if before.refuses != "disabled" or before.advises != "disabled":
        yield from _releases(path, before, after)
        yield from _gpus(f"{path}.gpu", before.settings.gpus, after.settings.gpus, _LEVELS)


def _rules(change: LevelsChange, before: "Reader", after: "Reader") -> Iterator[Finding]:
    """Report the policies that are enforced less, and the rules whose own level is lower."""
    found = before.lowered(after, change.rules)
    if not found:
        return
    ends = [(before.title, before.refuses, after.refuses)]
    ends += [(before.led, before.advises, after.advises)]
    ends = [(name, had, has) for name, had, has in ends if _RANKS[has] < _RANKS[had]]
    for name, had, has in ends:
        seen = f"would be {has}, and the base has {had}"
        path = f"{change.file}: {name}.enforcementLevel"
        yield refuse(path, seen + _gone(change), f"write {had}, {_APPROVE}", _LEVELS)
    own = before.in_force().lowered(after.in_force(), change.rules) if ends else found
    if own:
        names = [f"{rule} ({had} → {has})" for rule, (had, has) in sorted(own.items())]
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        seen = f"would lower the level of {count_of(len(names), 'rule')}: "
        seen += f"{', '.join(names[:_SHOWN])}{more}{_gone(change)}"
        path = f"{change.file}: {before.title}"
        yield refuse(path, seen, f"keep the levels of the base, {_APPROVE}", _LEVELS)


def _gone(change: LevelsChange) -> str:
    return ", because the branch deletes the file" if change.is_deleted else ""


def _types(path: str, before: "Reader", after: "Reader") -> Iterator[Finding]:
    for word, had, has in zip(("resource", "product"), before.types, after.listed, strict=True):
        if had and (not has or has - had):
            added = ", ".join(sorted(has - had)) if has else f"every {word}"
            seen = f"would allow {added} as well" if has else f"would allow {added}"
            yield refuse(path, seen, f"keep {', '.join(sorted(had))}, {_APPROVE}", _LEVELS)


def _inventory(path: str, had: str, has: str) -> Iterator[Finding]:
    """Report another inventory, too: it is not known which of two clusters has less room."""
    if had and had != has:
        seen = f"would be {has}" if has else "would be removed, so that no pods are placed"
        yield refuse(path, f"{seen}, and the base has {had}", f"keep {had}, {_APPROVE}", _LEVELS)


def _releases(path: str, before: "Reader", after: "Reader") -> Iterator[Finding]:
    """Report other releases: it is not known which of two releases has the stricter rules."""
    for system, has in after.releases.items():
        had = before.releases[system]
        if had != has:
            one, other = (".".join(map(str, release)) for release in (had, has))
            seen = f"would check objects of {TITLES[system]} by the rules of {other}, and the base "
            yield refuse(path, f"{seen}by the rules of {one}", f"keep {one}, {_APPROVE}", _LEVELS)


def _others(change: LevelsChange, old: "PackConfig", new: "PackConfig") -> Iterator[Finding]:
    """Compare policies that are not in this package. Their defaults and settings are unknown."""
    had, has = (side.every or "mandatory" for side in (old, new))
    if _RANKS[has] < _RANKS[had]:
        seen = f"would be {has}, and the base has {old.every or 'the default of each policy'}"
        yield refuse(f"{change.file}: all", seen, f"remove it, {_APPROVE}", _LEVELS)
    for policy in sorted({*old.others, *new.others}):
        path = f"{change.file}: {policy}"
        (had, asked), (has, asks) = (_other(side, policy) for side in (old, new))
        if had != has and _RANKS.get(has, 0) < _RANKS.get(had, 2):
            seen = f"would be {has}, and the base has {had}"
            yield refuse(f"{path}.enforcementLevel", seen, f"keep it, {_APPROVE}", _LEVELS)
        if asked != asks:
            seen = "would have other settings, which only its own pack can compare"
            yield refuse(path, seen, f"keep the settings of the base, {_APPROVE}", _LEVELS)


def _other(side: "PackConfig", policy: str) -> tuple[str, Mapping[str, Any]]:
    """Return the level that a side states for another policy, and its settings."""
    stated, settings = side.others.get(policy, (None, {}))
    return stated or side.every or "the default of its pack", settings


def waiver_new(change: StackChange) -> Iterator[Finding]:
    """A waiver that a branch adds to a stack file applies after the merge, not in the branch.

    In the branch the finding is not suppressed; otherwise a branch could waive its own findings. A
    waiver with a later day is new, too, and so is one for an object of another kind, namespace or
    name.

    Pass: shm-present is waived until 2026-12-31 in the base and in the branch.
    Fail: the branch alone waives shm-present; the base does until 2026-12-31, the branch until
    2027-12-31.
    Source: docs/security.md, Weaker checks.
    """
    for entry, waiver in new_waivers(change.before, change.after, change.today):
        seen = f"is new in this branch and does not apply to it: {waiver}"
        remedy = f"fix what '{entry.rule}' reports, {_APPROVE}"
        if waiver is None:
            seen = "cannot be read, and so was not compared with the base"
            remedy = f"write its last day and its reason as plain text, {_APPROVE}"
        yield refuse(f"{change.file}: {entry.path}", seen, remedy, _WAIVER)
    secret = _SERVINGS in change.after and _is_encrypted(change.after[_SERVINGS])
    if secret and change.before.get(_SERVINGS) != change.after[_SERVINGS]:
        seen = "is encrypted, so its waivers were not compared with the base"
        path = f"{change.file}: {_SERVINGS}"
        yield refuse(path, seen, f"write it in plain text, {_APPROVE}", _WAIVER)


def limits_weakened(change: StackChange) -> Iterator[Finding]:
    """A branch raises no limit that its base sets for a stack.

    The limits are gpu_budget, allow_plain_secrets, which names the Secrets that may be written to
    files, and gpu, whose memory the rules about memory compare with. A limit that cannot be read is
    not compared, and is a finding unless it stays.

    Pass: gpu_budget from 32 to 16; gpu from h200 to h100.
    Fail: gpu_budget from 16 to 32, or removed; from 16 to an encrypted value; gpu from h100 to
    h200, or removed.
    Source: docs/security.md, Weaker checks.
    """
    yield from _budget(change, f"{change.file}: {_BUDGET}")
    yield from _plain_secrets(change, f"{change.file}: {_PLAIN}")
    yield from _stated_gpus(change, f"{change.file}: {_GPU}")


def _budget(change: StackChange, path: str) -> Iterator[Finding]:
    """Report a stack's GPU budget that a branch removes, raises or makes unreadable."""
    had, has = (_Setting(values, _BUDGET) for values in (change.before, change.after))
    if not had.is_stated or had == has:
        return
    old, new = _count(had.value), _count(has.value)
    if old is None:
        seen = f"was not compared, because the base has {had}, which is not a count"
        yield refuse(path, seen, f"keep it, {_APPROVE}", _LIMITS)
    elif new is None and has.is_stated:
        seen = f"would be {has}, which is not a count, and the base has {old}"
        yield refuse(path, seen, f"write {old}, {_APPROVE}", _LIMITS)
    elif new is None or new > old:
        yield _raised(path, old, new, _LIMITS)


def _plain_secrets(change: StackChange, path: str) -> Iterator[Finding]:
    """Report Secrets that a branch newly allows to be written in plain text."""
    had, has = (_Setting(values, _PLAIN) for values in (change.before, change.after))
    if not has.is_stated or had == has:
        return
    old, new = _texts(had.value), _texts(has.value)
    if new is None:
        seen = f"would be {has}, which is not a list of names"
        yield refuse(path, seen, f"remove it, {_APPROVE}", _LIMITS)
    elif added := sorted(new - (old or set())):
        seen = f"would let {', '.join(added)} be written in plain text as well"
        yield refuse(path, seen, f"remove it, {_APPROVE}", _LIMITS)


def _stated_gpus(change: StackChange, path: str) -> Iterator[Finding]:
    """Report a stack's GPUs that a branch changes, by which the memory rules refuse less."""
    had, has = (_Setting(values, _GPU) for values in (change.before, change.after))
    if not had.is_stated or had == has:
        return
    old, new = (
        _choice(setting.value) if setting.is_stated else NO_CHOICE for setting in (had, has)
    )
    if old is None or new is None:
        whose = (
            f"would be {has}" if new is None else f"was not compared, because the base has {had}"
        )
        remedy = f"write names of GPUs, {_APPROVE}"
        yield refuse(path, f"{whose}, which names no known GPU", remedy, _LIMITS)
        return
    yield from _gpus(path, old, new, _LIMITS)


def _gpus(path: str, before: GpuChoice, after: GpuChoice, rule: str) -> Iterator[Finding]:
    """Report GPUs with more memory, and GPUs that are no longer named."""
    for pool, had, has in before.smaller_than(after):
        where = f" for '{pool[:_LONGEST]}'" if pool else ""
        seen = f"would name no GPU{where}"
        if has is not None:
            seen = f"would be {has.name} with {has.memory_gib:g} GiB{where}"
        seen += f", and the base has {had.name} with {had.memory_gib:g} GiB"
        yield refuse(path, seen, f"keep it, {_APPROVE}", rule)


def _choice(value: object) -> GpuChoice | None:
    choice = parse_choice([value]) if isinstance(value, str) and value else None
    return choice if isinstance(choice, GpuChoice) else None


class _Setting:
    """A setting as a stack file states it. 1, 1.0 and true are three different values."""

    def __init__(self, values: Mapping[str, Any], key: str) -> None:
        self.is_stated, self.value = key in values, values.get(key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Setting) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        return f"{self.is_stated} {self.value!r}"

    def __str__(self) -> str:
        return "an encrypted value" if _is_encrypted(self.value) else repr(self.value)[:_LONGEST]


def _is_encrypted(value: object) -> bool:
    return isinstance(value, Mapping) and set(value) == {"secure"}


def _count(value: object) -> int | None:
    """Read a count as a stack file may contain it, as a number or as text."""
    text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    return int(text) if _COUNT.fullmatch(text) else None


def _texts(value: object) -> set[str] | None:
    if not isinstance(value, list | None):
        return None
    names = value or []
    return None if any(not isinstance(item, str) for item in names) else set(names)


def _raised(path: str, before: int, after: int | None, rule: str) -> Finding:
    seen = f"would be {after}, and the base has {before}"
    seen = seen if after is not None else f"would be removed, and the base has {before}"
    return refuse(path, seen, f"write {before}, {_APPROVE}", rule)


LEVEL_RULES: tuple[Callable[[LevelsChange], Iterator[Finding]], ...] = (levels_weakened,)
"""Rules of a file of levels."""
BRANCH_RULES: tuple[Callable[[StackChange], Iterator[Finding]], ...] = (waiver_new, limits_weakened)
"""Rules of a stack file."""
