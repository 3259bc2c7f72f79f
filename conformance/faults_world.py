"""What every fault is tried on: a small stack on a sandbox, and how one goes on after a fault."""

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

import psutil

from conformance.report import Part
from conformance.waiting import PATIENCE, wait
from kthena_components.cluster.client import Cluster, ClusterError
from sandbox.cluster import Sandbox
from tests.support.engine import ROOT, Run, Stack

NAMESPACE = "serving"
KINDS = {
    "Service": "v1",
    "StatefulSet": "apps/v1",
    "PodGroup": "scheduling.volcano.sh/v1beta1",
    "ModelServing": "workload.serving.volcano.sh/v1alpha1",
}
"""What a stack makes here, with the apiVersion."""
PODS = {"native": 2, "kthena": 2}
FORCE = "PULUMI_K8S_ENABLE_PATCH_FORCE"


@dataclass(frozen=True, slots=True)
class World:
    """A sandbox on which stacks are made, disturbed and taken down."""

    part: Part
    sandbox: Sandbox
    api: Cluster
    folder: Path

    @contextmanager
    def stack(self, title: str, backends: tuple[str, ...] = tuple(PODS)) -> Iterator["Tried"]:
        """Make a stack, and take down whatever is left of it."""
        folder = self.folder / title.replace(" ", "-")
        folder.mkdir()
        variables = {
            "KUBECONFIG": str(self.sandbox.layout.kubeconfig),
            # As `make up` has it: a side file that is written by half would hide the state.
            "PULUMI_BACKEND_URL": f"{(folder / 'state').as_uri()}?metadata=skip",
            # Else a killed engine would leave no state at all.
            "PULUMI_SKIP_CHECKPOINTS": "false",
        }
        stack = Stack.make(ROOT, "faults", folder, variables)
        stack.seconds = PATIENCE
        config = {"output": "cluster", "servings": [serving(backend) for backend in backends]}
        stack.change(lambda c: c.update({f"kthena-components:{k}": v for k, v in config.items()}))
        tried = Tried(self, stack, title, sum(PODS[backend] for backend in backends))
        self.part.count("faults")
        began = time.monotonic()
        try:
            yield tried
        finally:
            tried.clear()
            self.part.say(f"{title}: {time.monotonic() - began:.1f} s")

    def answers(self) -> bool:
        """Return whether the API server is ready."""
        try:
            self.api.ask("GET", "/readyz")
        except ClusterError as error:
            return error.reason == "Unreadable"  # it says `ok`, which is no JSON
        return True

    def objects(self) -> dict[str, str]:
        """List the objects that no controller made, with their uids."""
        return {
            f"{kind} {NAMESPACE}/{item['metadata']['name']}": item["metadata"]["uid"]
            for kind, version in KINDS.items()
            for item in self._listed(version, kind)
            if "ownerReferences" not in item["metadata"]
        }

    def pods(self) -> dict[str, str]:
        """List the pods in the namespace, with their phases."""
        found = self._listed("v1", "Pod")
        return {item["metadata"]["name"]: item["status"].get("phase", "") for item in found}

    def _listed(self, version: str, kind: str) -> list[dict[str, Any]]:
        """List a kind; nothing where it is not served or the server is away."""
        try:
            return list(self.api.list(version, kind, NAMESPACE))
        except ClusterError as error:
            if error.status in {HTTPStatus.NOT_FOUND, 0}:
                return []
            raise


