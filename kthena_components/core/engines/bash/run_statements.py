"""Run a script without running anything: which programs it starts, with which words.

The reader follows a script along every path that it may take. It keeps a fact about a program only
if the fact holds on every path; else the fact is not known.
"""

from collections.abc import Callable, Mapping
from typing import Any

from kthena_components.core.engines.bash import loops
from kthena_components.core.engines.bash.commands import forget_set, redirected, simple
from kthena_components.core.engines.bash.conditions import condition
from kthena_components.core.engines.bash.expand import Expander
from kthena_components.core.engines.bash.output import discards, with_output
from kthena_components.core.engines.bash.shared_state import BeyondError
from kthena_components.core.engines.bash.shell import Doubt, Flow, Shell, Way
from kthena_components.core.engines.bash.shell_state import BLOCKED, OUTPUT, RUNNING, STATUS
from kthena_components.core.engines.bash.syntax import (
    Block,
    Case,
    Chain,
    Condition,
    Counting,
    Evaluation,
    For,
    Function,
    If,
    Pipeline,
    Redirected,
    Simple,
    Statement,
    Subshell,
    Text,
    While,
)
from kthena_components.core.values.unknown import Unknown

_TESTS = frozenset({"[", "test"})


def run(shell: Shell, node: Statement) -> Flow:
    """Run one statement."""
    shell.shared.step()
    guarded = _is_guarded(node)
    shell.guards += guarded
    flow = _RUNNERS[type(node)](shell, node)
    shell.guards -= guarded
    failing = isinstance(node, _FAILING) and not (isinstance(node, Pipeline) and node.negated)
    if flow is Flow.GOES and failing and not shell.tested:
        return _checked(shell)
    return flow


def _is_guarded(node: Statement) -> bool:
    """Return whether a condition decides which parts of a statement run. Loops do not count."""
    if isinstance(node, Chain):
        first = node.first.parts[0] if isinstance(node.first, Pipeline) else node.first
        command = first.words[0] if isinstance(first, Simple) and first.words else ()
        piece = command[0] if isinstance(command, tuple) and len(command) == 1 else None
        tests = isinstance(piece, Text) and piece.text in _TESTS
        return tests or isinstance(first, Condition | Evaluation)
    return isinstance(node, If | Case)


def _checked(shell: Shell) -> Flow:
    """End the shell if `set -e` is on and the last command failed."""
    if shell.state.get("-e") is not True:
        return Flow.GOES
    status = shell.status
    if isinstance(status, int) and status:
        return shell.leave(status)
    shell.state.set(STATUS, 0)
    return Flow.GOES


def _block(shell: Shell, node: Block) -> Flow:
    for statement, background in node.items:
        flow = _background(shell, statement) if background else shell.run(shell, statement)
        if flow is not Flow.GOES:
            return flow
    return Flow.GOES


def _background(shell: Shell, node: Statement) -> Flow:
    first = len(shell.shared.log)
    shell.subshell(lambda: shell.run(shell, node))
    for found in shell.shared.log[first:]:
        found.apart = True
        if found.engine:
            shell.state.set(RUNNING, True)
    return shell.done()


def _pipeline(shell: Shell, node: Pipeline) -> Flow:
    """Run a pipeline, and negate its status after `!`; `set -e` does not apply to a negated one."""
    shell.tested += node.negated
    flow = shell.run(shell, node.parts[0]) if len(node.parts) == 1 else _piped(shell, node)
    shell.tested -= node.negated
    if node.negated and flow is Flow.GOES:
        status = shell.status
        shell.done(
            Doubt.OPEN
            if status is Doubt.LIKELY
            else status
            if isinstance(status, Doubt)
            else int(not status)
        )
    return flow


def _piped(shell: Shell, node: Pipeline) -> Flow:
    """Run commands at the same time, each in its own shell."""
    state = shell.state
    before, wanted = state.get(RUNNING, False), state.get(OUTPUT)
    stdin: str | None = None
    statuses: list[Any] = []
    for index, part in enumerate(node.parts):
        first = len(shell.shared.log)
        state.set(OUTPUT, wanted if index == len(node.parts) - 1 else None)
        way = _part(shell, part, stdin)
        if index < len(node.parts) - 1:
            written = shell.subshell(way, output="")
            stdin = written if isinstance(written, str) else None
        else:
            shell.subshell(way)
        statuses.append(shell.status)
        if any(found.engine for found in shell.shared.log[first:]):
            state.set(RUNNING, True)
    if before is False and state.get(RUNNING) is True and not _leaves_running(node):
        state.set(RUNNING, False)
    if state.get("-pipefail") and any(status != 0 for status in statuses[:-1]):
        known = all(isinstance(status, int) for status in statuses)
        shell.done(statuses[-1] or 1 if known else Doubt.LIKELY)
    return Flow.GOES


def _leaves_running(node: Pipeline) -> bool:
    """Return whether a part may leave something in the background."""
    return any(not isinstance(part, Simple) for part in node.parts)


