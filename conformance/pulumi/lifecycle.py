"""Runs every example and stack on a cluster, from the first update to destroy.

The real engine applies each project with each backend that supports it, to separate namespaces. The
cluster's controllers create the pods.
"""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from conformance.__main__ import Context
from conformance.pulumi.example_projects import PROJECTS, Copy, Project
from conformance.support import observe
from conformance.support.waiting import wait
from kthena_components.cluster.client import Cluster
from sandbox.cluster import Sandbox, Size, create
from sandbox.nodes import LABEL, node
from tests.pulumi.lives import NEW_IMAGE
from tests.support.engine import Run

AT_ONCE = 2
"""Number of parallel runs on the shared cluster. One more run uses the cluster with racks."""
ROOM = Size(racks=4, nodes=16, gpus=8)
SMALLEST = Size(racks=1, nodes=1, gpus=1)
_TELLING = threading.Lock()
SPINE = {(None, "spine"), (2, None)}
"""The tier as written, and as Volcano's scheduler rewrites it."""
FEWEST = {"ten-lines": "native", "kthena-templates": "kthena", "prod": "native"}
"""The runs of a smoke test: the backend of each project."""


@dataclass(slots=True, kw_only=True)
class Life:
    """One project with one backend, and its checks."""

    project: Project
    backend: str
    seen: list[tuple[str, bool, str]] = field(default_factory=list)
    pods: int = 0
    updates: int = 0
    at_once: list[observe.Pod] = field(default_factory=list)
    """The pods at the end of the last update."""

    @property
    def title(self) -> str:
        """The name for the report and the namespace."""
        return f"{self.project.name}-{self.backend}"

    def check(self, what: str, *, holds: bool, seen: object = "") -> None:
        """Record one check until the run is over."""
        self.seen.append((f"{self.title}: {what}", holds, str(seen)))


def run(context: Context) -> None:
    """Run every project. Those that define racks use a second cluster."""
    lives = [Life(project=p, backend=b) for p in PROJECTS for b in p.backends]
    if context.scale < 1:
        lives = [life for life in lives if FEWEST.get(life.project.name) == life.backend]
    racked = [life for life in lives if life.project.racks]
    open_ended = [life for life in lives if not life.project.racks]
    started: list[Sandbox] = []
    try:
        started.append(context.sandbox(ROOM))
        started.append(context.sandbox(SMALLEST, "racks"))
        _clear(started[1].api)
        with ThreadPoolExecutor(AT_ONCE + 1) as pool:
            one_by_one = pool.submit(_in_racks, context, started[1], racked)
            list(pool.map(lambda life: _live(context, started[0], life), open_ended))
            one_by_one.result()
        for sandbox in started:
            sandbox.processes.check()
    finally:
        for sandbox in started:
            sandbox.processes.stop_all()


def _tell(context: Context, life: Life) -> None:
    """Report each run when it ends, because all runs together take minutes."""
    with _TELLING:
        for what, holds, seen in life.seen:
            context.part.check(what, holds=holds, seen=seen)
        context.part.count("runs")
        context.part.count("runs of the engine", life.updates)
        context.part.count("pods seen ready", life.pods)
        context.part.say(f"{life.title}: {len(life.seen)} checks")


def _in_racks(context: Context, sandbox: Sandbox, lives: list[Life]) -> None:
    """Run the projects that define HyperNodes, each with only the nodes that it names."""
    for life in lives:
        made = [node(name, rack, 8) for name, rack in life.project.racks.items()]
        create(sandbox.api, made)
        _live(context, sandbox, life)
        for each in made:
            sandbox.api.delete(each)


def _clear(api: Cluster) -> None:
    """Remove the sandbox's own racks, because their names could conflict."""
    for version, kind in (("topology.volcano.sh/v1alpha1", "HyperNode"), ("v1", "Node")):
        for body in list(api.list(version, kind)):
            api.delete(body)


def _live(context: Context, sandbox: Sandbox, life: Life) -> None:
    """Run one project. An exception is a failure, and the other runs continue."""
    try:
        _steps(context.folder / life.title, sandbox, life)
    except Exception as error:  # noqa: BLE001 - it becomes a failure
        life.check("the run finishes", holds=False, seen=f"{type(error).__name__}: {error}")
    _tell(context, life)


def _steps(folder: Path, sandbox: Sandbox, life: Life) -> None:
    api, project, space = sandbox.api, life.project, life.title
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}})
    before = observe.left(api, space)
    copy = Copy.make(project, life.backend, space, folder, sandbox.layout.kubeconfig)
    try:
        copy.write(project.groups, project.engines)
        _ran(life, copy.stack.preview(), "a preview before anything is there")
        _up(api, life, copy, (project.groups, project.engines), "made")
        again = copy.stack.preview("--expect-no-changes")
        _ran(life, again, "a second preview changes nothing")
        _updated(api, life, copy)
        _scaled(api, life, copy)
        if project.racks and project.is_stack:
            _let_out(api, life, copy)
    finally:
        _ran(life, copy.stack.destroy(), "destroy")
        # A list of the pods is one request, a list of everything is dozens.
        life.check("nothing is left", holds=wait(
            lambda: not observe.pods(api, space) and observe.left(api, space) == before
        ), seen=sorted(observe.left(api, space) ^ before))  # fmt: skip


