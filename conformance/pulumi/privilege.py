"""Least privilege: a deployer with exactly our role can deploy, and needs each permission."""

import copy
import shutil
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from conformance.__main__ import Context
from conformance.pulumi.deployer import Deployer, Request, Rules, lifecycle
from conformance.report import Part
from conformance.support.cluster import BACKENDS, NAMESPACE, Scene
from conformance.support.waiting import PATIENCE
from kthena_components.core.plan.manifest import BUDGETS, READ, Resource
from kthena_components.systems import extras, resources_of
from kthena_components.systems.kthena.view import BINDING
from sandbox.cluster import Sandbox, Size, up
from tests.support.engine import ROOT, Run, Stack

OWN = "kthena-components:"
WAITS, TIMES = 30, 3
"""Limits after which a command without list or watch is considered to wait forever: seconds, and a
multiple of the slowest command with the whole role."""
SHARED = (("topology.volcano.sh/v1alpha1", "HyperNode", "hall"),
          ("scheduling.volcano.sh/v1beta1", "Queue", "rights"))  # fmt: skip
_PRODUCTION: dict[str, Any] = {
    "autoscaling": {
        "min_replicas": 1,
        "max_replicas": 2,
        "metrics": [{"name": "waiting", "target_value": "5"}],
        "metric_sources": {"waiting": {"pod": {}}},
    },
    "model_server": {},
    "model_route": {},
}
"""Options of kthena with which every kind of object is written."""
_UNUSED = frozenset({"monitoring", "claims"})
"""Parts of `kthena-components rights --with` that the stack of this part does not have."""


def run(context: Context) -> None:
    """Deploy with the whole role, and then without each permission in turn."""
    sandbox = up(context.folder / "sandbox", Size(racks=1), context.part.say, audit=True)
    try:
        deployer = Deployer.make(sandbox, context.folder)
        trial = Trial(context.part, deployer, sandbox, context.folder)
        for backend in BACKENDS:
            trial.whole(backend)
        found = list(_each())
        for backend, lacking in found if context.scale >= 1 else found[: context.many(len(found))]:
            trial.without(backend, lacking)
    finally:
        sandbox.processes.stop_all()


class Trial:
    """The tries of one deployer, each with its own stack."""

    def __init__(self, part: Part, deployer: Deployer, sandbox: Sandbox, folder: Path) -> None:
        """Store what every try needs."""
        self._part, self._deployer, self._folder = part, deployer, folder
        self._scene = Scene(sandbox.api, part)
        self._waits = WAITS
        self._asked: dict[tuple[str, str], set[Request]] = {}
        """The requests of each command with the whole role, by backend and command."""

    def whole(self, backend: str) -> None:
        """Run all commands with exactly the role, and compare the requests with it."""
        needed = _needed(backend)
        self._deployer.may(_rules(needed))
        before = seen = self._deployer.requests()
        began = time.monotonic()
        for what, done in self._commands(backend):
            now = self._deployer.requests()
            self._asked[backend, what], seen = set(now - seen), now
            self._part.check(f"{backend}: {what} as the deployer", holds=done.code == 0,
                             seen=done.text[-2000:])  # fmt: skip
            self._waits = max(self._waits, round(TIMES * (time.monotonic() - began)))
            began = time.monotonic()
        asked = set(self._deployer.requests() - before)
        granted = {(r.group, r.plural, verb) for r in needed for verb in r.verbs}
        created = {(r.group, r.plural, "create") for r in needed if "create" in r.verbs}
        idle = granted - asked - created  # the audit log shows the create of a new object as patch
        self._part.check(f"{backend}: every right is used", holds=not idle, seen=sorted(idle))
        # The provider requests events only to show them; nothing fails without them.
        beyond = {name for name in asked - granted if name[1] != "events"}
        self._part.check(f"{backend}: no other request is sent", holds=not beyond, seen=beyond)
        self._part.count(f"requests with {backend}'s role",
                         (self._deployer.requests() - before).total())  # fmt: skip

    def without(self, backend: str, lacking: Resource) -> None:
        """Remove a permission: a command must fail and name it, or wait forever.

        Commands that sent no such request with the whole role cannot fail, so they do not run.
        """
        self._deployer.may(_rules(_needed(backend), lacking))
        failed, named = "", False
        began = time.monotonic()
        patience = self._waits if lacking.verbs == READ else PATIENCE
        for what, done in self._commands(backend, patience, lacking):
            named = f'cannot {lacking.verbs[0]} resource "{lacking.plural}"' in done.text
            if done.code:
                failed = f"{what}: {done.text[-1500:]}"
                break
        took = time.monotonic() - began
        verbs = "/".join(lacking.verbs)
        about = f"{backend} without {verbs} of {lacking.plural}"
        self._part.check(
            f"{about} fails", holds=bool(failed), seen=f"all commands succeeded in {took:.0f} s"
        )
        if failed and lacking.verbs != READ:
            self._part.check(f"{about} names the missing right", holds=named, seen=failed)
        way = "reported it" if named else "waited" if failed else "continued"
        self._part.count(f"rights removed, one at a time; the provider {way}")
        self._part.say(f"{about}: it {way}, {took:.0f} s")

    def _needs(self, backend: str, what: str, right: Resource) -> bool:
        """Return whether a command with the whole role sent requests that need a permission."""
        # The audit log shows the create of a new object as patch.
        verbs = {*right.verbs, *(("patch",) if "create" in right.verbs else ())}
        asked = self._asked.get((backend, what))
        return asked is None or any((right.group, right.plural, verb) in asked for verb in verbs)

    def _commands(
        self, backend: str, patience: int = PATIENCE, lacking: Resource | None = None
    ) -> Iterator[tuple[str, Run]]:
        """Run the commands that need a permission on a stack, and remove what is left of it."""
        folder = self._folder / "stack"
        folder.mkdir()
        try:
            stack = _stack(folder, backend, self._deployer.kubeconfig)
            stack.seconds = patience
            yield from lifecycle(
                stack, _change, lambda what: not lacking or self._needs(backend, what, lacking)
            )
        except AssertionError as error:
            yield "a command that hung", Run(1, str(error))
        finally:
            shutil.rmtree(folder)
            self._clear()

    def _clear(self) -> None:
        self._scene.clear()
        api = self._scene.api
        secret = {"name": "hf-token", "namespace": NAMESPACE}
        left = [{"apiVersion": "v1", "kind": "Secret", "metadata": secret}]
        left += [{"apiVersion": v, "kind": k, "metadata": {"name": n}} for v, k, n in SHARED]
        for body in left:
            if self._scene.read(body):
                api.delete(body)


