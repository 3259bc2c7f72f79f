"""Words as a shell expands them: into strings, with a gap for each part that is not known.

Source: POSIX.1-2024, Shell Command Language, 2.6; bash's manual, 3.5.
"""

import re
from collections.abc import Iterable, Iterator

from kthena_components.core.engines.bash import arithmetic, parameters
from kthena_components.core.engines.bash.fields import (
    NEXT,
    NONE,
    Chunk,
    Chunks,
    Fields,
    escape,
    expand_braces,
    has_braces,
    hides_braces,
    plain_text,
)
from kthena_components.core.engines.bash.parameters import Numbers
from kthena_components.core.engines.bash.shared_state import BeyondError
from kthena_components.core.engines.bash.shell import Doubt, Flow, Shell
from kthena_components.core.engines.bash.shell_state import BLANKS, Many, is_known
from kthena_components.core.engines.bash.syntax import (
    Arithmetic,
    Assignment,
    Chain,
    Opaque,
    Parameter,
    Pipeline,
    Simple,
    Statement,
    Substitution,
    Text,
    Word,
)
from kthena_components.core.engines.programs import may_start_one
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import CommandSubstitution, OwnAddress, Unknown, Varying

_NAMED = regex(r"\$\(\s*([A-Z][A-Z0-9_]*)\s*\)")
_OWN_ADDRESS = regex(
    r"(?:\$\(|`)\s*hostname(?:\s+-[fiIs])?(?:\s*\|\s*"
    r"(?:awk\s+['\"]\{\s*print\s+\\{0,2}\$1;?\s*\}['\"]|cut\s+-d\s*['\"] ['\"]\s+-f\s*1)"
    r")?\s*[)`]"
)
"""How scripts compute the name or the address of their pod."""
_LOOKED_UP = regex(
    r"(?:\$\(|`)\s*getent\s+a?hosts(?:v[46])?\s+[^\s|;&<>]+(?:\s+2>\s*/dev/null)?"
    r"(?:\s*\|\s*(?:head(?:\s+-n)?\s*-?1|sort(?:\s+-u)?|uniq|cut\s+-d\s*['\"] ['\"]\s+-f\s*1"
    r"|awk\s+['\"](?:NR==1\s*)?\{\s*print\s+\\{0,2}\$1;?\s*\}['\"]))+(?:\s*\|\|\s*true)?\s*[)`]"
)
"""How scripts look up the address of a name. The name then stands for it."""
_SETS = regex(r"\$\{!?([A-Za-z_][A-Za-z0-9_]*)(?:\[[^]]*\])?:?=")
_COMMANDS = regex(r"`|\$\((?!\()|[<>]\(")
_NAMES = regex(r"[^\s;&|<>()`'\"\\$]+")
_BASH_SIGNS = regex(r"\*\*|\+\+|--|,")
_LATER_TILDE = regex(r"[A-Za-z_][A-Za-z0-9_]*=(?:.*:)?~", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Expander:
    """Expands the words of one shell."""

    shell: Shell

    def fields(self, words: Iterable[Word]) -> list[str]:
        """Return the words of a command, after everything that makes more or fewer of them."""
        found: list[str] = []
        for word in words:
            plain = plain_text(word)
            if plain is not None:
                found.append(plain)
            elif hides_braces(word):
                found.append(Many(self.shell.gap(written(word), "it has braces inside of quotes")))
            elif not has_braces(word):
                found += self._fields(word)
            else:
                found += self._braced(word)
        return found

    def _braced(self, word: Word) -> list[str]:
        made = expand_braces(word)
        if self.shell.bash or len(made) == 1:
            return [field for one in made for field in self._fields(one)]
        because = "only bash expands braces, and sh may be another shell"
        return [Many(self.shell.gap(written(word), because))]

    def _fields(self, word: Word) -> list[str]:
        return Fields(self.shell).take(self.chunks(word))

    def text(self, word: Word, *, assigns: bool = False) -> str:
        """Return one string, as in an assignment: nothing splits it."""
        chunks = [chunk for chunk in self.chunks(word, assigns=assigns) if chunk is not NONE]
        between = " " if self.shell.bash or self.shell.state.separators == BLANKS else ""
        if not between and NEXT in chunks:
            return self.shell.gap(written(word), "shells differ in how they join parameters")
        return "".join(chunk.text if isinstance(chunk, Chunk) else between for chunk in chunks)

    def pattern(self, word: Word) -> str | None:
        """Return a pattern with a backslash before what is quoted; None if it is unknown."""
        parts: list[str] = []
        for chunk in self.chunks(word):
            if chunk is NONE:
                continue
            if not isinstance(chunk, Chunk) or not is_known(chunk.text):
                return None
            parts.append(escape(chunk.text) if chunk.quoted else chunk.text)
        return "".join(parts)

    def number(self, word: Word) -> int | Unknown:
        """Compute an arithmetic expression."""
        return self.computed(self.text(word))

    def computed(self, expression: str) -> int | Unknown:
        """Compute an expression that is expanded already. It may be unknown without a reason."""
        names = Numbers(self.shell)
        reason = self.shell.shared.scope.read(expression)
        if isinstance(reason, Unknown):
            arithmetic.forget_changed(expression, names)
            return reason
        if not self.shell.bash and _BASH_SIGNS.search(expression):
            arithmetic.forget_changed(expression, names)
            return Unknown("")
        try:
            value = arithmetic.compute(expression, names)
        except arithmetic.NoNumberError:
            shown = self.shell.shared.scope.show(expression)
            raise BeyondError(f"its script computes '{shown}', which is not a number") from None
        return value if value is not None else names.because or Unknown("")

    def late(
        self,
        piece: Parameter | Arithmetic | Opaque,
        because: Unknown | str = "",
        *,
        many: bool = False,
    ) -> Chunk:
        """Return a gap in place of what is not known."""
        return self._late(piece.written, because, quoted=piece.quoted and not many)

    def _late(self, text: str, because: Unknown | str, *, quoted: bool) -> Chunk:
        shown = self.shell.shared.scope.show(text)
        if because in {"", Unknown("")}:
            because = f"the shell computes {shown} when the pod runs"
        return Chunk(self.shell.gap(text, because), quoted, splits=True)

    def inserted(self, piece: Parameter, text: str) -> Chunk:
        """Return a value in place of a parameter, while there is room."""
        self.shell.shared.insert()
        if self.shell.shared.scope.fits(text):
            return Chunk(text, piece.quoted, splits=True)
        return self.late(piece, self.shell.shared.scope.no_room)

    def chunks(
        self, word: Word, *, operand: bool = False, assigns: bool = False
    ) -> Iterator[Chunks]:
        """Return the parts of a word.

        Args:
            operand: Whether it stands behind `:-` or its like, where its own blanks split it.
            assigns: Whether it is assigned to a variable.
        """
        for index, piece in enumerate(word):
            match piece:
                case Text():
                    whole = index == 0 and len(word) == 1
                    yield from self._text(piece, operand, assigns, index == 0, whole)
                case Parameter():
                    yield from parameters.expand(self, piece)
                case Substitution():
                    yield self._substituted(piece)
                case Arithmetic():
                    value = self.number(piece.inside)
                    if piece.written.startswith("$[") and not self.shell.bash:
                        value = Unknown("only bash computes $[…], and sh may be another shell")
                    if isinstance(value, Unknown):
                        yield self.late(piece, value)
                    else:
                        yield Chunk(str(value), piece.quoted, splits=True)
                case Opaque():
                    self.unread(piece.written)
                    yield self.late(piece)

    def unread(self, written: str) -> None:
        """Record what an expansion may do that is not read."""
        self._check_commands(written)
        self._forget_set(written)
        if _COMMANDS.search(written):
            self.shell.substituted = Doubt.OPEN

    def _check_commands(self, written: str) -> None:
        """Stop at an expansion that cannot be read, if its commands may start an engine."""
        if not _COMMANDS.search(written):
            return
        functions = (name for name in _NAMES.findall(written) if self.shell.state.get(f"{name}()"))
        if may_start_one(written) or any(functions):
            shown = self.shell.shared.scope.show(written)
            raise BeyondError(f"its script runs {shown}, which is not evaluated")

    def _forget_set(self, written: str) -> None:
        """Forget the variables that an expansion may set that is not read."""
        if "$((" in written or "$[" in written:
            self.shell.state.forget("the script computes an expression that is not read")
        for name in _SETS.findall(written):
            self.shell.state.assign(name, Unknown(f"the script sets {name} in {written}"))
        arithmetic.forget_changed(written, Numbers(self.shell))  # ${NAME:OFFSET++}

    def _text(
        self, piece: Text, operand: bool, assigns: bool, first: bool, whole: bool
    ) -> Iterator[Chunk]:
        """Expand plain text: ~ becomes the home folder, and `$'…'` is read in bash only."""
        text = piece.text
        if piece.bash and not self.shell.bash:
            text = self.shell.gap(text, "only bash reads $'…', and sh may be another shell")
        elif "~" in text and not piece.quoted:
            if first and text.startswith("~"):
                home, text = self._home(text, whole=whole)
                yield Chunk(home, quoted=True)
            elif (assigns and ":~" in text) or _LATER_TILDE.match(text):
                text = self.shell.gap(text, "the shell puts a folder in place of ~")
        yield Chunk(text, piece.quoted, splits=operand)

    def _home(self, text: str, *, whole: bool) -> tuple[str, str]:
        """Return the folder that a `~` in front stands for, and the rest."""
        user, slash, rest = text.partition("/")
        if not slash and not whole:
            return "", text  # the rest of the name is an expansion, so that it is not a name
        home = self.shell.state.variable("HOME")
        if user != "~" or not isinstance(home, str):
            return self.shell.gap(user, "it is a folder of the image"), slash + rest
        return home, slash + rest

    def _substituted(self, piece: Substitution) -> Chunk:
        """Run a command for its output."""
        shell, shared = self.shell, self.shell.shared
        shared.enter()

        def body() -> Flow:
            if shell.bash:
                shell.state.set("-e", False)  # unless it follows POSIX, bash takes it back there
            return shell.run(shell, piece.body)

        output = shell.subshell(body, output="")
        shared.leave()
        shell.substituted = shell.status
        if not shell.bash:
            shell.done(Doubt.OPEN)  # shells differ in what $? then is for the rest of a command
        if isinstance(output, str) and shared.scope.fits(output):
            return Chunk(output.rstrip("\n"), piece.quoted, splits=True)
        if _LOOKED_UP.fullmatch(piece.written) and (name := _asked_name(piece.body.items[0][0])):
            return Chunk(self.text(name), quoted=True)
        because: Unknown | str = ""
        if "hostname" in piece.written or "HOSTNAME" in piece.written:
            shown = shared.scope.show(piece.written)
            kind = OwnAddress if _OWN_ADDRESS.fullmatch(piece.written) else Varying
            because = kind(f"the shell computes {shown} when the pod runs")
        elif (found := _NAMED.fullmatch(piece.written)) and shared.scope.is_named(found[1]):
            why = f"the shell runs {found[1]} as a command"
            because = CommandSubstitution(why, found[1], in_shell=True)
        return self._late(piece.written, because, quoted=piece.quoted)


def _asked_name(command: Statement) -> Word:
    """Return the last word of the first of some commands; nothing if that is not read."""
    if isinstance(command, Chain):
        return _asked_name(command.first)
    if isinstance(command, Pipeline):
        return _asked_name(command.parts[0])
    words = command.words if isinstance(command, Simple) else ()
    last = words[-1] if words else ()
    return () if isinstance(last, Assignment) else last


def written(word: Word) -> str:
    """Write a word for a message."""
    return "".join(piece.text if isinstance(piece, Text) else piece.written for piece in word)
