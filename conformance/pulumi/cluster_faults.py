"""Faults in the cluster: missing objects, rejected requests, and fields of other managers."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from conformance.pulumi.fault_stack import KINDS, NAMESPACE, Tried, World, named
from conformance.support.waiting import wait
from kthena_components.cluster.client import Cluster, ClusterError
from kthena_components.core import naming
from sandbox import commands
from sandbox.layout import Layout
from sandbox.pki import kubeconfig

AWAY = 60
"""Seconds for which controllers are stopped during an update."""
STOPPED = ("vc-controller-manager", "kthena-controller-manager")
DEFINITIONS = {
    "kthena": ("ModelServing", "modelservings.workload.serving.volcano.sh"),
    "native": ("PodGroup", "podgroups.scheduling.volcano.sh"),
}


def webhook_stopped(world: World, _scale: float) -> None:
    """Kthena's webhook is not running, and its failure policy is Fail."""
    with world.stack("webhook stopped", ("kthena",)) as tried:
        world.sandbox.processes.stop("kthena-webhook")
        try:
            run = tried.stack.up()
        finally:
            _start_webhook(world)
        tried.says(run, "ModelServing (serving/llama-kthena)", "failed calling webhook")
        tried.goes_on()


def quota_reached(world: World, _scale: float) -> None:
    """The namespace's quota is too small for the stack."""
    counted = {
        "count/statefulsets.apps": "1",
        "count/modelservings.workload.serving.volcano.sh": "0",
    }
    for resource, hard in counted.items():
        backend = "native" if "statefulsets" in resource else "kthena"
        with world.stack(f"quota of {backend}", (backend,)) as tried:
            with _made(world, _quota({resource: hard})):
                run = tried.stack.up()
            tried.says(run, "exceeded quota: small", f"limited: {resource}={hard}")
            tried.goes_on()


def field_taken_over(world: World, _scale: float) -> None:
    """An autoscaler takes ownership of the number of replicas, by server-side apply."""
    with world.stack("field taken over", ("kthena",)) as tried:
        tried.stack.up().require()
        body = named("ModelServing", "llama-kthena")
        _replicas(world, body, 2)
        run = tried.stack.up()
        same = run.code == 0 and set(run.changes) == {"same"}
        tried.check("an update without a change leaves it alone", holds=same, seen=run.text)
        run = tried.stack.up("--refresh")
        tried.says(run, 'conflict with "autoscaler": .spec.replicas', "llama-kthena")
        _write_replicas(tried, 2)
        tried.pods = 4
        tried.stack.up().require()
        # What this update waits for is there already, so the provider may accept, and record, the
        # object as it was before its patch: its informers first read the API server's cache. The
        # next update then repeats the patch.
        tried.stack.up().require()
        tried.settled()
        _write_replicas(tried, 1)
        tried.says(tried.stack.up(), 'conflict with "autoscaler": .spec.replicas')
        tried.pods = 2
        tried.forced().require()
        tried.settled()
        found = world.api.get(body)["spec"]["replicas"]
        tried.check("force gives the field back to the stack", holds=found == 1, seen=found)


def stack_of_another(world: World, _scale: float) -> None:
    """Another stack describes the same servings, and is destroyed."""
    with world.stack("another stack") as tried:
        tried.stack.up().require()
        before = world.objects()
        rival = world.make("rival", tried.title)
        tried.says(rival.up(), "Apply failed with", f".annotations.{naming.STACK}")
        rival.destroy().require()
        same = world.objects() == before
        tried.check("its objects are left alone", holds=same, seen=world.objects())
        run = tried.stack.up("--refresh")
        holds = run.code == 0 and set(run.changes) == {"same"}
        tried.check("no field has changed", holds=holds, seen=run.text)
        tried.settled()


def controllers_stopped(world: World, _scale: float) -> None:
    """Volcano's and Kthena's controllers are stopped during an update, and restarted."""
    with world.stack("controllers stopped") as tried:
        for name in STOPPED:
            world.sandbox.processes.stop(name)
        timer = threading.Timer(AWAY, _start_controllers, [world])
        timer.start()
        try:
            run = tried.stack.up()
            came_back = timer.finished.is_set()
        finally:
            timer.join()
        waited = run.code == 0 and came_back
        tried.check("the update waits for them", holds=waited, seen=run.text)
        tried.settled()