@dataclass(slots=True)
class Tried:
    """One stack, and the fault that is tried on it."""

    world: World
    stack: Stack
    title: str
    pods: int

    def check(self, what: str, *, holds: bool, seen: object = "") -> None:
        """Count one check of this fault."""
        self.world.part.check(f"{self.title}: {what}", holds=holds, seen=seen)

    def up_while(self, fault: Callable[[], object]) -> Run:
        """Update, and let something happen meanwhile."""
        with ThreadPoolExecutor(1) as pool:
            update = pool.submit(self.stack.up)
            fault()
            return update.result()

    def events(self) -> int:
        """Count what the engine has reported of the update that runs."""
        log = self.stack.project.parent / "events.jsonl"
        return log.read_bytes().count(b"\n") if log.exists() else 0

    def engine(self) -> psutil.Process:
        """Find the engine of the update that runs."""
        found = (child for child in psutil.Process().children() if child.name() == "pulumi")
        return next(child for child in found if str(self.stack.project) == child.cwd())

    def says(self, run: Run, *words: str) -> None:
        """Check that an update was refused with words that name the thing and the way out."""
        self.check("the update fails", holds=run.code != 0, seen=run.changes)
        for word in words:
            self.check(f"the message says {word!r}", holds=word in run.text, seen=run.text)
        self.check("no traceback", holds="Traceback" not in run.text, seen=run.text)

    def goes_on(self) -> list[str]:
        """Do what docs/faults.md says until an update succeeds, and name what was needed."""
        needed: list[str] = []
        run = self.stack.up()
        if "pulumi cancel" in run.text and run.code:
            needed.append("cancel")
            self.stack.pulumi("cancel", "--yes", "--stack", "faults").require()
            run = self.stack.up()
        if "pending operations" in run.text:
            needed.append("refresh")
            flags = ("--yes", "--clear-pending-creates", "--stack", "faults")
            self.stack.pulumi("refresh", *flags).require()
            run = self.stack.up()
        if run.code and 'conflict with "pulumi-kubernetes-' in run.text:
            needed.append("force")
            run = self.forced()
        self.check("an update goes on", holds=run.code == 0, seen=run.text)
        self.settled()
        return needed

    def forced(self) -> Run:
        """Update, and take every field over from other managers."""
        self.stack.variables[FORCE] = "true"
        run = self.stack.up()
        del self.stack.variables[FORCE]
        return run

    def settled(self) -> None:
        """Check that state and cluster agree, that all pods run, and that nothing is left to do."""
        state, cluster = self.in_state(), self.world.objects()
        self.check("state equals cluster", holds=state == cluster, seen=state.items() ^ cluster)
        self.check("no operation is pending", holds=not self.pending(), seen=self.pending())
        urns = [resource["urn"] for resource in self.stack.resources]
        self.check("nothing is twice in the state", holds=len(set(urns)) == len(urns), seen=urns)
        wait(self._all_run)
        self.check("every pod runs once", holds=self._all_run(), seen=self.world.pods())
        run = self.stack.up()
        unchanged = run.code == 0 and set(run.changes) == {"same"}
        self.check("the next update changes nothing", holds=unchanged, seen=run.text)

    def _all_run(self) -> bool:
        phases = list(self.world.pods().values())
        return phases == ["Running"] * self.pods

    def in_state(self) -> dict[str, str]:
        """List the Kubernetes objects in the state, with their uids."""
        return {
            f"{item['type'].rpartition(':')[2]} {item['id']}": item["outputs"]["metadata"]["uid"]
            for item in self.stack.resources
            if item["type"].startswith("kubernetes:")
        }

    def pending(self) -> list[str]:
        """List what the state says was begun and not ended."""
        latest = json.loads(self.stack.state_text)["checkpoint"].get("latest") or {}
        found = latest.get("pending_operations") or []
        return [f"{item['type']} {item['resource']['urn']}" for item in found]

    def clear(self) -> None:
        """Destroy, and check that nothing is left; what is left is removed for the next fault."""
        run = self.stack.destroy()
        self.check("destroy succeeds", holds=run.code == 0, seen=run.text)
        gone = wait(self._empty)
        seen = [*self.world.objects(), *self.world.pods()]
        self.check("destroy leaves nothing", holds=gone, seen=seen)
        for title in self.world.objects():
            kind, _, name = title.partition(f" {NAMESPACE}/")
            with contextlib.suppress(ClusterError):
                self.world.api.delete(named(kind, name))

    def _empty(self) -> bool:
        answers = self.world.answers()  # else nothing is listed, and nothing seems to be left
        return answers and not self.world.objects() and not self.world.pods()


def named(kind: str, name: str) -> dict[str, Any]:
    """Name one object of a kind."""
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": KINDS[kind], "kind": kind, "metadata": metadata}


def serving(backend: str) -> dict[str, Any]:
    """Write a serving of two pods."""
    engine = {
        "kind": "vllm",
        "image": "vllm/vllm-openai:v0.33.0",
        "model": "meta-llama/Llama-3.1-8B-Instruct",
        "launcher": "native",
        "parallelism": {"pipeline": 2},
    }
    resources = {"gpus_per_pod": 1}
    role = {"name": "serve", "worker_replicas": 1, "engine": engine, "resources": resources}
    name = f"llama-{backend}"
    return {"name": name, "namespace": NAMESPACE, "backend": backend, "roles": [role]}
