"""Shows values from secrets as `[secret]`, whichever rule quotes them in whole or in part.

Rules quote words of command lines, keys, and numbers derived from others. So sentences are not
searched: the rules check the object again with `[secret]` in place of secret values, and only these
second findings are shown. The first check alone decides what is wrong, and at which level.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, TypeVar

from kthena_components.core.findings import RULE_FAULT, Finding, Level, Waiver
from kthena_components.core.remedies import plain
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import SECRET
from kthena_components.core.values.read import texts_in
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import OUTPUT_OPEN, is_unresolved

SIGNATURE = "4dabf18193072939515e22adb298388d"
SECRET_SIGNATURE = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105 - a mark, not a secret
"""How Pulumi marks a secret. Source: pulumi sdk/go/common/resource/sig/sig.go."""
_PLAIN_TYPES = frozenset({bool, float, int, str, type(None)})
"""Types of values in which no other one is sealed. Most values are of these."""
T = TypeVar("T")
_LOGIN = regex(r"(?<=//)[^/\s]+@")
_INDEX = regex(r"\[(\d+)\]")
_NOT_CHECKED = "was not checked, for a reason that is secret"
_BROKEN = "breaks this rule with a value that is secret"


@dataclass(frozen=True, slots=True)
class Sealed:
    """A secret value, in place of the plain one in an object. Its text does not show the value."""

    value: Any = field(repr=False)


def opened(tree: Any) -> Any:
    """Return a copy of an object with secret values opened; the object itself if it has none."""
    return _without_seals(tree, lambda value: value) if is_sealed(tree) else tree


def hidden(tree: Any) -> Any:
    """Return a copy of an object without secret values; the object itself if it has none."""
    return _without_seals(tree, hide) if is_sealed(tree) else tree


def is_sealed(tree: Any) -> bool:
    """Return whether an object has a sealed value."""
    if isinstance(tree, dict | list | tuple):
        for item in tree.values() if isinstance(tree, dict) else tree:
            if type(item) not in _PLAIN_TYPES and is_sealed(item):
                return True
        return False
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
    """Return the placeholder of a secret value: `[secret]`, except for lists and maps.

    Pulumi marks a whole list or map for one value in it, so these keep their shape, and words that
    are not secret. Values that a preview does not know stay unknown.
    """
    if isinstance(value, Mapping | list | tuple):
        return _shape(value)
    return value if _is_unknown(value) else SECRET


def _shape(value: Any) -> Any:
    """Copy a value with the words of a secret hidden; keys of Kubernetes' schemas stay."""
    from kthena_components.checker.catalogue import public_keys  # noqa: PLC0415

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
    """Keep the words of a string that are not secret, and `--option=` of `--option=value`."""
    from kthena_components.checker.catalogue import public_words  # noqa: PLC0415

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
    """Return an address without the user name and password before its host."""
    return _LOGIN.sub("", address)


def check_sealed(check: Callable[[Any], list[Finding]], tree: Any) -> list[Finding]:
    """Check an object that may contain sealed values, without showing any of them.

    Args:
        check: The function that checks the opened object.
    """
    body = opened(tree)
    found = check(body)
    return found if body is tree or not found else conceal(found, check, hidden(tree))


def conceal(
    found: Sequence[Finding], check: Callable[[T], Iterable[Finding]], shadow: T, tree: Any = None
) -> list[Finding]:
    """Replace the findings of an object by the findings of its shadow, which show no secret.

    Args:
        found: Findings of an object.
        check: The function that found them.
        shadow: The same object without secret values.
        tree: The object that the paths of findings lead through, if not the shadow.
    """
    try:
        shown = list(check(shadow))
    except Exception:  # noqa: BLE001 - then nothing may be shown
        shown = []
    replacements = _Replacements(shown, frozenset(found), shadow if tree is None else tree)
    return list(dict.fromkeys(map(replacements.shown_for, found)))


class _Replacements:
    """Findings that may be shown instead."""

    def __init__(self, shown: Sequence[Finding], found: Collection[Finding], tree: Any) -> None:
        self._shown = {finding: finding.fixes for finding in shown}
        self._spare = [finding for finding in shown if finding not in found]
        self._paths = {finding.path for finding in shown}
        self._tree = tree

    def shown_for(self, finding: Finding) -> Finding:
        """Return a finding if it does not depend on a secret, else one that may be shown."""
        if finding in self._shown or finding.rule == RULE_FAULT:
            # A fix may hold a value that the text does not quote.
            same = self._shown.get(finding, ()) == finding.fixes
            return finding if same else replace(finding, remedy=plain(finding.remedy))
        alike = next((item for item in self._spare if _is_retelling(item, finding)), None)
        said = _unsaid(finding, self._place(finding.path)) if alike is None else alike
        if alike is not None and not _fits(alike.remedy, finding.remedy):
            said = replace(alike, remedy=_remedy(finding.rule))
        said = replace(said, remedy=plain(said.remedy))
        return replace(said, waiver=self._waiver(finding.waiver))

    def _place(self, path: str) -> str:
        """Cut a path before hidden keys: keys of a secret map are secret, too."""
        return path if path in self._paths else path[: _reach(path, self._tree)]

    def _waiver(self, waiver: Waiver | None) -> Waiver | None:
        """Return a waiver if its text is visible in the object, else None."""
        if waiver is None:
            return None
        texts = (" ".join(text.split()) for text in texts_in(self._tree))
        day = str(waiver.until)
        return waiver if any(day in text and waiver.reason in text for text in texts) else None


def _is_retelling(shown: Finding, finding: Finding) -> bool:
    """Return whether a finding equals another one, with `[secret]` for some parts of it."""
    alike = (shown.rule, shown.level) == (finding.rule, finding.level)
    return alike and _fits(shown.path, finding.path) and _fits(shown.seen, finding.seen)


def _fits(pattern: str, text: str) -> bool:
    """Return whether a pattern matches a string, with any string for each `[secret]`."""
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
    """Report that a rule has found something, without any details."""
    said = _NOT_CHECKED if finding.level is Level.UNKNOWN else _BROKEN
    seen = f"{said} and so not shown: {SECRET}"
    return replace(finding, path=path, seen=seen, remedy=_remedy(finding.rule))


def _remedy(rule: str) -> str:
    from kthena_components.checker.catalogue import rule_summary  # noqa: PLC0415

    summary = rule_summary(rule)
    return f"compare it with the rule: {summary}" if summary else ""


def _reach(path: str, tree: Any) -> int:
    """Count the characters of a path that lead to something in an object."""
    return max((_after(path, word, item) for word, item in _steps(path, tree)), default=0)


def _steps(path: str, tree: Any) -> Iterator[tuple[str, Any]]:
    """Return the possible first steps of a path in an object."""
    if isinstance(tree, Mapping):
        words = ((str(key), item) for key, item in tree.items())
        yield from ((word, item) for word, item in words if word and path.startswith(word))
    elif isinstance(tree, Sequence) and not isinstance(tree, str):
        index = _INDEX.match(path)
        if index and int(index[1]) < len(tree):
            yield index[0], tree[int(index[1])]


def _after(path: str, word: str, item: Any) -> int:
    """Continue after the first word of a path; 0 if it is the start of a longer word."""
    at = len(word)
    if path[at : at + 1] not in {"", ".", "["}:
        return 0
    dot = path[at : at + 1] == "."
    further = _reach(path[at + dot :], item)
    return at + dot + further if further else at