def definition_missing(world: World, _scale: float) -> None:
    """The CRD of ModelServing or PodGroup is missing: Kthena or Volcano is not installed."""
    for backend, (kind, name) in DEFINITIONS.items():
        with world.stack(f"no {kind}", (backend,)) as tried:
            with _without(world, name, kind):
                run = tried.stack.up()
            tried.says(run, f"creates a {kind} of {KINDS[kind]}", "Install", "[kind-unserved]")
            tried.goes_on()
    _definition_missing_for_the_provider(world)


def _definition_missing_for_the_provider(world: World) -> None:
    """The stack program does not check the cluster first, because the extra is not installed."""
    with world.stack("no ModelServing, no extra", ("kthena",)) as tried:
        hiding = world.folder / "hiding"
        hiding.mkdir()
        (hiding / "kubernetes.py").write_text("raise ImportError('not installed')\n")
        tried.stack.variables["PYTHONPATH"] = str(hiding)
        with _without(world, DEFINITIONS["kthena"][1], "ModelServing"):
            run = tried.stack.up()
        words = "Verify that any required CRDs have been created: no matches for kind"
        tried.says(run, f'{words} "ModelServing"')
        tried.goes_on()


def rights_missing(world: World, _scale: float) -> None:
    """The user of the kubeconfig has no write permission."""
    account: dict[str, Any] = {"apiVersion": "v1", "kind": "ServiceAccount"}
    account |= {"metadata": {"name": "reader", "namespace": NAMESPACE}}
    with world.stack("rights missing") as tried, _made(world, account):
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        answer = world.api.ask("POST", f"{world.api.path(account)}/token", asked)
        text = kubeconfig(world.sandbox.layout, "reader", {"token": answer["status"]["token"]})
        own = world.folder / "reader"
        own.touch(mode=0o600)
        own.write_text(text)
        tried.stack.variables["KUBECONFIG"] = str(own)
        run = tried.stack.up()
        tried.says(
            run,
            f'User "system:serviceaccount:{NAMESPACE}:reader" cannot patch resource',
            '"modelservings" in API group "workload.serving.volcano.sh"',
        )
        tried.stack.variables["KUBECONFIG"] = str(world.sandbox.layout.kubeconfig)
        tried.goes_on()


@contextmanager
def _made(world: World, body: Mapping[str, Any]) -> Iterator[None]:
    """Create a temporary object. If it is a quota, wait until it is counted."""
    world.api.create(body)
    try:
        if body["kind"] == "ResourceQuota":
            _come("the quota's count", lambda: "hard" in (world.api.get(body).get("status") or {}))
        yield
    finally:
        world.api.delete(body)


@contextmanager
def _without(world: World, name: str, kind: str) -> Iterator[None]:
    """Remove a CRD temporarily."""
    body: dict[str, Any] = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
    }
    body |= {"metadata": {"name": name}}
    spec = world.api.get(body)["spec"]
    world.api.delete(body)
    _come(f"the end of {kind}", lambda: not _served(world, KINDS[kind], kind))
    try:
        yield
    finally:
        world.api.create(body | {"spec": spec})
        _come(kind, lambda: _served(world, KINDS[kind], kind))


def _come(what: str, ready: Callable[[], object]) -> None:
    if not wait(ready):
        raise TimeoutError(f"{what} did not come")


def _served(world: World, version: str, kind: str) -> bool:
    """Ask with a new client, because a client caches the served kinds."""
    try:
        list(Cluster.open(world.sandbox.layout.kubeconfig).list(version, kind, NAMESPACE))
    except ClusterError:
        return False
    return True


def _quota(hard: Mapping[str, str]) -> dict[str, Any]:
    metadata = {"name": "small", "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata,
            "spec": {"hard": hard}}  # fmt: skip


def _replicas(world: World, body: Mapping[str, Any], number: int) -> None:
    query = {"fieldManager": "autoscaler", "force": "true"}
    applied = {**body, "spec": {"replicas": number}}
    path = world.api.path(body)
    world.api.ask("PATCH", path, applied, query, "application/apply-patch+yaml")


def _write_replicas(tried: Tried, number: int) -> None:
    key = "kthena-components:servings"
    tried.stack.change(lambda config: [s.update({"replicas": number}) for s in config[key]])


def _start_controllers(world: World) -> None:
    for name in STOPPED:
        world.sandbox.start_controller(name)


def _start_webhook(world: World) -> None:
    layout: Layout = world.sandbox.layout
    world.sandbox.start("kthena-webhook", commands.kthena_admission(layout))
    _come("Kthena's webhook", lambda: world.sandbox.listens("kthena"))
