"""Draws what each command reads."""

from collections.abc import Mapping

from kthena_components.cli.main import COMMANDS
from toolchain.pages.figures.sheet import draw_grid

COLUMNS = ("files", "stack file", "cluster", "Pulumi")
ALWAYS = "always"
INPUTS: Mapping[str, Mapping[str, str]] = {
    "new": {},
    "check": {"files": ALWAYS},
    "convert": {"files": "without --from-cluster", "cluster": "--from-cluster"},
    "size": {"files": "--hf-config"},
    "review": {
        "files": "STACK=FILE, --state, --inventory",
        "stack file": "--base",
        "Pulumi": "--base without --no-preview",
    },
    "policy-pack": {},
    "doctor": {"stack file": "--stack", "cluster": ALWAYS},
    "fit": {"files": "PATH, --inventory", "stack file": "STACK", "cluster": "without --inventory"},
    "inventory": {"cluster": ALWAYS},
    "status": {"cluster": ALWAYS},
    "rights": {},
}
"""For each command, what it reads and which argument makes it do so."""
_KEY = (
    "always reads it", "reads it, depending on its arguments", "no mark: does not read it",
)  # fmt: skip


def draw() -> str:
    """Return the figure."""
    rows = {
        command: "".join(_mark(INPUTS[command].get(column)) for column in COLUMNS)
        for command in COMMANDS
    }
    return draw_grid("What each command reads", _KEY, COLUMNS, rows)


def in_words(command: str) -> str:
    """Return what a command reads, as a cell of a table."""
    told = [
        name if when == ALWAYS else f"{name} ({when})" for name, when in INPUTS[command].items()
    ]
    return "; ".join(told) or "nothing"


def _mark(when: str | None) -> str:
    return " " if when is None else "+" if when == ALWAYS else "-"
