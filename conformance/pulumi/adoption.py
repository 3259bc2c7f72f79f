"""Takes servings that run in a cluster into a Pulumi program, and changes nothing by that.

Somebody else has created them: with `kubectl apply`, on the server's side, or with a plain request.
"""

import io
import json
import random
import shutil
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from conformance.__main__ import Context
from conformance.kthena.emission import namespace
from conformance.lws import created_objects as lws
from conformance.pulumi.fault_stack import FORCE
from conformance.support import observe, random_servings
from conformance.support.waiting import wait
from kthena_components.cli.convert.output import IMPORTS, plain
from kthena_components.cli.main import main
from kthena_components.cluster.client import Cluster, ClusterError
from kthena_components.compiler.compile import compile_serving
from kthena_components.core.findings import SpecError
from kthena_components.systems.volcano.emit import SCHEDULING
from sandbox.cluster import Sandbox, Size
from tests.pulumi.languages import example, install, missing
from tests.support.engine import ROOT, Run, Stack

SERVINGS = 12
ROOM = Size(racks=4, nodes=16, gpus=8)
_SETTLES = 60
"""Seconds for the controllers, before and after an update."""
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
Body = dict[str, Any]


def run(context: Context) -> None:
    """Create servings in each way, and adopt each in a stack of its own."""
    rng = random.Random(f"adoption {context.seed}")  # noqa: S311 - to repeat, not to hide
    servings = draw(rng, context.many(SERVINGS))
    typescript = not (why := missing("typescript"))
    if why:
        context.part.skip("adoption in TypeScript", why)
    sandbox = context.sandbox(ROOM)
    try:
        sandbox.api.create({"apiVersion": SCHEDULING, "kind": "Queue", "metadata":
                            {"name": random_servings.QUEUE}, "spec": {"weight": 1}})  # fmt: skip
        for number, args in enumerate(servings):
            name, create = list(WAYS.items())[number % len(WAYS)]
            # The third and the fourth, which are of different backends or made in different ways.
            language = "typescript" if typescript and number in {2, 3} else "python"
            about = f"{args['backend']}, {name}, in {language}"
            _Case(context, sandbox, f"adopt-{number}", about, args, language).run(create)
        sandbox.processes.check()
    finally:
        sandbox.processes.stop_all()


