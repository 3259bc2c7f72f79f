"""One shell that runs a script: its paths, and what becomes of its state where they part."""

from collections.abc import Callable, Sequence
from dataclasses import field
from enum import Enum, auto
from typing import Any

from kthena_components.core.engines.bash.shared_state import SharedState
from kthena_components.core.engines.bash.shell_state import (
    ANY,
    MISSING,
    OUTPUT,
    RUNNING,
    STATUS,
    WRITTEN,
    State,
    Value,
)
from kthena_components.core.engines.bash.syntax import Statement
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.unknown import Unknown

LOOP, ROUND, FUNCTION, FILE = "loop", "round", "function", "file"
IN_BRANCH = "in a branch of the script"
IN_LOOP = "by a loop of the script"
_MOST_ROUNDS = 10


class Flow(Enum):
    """How a statement ends."""

    GOES = auto()
    """The next one runs."""
    ENDED = auto()
    """The shell is left."""
    JUMPED = auto()
    """A loop, a function or a file is left, or a loop goes on with its next round."""


class Doubt(Enum):
    """An exit status that is not known."""

    LIKELY = auto()
    """The status of a program that is expected to succeed: a script that fails is not read on."""
    OPEN = auto()
    """The status of a condition."""
    VARIES = auto()
    """The status of a condition that reads a value which differs between pods."""


Status = int | Doubt
Way = Callable[[], Flow]


@dataclass(slots=True)
class Frame:
    """Something that a statement inside can leave: a loop, a round of one, a function, a file."""

    kind: str
    depth: int
    """Layers of state outside."""
    ends: list[dict[str, Any]] = field(default_factory=list)
    passed: bool = False
    """Whether a path may have left it for something further out."""
    local: dict[str, tuple[bool, dict[str, Any]]] = field(default_factory=dict)
    """Names that belong to a function: whether they surely do, and what they were outside."""


@dataclass(frozen=True, slots=True)
class _Outcome:
    """How one alternative of a branch ended."""

    flow: Flow
    state: dict[str, Any]
    """What it changed."""
    sure: bool
    """Whether no path of it has left the loop or the function around it."""
    stays: bool
    """Whether no path of it has left the shell, unless something failed."""
    started: bool
    """Whether it surely starts a program."""
    failed: bool
    """Whether it ended the shell, on each of its paths with a failure."""

    @property
    def leads(self) -> bool:
        """Whether it surely starts a program or fails."""
        return self.started or self.failed

    def stays_after(self, doubt: Doubt) -> bool:
        """Return whether the shell surely runs on if a pod takes another alternative."""
        if self.flow is not Flow.ENDED:
            return self.stays
        return self.failed or doubt is not Doubt.OPEN