def _part(shell: Shell, part: Statement, stdin: str | None) -> Way:
    if isinstance(part, Simple):
        return lambda: simple(shell, part, stdin)
    return lambda: shell.run(shell, part)


def _chain(shell: Shell, node: Chain) -> Flow:
    shell.tested += 1
    flow = shell.run(shell, node.first)
    shell.tested -= 1
    return _links(shell, node, 0) if flow is Flow.GOES else flow


def _links(shell: Shell, node: Chain, start: int, *, holds: bool | None = None) -> Flow:
    """Run `&& b || c`, each link by the status of those before it.

    Args:
        node: The whole chain.
        start: The first link that may run.
        holds: Whether what is in front of it succeeded; None: as the status says.
    """
    for index in range(start, len(node.rest)):
        mark, statement = node.rest[index]
        status = shell.status
        if holds is None and isinstance(status, Doubt):
            return _parted(shell, node, index, status)
        if (status == 0 if holds is None else holds) == (mark == "&&"):
            holds = None
            flow = _link(shell, statement, last=index + 1 == len(node.rest))
            if flow is not Flow.GOES:
                return flow
    return Flow.GOES


def _link(shell: Shell, statement: Statement, *, last: bool) -> Flow:
    shell.tested += not last
    flow = shell.run(shell, statement)
    shell.tested -= not last
    return flow


def _parted(shell: Shell, node: Chain, index: int, status: Doubt) -> Flow:
    """Run the rest of a chain with a link and without it: a program is expected to succeed."""
    shared, expected = shell.shared, True
    mark, statement = node.rest[index]
    failing = status is Doubt.LIKELY

    def taken() -> Flow:
        """Follow the way on which the first command went as the operator wants, with the rest."""
        nonlocal expected
        shell.done(0 if mark == "&&" else Doubt.OPEN)
        first = len(shared.log)
        flow = _link(shell, statement, last=index + 1 == len(node.rest))
        if mark == "||" and failing:
            shared.doubt(first)
        flow = _links(shell, node, index + 1) if flow is Flow.GOES else flow
        # What follows then runs only because a program failed.
        expected = mark == "||" or not failing or flow is Flow.GOES
        return flow

    def past() -> Flow:
        shell.done(Doubt.OPEN if mark == "&&" else 0)
        first = len(shared.log)
        flow = _links(shell, node, index + 1, holds=mark == "||")
        if mark == "&&" and failing:
            shared.doubt(first)
        return flow

    flow = shell.branch([taken, past], status)
    shared.stays = shared.stays and expected
    return flow


def _subshell(shell: Shell, node: Subshell) -> Flow:
    """Run a subshell; of its changes, only a block of the rest of the script remains."""
    blocked: Any = None

    def body() -> Flow:
        nonlocal blocked
        flow = shell.run(shell, node.body)
        blocked = shell.state.get(BLOCKED)
        return flow

    shell.subshell(body)
    if blocked is not None:
        shell.state.set(BLOCKED, blocked)
    return Flow.GOES


def _function(shell: Shell, node: Function) -> Flow:
    """Define a function, unless sh may refuse its form or it replaces missing commands."""
    if node.bash and not shell.bash:
        raise BeyondError(
            f"only bash accepts its function {node.name}, and sh may be another shell"
        )
    if node.name == "command_not_found_handle":
        raise BeyondError(f"its script runs {node.name} in place of programs that are missing")
    shell.state.set(f"{node.name}()", node)
    return shell.done()


def _evaluation(shell: Shell, node: Evaluation) -> Flow:
    if not shell.bash:
        # Another shell takes `((` for two subshells.
        Expander(shell).computed(Expander(shell).text(node.inside) + shell.gap("", "sh"))
        return shell.done(Doubt.OPEN)
    value = Expander(shell).number(node.inside)
    return shell.done(Doubt.OPEN if isinstance(value, Unknown) else int(value == 0))


def _redirected(shell: Shell, node: Redirected) -> Flow:
    return redirected(shell, node.redirects, lambda: _with_output(shell, node))


def _with_output(shell: Shell, node: Redirected) -> Flow:
    forget_set(shell, node.redirects)
    if not discards(node.redirects):
        return shell.run(shell, node.body)
    return with_output(shell, node.redirects, lambda: shell.run(shell, node.body))


_FAILING = (Simple, Pipeline, Subshell, Evaluation, Condition)
_RUNNERS: Mapping[type[Any], Callable[[Shell, Any], Flow]] = {
    Block: _block,
    Case: loops.case,
    Chain: _chain,
    Condition: condition,
    Counting: loops.counting,
    Evaluation: _evaluation,
    For: loops.loop_over,
    Function: _function,
    If: loops.condition,
    Pipeline: _pipeline,
    Redirected: _redirected,
    Simple: simple,
    Subshell: _subshell,
    While: loops.loop,
}
