"""Starts a sandbox step by step, and stops it."""

import os
import shutil
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import yaml

from kthena_components.cluster.client import Cluster, ClusterError
from kthena_components.cluster.fetch_servings_and_inventory import stacks_in
from kthena_components.cluster.objects import takes_pods
from kthena_components.core.findings import count_of
from sandbox import commands
from sandbox.definitions import SOURCES, Kept, file_of, served
from sandbox.layout import HOST, PORTS_FILE, Layout, make
from sandbox.nodes import hyper_nodes, nodes
from sandbox.pki import write_pki
from sandbox.processes import Processes, SandboxError
from sandbox.webhooks import configurations, policies, with_address
from toolchain.locate import ensure_sandbox
from toolchain.programs import Program, cache_root

Report = Callable[[str], None]
NAMESPACES = ("volcano-system", "kthena-system", "serving")


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The size of the cluster."""

    racks: int = 4
    nodes: int = 4
    """In each rack."""
    gpus: int = 8
    """On each node."""

    def __str__(self) -> str:
        """Write the size in words."""
        total = self.racks * self.nodes * self.gpus
        parts = ((self.racks, "rack"), (self.nodes, "node"), (self.gpus, "GPU"))
        each = " × ".join(count_of(number, word) for number, word in parts)
        return f"{each} = {count_of(total, 'GPU')}"


class Sandbox:
    """A running sandbox."""

    def __init__(self, layout: Layout, programs: Mapping[str, Program]) -> None:
        """Store the folder and the programs that were built."""
        self.layout = layout
        self.processes = Processes(layout)
        self._programs = programs
        self._cache = cache_root()
        self._kept: Kept | None = None
        """The CRDs with which the API server started."""

    @cached_property
    def api(self) -> Cluster:
        """A client with the rights of the administrator. It keeps its connections."""
        return Cluster.open(self.layout.programs)

    def start(self, name: str, arguments: list[str], program: str | None = None) -> None:
        """Start one of the programs."""
        binary = self._programs[program or name].binary(self._cache)
        self.processes.start(name, binary, arguments)

    def control_plane(self, *, audit: bool = False, bare: bool = False) -> None:
        """Start etcd and the API server, a bare one without CRDs, and wait until they answer."""
        self.start("etcd", commands.etcd(self.layout))
        # Another program may listen on the port, such as the etcd of another sandbox.
        port = self.layout.ports["etcd"]
        self.processes.wait("etcd", partial(self.processes.listens, "etcd", port))
        self._kept = None if bare else Kept.read(file_of(self._programs, self._cache))
        if self._kept:
            self._kept.restore(self.layout)
        self.start("kube-apiserver", commands.api_server(self.layout, audit=audit))
        self.processes.wait("the API server", self._answers)

    def definitions(self) -> None:
        """Install the CRDs and the webhook configurations."""
        api = self.api
        if self._kept is None:
            found = [b for b in self._data(*SOURCES) if b["kind"] == "CustomResourceDefinition"]
            self.define(found)
            self._kept = Kept.of(self.layout, found)
            self._kept.write(file_of(self._programs, self._cache))
        places = set(self._kept.places)
        self.processes.wait("every CRD", lambda: places <= served(self.layout))
        create(api, configurations(self.layout))
        own = (b for b in self._data("lws") if b["kind"].endswith("WebhookConfiguration"))
        create(api, policies())
        create(api, (with_address(body, self.layout, "lws") for body in own))
        create(api, [_namespace(name) for name in NAMESPACES])

    def _data(self, *names: str) -> Iterator[dict[str, Any]]:
        """Read the objects in the data files of programs."""
        for name in names:
            for file in sorted(self._programs[name].data(self._cache).glob("*.yaml")):
                yield from filter(None, yaml.load_all(file.read_text(), yaml.CSafeLoader))

    def define(self, definitions: Iterable[Mapping[str, Any]]) -> None:
        """Install CRDs, and wait until they can be used."""
        api, listed = self.api, list(definitions)
        create(api, listed)
        for body in listed:
            self.processes.wait(body["metadata"]["name"], partial(_established, api, body))

    def admission(self) -> None:
        """Start the webhooks, and wait until they listen."""
        self.start("vc-webhook-manager", commands.volcano_admission(self.layout))
        self.start("kthena-webhook", commands.kthena_admission(self.layout))
        self.start("lws", commands.lws(self.layout))
        for port in ("volcano", "kthena", "lws"):
            self.processes.wait(f"{port}'s admission", partial(self.listens, port))

    def controllers(self) -> None:
        """Start the controllers and the scheduler."""
        (self.layout.folder / "scheduler.yaml").write_text(commands.SCHEDULER)
        create(self.api, [_scheduler_config()])
        data = self._programs["kwok"].data(self._cache)
        files = (file for file in sorted(data.glob("*.yaml")) if "kustomization" not in file.name)
        self.layout.stages.write_text("---\n".join(file.read_text() for file in files))
        for name in commands.CONTROLLERS:
            self.start_controller(name)

    def start_controller(self, name: str) -> None:
        """Start one of the controllers, or the scheduler."""
        self.start(name, commands.CONTROLLERS[name](self.layout))

    def revive(self) -> None:
        """Start the controllers that have exited, as a kubelet does."""
        for name in commands.CONTROLLERS.keys() - self.processes.running():
            self.processes.stop(name)
            self.start_controller(name)

    def ready(self) -> None:
        """Wait until Volcano's default Queue is open and every Node accepts pods."""
        api = self.api
        self.processes.wait("Volcano's default Queue", lambda: _open(api))
        self.processes.wait("every Node", lambda: all(map(takes_pods, api.list("v1", "Node"))))
        self.processes.check()

    def listens(self, port: str) -> bool:
        """Return whether a program listens on its port."""
        return listens(self.layout.ports[port])

    def _answers(self) -> bool:
        try:
            return self.is_ready() and bool(self.api.get(_namespace("default")))
        except ClusterError:
            return False

    def is_ready(self) -> bool:
        """Return whether the API server has ended its start, also with the roles of controllers."""
        try:
            self.api.ask("GET", "/readyz")
        except ClusterError as error:
            return error.reason == "Unreadable"  # the response is `ok`, which is not JSON
        return True


