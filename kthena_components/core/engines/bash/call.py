"""One command that a shell runs, once its words are expanded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kthena_components.core.engines.bash.shell import Shell
from kthena_components.core.engines.bash.state import OUTPUT, Value, is_known
from kthena_components.core.engines.bash.syntax import Assignment, Word
from kthena_components.core.values.unknown import Unknown


@dataclass(frozen=True, slots=True)
class Call:
    """One command."""

    shell: Shell
    words: Sequence[str]
    given: Sequence[Word | Assignment] = ()
    """The words before they were expanded, of a declaration."""
    assigned: Mapping[str, Value] = field(default_factory=dict)
    """What stands in front of its name."""
    stdin: str | None = None
    """What its standard input holds; None if that is not known."""

    @property
    def known(self) -> bool:
        """Whether every word is known."""
        return all(map(is_known, self.words))

    def write(self, text: str | Unknown) -> None:
        """Write to the standard output, where that is wanted."""
        state = self.shell.state
        before = state.get(OUTPUT)
        if before is None:
            return
        if isinstance(before, str) and isinstance(text, str):
            state.set(OUTPUT, before + text)
        else:
            state.set(OUTPUT, Unknown("the output of a command is unknown"))
