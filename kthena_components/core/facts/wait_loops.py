"""Reads what the script of a container waits for, and what the command of a probe asks.

Only loops are read that run in any case and end when a server answers, or when a name is in DNS.
A `for` loop that has another end is one of them if the script fails there.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kthena_components.core.engines.bash.syntax import (
    COMPARISONS,
    Assignment,
    Block,
    Chain,
    Counting,
    For,
    Function,
    If,
    Parameter,
    Pipeline,
    Redirected,
    Simple,
    Statement,
    Subshell,
    Substitution,
    Text,
    While,
    Word,
    parse,
)
from kthena_components.core.engines.programs import SHELLS, base_name, shell_operand
from kthena_components.core.facts.wait_programs import CLIENTS, PYTHON, WaitLoop, by_image
from kthena_components.core.templates import PROBES
from kthena_components.core.values.read import mapping, sequence
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import Unknown

_VARIABLE = regex(r"\$\((\w+)\)")
_DEVICE = regex(r"/dev/tcp/([^/\s]+)/(\d{1,5})")
_QUIET = frozenset(
    {
        *("echo", "printf", "sleep", "date", "set", "export", "true", ":", "ls", "cat", "cd"),
        *("mkdir", "pip", "pip3", "apt", "apt-get", "apk", "yum", "dnf", "ulimit", "hostname"),
    }
)
"""Commands that start no server."""
_MARKS = ("until", "while", "done", "wait-for", "wait_for", "dockerize", "kubectl")
"""Words without which a container is not read."""
_ALWAYS = frozenset({("true",), (":",)})
_ENDS_WELL = frozenset({("exit",), ("exit", "0")})
_BREAKS = frozenset({("break",)})
_LEAVES = _ENDS_WELL | _BREAKS
_SUCCESS = ("200", "'200'", '"200"')
_EQUAL, _UNEQUAL = frozenset({"=", "==", "-eq"}), frozenset({"!=", "-ne"})
_TEST_WORDS = 5
_COMPARED = {
    **COMPARISONS,
    **dict.fromkeys(_EQUAL, COMPARISONS["-eq"]),
    **dict.fromkeys(_UNEQUAL, COMPARISONS["-ne"]),
}
"""Comparisons of `test` between two numbers, as numbers or as strings."""
_EXISTS = frozenset({"-e", "-f", "-s", "-r", "-d"})
_VOLATILE = regex(r"/(?:tmp|run|var/run)/.")
"""Folders that are empty in a new container."""
_NUMBER = regex(
    r"\$\{?(?:(?:LWS_|RBG_LWP_)?WORKER_INDEX|JOB_COMPLETION_INDEX)\}?|\$\{HOSTNAME##\*-\}"
)
"""What is 0 in the first pod of an engine."""


def may_wait(container: Mapping[str, Any]) -> bool:
    """Return whether a container may wait for something, by its image, its words or a hook."""
    listed = (container.get("command"), container.get("args"), hook_of(container))
    words = [container.get("image")]
    for each in listed:
        words += sequence(each)
    text = "\n".join([word for word in words if type(word) is str or isinstance(word, str)])
    return any(map(text.__contains__, _MARKS))


def hook_of(container: Mapping[str, Any]) -> object:
    """Return the command that the kubelet runs beside a container's own, before it is started."""
    if "lifecycle" not in container:
        return None
    hook = mapping(mapping(container.get("lifecycle")).get("postStart"))
    return mapping(hook.get("exec")).get("command")


def required_by(container: Mapping[str, Any]) -> list[WaitLoop]:
    """Return what a container waits for by a program that waits, and fails without an answer."""
    words = [*sequence(container.get("command")), *sequence(container.get("args"))]
    if not may_wait(container) or not all(isinstance(word, str) for word in words):
        return []
    is_whole = bool(sequence(container.get("command")))
    found = asked_by(words if is_whole else by_image(container, words), container)
    return [] if found is None else [found]


