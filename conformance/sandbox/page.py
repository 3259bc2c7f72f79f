"""Follows docs/sandbox.md and the how-to pages that need a cluster, in one checkout and sandbox."""

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
    """Run the commands of the pages, and compare what they print."""
    folder, part = checkout(context.folder / "page"), context.part
    project = folder / "chat"  # the first page makes it, and the others go on in it
    programs = Path(sys.executable).parent
    kept = {name: text for name, text in {**os.environ, **environment()}.items()
            if not name.startswith(("PULUMI_CONFIG", "PULUMI_BACKEND", "KUBE"))}  # fmt: skip
    path = f"{programs}:{kept['PATH']}"
    variables = {**kept, "PATH": path, "PYTHONPATH": str(folder)}
    variables["PULUMI_SKIP_CONFIRMATIONS"] = "true"
    with Bash(folder, variables) as bash:

        def before(step: Step) -> None:
            part.count("commands of the pages")
            if step.command == STATUS:
                wait(lambda: bash.run(STATUS)[0] == 0)

        try:
            follow("docs/sandbox.md", bash, folder, VARYING, before)
            bash.run("make destroy STACK=sandbox")  # it would be in the answers of `status`
            follow("docs/how-to/first-request.md", bash, project, VARYING, before)
            follow("docs/how-to/upgrade-and-roll-back.md", bash, project, VARYING, before)
            follow("docs/how-to/scale.md", bash, project, VARYING, before)
            follow("docs/how-to/rename.md", bash, project, VARYING, before)
            follow("docs/how-to/protect.md", bash, project, VARYING, before)
            part.check("the pages print what they show", holds=True)
        except AssertionError as error:
            part.fail(str(error))
        finally:
            bash.run(f"make -C {folder} sandbox-down")