def _each() -> Iterator[tuple[str, Resource]]:
    """Yield each permission with a backend that needs it: a verb, or list and watch together.

    Both backends need Services. The others are tried with the first backend that has them.
    """
    seen: set[Resource] = set()
    for backend in BACKENDS:
        for right in _needed(backend):
            alone = [(verb,) for verb in right.verbs if verb not in READ]
            for verbs in (*alone, READ):
                one = replace(right, verbs=verbs)
                if one not in seen:
                    seen.add(one)
                    yield backend, one


def _needed(backend: str) -> tuple[Resource, ...]:
    """Return the rights of a backend for what the stack writes.

    Kthena 1.0 has no bindings, an autoscaled serving has no budget of evictions, the cluster has no
    Prometheus, and the serving claims no devices, of which the cluster has none.
    """
    left_out = {BINDING[1], *([BUDGETS.kind] if backend == "kthena" else [])}
    needed = resources_of([backend], [each for each in extras() if each not in _UNUSED])
    return tuple(right for right in needed if right.kind not in left_out)


def _rules(needed: Iterable[Resource], lacking: Resource | None = None) -> Rules:
    """Return the rules of a role without one permission."""
    kept = []
    for right in needed:
        same = lacking is not None and (right.group, right.plural) == (
            lacking.group, lacking.plural,
        )  # fmt: skip
        gone = lacking.verbs if lacking is not None and same else ()
        kept.append(replace(right, verbs=tuple(v for v in right.verbs if v not in gone)))
    return [right.rule() for right in kept if right.verbs]


def _stack(folder: Path, backend: str, kubeconfig: Path) -> Stack:
    """Return a stack with a serving, a Queue, a HyperNode and a Secret."""
    stack = Stack.make(ROOT, "dev", folder)

    def fill(config: dict[str, Any]) -> None:
        (serving,) = config[f"{OWN}servings"]
        serving |= {"backend": backend, "namespace": NAMESPACE, "queue": "rights"}
        serving["pod_disruption_budget"] = backend != "kthena"
        if backend == "kthena":
            serving["backend_options"] = copy.deepcopy(_PRODUCTION)
        serving["roles"][0]["hugging_face_token"] = {"name": "hf-token", "key": "token"}
        secret = {"name": "hf-token", "namespace": NAMESPACE, "data": {"token": "hf_token"}}
        config |= {
            f"{OWN}output": "cluster",
            f"{OWN}kubeconfig": str(kubeconfig),
            f"{OWN}queues": [{"name": "rights", "capability": {"nvidia.com/gpu": 8}}],
            f"{OWN}topology": {"hyper_nodes": [{"name": "hall", "tier": 1, "nodes": ["spare-1"]}]},
            f"{OWN}secrets": [secret],
        }

    stack.change(fill)
    stack.set_secret("hf_token", "not a real token")
    return stack


def _change(config: dict[str, Any]) -> None:
    """Change every object that can change."""
    (serving,) = config[f"{OWN}servings"]
    serving["roles"][0]["engine"]["extra_args"] = ["--max-model-len=4096"]
    serving["expose"]["port"] = 81
    if "backend_options" in serving:
        options = serving["backend_options"]
        options["autoscaling"]["max_replicas"] = 3
        options["model_server"]["traffic_policy"] = {"timeout": "1m"}
        options["model_route"]["lora_adapters"] = ["sql"]
    config[f"{OWN}queues"][0]["weight"] = 3
    config[f"{OWN}topology"]["hyper_nodes"][0]["nodes"] = ["spare-1", "spare-2"]
