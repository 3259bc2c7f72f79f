"""What came from a secret is shown as `[secret]`, whichever rule quotes it, or a piece of it.

Rules quote words of command lines, keys, and numbers that follow from others. So nothing is looked
for in their sentences: they judge once more with `[secret]` in place of what is secret, and only
what they say then is shown. What is wrong, and how much it weighs, the first time alone decides.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from kthena_components.core.findings import RULE_FAULT, Finding, Level, Waiver
from kthena_components.core.values.unknown import OUTPUT_OPEN, is_unresolved

SECRET = "[secret]"  # noqa: S105 - what stands in place of one, as in Pulumi's own messages
SIGNATURE = "4dabf18193072939515e22adb298388d"
SECRET_SIGNATURE = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105 - a mark, nobody's secret
"""How Pulumi marks a secret. Source: pulumi sdk/go/common/resource/sig/sig.go."""
T = TypeVar("T")
_LOGIN = re.compile(r"(?<=//)[^/\s]+@")
_INDEX = re.compile(r"\[(\d+)\]")
_NOT_CHECKED = "was not checked, for a reason that is secret"
_BROKEN = "breaks this rule with a value that is secret"


@dataclass(frozen=True, slots=True)
class Sealed:
    """A value that is secret, where it stands in an object."""

    value: Any


def opened(tree: Any) -> Any:
    """Return an object as it is, and itself where nothing in it is sealed."""
    return _without_seals(tree, lambda value: value) if _is_sealed(tree) else tree


def hidden(tree: Any) -> Any:
    """Return an object without what is secret, and itself where nothing in it is sealed."""
    return _without_seals(tree, hide) if _is_sealed(tree) else tree


def _is_sealed(tree: Any) -> bool:
    if tree is None or isinstance(tree, str | int | float):
        return False
    if isinstance(tree, dict | list | tuple):
        return any(map(_is_sealed, tree.values() if isinstance(tree, dict) else tree))
    return isinstance(tree, Sealed)


def _without_seals(tree: Any, instead: Callable[[Any], Any]) -> Any:
    if isinstance(tree, Sealed):
        return instead(opened(tree.value))
    if isinstance(tree, dict):
        return {key: _without_seals(item, instead) for key, item in tree.items()}
    if isinstance(tree, list | tuple):
        return [_without_seals(item, instead) for item in tree]
    return tree


def hide(value: Any) -> Any:
    """Return what stands for a secret value: `[secret]`, unless it is a list or a map.

    Those are marked as a whole for one value in them, so they keep their shape, and words that are
    nobody's secret. What a preview does not know stays unknown.
    """
    if isinstance(value, Mapping | list | tuple):
        return _shape(value)
    return value if _is_unknown(value) else SECRET


def _shape(value: Any) -> Any:
    from kthena_components.judge.vocabulary import public_keys  # noqa: PLC0415

    if isinstance(value, Mapping):
        keys = public_keys()
        return {key if key in keys else SECRET: _shape(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_shape(item) for item in value]
    if isinstance(value, str) and not _is_unknown(value):
        return _words(value)
    return value if value is None else hide(value)


def _is_unknown(value: object) -> bool:
    return is_unresolved(value) and OUTPUT_OPEN not in str(value)


def _words(text: str) -> str:
    """Keep the words of a text that are nobody's secret, and `--option=` of `--option=value`."""
    from kthena_components.judge.vocabulary import public_words  # noqa: PLC0415

    public, kept = public_words(), [""]
    for word in text.split():
        head, sign, _ = word.partition("=" if word.startswith("-") else ":")
        shown = word if word in public else SECRET
        if sign and head in public:
            shown = f"{head}{sign}{SECRET}"
        if shown != SECRET or kept[-1] != SECRET:
            kept.append(shown)
    return " ".join(kept[1:])


def without_login(address: str) -> str:
    """Return an address without the name and the password before its host."""
    return _LOGIN.sub("", address)


def judge_sealed(judge: Callable[[Any], list[Finding]], tree: Any) -> list[Finding]:
    """Judge an object that may hold sealed values, and show none of them.

    Args:
        judge: What judges the object when it is opened.
        tree: The object.
    """
    body = opened(tree)
    found = judge(body)
    return found if body is tree or not found else conceal(found, judge, hidden(tree))


