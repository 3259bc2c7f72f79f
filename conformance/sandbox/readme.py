"""Asks `fit` about a sandbox with a full rack, as README shows it."""

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import yaml

from conformance.support.waiting import wait
from kthena_components.cluster.objects import status_of
from sandbox.cluster import Size
from tests.support.engine import ROOT
from tests.support.pages import agrees, block

if TYPE_CHECKING:
    from conformance.__main__ import Context

MAKE, SHOWN = "make sandbox RACKS=2 NODES=2", "verdict "
TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d UTC"


def run_readme(context: "Context") -> None:
    """Start the sandbox of README, fill its rack, and compare what `fit` prints."""
    _, _, apply, fit = block("README.md", MAKE).splitlines()
    sandbox = context.sandbox(Size(racks=2, nodes=2), "readme")
    try:
        for body in yaml.safe_load_all((ROOT / apply.split()[-1]).read_text()):
            sandbox.api.create(body)
        wait(lambda: all(status_of(pod).get("phase") == "Running"
                         for pod in sandbox.api.list("v1", "Pod")))  # fmt: skip
        asked = [sys.executable, "-m", "kthena_components", *fit.split()[1:]]
        variables = {**os.environ, "KUBECONFIG": str(sandbox.layout.kubeconfig)}
        told = subprocess.run(asked, cwd=ROOT, env=variables, capture_output=True, text=True,
                              check=False)  # fmt: skip
    finally:
        sandbox.processes.stop_all()
    shown = block("README.md", SHOWN)
    holds = told.returncode == 1 and agrees(told.stdout, shown, [TIME])
    context.part.check("`fit` prints what README shows", holds=holds, seen=told)
