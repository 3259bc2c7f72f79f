"""Tests the sandbox: start time, memory, loopback addresses, two at once, and clean removal.

Then it deploys the stack for the sandbox, runs `doctor` and `status`, and destroys the stack.
"""

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from conformance.__main__ import Context
from conformance.pulumi.other_cluster import move
from conformance.pulumi.two_stacks import compete
from conformance.report import Part
from conformance.sandbox.page import run_page
from conformance.sandbox.pictures import draw_random
from conformance.sandbox.readme import run_readme
from conformance.support.pictures import differences, drawn
from conformance.support.waiting import wait
from kthena_components.cluster.client import Cluster
from kthena_components.cluster.doctor import diagnose
from kthena_components.cluster.fetch import fetch
from kthena_components.cluster.fetch_servings_and_inventory import NODE, POD, look_at_servings
from kthena_components.cluster.objects import name_of
from kthena_components.cluster.requirements import (
    HYPER_NODE,
    MODEL_SERVING,
    POD_GROUP,
    SERVICE,
    STATEFUL_SET,
)
from kthena_components.cluster.snapshot import Status
from kthena_components.cluster.stack_servings import read_stack_file
from kthena_components.cluster.status import Servings, render_status, state_of, waits
from sandbox.cluster import Sandbox, Size, down, up
from sandbox.layout import HOST, Layout
from sandbox.processes import SandboxError
from tests.support.engine import ROOT, Stack

MOST_SECONDS, MOST_BYTES = 30, 2 * 2**30
STACK, NAMESPACE = "sandbox", "serving"
SCHEDULER = "vc-scheduler"


def run(context: Context) -> None:
    """Start two sandboxes, use one, disturb the other, and stop both."""
    one = _start(context, "one")
    try:
        _folder_in_use(context, one)
        _port_in_use(context, one)
        _stack(context, one)
        draw_random(context, one.api)
        compete(context.part, one, context.folder / "rivals")
        two = _start(context, "two")
        try:
            _beside(context.part, one, two)
            move(context.part, one, two, context.folder / "moved")
            _dead(context.part, two)
            _ends_only_its_own(context, one, two)
        finally:
            two.processes.stop_all()
    finally:
        one.processes.stop_all()
    context.part.check("nothing runs any more", holds=not one.processes.running())
    run_page(context)
    run_readme(context)


def _start(context: Context, name: str) -> Sandbox:
    began = time.monotonic()
    sandbox = context.sandbox(name=name)
    seconds, held = time.monotonic() - began, sandbox.processes.memory()
    part, worked = context.part, _worked(sandbox)
    part.count("sandboxes started")
    part.say(f"{name}: ready after {seconds:.1f} s, {worked:.1f} s of a processor, "
             f"{held / 2**20:.0f} MiB")  # fmt: skip
    # Not the elapsed time, which is longer on a busy machine.
    part.check(f"ready after {MOST_SECONDS} s of a processor", holds=worked <= MOST_SECONDS,
               seen=f"{worked:.1f} s")  # fmt: skip
    part.check("at most 2 GiB", holds=held <= MOST_BYTES, seen=f"{held / 2**20:.0f} MiB")
    elsewhere = sorted(set(_addresses(sandbox)) - {HOST})
    part.check("every program listens on loopback alone", holds=not elsewhere, seen=elsewhere)
    return sandbox


def _worked(sandbox: Sandbox) -> float:
    """Sum the processor seconds of all programs."""
    processes = sandbox.processes
    times = [processes.process(name).cpu_times() for name in processes.running()]
    return float(sum(each.user + each.system for each in times))


def _addresses(sandbox: Sandbox) -> Iterator[str]:
    for name in sandbox.processes.running():
        for connection in sandbox.processes.process(name).net_connections("inet"):
            if connection.status == psutil.CONN_LISTEN:
                yield connection.laddr.ip


def _folder_in_use(context: Context, one: Sandbox) -> None:
    said = _refusal(lambda: up(one.layout.folder, Size(), context.part.say))
    context.part.check(
        "a folder in use is rejected, and the message shows how to use its sandbox",
        holds=f"export KUBECONFIG={one.layout.kubeconfig}" in said, seen=said,
    )  # fmt: skip


def _port_in_use(context: Context, one: Sandbox) -> None:
    """Start etcd on ports of the other sandbox: it exits, and the error names it."""
    folder = context.folder / "taken"
    (folder / "log").mkdir(parents=True)
    other = Sandbox(Layout(folder=folder, ports=one.layout.ports), one._programs)  # noqa: SLF001
    try:
        said = _refusal(other.control_plane)
    finally:
        other.processes.stop_all()
    context.part.check(
        "a port in use is reported with the log of the program",
        holds="etcd has exited" in said and "address already in use" in said, seen=said,
    )  # fmt: skip
    context.part.check("the other sandbox still answers", holds=_answers(one))


def _refusal(start: object) -> str:
    try:
        start()  # type: ignore[operator]
    except SandboxError as error:
        return str(error)
    return "no error"


def _answers(sandbox: Sandbox) -> bool:
    return bool(list(sandbox.api.list("v1", "Node")))