def conceal(
    found: Sequence[Finding], judge: Callable[[T], Iterable[Finding]], shadow: T, tree: Any = None
) -> list[Finding]:
    """Show what was found without what is secret: all that is told follows from the shadow.

    Args:
        found: What was found in an object.
        judge: What found it.
        shadow: The same object without what is secret.
        tree: What the paths of findings lead through, where that is not the shadow.
    """
    try:
        shown = list(judge(shadow))
    except Exception:  # noqa: BLE001 - then nothing is known that may be shown
        shown = []
    retold = _Retold(shown, frozenset(found), shadow if tree is None else tree)
    return list(dict.fromkeys(map(retold.tell, found)))


class _Retold:
    """What may be told instead of findings."""

    def __init__(self, shown: Sequence[Finding], found: Collection[Finding], tree: Any) -> None:
        self._shown = frozenset(shown)
        self._spare = [finding for finding in shown if finding not in found]
        self._paths = {finding.path for finding in shown}
        self._tree = tree

    def tell(self, finding: Finding) -> Finding:
        """Return a finding as it is when it does not depend on a secret, or what may be told."""
        if finding in self._shown or finding.rule == RULE_FAULT:
            return finding
        alike = next((item for item in self._spare if _is_retelling(item, finding)), None)
        said = _unsaid(finding, self._place(finding.path)) if alike is None else alike
        if alike is not None and not _fits(alike.remedy, finding.remedy):
            said = replace(alike, remedy=_remedy(finding.rule))
        return replace(said, waiver=self._waiver(finding.waiver))

    def _place(self, path: str) -> str:
        """Cut a path where it leaves what may be seen: keys of a secret map are secret too."""
        return path if path in self._paths else path[: _reach(path, self._tree)]

    def _waiver(self, waiver: Waiver | None) -> Waiver | None:
        """Return a waiver whose text stands somewhere in the open, and None for any other."""
        if waiver is None:
            return None
        texts = (" ".join(text.split()) for text in _texts(self._tree))
        day = str(waiver.until)
        return waiver if any(day in text and waiver.reason in text for text in texts) else None


def _is_retelling(shown: Finding, finding: Finding) -> bool:
    """Return whether a finding says the same as another one, with `[secret]` for some parts of it."""
    alike = (shown.rule, shown.level) == (finding.rule, finding.level)
    return alike and _fits(shown.path, finding.path) and _fits(shown.seen, finding.seen)


def _fits(pattern: str, text: str) -> bool:
    """Return whether a text is another one with anything in place of each `[secret]`."""
    first, *others = pattern.split(SECRET)
    if not others:
        return pattern == text
    *between, last = others
    if not text.startswith(first) or not text.endswith(last):
        return False
    at, end = len(first), len(text) - len(last)
    for part in between:
        found = text.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return at <= end


def _unsaid(finding: Finding, path: str) -> Finding:
    """Say that a rule has found something, and nothing of what it is."""
    said = _NOT_CHECKED if finding.level is Level.UNKNOWN else _BROKEN
    seen = f"{said} and so not shown: {SECRET}"
    return replace(finding, path=path, seen=seen, remedy=_remedy(finding.rule))


def _remedy(rule: str) -> str:
    from kthena_components.judge.vocabulary import rule_summary  # noqa: PLC0415

    summary = rule_summary(rule)
    return f"compare it with the rule: {summary}" if summary else ""


def _reach(path: str, tree: Any) -> int:
    """Count the characters of a path that lead to something in an object."""
    return max((_after(path, word, item) for word, item in _steps(path, tree)), default=0)


def _steps(path: str, tree: Any) -> Iterator[tuple[str, Any]]:
    """Return the ways to begin a path in an object."""
    if isinstance(tree, Mapping):
        words = ((str(key), item) for key, item in tree.items())
        yield from ((word, item) for word, item in words if word and path.startswith(word))
    elif isinstance(tree, Sequence) and not isinstance(tree, str):
        index = _INDEX.match(path)
        if index and int(index[1]) < len(tree):
            yield index[0], tree[int(index[1])]


def _after(path: str, word: str, item: Any) -> int:
    """Go on behind the first word of a path; 0 where it is the beginning of a longer word."""
    at = len(word)
    if path[at : at + 1] not in {"", ".", "["}:
        return 0
    dot = path[at : at + 1] == "."
    further = _reach(path[at + dot :], item)
    return at + dot + further if further else at


def _texts(tree: Any) -> Iterator[str]:
    """Return every text in an object."""
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, Mapping | list | tuple):
        for item in tree.values() if isinstance(tree, Mapping) else tree:
            yield from _texts(item)