def wait_loops(container: Mapping[str, Any]) -> list[WaitLoop]:
    """Return what the script of a container waits for in any case, before it starts a server."""
    words = [*sequence(container.get("command")), *sequence(container.get("args"))]
    if not sequence(container.get("command")) or not may_wait(container):
        return []
    if not all(isinstance(word, str) for word in words):
        return []
    at, is_text = shell_operand(words, 1) if base_name(words[0]) in SHELLS else (0, False)
    if not is_text or at >= len(words):
        return []
    values = dict(_values(container))
    # The kubelet puts in the values of variables, and leaves the others to the shell.
    text = _VARIABLE.sub(lambda found: values.get(found[1], found[0]), words[at])
    read = parse(text)
    return [] if isinstance(read, Unknown) else [*_Reader(values).loops(read)]


def asked_by(
    command: Sequence[str], container: Mapping[str, Any], *, first: bool = False
) -> WaitLoop | None:
    """Return what a command asks that fails unless it answers; None if that is not known.

    Args:
        first: Whether it runs in the first pod of an engine, whose number is 0.

    Source: kubernetes pkg/kubelet/prober/prober.go (ExpandContainerCommandOnlyStatic).
    """
    reader = _Reader(dict(_values(container)), container if first else {})
    expanded = (_VARIABLE.sub(lambda m: reader.values.get(m[1], m[0]), each) for each in command)
    words = _without_timeout(tuple(expanded))
    if not words or base_name(words[0]) not in SHELLS:
        return reader.asked(words)
    at, is_text = shell_operand(words, 1)
    read = parse(words[at]) if is_text and at < len(words) else None
    return reader.fails_without(read) if isinstance(read, Block) else None


