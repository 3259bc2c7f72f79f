"""The files that a script writes with `>`, for the programs that it starts then.

What they hold is known only as long as no program runs that is not read here: it may change them.
"""

from collections.abc import Iterable

from kthena_components.core.engines.bash.call import path_of
from kthena_components.core.engines.bash.expand import Expander
from kthena_components.core.engines.bash.shell import Flow, Shell, Way
from kthena_components.core.engines.bash.shell_state import OUTPUT, WRITTEN
from kthena_components.core.engines.bash.syntax import Parameter, Redirect, Text, Word
from kthena_components.core.engines.placeholders import has_gap
from kthena_components.core.values.unknown import MaybeText, Unknown

_NEW, _MORE = frozenset({">", ">|"}), ">>"
_LOST = Unknown("a program may have changed what the script wrote")
_GAP = Unknown("the script writes a value into it that is not known")


def discards(redirects: Iterable[Redirect]) -> bool:
    """Return whether a command's output goes elsewhere."""
    return any(r.descriptor in {1, -1} and r.mark != "<" for r in redirects)


def with_output(shell: Shell, redirects: Iterable[Redirect], body: Way) -> Flow:
    """Run something whose output goes elsewhere, and note what a file holds then."""
    state = shell.state
    wanted = state.get(OUTPUT)
    outputs = [r for r in redirects if r.descriptor in {1, -1} and r.mark != "<"]
    target = outputs[0] if len(outputs) == 1 and wanted is None else None
    is_file = target is not None and target.descriptor == 1 and target.mark in {*_NEW, _MORE}
    path = _path(shell, target.target) if target is not None and is_file else None
    # Inside of `$(…)`, a path that leaves it would take the file's text for the output.
    state.set(OUTPUT, "" if is_file else None)
    flow = body()
    text = state.get(OUTPUT)
    state.set(OUTPUT, wanted)
    if target is not None and path is not None:
        _note(shell, path, text, adds=target.mark == _MORE)
    elif any(r.mark not in {">&", "<&"} for r in outputs):
        state.set(WRITTEN, _LOST)
    return flow


def _path(shell: Shell, target: Word) -> str | None:
    """Return the path of a file that is written; None if it is not known."""
    plain = all(
        isinstance(p, Text) or (isinstance(p, Parameter) and not p.operator) for p in target
    )
    return path_of(shell, Expander(shell).text(target)) if plain else None


def _note(shell: Shell, path: str, text: object, *, adds: bool) -> None:
    written = shell.state.get(WRITTEN, {})
    if isinstance(written, Unknown):
        return
    before = written.get(path) if adds else ""
    known = isinstance(text, str) and isinstance(before, str) and not has_gap(text)
    made: MaybeText = f"{before}{text}" if known else _GAP
    shell.state.set(WRITTEN, {**written, path: made})