def _beside(part: Part, one: Sandbox, two: Sandbox) -> None:
    shared = set(one.layout.ports.values()) & set(two.layout.ports.values())
    part.check("two sandboxes share no port", holds=not shared, seen=shared)
    part.check("both answer", holds=_answers(one) and _answers(two))
    running = (one.processes.running(), two.processes.running())
    part.check("both run the same programs", holds=running[0] == running[1], seen=running)


def _dead(part: Part, sandbox: Sandbox) -> None:
    process = sandbox.processes.process(SCHEDULER)
    process.kill()
    process.wait()
    said = _refusal(sandbox.processes.check)
    log = sandbox.layout.log(SCHEDULER)
    part.check(
        "a program that exited is named with the end of its log",
        holds=said.startswith(f"{SCHEDULER} has exited. The end of {log}:\n  "), seen=said,
    )  # fmt: skip


def _ends_only_its_own(context: Context, one: Sandbox, two: Sandbox) -> None:
    """Stop one sandbox while an unrelated process of the same name and another sandbox run."""
    part, before = context.part, one.processes.running()
    with _stranger(context.folder) as stranger:
        ended = down(two.layout.folder)
        part.check("down names what it ended", holds="etcd" in ended and SCHEDULER not in ended,
                   seen=ended)  # fmt: skip
        part.check("an unrelated process keeps running", holds=stranger.poll() is None)
    part.check("the other sandbox keeps running", holds=one.processes.running() == before)
    part.check("the folder is gone", holds=not two.layout.folder.exists())
    left = [name for name in before if _is_alive(two, name)]
    part.check("nothing of it runs", holds=not left, seen=left)


def _is_alive(sandbox: Sandbox, name: str) -> bool:
    marker = str(sandbox.layout.folder)
    return any(
        marker in " ".join(process.info["cmdline"] or ())
        for process in psutil.process_iter(["name", "cmdline"])
        if process.info["name"] == name
    )


@contextmanager
def _stranger(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    program = folder / "stranger" / "etcd"
    program.parent.mkdir()
    shutil.copy(shutil.which("sleep") or "/bin/sleep", program)
    with subprocess.Popen([program, "600"]) as process:
        try:
            yield process
        finally:
            process.kill()


def _states(seen: Servings) -> dict[str, str]:
    return {name_of(pod): state_of(pod) for pod in seen.pods}


def _stack(context: Context, sandbox: Sandbox) -> None:
    """Deploy the stack of the sandbox with the real engine, check it, and destroy it."""
    part, api = context.part, sandbox.api
    _doctor(part, api, "before up")
    stack = Stack.make(
        ROOT, STACK, context.folder / "stack", {"KUBECONFIG": str(sandbox.layout.kubeconfig)}
    )
    began = time.monotonic()
    update = stack.up()
    part.say(f"up of stack {STACK}: {time.monotonic() - began:.1f} s")
    part.check("up succeeds", holds=update.code == 0, seen=update.text[-2000:])
    wait(lambda: [*_states(look_at_servings(api, NAMESPACE)).values()] == ["Running"] * 8)
    seen = look_at_servings(api, NAMESPACE)
    states = _states(seen)
    part.count("pods placed by Volcano and Kthena", len(states))
    part.check("8 pods, all Running", holds=[*states.values()] == ["Running"] * 8, seen=states)
    part.check("status has nothing that waits", holds=not list(waits(seen)), seen=[*waits(seen)])
    rows = [line.split() for line in render_status(seen).splitlines()[2:]]
    tiers = {tuple(row[:2]): row[7] for row in rows}
    part.check("4 groups, each inside one rack", holds=[*tiers.values()] == ["1"] * 4, seen=tiers)
    _picture(part, api)
    _doctor(part, api, "after up")
    again = stack.up()
    part.check("up again changes nothing", holds=not again.steps, seen=again.steps)
    gone = stack.destroy()
    part.check("destroy succeeds", holds=gone.code == 0, seen=gone.text[-2000:])
    left = _left(api)
    part.check("destroy leaves nothing", holds=not left, seen=left)


def _picture(part: Part, api: Cluster) -> None:
    """Compare what `status --html` draws with new lists of all objects."""
    picture = drawn(api)
    lists = (list(api.list(*kind)) for kind in (POD, NODE, HYPER_NODE))
    wrong = differences(picture, *lists)
    part.count("pods in the picture", sum(len(n.pods) for r in picture.racks for n in r.nodes))
    part.check("the picture equals what the API server lists", holds=not wrong, seen=wrong)


def _doctor(part: Part, api: Cluster, when: str) -> None:
    read = read_stack_file(ROOT, STACK)
    seen = fetch(api, str(api.ask("GET", "/version")["gitVersion"]), read.need)
    bad = [line for line in diagnose(seen, read.need) if line.mark in {Status.FAIL, Status.WARN}]
    part.check(f"doctor finds the cluster sound {when}", holds=not bad, seen=bad)


def _left(api: Cluster) -> list[str]:
    """List the remaining objects. Pods end a moment after their owners."""
    kinds = (("v1", "Pod"), SERVICE, STATEFUL_SET, POD_GROUP, MODEL_SERVING)

    def found() -> list[str]:
        return [f"{kind[1]} {name_of(b)}" for kind in kinds for b in api.list(*kind, NAMESPACE)]

    return [] if wait(lambda: not found()) else found()