def up(folder: Path, size: Size, report: Report, *, audit: bool = False) -> Sandbox:
    """Build missing programs, start everything, and return the running sandbox.

    With `audit`, the API server logs every request of a ServiceAccount in `log/audit.log`.

    Raises:
        SandboxError: The folder is in use, or a program exited. All started programs are stopped.
    """
    programs = ensure_sandbox(os.environ, report)
    require_free(folder)
    (folder / "log").mkdir(parents=True)
    layout = Layout.free(folder.absolute())
    layout.write()
    write_pki(layout)
    sandbox = Sandbox(layout, programs)
    try:
        for step in (
            partial(sandbox.control_plane, audit=audit),
            sandbox.definitions, sandbox.admission, sandbox.controllers,
        ):  # fmt: skip
            step()
        create(sandbox.api, nodes(size.racks, size.nodes, size.gpus))
        create(sandbox.api, hyper_nodes(size.racks))
        sandbox.ready()
    except BaseException:
        sandbox.processes.stop_all()
        raise
    return sandbox


def up_bare(folder: Path, report: Report) -> Sandbox:
    """Start etcd and an API server without CRDs, webhooks and controllers."""
    programs = ensure_sandbox(os.environ, report)
    (folder / "log").mkdir(parents=True)
    layout = Layout.free(folder.absolute())
    layout.write()
    write_pki(layout)
    sandbox = Sandbox(layout, programs)
    try:
        sandbox.control_plane(bare=True)
    except BaseException:
        sandbox.processes.stop_all()
        raise
    return sandbox


def require_free(folder: Path) -> None:
    """Check that a folder is free.

    Raises:
        SandboxError: It is not empty. The text describes the content and the solution.
    """
    if not folder.exists():
        return
    if not folder.is_dir():
        raise SandboxError(f"{folder} is a file. Choose another folder with FOLDER")
    if not any(folder.iterdir()):
        return
    if not (folder / PORTS_FILE).exists():
        raise SandboxError(f"{folder} contains other files. Choose another folder with FOLDER")
    layout = Layout.read(folder.absolute())
    running = Processes(layout).running()
    end = make("sandbox-down", folder)
    if running:
        raise SandboxError(
            f"a sandbox with {count_of(len(running), 'program')} is running in {folder}: use it "
            f"with `export KUBECONFIG={layout.kubeconfig}`, stop it with {end}, or choose another "
            "folder with FOLDER"
        )
    raise SandboxError(
        f"{folder} contains a stopped sandbox; its logs are in {folder / 'log'}. Remove it "
        f"with {end}, or choose another folder with FOLDER"
    )


def opened(folder: Path) -> Sandbox:
    """Return the sandbox that runs in a folder."""
    return Sandbox(_layout(folder), ensure_sandbox(os.environ, lambda _line: None))


def _layout(folder: Path) -> Layout:
    if not (folder / PORTS_FILE).exists():
        start = make("sandbox", folder)
        raise SandboxError(f"there is no sandbox in {folder}. Start one with {start}")
    return Layout.read(folder.absolute())


def down(folder: Path) -> list[str]:
    """Stop the programs of a sandbox, remove its folder, and return the programs' names."""
    processes = Processes(_layout(folder))
    ended = processes.running()
    processes.stop_all()
    shutil.rmtree(folder)
    return ended


def deployed(folder: Path) -> dict[str, int]:
    """Return the Pulumi stacks that have objects in a sandbox, each with their number.

    Empty if its API server does not answer.
    """
    layout = _layout(folder)
    try:
        running = "kube-apiserver" in Processes(layout).running()
        return dict(stacks_in(Cluster.open(layout.kubeconfig))) if running else {}
    except ClusterError:
        return {}


def create(api: Cluster, bodies: Iterable[Mapping[str, Any]]) -> None:
    """Create objects one by one."""
    for body in bodies:
        api.create(body)


def _namespace(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def _scheduler_config() -> dict[str, Any]:
    """Return the scheduler's config as in an installation. Our scheduler reads it from a file."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "volcano-scheduler-configmap", "namespace": "volcano-system"},
        "data": {"volcano-scheduler.conf": commands.SCHEDULER},
    }


def listens(port: int) -> bool:
    """Return whether a program listens on a port of this machine."""
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0


def _established(api: Cluster, body: Mapping[str, Any]) -> bool:
    conditions = (api.get(body).get("status") or {}).get("conditions") or []
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)


def _open(api: Cluster) -> bool:
    try:
        queue = api.get({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
                         "metadata": {"name": "default"}})  # fmt: skip
    except ClusterError:
        return False
    return bool((queue.get("status") or {}).get("state") == "Open")
