"""`if`, `case` and loops.

Where a condition is not known, both of its sides run, each in a layer of its own. A loop over words
that are known runs as often as the shell would run it.
"""

from collections.abc import Callable, Sequence
from functools import partial

from kthena_components.core.engines.bash.conditions import doubt
from kthena_components.core.engines.bash.expand import Expander
from kthena_components.core.engines.bash.fields import matches
from kthena_components.core.engines.bash.parameters import words_of
from kthena_components.core.engines.bash.shell import (
    IN_LOOP,
    LOOP,
    ROUND,
    Doubt,
    Flow,
    Shell,
    Status,
    Way,
)
from kthena_components.core.engines.bash.shell_state import STATUS, Many, is_known
from kthena_components.core.engines.bash.syntax import (
    Case,
    Counting,
    For,
    If,
    Substitution,
    While,
    Word,
)
from kthena_components.core.values.unknown import Unknown

_MOST_ROUNDS = 64


def loop(shell: Shell, node: While) -> Flow:
    """Run `while` or `until`."""
    shell.shared.follow()

    def test() -> tuple[Flow, Status]:
        shell.tested += 1
        flow = shell.run(shell, node.condition)
        shell.tested -= 1
        status = shell.status
        if node.until and not isinstance(status, Doubt):
            status = int(not status)
        return flow, status

    return _while(shell, test, lambda: shell.run(shell, node.body))


def counting(shell: Shell, node: Counting) -> Flow:
    """Run `for ((…))`."""
    shell.shared.follow()
    words = Expander(shell)

    def test() -> tuple[Flow, Status]:
        value = words.number(node.condition) if node.condition else 1
        return Flow.GOES, Doubt.OPEN if isinstance(value, Unknown) else int(not value)

    def after() -> None:
        words.number(node.step)

    words.number(node.first)
    return _while(shell, test, lambda: shell.run(shell, node.body), after)


def _while(
    shell: Shell,
    test: Callable[[], tuple[Flow, Status]],
    body: Callable[[], Flow],
    after: Callable[[], None] = lambda: None,
) -> Flow:
    """Run a loop until its test fails, or until nothing more is known of it."""

    def once() -> Flow:
        flow = shell.framed(ROUND, body)
        if flow is Flow.GOES:
            after()
        return flow

    def rounds() -> Flow:
        """Run the loop until its test fails, its state repeats, or its test is in doubt."""
        last: Status = 0
        for _ in range(_MOST_ROUNDS):
            shell.shared.step()
            before = dict(shell.state.layers[-1])
            flow, status = test()
            if flow is not Flow.GOES or (status and not isinstance(status, Doubt)):
                return shell.done(last) if flow is Flow.GOES else flow
            if isinstance(status, Doubt):
                break
            flow = once()
            if flow is not Flow.GOES:
                return flow
            last = shell.status
            if _same(before, shell.state.layers[-1]):
                return Flow.ENDED  # the next round finds what this one found
        return _unclear(shell, test, once, last)

    return shell.framed(LOOP, rounds, IN_LOOP)


def _same(before: dict[str, object], after: dict[str, object]) -> bool:
    keys = (before.keys() | after.keys()) - {"?"}
    return all(before.get(key) == after.get(key) for key in keys)


def _unclear(
    shell: Shell,
    test: Callable[[], tuple[Flow, Status]],
    once: Callable[[], Flow],
    last: Status = 0,
) -> Flow:
    """Run a loop whose number of runs is not known.

    Its status is the status of its last round, or 0 if it has none.
    """
    ends: list[Status] = [last]

    def again() -> Flow:
        flow, status = test()
        if flow is not Flow.GOES:
            return flow
        doubt = status if isinstance(status, Doubt) else Doubt.OPEN
        return shell.branch([one_round, lambda: Flow.GOES], doubt)

    def one_round() -> Flow:
        flow = once()
        ends.append(shell.status)
        return flow

    flow = shell.settle(again)
    if flow is not Flow.GOES:
        return flow
    succeeds = all(end in (0, Doubt.LIKELY) for end in ends)
    return shell.done(Doubt.LIKELY if succeeds else Doubt.OPEN)


