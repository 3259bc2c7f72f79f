"""Rules about a branch that is to be merged: whether it weakens the checks.

The base's rules check the branch. Here the settings after the merge are compared with them, so that
a person sees the difference.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from kthena_components.core.findings import Finding, Waiver, count_of
from kthena_components.judge.waivers import FIELD, PREFIX, Stated, read_waiver

_RANKS: Mapping[str, int] = {"disabled": 0, "advisory": 1, "mandatory": 2}
_OTHERS = "*"
_SHOWN = 3
_LEVELS, _WAIVER, _LIMITS = "levels-weakened", "waiver-new", "limits-weakened"
_APPROVE = "or let a person who may decide it approve the branch"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyLevels:
    """The config of one policy."""

    enforced: str | None = None
    """mandatory, advisory or disabled; None if not stated."""
    weights: Mapping[str, str] = field(default_factory=dict)
    """Levels by rule, or * for all others. A rule that is not named keeps its own level."""
    budget: int | None = None
    types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelsChange:
    """One file of levels in the base, and in the branch."""

    file: str
    before: Mapping[str, PolicyLevels]
    """By policy."""
    after: Mapping[str, PolicyLevels] | None
    """None: the file is deleted or invalid."""
    rules: Mapping[str, str]
    """All rules with their default levels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StackChange:
    """The config of one stack in the base, and in the branch; keys without their namespace."""

    file: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    today: date


def levels_weakened(change: LevelsChange) -> Iterator[Finding]:
    """A branch lowers no rule's level.

    The rule compares the files of levels: the enforcement of each policy, the level of each rule,
    gpuBudget and gpuTypes. The base's levels apply to the branch in any case, so this reports the
    change after the merge.

    Pass: gpu-requests-equal-limits from advisory to mandatory.
    Fail: world-size-equals-gpus from mandatory to disabled; gpuBudget from 32 to 64; prod.json is
    deleted.
    Source: docs/security.md, A branch and its judge.
    """
    if change.after is None:
        seen = "is deleted or invalid, so each rule would have its default level"
        yield _weaker(change.file, seen, f"keep the file, {_APPROVE}", _LEVELS)
        return
    for policy, before in change.before.items():
        after = change.after.get(policy, PolicyLevels())
        path = f"{change.file}: {policy}"
        yield from _enforced(path, before, after)
        yield from _weights(path, before, after, change.rules)
        yield from _limits(path, before, after)


def _enforced(path: str, before: PolicyLevels, after: PolicyLevels) -> Iterator[Finding]:
    had, has = before.enforced, after.enforced
    # The policy pack's default applies if nothing is stated, and mandatory is the highest level.
    if had is not None and has is not None and _RANKS.get(has, 0) < _RANKS.get(had, 0):
        seen = f"would be {has}, and the base has {had}"
        remedy = f"write {had}, {_APPROVE}"
        yield _weaker(f"{path}.enforcementLevel", seen, remedy, _LEVELS)


def _weights(
    path: str, before: PolicyLevels, after: PolicyLevels, rules: Mapping[str, str]
) -> Iterator[Finding]:
    lowered = [
        f"{rule} ({had} → {has})"
        for rule, own in sorted(rules.items())
        for had, has in [(_weight(before, rule, own), _weight(after, rule, own))]
        if _RANKS.get(has, 0) < _RANKS.get(had, 0)
    ]
    if lowered:
        more = f" and {len(lowered) - _SHOWN} more" if len(lowered) > _SHOWN else ""
        seen = f"would lower the level of {count_of(len(lowered), 'rule')}: "
        seen += f"{', '.join(lowered[:_SHOWN])}{more}"
        yield _weaker(path, seen, f"keep the levels of the base, {_APPROVE}", _LEVELS)


def _limits(path: str, before: PolicyLevels, after: PolicyLevels) -> Iterator[Finding]:
    if before.budget is not None and (after.budget is None or after.budget > before.budget):
        yield _raised(f"{path}.gpuBudget", before.budget, after.budget, _LEVELS)
    if before.types and (not after.types or set(after.types) - set(before.types)):
        added = sorted(set(after.types) - set(before.types))
        seen = f"would allow {', '.join(added)} as well" if added else "would allow every GPU"
        remedy = f"keep {', '.join(before.types)}, {_APPROVE}"
        yield _weaker(f"{path}.gpuTypes", seen, remedy, _LEVELS)


