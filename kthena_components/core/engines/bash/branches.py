"""`if` and `case`: what runs where a condition holds, and both where that is not known."""

from functools import partial

from kthena_components.core.engines.bash.conditions import doubt
from kthena_components.core.engines.bash.expand import Expander
from kthena_components.core.engines.bash.patterns import matches
from kthena_components.core.engines.bash.shell import Doubt, Flow, Shell, Way
from kthena_components.core.engines.bash.state import STATUS, is_known
from kthena_components.core.engines.bash.syntax import Case, If, Substitution, Word


def condition(shell: Shell, node: If) -> Flow:
    """Run `if`."""
    return _branches(shell, node, 0)


def _branches(shell: Shell, node: If, index: int) -> Flow:
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