def _values(container: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for item in map(mapping, sequence(container.get("env"))):
        name, value = item.get("name"), item.get("value")
        if isinstance(name, str) and isinstance(value, str) and "$" not in value:
            yield name, value


class _Reader:
    """Follows the statements that a script runs in any case, up to the first that may serve."""

    def __init__(self, values: dict[str, str], first: Mapping[str, Any] | None = None) -> None:
        """Keep the variables, and the container if it belongs to the first pod of an engine."""
        self.values = values
        self.first = first or {}

    def loops(self, block: Block) -> Iterator[WaitLoop]:
        """Yield the loops among some statements, and those behind `&&`, which fails with them."""
        for number, (statement, in_background) in enumerate(block.items):
            rest = statement.rest if isinstance(statement, Chain) else ()
            first = statement.first if isinstance(statement, Chain) else statement
            fails = not rest and self._fails_next(block, number)
            for mark, each in (("&&", first), *rest):
                loop = each.body if isinstance(each, Redirected) else each
                is_next = mark == "&&" and not in_background
                found = self._waits(loop, fails=fails) if is_next else None
                if found is not None:
                    yield found
                elif not is_next or not self._is_quiet(loop):
                    return

    def _waits(self, loop: Statement, *, fails: bool) -> WaitLoop | None:
        """Return what a loop waits for.

        `for` over a list or to a number ends by itself: it waits where the script fails then.
        """
        if isinstance(loop, While):
            return self._loop(loop)
        if isinstance(loop, Counting) and not loop.condition:
            return self._left(loop.body)
        if not fails or not isinstance(loop, For | Counting):
            return None
        is_limited = isinstance(loop, Counting) or not loop.asks
        return self._left(loop.body, _ENDS_WELL) if is_limited else None

    def _fails_next(self, block: Block, number: int) -> bool:
        """Return whether a script fails behind one of its statements, and does nothing else."""
        for statement, in_background in block.items[number + 1 :]:
            if not in_background and self._fails(statement):
                return True
            if not self._only_waits((statement, in_background)):
                return False
        return False

    def fails_without(self, block: Block) -> WaitLoop | None:
        """Return what must answer for some statements to succeed: the last one decides.

        Those before it end, and may leave the script with an error.
        """
        for number, (statement, in_background) in enumerate(block.items):
            is_last = number == len(block.items) - 1
            if in_background:
                return None
            if is_last or isinstance(statement, Chain):
                found = self._required(statement, is_last=is_last)
                if is_last or found is not None:
                    return found
            if not self._is_quiet(statement):
                return None
        return None

    def _required(self, statement: Statement, *, is_last: bool) -> WaitLoop | None:
        """Return what must answer for a statement to succeed, or not to leave the script.

        `test … || curl …` asks where the test is known to fail, and `if` in the branch that runs.
        """
        if isinstance(statement, If) and is_last:
            return self._of_branch(statement)
        rest = [*statement.rest] if isinstance(statement, Chain) else []
        first = statement.first if isinstance(statement, Chain) else statement
        while rest and rest[0][0] == "||" and self._holds(first) is False:
            first = rest.pop(0)[1]
        fails = [self._fails(each) for mark, each in rest if mark != "&&"]
        if not all(fails) or not (is_last or fails):
            return None
        asking = (each for mark, each in (("&&", first), *rest) if mark == "&&")
        return next(filter(None, map(self._unless_negated, asking)), None)

    def _of_branch(self, statement: If) -> WaitLoop | None:
        for condition, body in statement.branches:
            tested = condition.items[0][0] if len(condition.items) == 1 else None
            holds = self._holds(tested) if tested is not None else None
            if holds is not False:
                return self.fails_without(body) if holds else None
        return self.fails_without(statement.otherwise)

    def _holds(self, statement: Statement) -> bool | None:
        """Return whether a test of a pod's number or of a file holds in the first pod."""
        if isinstance(statement, Pipeline) and len(statement.parts) == 1:
            inner = self._holds(statement.parts[0])
            return inner is not statement.negated if inner is not None else None
        if not self.first or not isinstance(statement, Simple):
            return None
        words = self._words(statement)
        name, operands = (words[0], [w for w in words[1:] if w != "]"]) if words else ("", [])
        if name not in {"test", "["}:
            return None
        if operands[:1] and operands[0] in _EXISTS:
            return False if self._is_absent(operands[-1]) else None
        compare = _COMPARED.get(operands[1]) if len(operands) == len(("a", "=", "b")) else None
        if compare is None or not all(map(str.isdecimal, operands[::2])):
            return None
        return compare(int(operands[0]), int(operands[2]))

    def _is_absent(self, path: str) -> bool:
        """Return whether nothing in a new container makes a file."""
        others = {**self.first, **dict.fromkeys(PROBES)}
        mounts = (mapping(m).get("mountPath") for m in sequence(others.get("volumeMounts")))
        held = any(f"{path}/".startswith(f"{str(at).rstrip('/')}/") for at in mounts)
        return _VOLATILE.match(path) is not None and not held and path not in str(others)

    def _unless_negated(self, statement: Statement) -> WaitLoop | None:
        negated = isinstance(statement, Pipeline) and statement.negated
        return None if negated else self._condition(statement, until=True)

    def _fails(self, statement: Statement) -> bool:
        words = self._words(statement) if isinstance(statement, Simple) else ()
        return words in {("false",), ("exit",)} or (words[:1] == ("exit",) and words[1] != "0")

    def _is_quiet(self, statement: Statement) -> bool:
        """Return whether a statement ends, and starts nothing that goes on."""
        if isinstance(statement, Function):
            return True
        if isinstance(statement, For | Counting):
            return self._ends(statement)
        if not isinstance(statement, Simple):
            return False
        for made in statement.assignments:
            text = None if made.items is not None or made.appends else self._text(made.value)
            self.values.pop(made.name, None)
            if text is not None and "$" not in text:
                self.values[made.name] = text
        words = self._words(statement)
        return not statement.words or (bool(words) and words[0] in _QUIET)

    def _ends(self, loop: For | Counting) -> bool:
        """Return whether a `for` loop ends by itself, and only asks and waits until then."""
        if (isinstance(loop, For) and loop.asks) or (
            isinstance(loop, Counting) and not loop.condition
        ):
            return False
        waits = all(map(self._only_waits, loop.body.items))
        return waits or self._left(loop.body, _BREAKS) is not None

    def _loop(self, loop: While) -> WaitLoop | None:
        """Return what a loop waits for, if it does nothing else."""
        if len(loop.condition.items) != 1:
            return None
        condition, in_background = loop.condition.items[0]
        if isinstance(condition, Simple) and self._words(condition) in _ALWAYS:
            return None if loop.until else self._left(loop.body)
        if not all(map(self._only_waits, loop.body.items)):
            return None
        negated = isinstance(condition, Pipeline) and condition.negated
        if in_background:
            return None
        until = loop.until is not negated
        return self._condition(condition, until=until)

    def _left(self, body: Block, by: frozenset[tuple[str, ...]] = _LEAVES) -> WaitLoop | None:
        """Return what must answer for a loop to be left by some words, if it does nothing else."""
        leaving = [item for item in body.items if not self._only_waits(item)]
        if len(leaving) != 1 or leaving[0][1]:
            return None
        statement, test, then = leaving[0][0], None, None
        if isinstance(statement, Chain) and [mark for mark, _ in statement.rest] == ["&&"]:
            test, then = statement.first, statement.rest[0][1]
        elif isinstance(statement, If) and len(statement.branches) == 1:
            asked, inside = statement.branches[0]
            is_one = len(asked.items) == 1 and all(map(self._only_waits, inside.items[:-1]))
            if is_one and inside.items and all(map(self._only_waits, statement.otherwise.items)):
                test, then = asked.items[0][0], inside.items[-1][0]
        leaves = isinstance(then, Simple) and self._words(then) in by
        return self._unless_negated(test) if test is not None and leaves else None

    def _only_waits(self, item: tuple[Statement, bool]) -> bool:
        statement, in_background = item
        words = self._words(statement) if isinstance(statement, Simple) else ()
        return not in_background and bool(words) and words[0] in _QUIET

    def _condition(self, statement: Statement, *, until: bool) -> WaitLoop | None:
        """Return what must answer for a condition to end the loop."""
        found: WaitLoop | None = None
        if isinstance(statement, Pipeline):
            first, *rest = statement.parts
            if not rest or (len(rest) == 1 and self._searches(rest[0])):
                found = self._condition(first, until=until)
        elif isinstance(statement, Redirected):
            found = self._condition(statement.body, until=until)
        elif isinstance(statement, Subshell):
            items = statement.body.items
            found = self._condition(items[0][0], until=until) if len(items) == 1 else None
        elif isinstance(statement, Simple):
            words = self._words(statement)
            if words[:1] == ("[",):
                found = self._compared(statement, words, until=until)
            elif until:
                found = self._device(statement.redirects) or self.asked(words)
        return found

    def _searches(self, statement: Statement) -> bool:
        words = self._words(statement) if isinstance(statement, Simple) else ()
        inverts = any(word.startswith("-") and "v" in word for word in words)
        return words[:1] == ("grep",) and not inverts

    def _compared(self, statement: Simple, words: Sequence[str], *, until: bool) -> WaitLoop | None:
        """Read `[ "$(curl …)" = 200 ]`, or its opposite."""
        if len(words) != _TEST_WORDS or words[3] not in _SUCCESS:
            return None
        if words[2] not in (_EQUAL if until else _UNEQUAL):
            return None
        piece = statement.words[1][0] if isinstance(statement.words[1], tuple) else None
        inside = piece.body.items if isinstance(piece, Substitution) else ()
        return self._condition(inside[0][0], until=True) if len(inside) == 1 else None

    def _device(self, redirects: Sequence[Any]) -> WaitLoop | None:
        for each in redirects:
            found = _DEVICE.fullmatch(self._text(each.target))
            if found is not None:
                return WaitLoop(host=found[1], port=int(found[2]))
        return None

    def asked(self, words: Sequence[str]) -> WaitLoop | None:
        """Return what a command asks that fails until something answers."""
        words = _without_timeout(words)
        name, rest = (base_name(words[0]), words[1:]) if words else ("", ())
        if name in SHELLS:
            found = _DEVICE.search(" ".join(rest))
            return WaitLoop(host=found[1], port=int(found[2])) if found else None
        read = CLIENTS.get("python" if PYTHON.fullmatch(name) else name)
        return read(rest) if read is not None else None

    def _words(self, statement: Simple) -> tuple[str, ...]:
        return tuple("=" if isinstance(w, Assignment) else self._text(w) for w in statement.words)

    def _text(self, word: Word) -> str:
        return "".join(map(self._piece, word))

    def _piece(self, piece: Any) -> str:
        if isinstance(piece, Text):
            return piece.text
        if self.first and isinstance(piece, Parameter) and _NUMBER.fullmatch(str(piece.written)):
            return "0"
        plain = isinstance(piece, Parameter) and not piece.operator and not piece.prefix
        if plain and piece.index is None:
            return self.values.get(piece.name, f"${piece.name}")
        return str(piece.written)


def _without_timeout(words: Sequence[str]) -> Sequence[str]:
    if words[:1] != ("timeout",):
        return words
    return words[next((i for i, w in enumerate(words) if i and w[:1].isalpha()), len(words)) :]
