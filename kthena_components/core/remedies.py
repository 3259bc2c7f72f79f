"""What to write instead: a string for people, and the same as changes that a program can apply.

A rule creates both at once. `write(8)` has the text `write 8` and one fix, which sets the field of
the finding to 8. A remedy without a single right value, such as `name one of the roles`, is a plain
text and has no fix.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from enum import Enum
from typing import Any, Final, Self

from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import listing
from kthena_components.core.values.unknown import OUTPUT_OPEN, is_unresolved


class _Removed(Enum):
    REMOVED = "removed"


REMOVED: Final = _Removed.REMOVED
"""The value of a change that takes a field or an option away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One field or one option of a command line, and its new value."""

    value: Any = REMOVED
    """The new value as in JSON; `REMOVED` takes the field or the option away. True for an option
    without a value, such as `--headless`."""
    name: str = ""
    """The new name of a field or an option that keeps its value. Empty: it keeps its name."""
    path: str | None = None
    """Path of the field, or of the words of a command line. None: the path of the finding."""
    option: str = ""
    """The option to change on the command line. Empty: the field itself."""

    def as_json(self) -> dict[str, Any]:
        """Return the change as JSON: path, option, and one of value, remove and rename."""
        named = {"option": self.option} if self.option else {}
        if self.name:
            return {"path": self.path or "", **named, "rename": self.name}
        said = {"remove": True} if self.value is REMOVED else {"value": self.value}
        return {"path": self.path or "", **named, **said}


Fix = tuple[Change, ...]
"""Changes that belong together."""


class Remedy(str):
    """The text of a remedy with its fixes: apply any one of them.

    It is a string, so that a rule may use it wherever it may use a plain one. What is derived from
    it as a string, such as an f-string, has no fixes.
    """

    __slots__ = ("fixes",)
    fixes: tuple[Fix, ...]

    def __new__(cls, text: str, fixes: Iterable[Fix] = ()) -> Self:
        """Make a string that carries fixes."""
        made = super().__new__(cls, text)
        made.fixes = tuple(fixes)
        return made

    def __getnewargs__(self) -> tuple[str, tuple[Fix, ...]]:  # type: ignore[override]
        """Return what a copy is made from."""
        return str(self), self.fixes

    def then(self, text: str) -> "Remedy":
        """Return it with more text, and the same fixes."""
        return Remedy(f"{self}{text}", self.fixes)


def plain(remedy: str) -> str:
    """Return the text of a remedy without its fixes."""
    return str.__str__(remedy)


def fixes_as_json(fixes: Iterable[Fix]) -> list[list[dict[str, Any]]]:
    """Return fixes as lists of changes."""
    return [[change.as_json() for change in fix] for fix in fixes]


def fixes_of(remedy: str) -> tuple[Fix, ...]:
    """Return the fixes of a remedy; none if it is a plain string."""
    return remedy.fixes if isinstance(remedy, Remedy) else ()


def moved(remedy: str, place: Callable[[str], str]) -> str:
    """Return a remedy whose changes have other paths."""
    return mapped(
        remedy, lambda each: each if each.path is None else replace(each, path=place(each.path))
    )


def mapped(remedy: str, change: Callable[[Change], Change | None]) -> str:
    """Return a remedy with other changes. A fix that loses a change is left out."""
    fixes = [[change(each) for each in fix] for fix in fixes_of(remedy)]
    whole = [tuple(each for each in fix if each is not None) for fix in fixes if None not in fix]
    return Remedy(remedy, whole) if fixes else remedy


def placed_at(remedy: str, path: str) -> str:
    """Return a remedy whose changes are at a path, and not at the path of the finding."""
    return mapped(remedy, lambda each: replace(each, path=path))


def write(value: Any, text: str = "", *, at: str | None = None) -> Remedy:
    """Set a field.

    Args:
        value: The new value as in JSON.
        text: The text; `write` and the value if left out.
        at: Path of the field, if it is not the path of the finding.
    """
    return Remedy(text or f"write {_shown(value)}", [(Change(value=value, path=at),)])


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"'{value}'" if isinstance(value, str) else str(value)


def remove(text: str = "remove it", *, at: str | None = None) -> Remedy:
    """Take a field away."""
    return Remedy(text, [(Change(value=REMOVED, path=at),)])


def rename(name: str, text: str = "", *, at: str | None = None) -> Remedy:
    """Give a field another name."""
    return Remedy(text or f"write '{name}'", [(Change(name=name, path=at),)])


def rename_option(old: str, new: str, text: str = "") -> Remedy:
    """Give an option of the finding's command line another name."""
    return Remedy(text or f"write {new}", [(Change(name=new, option=old),)])


