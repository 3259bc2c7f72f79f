"""Findings, and the only renderer of error text.

A finding has five parts: path, the observation with its numbers, the rule, what to write instead,
and the rule's name. All errors that this package reports about input are rendered here.
"""

import difflib
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from enum import StrEnum
from functools import wraps
from types import FrameType
from typing import Any, ParamSpec, TypeVar, TypeVarTuple

from kthena_components.core.remedies import Fix, moved, remove, rename, settled, write
from kthena_components.core.values.dataclass import dataclass, replace
from kthena_components.core.values.display import visible, visible_around_marks
from kthena_components.core.values.unknown import NotKnownError, Unknown, show_tokens

T = TypeVar("T")
P = ParamSpec("P")
Ts = TypeVarTuple("Ts")
RULE_FAULT = "rule-fault"
"""The rule of findings that report the failure of another rule."""
READING, READING_ALL = "reading the object", "reading the objects"
"""Parts that may fail besides rules."""
_SHORTEST_END = 4
"""Characters of a word that names another one by its end."""
_PACKAGE = __name__.partition(".")[0]


class Level(StrEnum):
    """Severity of a finding."""

    MANDATORY = "mandatory"
    ADVISORY = "advisory"
    UNKNOWN = "unknown"
    """Not checked: a value is not known yet. Never stops anything."""
    WAIVED = "waived"
    """Suppressed until the day that a waiver states. Never stops anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiver:
    """Until when a finding is suppressed, and why."""

    until: date
    """The last day on which it applies."""
    reason: str

    def __str__(self) -> str:
        """Write it as a clause, no full stop."""
        return f"waived until {self.until}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a rule reports about one place in the input."""

    path: str
    """Path in the caller's input: `roles[0].parallelism`."""
    seen: str
    """The observation with its numbers, and the rule that it violates. A clause, no full stop."""
    remedy: str = ""
    """What to write instead, in the imperative. No full stop. Empty for an unknown. A `Remedy` has
    the same as changes."""
    rule: str = ""
    """The rule's name in kebab case, as docs/policies.md lists it. Empty: whoever runs the rule
    fills in the name of its function."""
    level: Level = Level.MANDATORY
    most: Level = Level.MANDATORY
    """The highest level that an environment gives it: advisory for what is only probable."""
    waiver: Waiver | None = None
    """Why it is suppressed; None if the level is not `waived`."""

    def __str__(self) -> str:
        """Render as one line: `path: seen. Remedy. [rule]`. A late value is `<output>`."""
        waived = "" if self.waiver is None else str(self.waiver)
        sentences = [
            part[:1].upper() + part[1:] if i else part
            for i, part in enumerate((self.seen, self.remedy, waived))
            if part
        ]
        where = f"{self.path}: " if self.path else ""
        text = show_tokens(f"{where}{'. '.join(sentences)}. [{self.rule}]")
        return visible(text)

    @property
    def fixes(self) -> tuple[Fix, ...]:
        """The remedy as changes of fields and options; each fix is enough. Empty: a string only."""
        return settled(self.remedy, self.path)

    def at(self, place: Callable[[str], str]) -> "Finding":
        """Return the finding with its path, and those of its fixes, at another place."""
        return replace(self, path=place(self.path), remedy=moved(self.remedy, place))

    def under(self, prefix: str) -> "Finding":
        """Return the finding with its path below the caller's prefix."""
        return self.at(lambda path: join_path(prefix, path))


def today() -> date:
    """Return the day on which waivers are checked, in UTC: the same for everyone."""
    return datetime.now(UTC).date()


class SpecError(ValueError):
    """An input that cannot be planned, with all reasons at once."""

    def __init__(self, findings: Sequence[Finding], subject: str = "") -> None:
        """Keep the findings; the text lists one per line, under the subject if there is one."""
        self.findings = tuple(findings)
        self.subject = subject
        super().__init__(render_findings(self.findings, subject))


def render_findings(findings: Iterable[Finding], subject: str = "") -> str:
    """List findings, one per line, below a line that counts them."""
    lines = [str(finding) for finding in findings]
    if not subject:
        return "\n".join(lines)
    count = "1 problem" if len(lines) == 1 else f"{len(lines)} problems"
    return "\n".join([f"{subject}: {count}", *(f"  {line}" for line in lines)])


