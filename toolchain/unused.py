"""Reports functions, methods, classes and imports that no code of this repository uses.

A function that only tests call is dead, too: a rule that nobody runs finds nothing.
`python -m toolchain.unused` is a part of `make lint`.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from vulture import Vulture

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = (
    *("kthena_components", "policies", "sandbox", "conformance", "toolchain", "bench"),
    "__main__.py",
)
KINDS = frozenset({"class", "function", "import", "method", "property", "unreachable_code"})
CALLED_ELSEWHERE = {
    "construct": "Pulumi calls it for a component (provider/host.py)",
    "create_module": "Python's import calls it",
    "do_POST": "http.server calls it",
    "ignore_aliases": "PyYAML calls it",
    "log_message": "http.server calls it",
    "new_resource": "Pulumi's mocks call it (testing.py)",
    "run_program": "unit tests of users call it (testing.py)",
    **dict.fromkeys(
        ("About", "GetPluginInfo", "GetRequiredPackages", "Handshake", "InstallDependencies",
         "RunPlugin"),
        "Pulumi calls it by gRPC (toolchain/language_host)",
    ),
}  # fmt: skip
"""Names that other programs call, each with the reason."""
_ANY = 60
"""Confidence in percent, below which Vulture reports nothing; unmentioned names have it."""


def unused(root: Path = ROOT, folders: Sequence[str] = FOLDERS) -> dict[str, str]:
    """Return the names that nothing in some folders uses, each with its place and its kind."""
    vulture = Vulture()
    vulture.scavenge([str(root / folder) for folder in folders])
    return {
        item.name: f"{item.filename.relative_to(root)}:{item.first_lineno}: nothing uses the "
        f"{item.typ} '{item.name}'"
        for item in vulture.get_unused_code(min_confidence=_ANY)
        if item.typ in KINDS and not _is_special(item.name)
    }


def _is_special(name: str) -> bool:
    """Return whether Python itself calls a function of this name."""
    return name.startswith("__") and name.endswith("__")


def main() -> int:
    """Print what nothing uses, and return the exit status."""
    found = [line for name, line in unused().items() if name not in CALLED_ELSEWHERE]
    for line in found:
        print(f"{line}. Remove it, or call it")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