def at_most(value: object) -> Remedy:
    """Set a field to its maximum."""
    return write(value, f"write at most {value}")


def or_less(value: int | str) -> Remedy:
    """Set a field to its maximum, in other words."""
    return write(value, f"write {value} or less")


def or_more(value: int | str) -> Remedy:
    """Set a field to its minimum."""
    return write(value, f"write {value} or more")


def at_least(value: int | str) -> Remedy:
    """Set a field to its minimum, in other words."""
    return write(value, f"write at least {value}")


def set_option(
    name: str, value: Any, text: str = "", *, then: str = "", at: str | None = None
) -> Remedy:
    """Set or add an option of the finding's command line.

    Args:
        value: Its value; True for one without a value.
        text: The text; `write`, or `add`, and the option if left out.
        then: What follows that text, such as ` or more`.
        at: Path of the command line, if it is not the path of the finding.
    """
    written = f"add {name}" if value is True else f"write {name} {value}"
    return Remedy(f"{text or written}{then}", [(Change(value=value, option=name, path=at),)])


def without(*names: str, text: str = "") -> Remedy:
    """Take options away from the finding's command line, all of them together."""
    said = text or f"remove {listing(names)}"
    return Remedy(said, [tuple(Change(value=REMOVED, option=name) for name in names)])


def either(*remedies: str, word: str = ", or ") -> Remedy:
    """Join remedies: apply any one of them. Those that are empty are left out."""
    given = [each for each in remedies if each]
    return Remedy(word.join(given), [fix for each in given for fix in fixes_of(each)])


class Elsewhere(Remedy):
    """What to write instead in this backend. Another one may take the field as it is.

    compiler/refusals.py adds which: it asks the limits of each.
    """

    __slots__ = ()


def elsewhere(*remedies: str) -> Elsewhere:
    """Join remedies for this backend; `name_takers` adds the backends that take the field."""
    here = either(*remedies)
    return Elsewhere(here, here.fixes)


def together(*remedies: Remedy, text: str = "") -> Remedy:
    """Join remedies that only work together; each has one fix."""
    fixes = [fix for each in remedies for fix in each.fixes[:1]]
    whole = len(fixes) == len(remedies)
    changes = dict.fromkeys(repr(change) for fix in fixes for change in fix)
    named = {repr(change): change for fix in fixes for change in fix}
    said = text or ", and ".join(remedies)
    return Remedy(said, [tuple(named[each] for each in changes)] if whole and named else [])


def settled(remedy: str, path: str) -> tuple[Fix, ...]:
    """Return the fixes of a finding at a path: each change with its own path, all values known."""
    placed = mapped(remedy, lambda each: replace(each, path=path) if each.path is None else each)
    return tuple(fix for fix in fixes_of(placed) if not any(map(_is_vague, fix)))


def _is_vague(change: Change) -> bool:
    """Return whether a value is not known yet, or a path is cut for a message."""
    return _is_late(change.value) or "…" in str(change.path)


def _is_late(value: Any) -> bool:
    """Return whether a value, or something in it, is not known yet."""
    if isinstance(value, Mapping | list | tuple):
        return any(map(_is_late, value.values() if isinstance(value, Mapping) else value))
    return is_unresolved(value) or (isinstance(value, str) and OUTPUT_OPEN in value)
