"""Reads an engine's arguments, whatever they are: the value of every option, every mistake."""

from collections.abc import Sequence
from dataclasses import field, fields, replace
from types import MappingProxyType
from typing import Any

from kthena_components.core.engines.argv import (
    WrittenField,
    following,
    is_flag,
    is_line,
    pieces,
    read_plain,
    rejects_rest,
    words_of,
)
from kthena_components.core.engines.dialects import option_elsewhere, taken_elsewhere
from kthena_components.core.engines.facts import CommandFacts, Problem, capped
from kthena_components.core.engines.mistakes import (
    Mistake,
    abbreviated,
    misshaped,
    no_json,
    no_value,
    not_accepted,
    not_taken,
    repeated,
    successor,
    valued,
)
from kthena_components.core.engines.options import Dialect, Meaning, Option, understand
from kthena_components.core.engines.placeholders import Scope, has_gap, visible_devices
from kthena_components.core.engines.shapes import meant_option
from kthena_components.core.engines.values import (
    REFUSED,
    Refused,
    convert,
    read_value,
    stated,
    unexpanded,
)
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.unknown import MaybeText, Unknown

_SWITCH_LIKE = ("--no-", "--enable-", "--disable-")
_FIELDS = frozenset(f.name for f in fields(CommandFacts))
_ANYTHING = Option("", type="any-json")
_MAX_GUESSES = 200
"""Unknown flags per command line that get a suggestion, which takes a millisecond each."""