def loop_over(shell: Shell, node: For) -> Flow:
    """Run `for` over words, or `select`."""
    listed = _listed(shell, node)
    if node.asks or listed is None or len(listed) > _MOST_ROUNDS:
        return _any_of(shell, node)

    def rounds() -> Flow:
        for word in listed:
            shell.shared.step()
            shell.state.assign(node.name, word)
            flow = shell.framed(ROUND, lambda: shell.run(shell, node.body))
            if flow is not Flow.GOES:
                return flow
        return Flow.GOES

    if not listed:
        return shell.done()
    return shell.framed(LOOP, rounds, IN_LOOP)


def _listed(shell: Shell, node: For) -> Sequence[str] | None:
    """Return what a loop runs over; None if it is unknown how much that is."""
    if node.words is None:
        found = words_of(shell, "@")
        listed: Sequence[str] = found if isinstance(found, tuple) else [Many("")]
    else:
        listed = Expander(shell).fields(node.words)
    return None if any(isinstance(word, Many) for word in listed) else listed


def _any_of(shell: Shell, node: For) -> Flow:
    """Run a loop over words that are not known, or a menu."""

    def once() -> Flow:
        shell.state.assign(node.name, Unknown(f"{node.name} is set {IN_LOOP}"))
        if node.asks:
            shell.state.assign("REPLY", Unknown("the script reads REPLY itself"))
        return shell.framed(ROUND, lambda: shell.run(shell, node.body))

    def rounds() -> Flow:
        return _unclear(shell, lambda: (Flow.GOES, Doubt.OPEN), once)

    return shell.framed(LOOP, rounds, IN_LOOP)


def condition(shell: Shell, node: If) -> Flow:
    """Run `if`."""
    return _branches(shell, node, 0)


def _branches(shell: Shell, node: If, index: int) -> Flow:
    """Run the branches of `if` from one on; both ways are followed if a test is in doubt."""
    if index == len(node.branches):
        # What follows `else` sees the status of the last condition.
        return shell.run(shell, node.otherwise) if node.otherwise.items else shell.done()
    test, body = node.branches[index]
    shell.tested += 1
    flow = shell.run(shell, test)
    shell.tested -= 1
    if flow is not Flow.GOES:
        return flow
    status = shell.status
    if isinstance(status, int):
        return _branches(shell, node, index + 1) if status else shell.run(shell, body)
    doubt = Doubt.VARIES if status is Doubt.VARIES else Doubt.OPEN
    ways: list[Way] = [lambda: shell.run(shell, body), lambda: _branches(shell, node, index + 1)]
    return shell.branch(ways, doubt)


def case(shell: Shell, node: Case) -> Flow:
    """Run `case`."""
    subject = Expander(shell).text(node.subject)
    if any(isinstance(piece, Substitution) for piece in node.subject):
        shell.state.set(STATUS, Doubt.OPEN)  # bash has the status of the command, dash the last one
    return _items(shell, node, subject, 0)


def _items(shell: Shell, node: Case, subject: str, start: int) -> Flow:
    """Run the items of `case` from one on; both ways are followed if a pattern is in doubt."""
    for index in range(start, len(node.items)):
        fits = _fits(shell, node.items[index][0], subject)
        if fits is True:
            return _item(shell, node, subject, index)
        if fits is not False:
            ways: list[Way] = [
                partial(_item, shell, node, subject, index),
                partial(_items, shell, node, subject, index + 1),
            ]
            return shell.branch(ways, fits)
    return shell.done()


def _fits(shell: Shell, patterns: tuple[Word, ...], subject: str) -> bool | Doubt:
    """Return whether one of some patterns fits."""
    fits: bool | Doubt = False
    for word in patterns:
        pattern = Expander(shell).pattern(word)
        if pattern == "*":
            return True
        if pattern is None or not is_known(subject):
            fits = doubt(shell, subject) if pattern is not None else Doubt.OPEN
            continue
        found = matches(subject, pattern)
        if found:
            return True
        fits = Doubt.OPEN if found is None else fits
    return fits


def _item(shell: Shell, node: Case, subject: str, index: int) -> Flow:
    _, body, end = node.items[index]
    flow = shell.run(shell, body) if body.items else shell.done()
    if flow is not Flow.GOES or end == ";;" or index + 1 == len(node.items):
        return flow
    if end == ";&":
        return _item(shell, node, subject, index + 1)
    return _items(shell, node, subject, index + 1)
