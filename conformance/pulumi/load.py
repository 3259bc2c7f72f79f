"""Load test: many servings in one update, with the package and with a raw program."""

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from tabulate import tabulate

from conformance.__main__ import Context
from conformance.pulumi.deployer import Deployer, Request
from conformance.pulumi.load_programs import GROUPS, JOB, PODS
from conformance.report import Part
from conformance.support.cluster import MADE, NAMESPACE, PODGROUP, SERVING, Scene
from kthena_components.core import naming
from kthena_components.systems import resources_of
from sandbox.cluster import Size, up
from tests.support.engine import Run, Stack

SERVINGS = 200
RACK = 160
"""GPUs of a rack: 20 nodes of 8."""
PATIENCE = 1200
"""Timeout of one command in seconds."""
PROVIDER = "pulumi-resource-kubernetes"
MIB = 2**20
HEADERS = ("program", "up s", "destroy s", "program MiB", "program CPU s", "provider MiB",
           "requests")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cost:
    """The measurements of one program."""

    up: float
    destroy: float
    """0 if it was not destroyed."""
    memory: float
    cpu: float
    provider: float
    asked: Counter[Request]
    """Requests of the update."""

    def row(self, name: str) -> list[Any]:
        """Return the row for the table."""
        return [name, f"{self.up:.1f}", f"{self.destroy:.1f}" if self.destroy else "",
                f"{self.memory:.0f}", f"{self.cpu:.1f}", f"{self.provider:.0f}",
                self.asked.total()]  # fmt: skip


def run(context: Context) -> None:
    """Deploy the servings with each program, and print the measurements."""
    number, part = context.many(SERVINGS), context.part
    costs = _costs(context, number)
    package, raw = (_of_objects(costs[name].asked) for name in ("package", "raw"))
    same = package == raw
    part.check("both programs ask the API server the same", holds=same,
               seen=(package, raw))  # fmt: skip
    table = tabulate([cost.row(name) for name, cost in costs.items()], HEADERS, "github")
    verbs = Counter[str]()
    for (_, resource, verb), times in costs["package"].asked.items():
        verbs[f"{verb} {resource}"] += times
    part.say(f"{number} servings, {number * GROUPS * PODS} pods\n{table}\n{dict(verbs)}")
    part.count("servings in one update", number)
    part.count("pods that ran", number * GROUPS * PODS)


def _costs(context: Context, number: int) -> dict[str, Cost]:
    """Start a cluster with room for the servings, and deploy them with one program after another.

    The package destroys what it deployed, so the raw program finds the cluster as the package did.
    """
    racks = -(-number * GROUPS * PODS // RACK)
    folder, part = context.folder, context.part
    sandbox = up(folder / "sandbox", Size(racks=racks, nodes=20), part.say, audit=True)
    try:
        deployer = Deployer.make(sandbox, folder)
        deployer.may([right.rule() for right in resources_of(["kthena"])])
        crowd = Crowd(part, Scene(sandbox.api, part), deployer, folder, number)
        return {name: crowd.cost(name) for name in ("package", "raw")}
    finally:
        sandbox.processes.stop_all()


def _of_objects(asked: Counter[Request]) -> Counter[Request]:
    """Leave out the requests that each new connection repeats."""
    lasting = {"list", "watch"}
    return Counter({name: times for name, times in asked.items() if name[2] not in lasting})


@dataclass(frozen=True, slots=True)
class Crowd:
    """Many servings, and the programs that deploy them."""

    part: Part
    scene: Scene
    deployer: Deployer
    folder: Path
    number: int

    def cost(self, program: str) -> Cost:
        """Deploy everything with one program and check it. The package also destroys it."""
        if program == "raw":  # which replays what the package registers
            self._ran("the preview that is recorded", self._stack("record").preview())
        stack = self._stack(program)
        before = self.deployer.requests()
        took_down = 0.0
        with _peak(PROVIDER) as provider:
            began = time.monotonic()
            self._ran(f"{program}: up", stack.up())
            took = time.monotonic() - began
            asked = self.deployer.requests() - before
            self._look(program)
            if program == "package":
                took_down = self._take_down(stack)
        used = json.loads(self._usage(program).read_text())
        return Cost(took, took_down, used["mib"], used["cpu"], max(provider, default=0), asked)

    def _take_down(self, stack: Stack) -> float:
        """Destroy everything, and return the seconds."""
        began = time.monotonic()
        self._ran("package: destroy", stack.destroy())
        took = time.monotonic() - began
        self.scene.until("package: nothing is left", lambda: not self._left())
        self.part.check("package: its state is empty", holds=not stack.resources)
        return took

    def _look(self, program: str) -> None:
        """Check that everything runs and no object exists twice."""
        total = self.number * GROUPS * PODS
        pods = self.scene.pods()
        phases = Counter(pod["status"].get("phase") for pod in pods)
        self.part.check(f"{program}: all pods run when `up` ends",
                        holds=phases == {"Running": total}, seen=phases)  # fmt: skip
        groups = Counter(pod["metadata"]["labels"][naming.GROUP_NAME] for pod in pods)
        whole = len(groups) == self.number * GROUPS and set(groups.values()) == {PODS}
        self.part.check(f"{program}: each group has its pods", holds=whole, seen=groups)
        for version, kind, wanted in ((SERVING, "ModelServing", self.number),
                                      (PODGROUP, "PodGroup", self.number * GROUPS)):  # fmt: skip
            found = len(list(self.scene.api.list(version, kind, NAMESPACE)))
            self.part.check(f"{program}: each {kind} once", holds=found == wanted, seen=found)

    def _left(self) -> list[str]:
        return [item["metadata"]["name"] for version, kind in MADE
                for item in self.scene.api.list(version, kind, NAMESPACE)]  # fmt: skip

    def _stack(self, program: str) -> Stack:
        source, own = self.folder / "source", self.folder / program
        source.mkdir(exist_ok=True)
        (source / "Pulumi.yaml").write_text("name: crowd\nruntime: python\n")
        (source / "__main__.py").write_text(
            "from conformance.pulumi.load_programs import main\n\nmain()\n"
        )
        job = {
            "program": program, "servings": self.number, "usage": str(self._usage(program)),
            "kubeconfig": str(self.deployer.kubeconfig),
            "recording": str(self.folder / "recording.json"),
        }  # fmt: skip
        stack = Stack.make(source, "load", own, {JOB: json.dumps(job)}, forked=False)
        stack.seconds = PATIENCE
        return stack

    def _usage(self, program: str) -> Path:
        return self.folder / f"{program}.json"

    def _ran(self, what: str, done: Run) -> None:
        if not self.part.check(what, holds=done.code == 0, seen=done.text[-3000:]):
            raise RuntimeError(f"{what} failed")


@contextmanager
def _peak(program: str) -> Iterator[list[float]]:
    """Measure the peak memory of a descendant process, in MiB."""
    seen: list[float] = []
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.5):
            for process in psutil.Process().children(recursive=True):
                try:
                    if process.name().startswith(program[:15]):
                        seen.append(process.memory_info().rss / MIB)
                except psutil.NoSuchProcess:
                    continue

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield seen
    finally:
        over.set()
        watcher.join()