@dataclass(slots=True)
class Reading:
    """The arguments of one engine command."""

    dialect: Dialect
    scope: Scope
    values: dict[str, Any] = field(default_factory=dict)
    """Field to value: int, float, str, bool, a tuple of str, None or Unknown."""
    options: dict[str, Any] = field(default_factory=dict)
    """Whole value of every option on the command line, by its first long spelling."""
    where: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    bare: list[str] = field(default_factory=list)
    """Words that belong to no flag, in order."""
    flags: list[tuple[str, Option]] = field(default_factory=list)
    """Each flag that is set, as written."""
    hidden: Unknown | None = None
    """Why options may be set where they cannot be read; None if that is impossible."""
    doubts: dict[str, Unknown] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)
    """Values of options with unknown parts, as written."""
    _given: dict[str, dict[str, str]] = field(default_factory=dict)
    _guesses: int = 0
    _ended: bool = False
    """Whether a bare word stands behind `--`."""

    def read(self, words: Sequence[str]) -> "Reading":
        """Read all arguments."""
        self._items(words, lines=not self.scope.in_shell)
        for name, given in self._given.items():
            if len(given) > 1:
                option = next(option for _, option in self.flags if option.field == name)
                self.problem(option.name, repeated(option, list(given.values()), self.dialect))
        return self

    def _items(self, items: Sequence[str], *, lines: bool) -> None:
        """Read words in argparse's order: values of options, lines, and positional words."""
        at, end, after_hyphens, in_shell = 0, len(items), False, self.scope.in_shell
        while at < end:
            word, at = items[at], at + 1
            after = items[at] if at < end else ""
            plain = read_plain(self.dialect, word, after, in_shell=in_shell)
            if plain is not None and not after_hyphens:
                self.options[plain.option.name] = plain.value
                if plain.option.use is not None:
                    self._set(plain.option, plain.field, plain.said)
                at += plain.taken
            elif word == "--" and not after_hyphens:
                after_hyphens = True
            elif lines and not after_hyphens and is_line(word):
                self._line(word)
            elif is_flag(word) and not after_hyphens:
                at = self._flag(word, items, at)
            else:
                at = self._bare(word, items, at, after_hyphens=after_hyphens)

    def _bare(self, word: str, items: Sequence[str], at: int, *, after_hyphens: bool) -> int:
        """Read a word that is not a flag; the values of an option in it are not flags either."""
        meant = meant_option(word, self.dialect, after_hyphens=after_hyphens)
        if meant is None or not self.dialect.complete:
            self.bare.append(word)
            self._ended = self._ended or after_hyphens
            return at
        option = understand(meant.flag, self.dialect).option or _ANYTHING
        unknown = self.problem(
            meant.flag, misshaped(self.scope.show(word.partition("=")[0]), meant)
        )
        self.doubts[option.field] = unknown
        given = () if "=" in word else following(option, items, at)
        return at + len(given)

    def _line(self, word: str) -> None:
        """Read one list item with a whole line of flags, a common mistake without a shell."""
        first = word.split(maxsplit=1)[0]
        # With a `=` the rest of the line is the value; without, the whole line is a bare word.
        alone = self.dialect.complete and ("=" not in first or rejects_rest(self.dialect, word))
        shown = self.scope.show(word)
        text = f"the list item '{shown}' contains several words, and no shell splits it"
        self.problem(first, Mistake(text, "write each word as its own item", hard=alone))
        self._items(pieces(word), lines=False)

    def get(self, name: str, default: Any) -> Any:
        """Return a field's value, or its default if nothing can have set it."""
        default = default if self.hidden is None else self.hidden
        return self.values.get(name, self.doubts.get(name, default))

    def hide(self, because: str) -> None:
        """Record that options may be set where they cannot be read."""
        self.hidden = self.hidden or Unknown(because)

    def take_model(self, *, positional: bool) -> None:
        """Take the model from the bare words, and record those that may contain flags."""
        rest = self.bare
        if positional and rest and not (has_gap(rest[0]) and "model" in self.values):
            model = self.scope.read(rest[0])
            refused = self._unexpanded("the model", self.scope.show(rest[0]), model)
            self.values["model"] = self._refuse("model", refused) if refused else model
            self.where["model"] = self.scope.show(rest[0])
            rest = rest[1:]
        if (opaque := next(filter(has_gap, rest), None)) is not None:
            self.hide(f"{self.scope.show(opaque)} may contain any flag")
        # After an unknown word, a bare word may be a value.
        sure = self.hidden is None and not any(map(has_gap, self.bare))
        if rest and sure and self.dialect.complete:
            shown, sure = self.scope.show(" ".join(map(self.scope.show, rest))), self._ended
            wrong = not_taken(shown, self.dialect, positional=positional, sure=sure)
            self.problem(rest[0], wrong)

    def facts(self, engine: str, **more: Any) -> CommandFacts:
        """Give what the flags of this dialect can state, and more; the rest has its default."""
        stated = {**self.doubts, **self.values}
        if self.hidden is not None:
            stated = {**dict.fromkeys((*self.dialect.fields, "model"), self.hidden), **stated}
        return CommandFacts(
            engine=engine,
            release=self.dialect.release,
            options=MappingProxyType(dict(self.options)),
            hidden=self.hidden,
            devices=visible_devices(self.scope),
            problems=tuple(self.problems),
            where=MappingProxyType(dict(self.where)),
            written=MappingProxyType(dict(self.written)),
            **{name: value for name, value in stated.items() if name in _FIELDS},
            **more,
        )

    def _flag(self, word: str, items: Sequence[str], at: int) -> int:
        """Read one flag and its values; return the index after them."""
        head, equals, value = word.partition("=")
        if has_gap(head):
            self.hide(f"{self.scope.show(word)} may be any flag")
            return at
        meaning = self._meaning(head)
        if (option := meaning.option) is None:
            follows = at < len(items) and not is_flag(items[at]) and not is_line(items[at])
            taken = follows and not (equals or meaning.value or head.startswith(_SWITCH_LIKE))
            held = value if equals else items[at] if taken else None
            self.options[head] = True if held is None else self.scope.read(held)
            return at + taken
        if meaning.candidates and (option.use or meaning.instead):
            self.problem(head, abbreviated(head, meaning))
        attached = value if equals else meaning.value
        if meaning.key:
            return self._dotted(option, meaning.key, (word, attached), items, at)
        if option.arity == "0":
            self._switch(option, head, attached)
            return at
        given = following(option, items, at) if attached is None else [attached]
        self._values(option, head, given, "" if attached is None else word)
        return at + (len(given) if attached is None else 0)

    def _meaning(self, head: str) -> Meaning:
        """Look up a flag, and report one that the engine does not accept."""
        meaning, dialect = understand(head, self.dialect), self.dialect
        if meaning.option is not None and (dialect.complete or not meaning.candidates):
            return meaning
        elsewhere = Meaning(option_elsewhere(head, dialect))
        if elsewhere.option is not None and not dialect.complete:
            return elsewhere
        if meaning.option is None:
            self._not_accepted(head, meaning)
        return meaning if meaning != Meaning() else elsewhere

    def _dotted(
        self, option: Option, key: str, word: tuple[str, str | None], items: Sequence[str], at: int
    ) -> int:
        """Read `--a.b v`. The next word is always the value."""
        written, given = word
        if given is None and at == len(items):
            self.problem(written, no_value(written, 0, 1))
            return at
        if given is None:
            given, at = items[at], at + 1
        inner = convert(_ANYTHING, "", self.scope.read(given), in_shell=True)
        wrong = no_json(option, written.partition("=")[0], key, inner)
        if wrong is not None:
            self.doubts[option.field] = self.problem(written, wrong)
            return at
        whole = self.options.get(option.name)
        if not isinstance(whole, dict):
            whole = self.options[option.name] = {}
        whole[key] = inner
        if option.use and option.use.key == key:
            value = stated(option.use, {key: inner})
            self._state(option, written, value, f"{written} {given}", self.scope.show(given))
        return at

    def _values(self, option: Option, head: str, given: Sequence[str], written: str) -> None:
        """Record an option's values; `head` is its spelling, `written` the words in messages."""
        fewest, _ = words_of(option)
        if len(given) < fewest:
            elsewhere = taken_elsewhere(option, given, self.dialect)
            missing = no_value(head, len(given), fewest, by_release=elsewhere)
            self._state(option, head, self.problem(head, missing), head)
            return
        read = [self._value(option, head, word) for word in given]
        several = option.arity not in {"1", "?"}
        value: Any = tuple(read) if several else (read[0] if read else True)
        unknown = next((item for item in read if isinstance(item, Unknown)), None)
        self.options[option.name] = unknown or value
        if unknown is not None:
            self.written[option.name] = " ".join(map(self.scope.show, given))
        if option.use is None:
            return
        problems = unknown or stated(option.use, value)
        shown = " ".join(map(self.scope.show, given))
        self._state(option, head, problems, written or " ".join([head, *given]), shown)

    def _value(self, option: Option, head: str, word: str) -> Any:
        """Read one value of an option, or report why the engine refuses it."""
        shown, given = self.scope.show(word), self.scope.read(word)
        value = self._unexpanded(option.name, shown, given) or read_value(
            option, shown, given, in_shell=self.scope.in_shell
        )
        if not isinstance(value, Refused):
            return value
        by_release = value.by_release or taken_elsewhere(option, [word], self.dialect)
        unknown = self._refuse(head, value, by_release=by_release)
        # Values of other releases' options stay text.
        return word if value.by_release else unknown

    def _refuse(self, flag: str, value: Refused, *, by_release: bool = False) -> Unknown:
        wrong = Mistake(value.text, value.remedy, hard=value.hard, by_release=by_release)
        return self.problem(flag, wrong)

    def _unexpanded(self, what: str, shown: str, given: MaybeText) -> Refused | None:
        """Reject a variable of the pod that no shell expands."""
        if self.scope.in_shell or isinstance(given, Unknown) or "$" not in given:
            return None
        refused = unexpanded(what, shown, given, self.scope.names)
        return refused if refused is not None and refused.hard else None

    def _switch(self, option: Option, head: str, given: str | None) -> None:
        """Set an option without a value; a value after `=` and a retired option are mistakes."""
        value: Any = not option.off
        if given is not None:
            other = taken_elsewhere(option, [given], self.dialect)
            mistake = valued(option, head, self.scope.show(given), self.dialect)
            value = self.problem(head, replace(mistake, by_release=other))
        elif option.type == REFUSED:
            text = f"{self.dialect.engine} has retired {head} and does not start with it"
            remedy = successor(option.name, self.dialect) or "remove it"
            self.problem(head, Mistake(text, remedy, by_release=True))
        self.options[option.name] = value
        self._state(option, head, value, head)

    def _state(self, option: Option, head: str, value: Any, written: str, shown: str = "") -> None:
        if option.use is not None:
            self._set(
                option, option.field, WrittenField(head, value, self.scope.show(written), shown)
            )

    def _set(self, option: Option, name: str, said: WrittenField) -> None:
        """Set the field of an option."""
        self.flags.append((said.head, option))
        if name in self.dialect.firsts and name in self.values:
            self.options[option.name] = self.values[name]
        else:
            self.values[name] = said.value
            self.where[name] = said.written
        if not isinstance(said.value, Unknown):
            self._given.setdefault(name, {})[repr(said.value)] = said.shown or said.head

    def problem(self, flag: str, mistake: Mistake) -> Unknown:
        """Record a mistake. Returns the value of the mistaken flag: Unknown."""
        release = self.dialect.release
        doubt = mistake.by_release and (release is None or not release.sure)
        text = mistake.text + (release.note if doubt and release else "")
        noted = Problem(
            flag=self.scope.show(flag),
            text=text,
            remedy=mistake.remedy,
            hard=mistake.hard and not doubt,
            option=True,
        )
        self.problems = capped([*self.problems, noted])
        return Unknown(text)

    def _not_accepted(self, head: str, meaning: Meaning) -> None:
        """Record a flag that the engine rejects or finds ambiguous."""
        self._guesses += 1
        if self._guesses > _MAX_GUESSES:
            self.hide(f"more than {_MAX_GUESSES} options are unknown")
            return
        shown = self.scope.show(head)
        mistake, meant = not_accepted(head, shown, meaning, self.dialect)
        if mistake is None:
            return
        unknown = self.problem(head, mistake)
        options = [option for name in meant if (option := self.dialect.options[name]).use]
        self.flags += [(head, option) for option in options]
        self.doubts.update((option.field, unknown) for option in options)