def waiver_new(change: StackChange) -> Iterator[Finding]:
    """A waiver that a branch adds to a stack file applies after the merge, not in the branch.

    In the branch the finding is not suppressed; otherwise a branch could waive its own findings. A
    waiver with a later day is new, too.

    Pass: shm-present is waived until 2026-12-31 in the base and in the branch.
    Fail: the branch alone waives shm-present; the base does until 2026-12-31, the branch until
    2027-12-31.
    Source: docs/security.md, A branch and its judge.
    """
    for entry, waiver in new_waivers(change):
        seen = f"is new in this branch and does not apply to it: {waiver}"
        remedy = f"fix what '{entry.rule}' reports, {_APPROVE}"
        yield _weaker(f"{change.file}: {entry.path}", seen, remedy, _WAIVER)


def new_waivers(change: StackChange) -> Iterator[tuple[Stated, Waiver]]:
    """Return the waivers of a branch that its base does not have, or not for as long."""
    had = {(entry.path, entry.rule): waiver for entry, waiver in _waivers(change.before, change)}
    for entry, waiver in _waivers(change.after, change):
        known = had.get((entry.path, entry.rule))
        if known is None or known.until < waiver.until:
            yield entry, waiver


def _waivers(values: Mapping[str, Any], change: StackChange) -> Iterator[tuple[Stated, Waiver]]:
    for entry in _stated(values):
        read = read_waiver(entry, change.today)
        if isinstance(read, Waiver):
            yield entry, read


def _stated(root: Any) -> Iterator[Stated]:
    """Find waivers at any depth: below `waivers`, and as annotations of a template."""
    parts: list[tuple[str, Any]] = [("", root)]
    while parts:
        path, part = parts.pop()
        if isinstance(part, list):
            parts += [(f"{path}[{_name(item, i)}]", item) for i, item in enumerate(part)]
        if not isinstance(part, Mapping):
            continue
        for key, value in part.items():
            at = f"{path}.{key}".removeprefix(".")
            if isinstance(key, str) and key.startswith(PREFIX):
                yield Stated(rule=key.removeprefix(PREFIX), path=at, text=value)
            elif key == FIELD and isinstance(value, Mapping):
                for rule, text in value.items():
                    yield Stated(rule=str(rule), path=f"{at}.{rule}", text=text)
            else:
                parts.append((at, value))


def _name(item: Any, index: int) -> str:
    """Name an item of a list, so that its path does not depend on the order."""
    name = item.get("name") if isinstance(item, Mapping) else None
    return name if isinstance(name, str) else str(index)


def limits_weakened(change: StackChange) -> Iterator[Finding]:
    """A branch raises no limit that its base sets for a stack.

    The limits are gpu_budget, and allow_plain_secrets, which names the Secrets that may be written
    to files.

    Pass: gpu_budget from 32 to 16.
    Fail: gpu_budget from 16 to 32, or removed.
    Source: docs/security.md, A branch and its judge.
    """
    old, new = (_count(values.get("gpu_budget")) for values in (change.before, change.after))
    if old is not None and (new is None or new > old):
        yield _raised(f"{change.file}: gpu_budget", old, new, _LIMITS)
    plain = [_texts(values.get("allow_plain_secrets")) for values in (change.before, change.after)]
    if added := sorted(plain[1] - plain[0]):
        seen = f"would let {', '.join(added)} be written in plain text as well"
        path = f"{change.file}: allow_plain_secrets"
        yield _weaker(path, seen, f"remove it, {_APPROVE}", _LIMITS)


def _count(value: object) -> int | None:
    """Read a count as a stack file may contain it, as a number or as text."""
    text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None  # noqa: PLR2004


def _texts(value: object) -> set[str]:
    return {item for item in value if isinstance(item, str)} if isinstance(value, list) else set()


def _raised(path: str, before: int, after: int | None, rule: str) -> Finding:
    seen = f"would be {after}, and the base has {before}"
    seen = seen if after is not None else f"would be removed, and the base has {before}"
    return _weaker(path, seen, f"write {before}, {_APPROVE}", rule)


def _weaker(path: str, seen: str, remedy: str, rule: str) -> Finding:
    return Finding(path=path, seen=seen, remedy=remedy, rule=rule)


def _weight(levels: PolicyLevels, rule: str, own: str) -> str:
    return levels.weights.get(rule, levels.weights.get(_OTHERS, own))


LEVEL_RULES: tuple[Callable[[LevelsChange], Iterator[Finding]], ...] = (levels_weakened,)
"""Rules of a file of levels."""
STACK_RULES: tuple[Callable[[StackChange], Iterator[Finding]], ...] = (waiver_new, limits_weakened)
"""Rules of a stack file."""