def _updated(api: Cluster, life: Life, copy: Copy) -> None:
    """Change the image, and count the unavailable groups during the update."""
    project = life.project
    old = observe.identities(observe.pods(api, copy.namespace))
    copy.renew()
    per_group = project.engines * project.pods + project.others
    with observe.Watch(api, copy.namespace, per_group if project.scaled else 1) as watch:
        found = _up(api, life, copy, (project.groups, project.engines), "with another image")
        images = {c["image"] for pod in found for c in pod["spec"]["containers"]}
    life.check("every pod has the new image", holds=images <= set(NEW_IMAGE.values()), seen=images)
    early = observe.identities(life.at_once)
    life.check("the update ends when no old pod is left", holds=not old & early,
               seen=f"{len(old & early)} of {len(old)} are left")  # fmt: skip
    life.check("every pod is a new one", holds=not old & observe.identities(found))
    life.check("the pods were looked at all the time", holds=not watch.trouble and
               watch.samples > 0, seen=watch.trouble)  # fmt: skip
    if project.scaled:
        # Kthena replaces the engines of all groups at once, unless a role has its own budget.
        free = project.by_role and life.backend == "kthena"
        most = project.groups if free else project.budget
        life.check("the update was seen", holds=watch.worst > 0, seen=f"{watch.samples} samples")
        life.check(f"at most {most} of {project.groups} groups are unavailable",
                   holds=watch.worst <= most, seen=watch.worst)  # fmt: skip


def _scaled(api: Cluster, life: Life, copy: Copy) -> None:
    """Add and remove groups and engines. The remaining pods must keep running."""
    for sizes in _sizes(life.project):
        old = observe.identities(observe.pods(api, copy.namespace))
        found = observe.identities(_up(api, life, copy, sizes, f"groups and engines {sizes}"))
        smaller, larger = sorted((old, found), key=len)
        life.check(f"{sizes}: pods that stay are not touched", holds=smaller <= larger,
                   seen=f"{len(smaller - larger)} of {len(smaller)} were recreated")  # fmt: skip


def _let_out(api: Cluster, life: Life, copy: Copy) -> None:
    """Change the tier to another name. Volcano has replaced the first name by a number."""
    old = observe.identities(observe.pods(api, copy.namespace))
    copy.tier = "spine"
    found = _up(api, life, copy, (1, life.project.engines), "another tier")
    life.check("another tier leaves the pods alone", holds=old == observe.identities(found))
    fine = wait(lambda: set(observe.tiers(api, copy.namespace)) <= SPINE)
    seen = observe.tiers(api, copy.namespace)
    life.check("gangs have the other tier and no second one", holds=fine and bool(seen), seen=seen)


def _sizes(project: Project) -> Iterator[tuple[int, int]]:
    """Yield numbers of groups and engines: more groups, fewer groups, more engines."""
    groups, engines = project.groups, project.engines
    if project.scaled:
        yield groups + 1, engines
        yield 1, engines
        groups = 1
    if not project.racks or project.scaled:
        yield groups, engines + 1
        yield groups, engines


def _up(
    api: Cluster, life: Life, copy: Copy, sizes: tuple[int, int], what: str
) -> list[observe.Pod]:
    """Update, and check that the requested pods are ready and on the right nodes."""
    groups, engines = sizes
    copy.write(groups, engines)
    _ran(life, copy.stack.up(), what)
    life.at_once = observe.pods(api, copy.namespace)
    project = life.project
    wanted = groups * (engines * project.pods + project.others)
    fine = wait(lambda: _are(api, copy.namespace, wanted))
    found = observe.pods(api, copy.namespace)
    ready = sum(map(observe.is_ready, found))
    life.check(f"{what}: {wanted} pods are ready", holds=fine, seen=f"{ready} of {len(found)}")
    life.pods += ready
    if life.backend == "kthena":
        wanted_state = [(True, groups)]
        fine = wait(lambda: observe.available(api, copy.namespace) == wanted_state)
        seen = observe.available(api, copy.namespace)
        life.check(f"{what}: the ModelServing is Available", holds=fine, seen=seen)
    if project.racks:
        racks = _racks(api, found)
        life.check(f"{what}: each group stays inside one rack",
                   holds=all(len(each) == 1 for each in racks.values()), seen=racks)  # fmt: skip
    return found


def _are(api: Cluster, namespace: str, wanted: int) -> bool:
    found = observe.pods(api, namespace)
    return len(found) == wanted and all(map(observe.is_ready, found))


def _racks(api: Cluster, found: list[observe.Pod]) -> dict[str, set[str]]:
    racks = {n["metadata"]["name"]: n["metadata"]["labels"][LABEL] for n in api.list("v1", "Node")}
    groups: dict[str, set[str]] = {}
    for pod in found:
        rack = racks.get(pod["spec"].get("nodeName", ""), "nowhere")
        groups.setdefault(observe.group_of(pod), set()).add(rack)
    return groups


def _ran(life: Life, done: Run, what: str) -> None:
    """Check that a command of the engine succeeded. Raise if not, because the run depends on it."""
    life.updates += 1
    life.check(what, holds=done.code == 0, seen=done.text[-1500:])
    if done.code != 0:
        message = f"{what} failed"
        raise RuntimeError(message)