def draw(rng: random.Random, number: int) -> list[random_servings.Args]:
    """Generate servings of the two backends whose controllers run; `up` waits for their pods."""
    found = [args for args in lws.draw(rng, 4 * number) if random_servings.places(args)][
        : -(-number // 2)
    ]
    while len(found) < number:
        args = {**random_servings.serving(rng), "backend": "kthena"}
        try:
            compile_serving(args)
        except SpecError:
            continue
        found += [args] if random_servings.places(args) else []
    for args in found:
        if args["backend"] == "lws" and len(args["roles"]) == 1 and rng.random() < 1 / 2:
            args["backend_options"]["set_name"] = "vllm"
    rng.shuffle(found)
    return found


def with_limits_only(value: Any) -> Any:
    """Leave out requests that equal their limits, as most people write templates.

    The API server fills them in in pods, and not in templates inside custom resources.
    """
    if isinstance(value, list):
        return [with_limits_only(item) for item in value]
    if not isinstance(value, dict):
        return value
    made = {key: with_limits_only(item) for key, item in value.items()}
    limits, requests = made.get("limits"), made.get("requests")
    if isinstance(limits, dict) and isinstance(requests, dict):
        kept = {key: each for key, each in requests.items() if limits.get(key) != each}
        made |= {"requests": kept}
        return made if kept else {key: item for key, item in made.items() if key != "requests"}
    return made


def _as_kubectl(api: Cluster, body: Body) -> None:
    metadata = body["metadata"]
    annotations = metadata.get("annotations", {})
    note = {**annotations, _LAST_APPLIED: json.dumps(body)}
    api.create({**body, "metadata": {**metadata, "annotations": note}})


def _on_the_server(api: Cluster, body: Body) -> None:
    query = {"fieldManager": "team", "force": "true"}
    api.ask("PATCH", api.path(body), body, query, "application/apply-patch+yaml")


def _created(api: Cluster, body: Body) -> None:
    api.create(body)


WAYS: Mapping[str, Callable[[Cluster, Body], None]] = {
    "applied by kubectl": _as_kubectl,
    "applied on the server": _on_the_server,
    "created": _created,
}


@dataclass(slots=True)
class _Case:
    """One serving, and the stack that adopts it."""

    context: Context
    sandbox: Sandbox
    space: str
    about: str
    args: random_servings.Args
    language: str

    def run(self, create: Callable[[Cluster, Body], None]) -> None:
        api = self.sandbox.api
        namespace(api, self.space)
        # What somebody has put beside a serving, such as a budget, is not taken over.
        args = {**self.args, "namespace": self.space, "pod_disruption_budget": False}
        made = compile_serving(args)
        bodies = [with_limits_only(plain(manifest.body)) for manifest in made.manifests]
        for body in bodies:
            create(api, body)
        wait(lambda: len(observe.pods(api, self.space)) == made.plan.pods, _SETTLES)
        before = self._seen(bodies)
        folder = self.context.folder / self.space
        folder.mkdir()
        if not self._converts(folder):
            return
        stack = self._stack(folder)
        imports = str(folder / "out" / IMPORTS)
        flags = ("--generate-code=false", "--protect=false", "--yes")
        imported = stack.pulumi("import", "--stack", stack.name, "--file", imports, *flags)
        self._check("it is imported", imported.code == 0, imported.text)
        self._adopts(stack, bodies, before)

    def _converts(self, folder: Path) -> bool:
        said = io.StringIO()
        with redirect_stderr(said):
            status = main(["convert", "--from-cluster", "-n", self.space, "--to", self.language,
                           "--kubeconfig", str(self.sandbox.layout.kubeconfig),
                           "-o", str(folder / "out")])  # fmt: skip
        return self._check("it is converted without a loss", status == 0, said.getvalue())

    def _stack(self, folder: Path) -> Stack:
        kubeconfig = {"KUBECONFIG": str(self.sandbox.layout.kubeconfig)}
        if self.language == "python":
            stack = Stack.make(ROOT / "examples" / "ten-lines", "dev", folder, kubeconfig)
            shutil.copy(folder / "out" / "__main__.py", stack.project)
            return stack
        home = folder / "home"
        home.mkdir()
        stack = example("typescript", folder, {**install(home), **kubeconfig})
        project = stack.project / "Pulumi.yaml"
        told = yaml.safe_load(project.read_text())
        del told["config"]  # which renders
        project.write_text(yaml.safe_dump(told))
        shutil.copy(folder / "out" / "index.ts", stack.project)
        return stack

    def _adopts(self, stack: Stack, bodies: list[Body], before: Mapping[str, Any]) -> None:
        stack.variables[FORCE] = "true"
        updated = stack.up()
        del stack.variables[FORCE]
        self._check("the first update ends well", updated.code == 0, updated.text)
        self._check("it creates and replaces nothing", _only_updates(updated), updated.changes)
        after = self._seen(bodies)
        self._check("no object and no pod has changed", before == after, f"{before} {after}")
        self._settled(stack)
        self._check("no object and no pod has changed since", after == self._seen(bodies), after)
        self.context.part.count("servings adopted")
        if any("limits" in json.dumps(body) for body in bodies):
            self.context.part.count("servings with limits and without requests")
        self.context.part.count("objects imported", len(bodies))
        stack.destroy().require()

        def left() -> list[str]:
            return [name for name, known in self._seen(bodies)["objects"].items() if known]

        self._check("the stack removes them", wait(lambda: not left(), _SETTLES), left())

    def _settled(self, stack: Stack) -> None:
        """Check that a preview has nothing to do.

        Pulumi stores the object that its watch returns, and compares the next inputs with that. One
        of several hundred servings, on a busy machine, still had a difference then. A difference
        that another update does not settle is a fault; each one is printed and counted.
        """
        again = stack.preview("--expect-no-changes", "--diff")
        if again.code != 0:
            self.context.part.say(f"{self.about}: stored too early:\n{again.text}")
            self.context.part.count("servings that needed a second update")
            second = stack.up()
            self._check("it updates and replaces nothing", _only_updates(second), second.text)
            again = stack.preview("--expect-no-changes", "--diff")
        self._check("another preview has nothing to do", again.code == 0, again.text)

    def _seen(self, bodies: list[Body]) -> dict[str, Any]:
        """Return the identity and the generation of each object, and the pods."""
        api, found = self.sandbox.api, dict[str, Any]()
        for body in bodies:
            try:
                metadata = api.get(body)["metadata"]
                known: object = (metadata["uid"], metadata.get("generation"))
            except ClusterError:
                known = None
            found[f"{body['kind']} {body['metadata']['name']}"] = known
        return {"objects": found, "pods": observe.identities(observe.pods(api, self.space))}

    def _check(self, what: str, holds: bool, seen: object) -> bool:
        about = f"{self.about}, {json.dumps(self.args)}: {seen}"
        return self.context.part.check(what, holds=holds, seen=about)


def _only_updates(run: Run) -> bool:
    return set(run.changes) <= {"same", "update"}
