"""The stack for all faults: a small stack on a sandbox, and the recovery after a fault."""

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
from conformance.support.waiting import PATIENCE, wait
from kthena_components.cluster.client import Cluster, ClusterError
from sandbox.cluster import Sandbox
from tests.support.engine import ROOT, Run, Stack

NAMESPACE = "serving"
KINDS = {
    "PodDisruptionBudget": "policy/v1",
    "Service": "v1",
    "StatefulSet": "apps/v1",
    "PodGroup": "scheduling.volcano.sh/v1beta1",
    "ModelServing": "workload.serving.volcano.sh/v1alpha1",
}
"""The kinds of the stack's objects, with their apiVersions."""
PODS = {"native": 2, "kthena": 2}
FORCE = "PULUMI_K8S_ENABLE_PATCH_FORCE"


@dataclass(frozen=True, slots=True)
class World:
    """A sandbox on which stacks are deployed, disturbed and destroyed."""

    part: Part
    sandbox: Sandbox
    api: Cluster
    folder: Path
    forked: bool = True
    """Whether programs are forks of one process: not where they are killed."""

    @contextmanager
    def stack(self, title: str, backends: tuple[str, ...] = tuple(PODS)) -> Iterator["Tried"]:
        """Create a stack, and destroy it afterwards."""
        stack = self.make("faults", title, backends)
        tried = Tried(self, stack, title, sum(PODS[backend] for backend in backends))
        self.part.count("faults")
        began = time.monotonic()
        try:
            yield tried
        finally:
            tried.clear()
            self.part.say(f"{title}: {time.monotonic() - began:.1f} s")

    def make(self, name: str, title: str, backends: tuple[str, ...] = tuple(PODS)) -> Stack:
        """Create a stack with one serving for each backend."""
        folder = self.folder / f"{title} {name}".replace(" ", "-")
        folder.mkdir()
        variables = {
            "KUBECONFIG": str(self.sandbox.layout.kubeconfig),
            # As in `make up`: an incomplete side file would make the state unreadable.
            "PULUMI_BACKEND_URL": f"{(folder / 'state').as_uri()}?metadata=skip",
            # Otherwise a killed engine would leave no state.
            "PULUMI_SKIP_CHECKPOINTS": "false",
        }
        stack = Stack.make(ROOT, name, folder, variables, forked=self.forked)
        stack.seconds = PATIENCE
        config = {"output": "cluster", "servings": [serving(backend) for backend in backends]}
        stack.change(lambda c: c.update({f"kthena-components:{k}": v for k, v in config.items()}))
        return stack

    def objects(self) -> dict[str, str]:
        """List the objects that no controller has created, with their uids."""
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
        """List a kind. Return nothing if it is not served or the server is down."""
        try:
            return list(self.api.list(version, kind, NAMESPACE))
        except ClusterError as error:
            if error.status in {HTTPStatus.NOT_FOUND, 0}:
                return []
            raise


@dataclass(slots=True)
class Tried:
    """One stack, and the fault on it."""

    world: World
    stack: Stack
    title: str
    pods: int

    def check(self, what: str, *, holds: bool, seen: object = "") -> None:
        """Count one check of this fault."""
        self.world.part.check(f"{self.title}: {what}", holds=holds, seen=seen)

    def up_while(self, fault: Callable[[], object]) -> Run:
        """Run an update, and cause the fault meanwhile."""
        with ThreadPoolExecutor(1) as pool:
            update = pool.submit(self.stack.up)
            fault()
            return update.result()

    def events(self) -> int:
        """Count the events of the running update."""
        log = self.stack.project.parent / "events.jsonl"
        return log.read_bytes().count(b"\n") if log.exists() else 0

    def engine(self) -> psutil.Process:
        """Find the engine of the running update."""
        found = (child for child in psutil.Process().children() if child.name() == "pulumi")
        return next(child for child in found if str(self.stack.project) == child.cwd())

    def says(self, run: Run, *words: str) -> None:
        """Check that an update failed with a message that names the cause and the solution."""
        self.check("the update fails", holds=run.code != 0, seen=run.changes)
        for word in words:
            self.check(f"the message says {word!r}", holds=word in run.text, seen=run.text)
        self.check("no traceback", holds="Traceback" not in run.text, seen=run.text)

    def goes_on(self) -> list[str]:
        """Follow docs/faults.md until an update succeeds, and return the necessary steps."""
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
        self.check("the next update succeeds", holds=run.code == 0, seen=run.text)
        self.settled()
        return needed

    def forced(self) -> Run:
        """Run an update that takes ownership of every field."""
        self.stack.variables[FORCE] = "true"
        run = self.stack.up()
        del self.stack.variables[FORCE]
        return run

    def settled(self) -> None:
        """Check that the state equals the cluster, all pods run, and an update changes nothing."""
        state, cluster = self.in_state(), self.world.objects()
        self.check("state equals cluster", holds=state == cluster, seen=state.items() ^ cluster)
        self.check("no operation is pending", holds=not self.pending(), seen=self.pending())
        urns = [resource["urn"] for resource in self.stack.resources]
        self.check("nothing is twice in the state", holds=len(set(urns)) == len(urns), seen=urns)
        wait(self._all_run)
        self.check("every pod runs once", holds=self._all_run(), seen=self.world.pods())
        run = self.stack.up("--diff")
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
        """List the pending operations in the state."""
        latest = json.loads(self.stack.state_text)["checkpoint"].get("latest") or {}
        found = latest.get("pending_operations") or []
        return [f"{item['type']} {item['resource']['urn']}" for item in found]

    def clear(self) -> None:
        """Destroy the stack and check that nothing is left. Remove the rest for the next fault."""
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
        answers = self.world.sandbox.is_ready()  # otherwise the list would be empty
        return answers and not self.world.objects() and not self.world.pods()


def named(kind: str, name: str) -> dict[str, Any]:
    """Return the name of one object of a kind."""
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": KINDS[kind], "kind": kind, "metadata": metadata}


def serving(backend: str) -> dict[str, Any]:
    """Return the arguments of a serving with two pods."""
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
