"""Follows docs/sandbox.md in a checkout: `make sandbox`, `make up`, doctor, status, and the end."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.support.waiting import wait
from tests.support.checkout import checkout
from tests.support.engine import environment
from tests.support.follow import follow
from tests.support.pages import Step
from tests.support.shells import Bash

if TYPE_CHECKING:
    from conformance.__main__ import Context

VARYING = (
    r"\d+ seconds", r"after \d+ s", r"\d+ MiB", r"https://127\.0\.0\.1:\d+",
    r"/\S*/\.sandbox/kubeconfig", r"rack-\d-node-\d", r"rack-\d",
)  # fmt: skip
"""What differs between runs: times, memory, ports, folders, and who gets which node."""
STATUS = "kthena-components status"


def run_page(context: "Context") -> None:
    """Run the commands of the page, and compare what they print."""
    folder, part = checkout(context.folder / "page"), context.part
    programs = Path(sys.executable).parent
    kept = {name: text for name, text in {**os.environ, **environment()}.items()
            if not name.startswith(("PULUMI_CONFIG", "PULUMI_BACKEND", "KUBE"))}  # fmt: skip
    path = f"{programs}:{kept['PATH']}"
    variables = {**kept, "PATH": path, "PYTHONPATH": str(folder)}
    with Bash(folder, variables) as bash:

        def before(step: Step) -> None:
            part.count("commands of the page")
            if step.command == STATUS:
                wait(lambda: bash.run(STATUS)[0] == 0)

        try:
            follow("docs/sandbox.md", bash, folder, VARYING, before)
            part.check("the page prints what it shows", holds=True)
        except AssertionError as error:
            part.fail(str(error))
        finally:
            bash.run("make sandbox-down")