def check_by(
    rules: Iterable[Callable[[T], Iterable[Finding]]], view: T, path: str = ""
) -> list[Finding]:
    """Check something by every rule; all findings at once, without duplicates.

    Args:
        rules: Functions that yield findings with paths in the view.
        path: Its path in the caller's input; a prefix of every finding's path.
    """
    return [finding.under(path) for finding in dict.fromkeys(checked_by(rules, view))]


def checked_by(rules: Iterable[Callable[[T], Iterable[Finding]]], view: T) -> list[Finding]:
    """Return the findings of some rules. A rule that fails is a finding, and hides no other."""
    return _found_by(rules, (view,), {})


def run_rule(
    rule: Callable[..., Iterable[Finding]], *view: Any, name: str = "", **asked: Any
) -> list[Finding]:
    """Give what one rule finds. Where it fails, that is a finding too, and hides no other.

    A value that the rule needs and that is not known ends the rule, and is a finding, too.

    Args:
        rule: A function that yields findings.
        name: Name to report on failure; the rule's own name if left out.
        **asked: Further arguments of the rule.
    """
    return _found_by((rule,), view, asked, name)


def _found_by(
    rules: Iterable[Callable[..., Iterable[Finding]]],
    view: tuple[Any, ...],
    asked: Mapping[str, Any],
    name: str = "",
) -> list[Finding]:
    found: list[Finding] = []
    for rule in rules:  # one loop for all: a run calls some sixty rules for each object
        try:
            for finding in rule(*view, **asked):
                named = finding if finding.rule else replace(finding, rule=rule_name(rule))
                found.append(named)
        except NotKnownError as late:
            found.append(not_checked(late.path, late.gap, rule_name(rule)))
        except Exception as error:  # noqa: BLE001 - a mistake of ours must not hide other findings
            found.append(fault(name or f"the rule {rule_name(rule)}", error))
    return found


def part_of_rule(check: Callable[P, Iterable[Finding]]) -> Callable[P, Iterator[Finding]]:
    """Mark a part of a rule: a value that is not known ends the part, and not the rule."""

    @wraps(check)
    def checked(*view: P.args, **asked: P.kwargs) -> Iterator[Finding]:
        try:
            yield from check(*view, **asked)
        except NotKnownError as late:
            yield not_checked(late.path, late.gap)

    return checked


def each_of(
    parts: Callable[[T], Iterable[tuple[*Ts]]],
) -> Callable[[Callable[[*Ts], Iterable[Finding]]], Callable[[T], Iterator[Finding]]]:
    """Make a rule that checks each part of a view. What is not known in one hides no other."""

    def of(check: Callable[[*Ts], Iterable[Finding]]) -> Callable[[T], Iterator[Finding]]:
        """Turn a check of one part into a rule of all parts that `parts` lists."""
        checked = part_of_rule(check)

        @wraps(check)
        def rule(view: T) -> Iterator[Finding]:
            for part in parts(view):
                yield from checked(*part)

        return rule

    return of


def rule_name(rule: Callable[..., Any]) -> str:
    """Return the rule name of a rule function: the function's name in kebab case."""
    return rule.__name__.replace("_", "-")


def fault(what: str, error: Exception) -> Finding:
    """Report a failure of this package, without the error's text: it may quote input."""
    return Finding(
        path="",
        seen=f"was not checked, because {what} failed with {type(error).__name__}{_raised(error)}",
        remedy="please report it; the findings of other rules are complete",
        rule=RULE_FAULT,
        level=Level.UNKNOWN,
    )


def _raised(error: Exception) -> str:
    """Return the place in this package that raised an error."""
    place, trace = "", error.__traceback__
    while trace is not None:
        frame: FrameType = trace.tb_frame
        module = str(frame.f_globals.get("__name__"))
        if module.partition(".")[0] == _PACKAGE:
            place = f" at {module}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def once_each(findings: Iterable[Finding]) -> list[Finding]:
    """Remove duplicate findings. Of those at level not checked, keep one for each rule and path."""
    found: dict[object, Finding] = {}
    for finding in findings:
        is_open = finding.level is Level.UNKNOWN and finding.rule != RULE_FAULT
        found.setdefault((finding.rule, finding.path) if is_open else finding, finding)
    return list(found.values())


