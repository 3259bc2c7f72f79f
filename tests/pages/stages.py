"""What each page takes for granted before its first command, and where its commands run.

A page with commands that is not here runs in an empty folder, in this process. So a new page or a
new block needs no line here to be run.
"""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.rules.cases import bases
from tests.support.pages import ROOT, pages, steps

FILES = Path(__file__).parent / "files"
Prepare = Callable[[Path], None]


def _copies(names: Mapping[str, Path]) -> Prepare:
    def prepare(folder: Path) -> None:
        for name, source in names.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            copy = shutil.copytree if source.is_dir() else shutil.copy
            copy(source, folder / name)

    return prepare


THREE_NODES = {"manifests/llama.yaml": FILES / "three-nodes.yaml"}
IN_PROCESS: Mapping[str, Prepare] = {
    "docs/check.md": _copies(THREE_NODES),
    "docs/levels.md": _copies({"llama.yaml": bases()["deployment"]}),
}
WITH_PROGRAMS: Mapping[str, Prepare] = {
    "README.md": _copies({**THREE_NODES, "examples": ROOT / "examples"})
}
"""Need helm and kustomize on PATH."""

IN_CHECKOUT = (
    "docs/start.md",
    "docs/tutorials/first-serving.md",
    "docs/tutorials/prefill-decode.md",
    "docs/tutorials/pull-requests.md",
    "docs/tutorials/racks-and-queues.md",
    "docs/tutorials/two-nodes.md",
)
"""Need Pulumi in a checkout: tests/pulumi/test_tutorials.py follows them."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A page whose commands need more than a folder, and the module that follows it."""

    module: str
    why: str


ELSEWHERE: Mapping[str, Elsewhere] = {
    "docs/own-program.md": Elsewhere(
        "tests/pulumi/test_own_program.py", "its pulumi and pip are real"
    ),
    **dict.fromkeys(
        (
            "docs/how-to/first-request.md",
            "docs/how-to/protect.md",
            "docs/how-to/rename.md",
            "docs/how-to/scale.md",
            "docs/how-to/upgrade-and-roll-back.md",
            "docs/sandbox.md",
        ),
        Elsewhere(
            "conformance/sandbox/page.py",
            "starts a cluster, whose programs take 20 minutes to build",
        ),
    ),
}
NOT_RUN: Mapping[tuple[str, str], str] = {}
"""Reasons why a command of a page cannot be run at all, by page and command."""


def followed() -> list[str]:
    """List the pages with commands."""
    return [page for page in pages() if steps(page)]
