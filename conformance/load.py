"""Load: many servings in one update, by the package and by a program without it."""

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
from conformance.crowd import GROUPS, JOB, PODS
from conformance.deployer import Asked, Deployer
from conformance.report import Part
from conformance.scene import MADE, NAMESPACE, PODGROUP, SERVING, Scene
from kthena_components.core import naming
from kthena_components.core.rights import rights
from sandbox.cluster import Size, up
from tests.support.engine import Run, Stack

SERVINGS = 200
RACK = 160
"""GPUs of a rack: 20 nodes of 8."""
PATIENCE = 1200
"""Seconds that one command may take."""
PROVIDER = "pulumi-resource-kubernetes"
MIB = 2**20
HEADERS = ("program", "up s", "destroy s", "program MiB", "program CPU s", "provider MiB",
           "requests")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cost:
    """What one program took."""

    up: float
    destroy: float
    memory: float
    cpu: float
    provider: float
    asked: Counter[Asked]

    def row(self, name: str) -> list[Any]:
        """Write it for the table."""
        return [name, *(f"{number:.1f}" for number in (self.up, self.destroy)),
                f"{self.memory:.0f}", f"{self.cpu:.1f}", f"{self.provider:.0f}",
                self.asked.total()]  # fmt: skip


def run(context: Context) -> None:
    """Deploy the crowd twice, once by each program, and print what it cost."""
    number = context.many(SERVINGS)
    racks = -(-number * GROUPS * PODS // RACK)
    size = Size(racks=racks, nodes=20)
    part = context.part
    sandbox = up(context.folder / "sandbox", size, part.say, audit=True)
    try:
        deployer = Deployer.make(sandbox, context.folder)
        deployer.may([right.rule() for right in rights(["kthena"])])
        crowd = Crowd(part, Scene(sandbox.api, part), deployer, context.folder, number)
        crowd.record()
        costs = {name: crowd.cost(name) for name in ("package", "raw")}
    finally:
        sandbox.processes.stop_all()
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


def _of_objects(asked: Counter[Asked]) -> Counter[Asked]:
    """Leave out what is asked once more whenever a connection is made anew."""
    lasting = {"list", "watch"}
    return Counter({name: times for name, times in asked.items() if name[2] not in lasting})


@dataclass(frozen=True, slots=True)
class Crowd:
    """Many servings, and who deploys them."""

    part: Part
    scene: Scene
    deployer: Deployer
    folder: Path
    number: int

    def record(self) -> None:
        """Note what the package registers, for the raw program."""
        stack = self._stack("record")
        self._ran("the preview that is recorded", stack.preview())

    def cost(self, program: str) -> Cost:
        """Bring everything up with one program, look, and take it down."""
        stack = self._stack(program)
        before = self.deployer.requests()
        with _peak(PROVIDER) as provider:
            began = time.monotonic()
            self._ran(f"{program}: up", stack.up())
            took = time.monotonic() - began
            self._look(program)
            began = time.monotonic()
            self._ran(f"{program}: destroy", stack.destroy())
            took_down = time.monotonic() - began
        self.scene.until(f"{program}: nothing is left", lambda: not self._left())
        self.part.check(f"{program}: its state is empty", holds=not stack.resources)
        used = json.loads(self._usage(program).read_text())
        asked = self.deployer.requests() - before
        return Cost(took, took_down, used["mib"], used["cpu"], max(provider, default=0), asked)

    def _look(self, program: str) -> None:
        """See that everything runs, and that nothing is there twice."""
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
        (source / "__main__.py").write_text("from conformance.crowd import main\n\nmain()\n")
        job = {
            "program": program, "servings": self.number, "usage": str(self._usage(program)),
            "kubeconfig": str(self.deployer.kubeconfig),
            "recording": str(self.folder / "recording.json"),
        }  # fmt: skip
        stack = Stack.make(source, "load", own, {JOB: json.dumps(job)})
        stack.seconds = PATIENCE
        return stack

    def _usage(self, program: str) -> Path:
        return self.folder / f"{program}.json"

    def _ran(self, what: str, done: Run) -> None:
        if not self.part.check(what, holds=done.code == 0, seen=done.text[-3000:]):
            raise RuntimeError(f"{what} failed")


@contextmanager
def _peak(program: str) -> Iterator[list[float]]:
    """Watch how much memory a program below us holds, in MiB."""
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
