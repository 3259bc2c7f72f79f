"""What all shells share that one container's command starts, one inside the other."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

from kthena_components.core.engines.facts import Blocked, CommandFacts
from kthena_components.core.engines.launchers import Ray
from kthena_components.core.engines.placeholders import Scope, Variables
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.unknown import MaybeText, Unknown

_MOST_STEPS = 20_000
_MOST_INSERTED = 100_000
_MOST_FILES = 16
"""Mounted scripts that are read for one command: one may start or take in itself."""
_DEEPEST = 12


class BeyondError(Exception):
    """A script that is not read to its end. Its text says why, as a clause."""


class BrokenError(Exception):
    """A script that ends inside a quote or a bracket, which its text names."""

    def __init__(self, inside: str, *, sure: bool) -> None:
        super().__init__(inside)
        self.sure = sure
        """Whether no shell runs it: not for a bracket, which is found by trying to close it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A script and how it is run."""

    text: str
    shell: str
    """Name of the program that reads it: bash, sh, ash, dash or ksh."""
    words: tuple[str, ...] = ()
    """`$0`, `$1` and so on."""
    options: tuple[str, ...] = ()
    """Options of the shell: `-e`, `+x`, `-o pipefail`."""
    file: str = ""
    """Its path; empty for a string behind `-c`."""


@dataclass(slots=True)
class Started:
    """A program that a command starts and that is known here."""

    engine: CommandFacts | None = None
    ray: Ray | None = None
    ray_script: str | None = None
    """Path of a Ray script in the image."""
    absent: tuple[str, ...] = ()
    """Messages about files that it names and that surely do not exist."""
    sure: bool = True
    """Whether it is started, unless something fails before."""
    beside: bool = False
    """Whether another engine may run at the same time."""

    blocked: Blocked | Unknown | None = None
    """The `ray start` before it in its script that does not end."""
    slept: int = 0
    """Seconds that its script surely sleeps before it."""
    replaces: bool = False
    """Whether it takes the place of its shell, so that nothing follows it."""
    followed: bool = False
    """Whether a command stands behind it that may run for long."""
    apart: bool = False
    """Whether its script starts it in the background, and goes on at once."""

    @property
    def starts(self) -> bool:
        """Whether it is an engine or a part of its cluster."""
        return self.engine is not None or self.ray is not None

    @property
    def ends(self) -> bool:
        """Whether its container stops as soon as it has surely joined a Ray cluster."""
        if self.ray is None or not self.sure:
            return False
        if self.apart and self.ray.role == "worker":
            return not self.followed
        returns = self.ray.joins_and_returns and self.ray_script is None
        return returns and (self.replaces or not self.followed)

    @property
    def outlives_script(self) -> bool:
        """Whether it surely runs in the background when its script has ended."""
        return self.apart and self.sure and not self.followed


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A program that is started."""

    words: Sequence[str]
    environment: Variables
    folder: MaybeText
    """Where it starts."""
    stdin: str | None = None
    """What its standard input holds; None if that is not known."""
    running: bool = False
    """Whether an engine may run beside it."""
    in_shell: bool = True
    """Whether a shell has expanded its words."""
    written: Mapping[str, MaybeText] | Unknown = field(default_factory=dict)
    """The files that the script has written before, by path. Unknown: they may have changed."""


@dataclass(slots=True)
class SharedState:
    """What was found so far, and how much may still be looked at."""

    scope: Scope
    start: Callable[[Run], bool]
    """Reads a program; tells whether an engine may run on when it has ended."""
    log: list[Started] = field(default_factory=list)
    sure: bool = True
    """Whether what is read now runs: no path has left the loop or the function around it."""
    stays: bool = True
    """Whether no path has left the shell, unless something failed."""
    steps: int = 0
    inserted: int = 0
    depth: int = 0
    files: int = 0
    strays: list[str] = field(default_factory=list)
    """Options that its scripts run as commands."""
    other_programs: bool = False
    """Whether it runs programs that are not read, and may start others."""
    traps: bool = False
    """Whether a script runs commands when it ends."""

    def step(self) -> None:
        """Count a statement, or a round of a loop."""
        self.steps += 1
        if self.steps > _MOST_STEPS:
            raise BeyondError(f"its script runs more than {_MOST_STEPS} statements")

    def insert(self) -> None:
        """Count a parameter that is replaced by its value."""
        self.inserted += 1
        if self.inserted > _MOST_INSERTED:
            raise BeyondError(f"its script replaces more than {_MOST_INSERTED} parameters")

    def enter(self) -> None:
        """Count a function, a file or a shell inside another one."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise BeyondError(f"its scripts and functions are nested more than {_DEEPEST} deep")

    def leave(self) -> None:
        """Come back from a function, a file or a shell."""
        self.depth -= 1

    def file(self, path: str | None) -> MaybeText | None:
        """Return the text of a mounted script; None if nothing is known of it."""
        text = None if path is None else self.scope.file(path)
        if self.scope.absent:
            self.note(Started())
        if isinstance(text, str):
            self.files += 1
            if self.files > _MOST_FILES:
                raise BeyondError(f"it runs or sources more than {_MOST_FILES} files")
        return text

    def note(self, found: Started) -> None:
        """Record a program that is started, or a file that is named."""
        found.sure = self.sure and self.stays
        found.absent = tuple(self.scope.absent)
        self.scope.absent.clear()
        self.log.append(found)

    def follow(self) -> None:
        """Record that a command runs now that may take long, behind all that was started."""
        for found in self.log:
            found.followed = True

    def doubt(self, first: int) -> None:
        """Record that what was started since then may not be started."""
        for found in self.log[first:]:
            found.sure = False