def join_path(prefix: str, path: str) -> str:
    """Join a prefix and a path: `roles[0]` and `name` give `roles[0].name`."""
    if not prefix or not path:
        return prefix or path
    return f"{prefix}{path}" if path.startswith("[") else f"{prefix}.{path}"


def paths_above(path: str, ends: str = ".[") -> list[str]:
    """Return the paths that a path begins with, and itself: `a`, `a[0]` and `a[0].b`."""
    return [*[path[:at] for at, letter in enumerate(path) if letter in ends], path]


def path_of(location: Iterable[str | int]) -> str:
    """Write a location of keys and indices as a path: `roles[0].parallelism.tensor`."""
    path = ""
    for part in location:
        path = join_path(path, f"[{part}]" if isinstance(part, int) else str(part))
    return path


def nearest(word: str, known: Iterable[str], alike: float = 0.6) -> str | None:
    """Find the most similar known word, ignoring case, dashes and underscores.

    Args:
        word: The word that is not known.
        alike: The least ratio of equal characters, from 0 to 1: more for words that are much alike.
    """
    plain: Mapping[str, str] = {_plain(item): item for item in known}
    close = difflib.get_close_matches(_plain(word), plain, n=1, cutoff=alike)
    return plain[close[0]] if close else None


def suggest(word: str, known: Iterable[str]) -> str:
    """Suggest the word that was probably meant, or list all words. A clause, no full stop."""
    words = sorted(known)
    close = nearest(word, words)
    return write(close) if close else f"known: {', '.join(words)}" if words else "add it"


def suggest_name(word: str, known: Iterable[str], stated: Container[str] = ()) -> str:
    """Suggest the name of a field that was probably meant, or list all names.

    Args:
        word: The name that is not known.
        known: All names.
        stated: The names that the object has already.
    """
    names, plain = tuple(known), _plain(word)
    ends = [name for name in map(_plain, names) if name.endswith(plain)]
    several = len(ends) > 1 and plain not in ends  # `port` may be hostPort or containerPort
    close = None if several else nearest(word, names) or with_same_end(word, names)
    if close is not None and close in stated:
        return remove(f"remove it, because {close} is stated, too")
    listed = f"known: {', '.join(sorted(names))}" if names else remove()
    return rename(close) if close is not None else listed


def with_same_end(word: str, known: Iterable[str]) -> str | None:
    """Find the one name that ends with a word, or with which it ends: `name` and `secretName`."""
    plain = word.casefold()
    pairs = ((name, name.casefold()) for name in known)
    found = [name for name, other in pairs if plain.endswith(other) or other.endswith(plain)]
    return found[0] if len(found) == 1 and len(plain) >= _SHORTEST_END else None


def count_of(number: object, word: str) -> str:
    """Write a count with its noun: `1 pod`, `2 pods`, `2 copies`."""
    plural = f"{word[:-1]}ies" if word.endswith("py") else f"{word}s"
    return f"{number} {word if number == 1 else plural}"


def _plain(word: str) -> str:
    return word.replace("-", "").replace("_", "").casefold()


def not_checked(path: str, gap: Unknown, rule: str = "") -> Finding:
    """Report that a rule could not check a place, and why."""
    seen = f"not checked, because {gap.because}"
    return Finding(path=path, seen=seen, rule=rule, level=Level.UNKNOWN)


_LONGEST = 1600


def tidy(finding: Finding) -> Finding:
    """Put a finding into one line of limited length, in which every character shows."""
    given = finding.path, finding.seen, finding.remedy
    path, seen, remedy = map(visible_around_marks, given)
    if (path, seen, remedy) == given and len(seen) + len(remedy) <= _LONGEST:
        return finding
    kept = finding.remedy if _cut(remedy) == finding.remedy else _cut(remedy)
    return replace(finding, path=path, seen=_cut(seen), remedy=kept)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST // 2 else f"{text[: _LONGEST // 2]}…"


def refuse(path: str, seen: str, remedy: str, rule: str = "") -> Finding:
    """Return a mandatory finding."""
    return Finding(path=path, seen=seen, remedy=remedy, rule=rule)


def advise(path: str, seen: str, remedy: str, rule: str = "") -> Finding:
    """Return an advisory finding."""
    return Finding(path=path, seen=seen, remedy=remedy, rule=rule, level=Level.ADVISORY)