@dataclass(slots=True)
class Shell:
    """One shell that runs a script."""

    shared: SharedState
    state: State
    bash: bool
    """Whether it is surely bash. Else it may be dash: what only bash knows is then not known."""
    run: Callable[["Shell", Statement], Flow]
    """Runs one statement."""
    frames: list[Frame] = field(default_factory=list)
    exits: list[tuple[Status, Any]] = field(default_factory=list)
    """Status and output of paths that have left the shell."""
    nested: bool = False
    """Whether it is a subshell."""
    substituted: "Status" = 0
    """The exit status of the last command substitution."""
    guards: int = 0
    """Tests that decide whether the statement runs, also those whose result is known."""
    tested: int = 0
    """Conditions around the statement that runs: in them a failure ends nothing."""

    @property
    def status(self) -> Status:
        """The exit status of the last command."""
        found = self.state.get(STATUS, 0)
        return found if isinstance(found, Status) else Doubt.OPEN

    def done(self, status: Status = 0) -> Flow:
        """Record the status of a command that the next one follows."""
        self.state.set(STATUS, status)
        return Flow.GOES

    def gap(self, written: str, because: Unknown | str) -> str:
        """Leave a gap for a string that is not known."""
        return self.shared.scope.gap(written, because)

    def leave(self, status: Status) -> Flow:
        """Leave the shell."""
        self.exits.append((status, self.state.get(OUTPUT)))
        return Flow.ENDED

    def branch(self, ways: Sequence[Way], doubt: Doubt = Doubt.OPEN) -> Flow:
        """Run alternatives and join their states: one of them happens.

        A program that one of them starts is sure if each of them starts one or fails, and so is
        what follows.
        """
        shared = self.shared
        outside, first = (shared.sure, shared.stays), len(shared.log)
        outcomes = [self._outcome(way) for way in ways]
        shared.sure, shared.stays = outside
        if not all(outside) or (doubt is Doubt.OPEN and not all(each.leads for each in outcomes)):
            shared.doubt(first)
        flows = {each.flow for each in outcomes}
        after = [each for each in outcomes if each.flow is Flow.GOES]
        jump_in_doubt = Flow.JUMPED in flows and doubt is Doubt.OPEN
        shared.sure &= all(each.sure for each in after) and not jump_in_doubt
        shared.stays &= all(each.stays_after(doubt) for each in outcomes)
        self.state.join([each.state for each in after], IN_BRANCH, self.gap)
        return next((flow for flow in (Flow.GOES, Flow.JUMPED) if flow in flows), Flow.ENDED)

    def _outcome(self, way: Way) -> _Outcome:
        """Run one alternative on its own layer of state."""
        shared, state = self.shared, self.state
        state.layers.append({})
        shared.sure = shared.stays = True
        before, left = len(shared.log), len(self.exits)
        flow = way()
        started = any(found.sure and found.starts for found in shared.log[before:])
        failed = flow is Flow.ENDED and self._failed(left)
        return _Outcome(flow, state.layers.pop(), shared.sure, shared.stays, started, failed)

    def _failed(self, first: int) -> bool:
        """Return whether the paths that have left the shell since then all failed."""
        return all(isinstance(status, int) and status for status, _ in self.exits[first:])

    def framed(self, kind: str, body: Way, where: str = IN_BRANCH) -> Flow:
        """Run something that a statement inside can leave."""
        state, shared = self.state, self.shared
        frame = Frame(kind, len(state.layers))
        sure = shared.sure
        state.layers.append({})
        self.frames.append(frame)
        flow = body()
        self.frames.pop()
        ends = frame.ends
        if flow is Flow.GOES:
            ends.append(state.written(frame.depth))
        del state.layers[frame.depth :]
        shared.sure = sure and not frame.passed
        state.join(ends, where, self.gap)
        self._restore(frame)
        if ends:
            return Flow.GOES
        return Flow.JUMPED if frame.passed else flow

    def _restore(self, frame: Frame) -> None:
        """Give local variables of a function back the values that they had before its call."""
        for name, (surely, before) in frame.local.items():
            for key, value in before.items():
                if value is MISSING:
                    self.state.layers[-1].pop(key, None)
                else:
                    self.state.set(key, value)
            if not surely:
                self.state.set(name, Unknown(f"{name} is local {IN_BRANCH}"))

    def jump(self, kinds: Sequence[str], count: int = 1) -> Flow | None:
        """Leave the count-th frame of some kinds; None if there is none."""
        inside: list[Frame] = []
        for frame in reversed(self.frames):
            if frame.kind == FUNCTION and FUNCTION not in kinds:
                break
            count -= frame.kind in kinds
            if not count:
                frame.ends.append(self.state.written(frame.depth))
                for left in inside:
                    left.passed = True
                return Flow.JUMPED
            inside.append(frame)
        return self.leave(Doubt.OPEN) if self.nested else None

    def make_local(self, name: str) -> bool:
        """Let a name belong to the function that runs; False outside functions."""
        frame = next((frame for frame in reversed(self.frames) if frame.kind == FUNCTION), None)
        if frame is None:
            return False
        if name not in frame.local:
            surely = len(self.state.layers) == frame.depth + 1
            keys = (f"export {name}", f"fixed {name}", f"typed {name}")
            before = {key: self.state.get(key, MISSING) for key in keys}
            frame.local[name] = surely, {name: self.state.noted(name), **before}
        return True

    def subshell(self, body: Way, output: str | None = None) -> Any:
        """Run something whose effects on the state are lost; return what it writes.

        Args:
            body: What runs.
            output: "" where its output is wanted.
        """
        state, shared = self.state, self.shared
        outside = self.frames, self.exits, self.nested
        seen = shared.sure, shared.stays
        written = state.get(OUTPUT)
        depth = len(state.layers)
        state.layers.append({} if output is None else {OUTPUT: output})
        self.frames, self.exits, self.nested = [], [], True
        flow = body()
        ends = self.exits
        if flow is Flow.GOES:
            ends.append((self.status, state.get(OUTPUT)))
        running, files = state.get(RUNNING), state.get(WRITTEN)
        del state.layers[depth:]
        self.frames, self.exits, self.nested = outside
        shared.sure, shared.stays = seen
        if running != state.get(RUNNING):
            state.set(RUNNING, running)
        if files != state.get(WRITTEN):
            state.set(WRITTEN, files)
        same = len(ends) == 1
        state.set(STATUS, ends[0][0] if same else Doubt.OPEN)
        result = ends[0][1] if same else Unknown("it differs from path to path")
        if output is None and written is not None:
            state.set(OUTPUT, result)
        return result

    def settle(self, body: Way) -> Flow:
        """Run the body of a loop whose number of runs is not known.

        What it changes is forgotten before it runs, until it changes nothing else.
        """
        shared, state = self.shared, self.state
        first, exits, frames = len(shared.log), len(self.exits), [len(f.ends) for f in self.frames]
        lost: set[str] = {STATUS}
        for _ in range(_MOST_ROUNDS):
            state.layers.append({})
            self._lose(lost)
            flow = body()
            end = state.layers.pop()
            changed = {key for key, value in end.items() if value != state.present(key)}
            if changed <= lost or flow is not Flow.GOES:
                self._lose(lost | changed)
                return flow
            lost |= changed
            del shared.log[first:], self.exits[exits:]
            for frame, length in zip(self.frames, frames, strict=True):
                del frame.ends[length:]
        self._lose({ANY})
        return Flow.GOES

    def _lose(self, names: set[str]) -> None:
        for name in names:
            if name == ANY:
                self.state.forget(f"a variable is set {IN_LOOP}")
            else:
                self.state.set(name, Unknown(f"{name} is set {IN_LOOP}"))


def unknown(value: Value | None) -> Unknown | None:
    """Return why a value is not known, if it is not."""
    return value if isinstance(value, Unknown) else None
