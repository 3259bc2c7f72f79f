"""Faults of processes: a program is killed during an update."""

import contextlib
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import psutil

from conformance.pulumi.fault_stack import Tried, World
from conformance.support.waiting import PERIOD, wait
from sandbox import commands

MOMENTS = 10
API_SERVER = "kube-apiserver"
KUBELETS = "kwok"
AWAY = 0.3
"""Seconds until the API server is restarted, on the same port and with the same data."""
GIVES_UP = 11.0
"""Seconds after its start in which a controller exits if the API server is not ready.

kube-controller-manager waits for 10 s. Source: Kubernetes 1.34.4
cmd/kube-controller-manager/app/controllermanager.go CreateControllerContext.
"""
RECORDED_LATE = (
    "ModelServing serving/llama-kthena",
    "StatefulSet serving/llama-native-0-serve-0",
    "Service serving/llama-native-0-serve-0",
)
"""The engine is killed when one of these objects appears: Pulumi has not recorded it yet."""


def api_server_killed(world: World, scale: float) -> None:
    """The API server is killed and restarted, at ten moments of an update."""
    with world.stack("undisturbed") as tried:
        began = time.monotonic()
        tried.stack.up().require()
        seconds, events = time.monotonic() - began, tried.events()
        tried.settled()
    world.part.say(f"an undisturbed update takes {seconds:.1f} s and reports {events} events")
    ways: list[str] = []
    address = world.sandbox.layout.address("api")
    for moment in range(0, MOMENTS, max(1, round(1 / scale))):
        _forget_outages(world)
        with world.stack(f"API server killed after {moment} tenths") as tried:
            run = tried.up_while(partial(_restart, tried, events * moment // MOMENTS))
            if run.code:
                told = "cluster is unreachable" in run.text or address in run.text
                tried.check("the message names the server", holds=told, seen=run.text)
            else:
                ways.append("went on by itself")
            ways += tried.goes_on()
    for way in sorted(set(ways)):
        world.part.count(f"updates through a killed API server: {way}", ways.count(way))


def _forget_outages(world: World) -> None:
    """Restart the controllers, so that each kill is their first outage.

    A watch of client-go doubles its pause with each failure, and resets it after two minutes. After
    ten outages in ten minutes, the pause is up to a minute, which does not happen after one outage.
    """
    for name in commands.CONTROLLERS.keys() - {KUBELETS}:
        world.sandbox.processes.stop(name)
        world.sandbox.start_controller(name)
    _start_kubelets_anew(world)


def _start_kubelets_anew(world: World) -> None:
    """Restart KWOK, so that the nodes return as quickly as with kubelets.

    KWOK retries a pod after 1 s, and doubles this up to 32 minutes. After a restart it waits only
    for its own leases of 40 s.
    """
    world.sandbox.processes.stop(KUBELETS)
    for lease in list(world.api.list("coordination.k8s.io/v1", "Lease", "kube-node-lease")):
        world.api.delete(lease)
    world.sandbox.start_controller(KUBELETS)


def engine_killed(world: World, scale: float) -> None:
    """The engine is killed after an object was created and before it was recorded."""
    world = replace(world, forked=False)  # its children continue without it, as for a user
    pending = 0
    for title in RECORDED_LATE[:: max(1, round(1 / scale))]:
        with world.stack(f"engine killed at {title.partition(' ')[0]}") as tried:
            tried.up_while(partial(_kill_at, tried, title, _kill_engine))
            begun = tried.pending()
            pending += len(begun)
            tried.says(tried.stack.up(), "currently locked", "pulumi cancel")
            needed = tried.goes_on()
            tried.check("the lock is reported", holds="cancel" in needed, seen=needed)
            told = "refresh" in needed
            tried.check("pending operations are reported", holds=told == bool(begun), seen=needed)
    world.part.check("a killed engine left operations pending", holds=pending > 0)
    world.part.count("operations left pending by a killed engine", pending)


def provider_killed(world: World, _scale: float) -> None:
    """The provider is killed while it waits for the object that it created."""
    with world.stack("provider killed") as tried:
        run = tried.up_while(lambda: _kill_at(tried, RECORDED_LATE[0], _kill_provider))
        tried.says(run, "llama-", "error")
        tried.goes_on()


def _kill_at(tried: Tried, title: str, kill: Callable[[Tried], object]) -> None:
    seen = wait(lambda: title in tried.world.objects(), period=PERIOD)
    tried.check(f"{title} was made", holds=seen)
    kill(tried)


def _kill_engine(tried: Tried) -> None:
    """Kill the engine before its child processes, which continue without it, as for a user."""
    engine = tried.engine()
    children = engine.children(recursive=True)
    for process in (engine, *children):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


def _kill_provider(tried: Tried) -> None:
    children = tried.engine().children(recursive=True)
    for child in children:
        if child.name().startswith("pulumi-resource"):
            child.kill()


def _restart(tried: Tried, events: int) -> None:
    world = tried.world
    came = wait(lambda: tried.events() >= events, period=PERIOD)
    tried.check("the moment came", holds=came)
    processes = world.sandbox.processes
    processes.process(API_SERVER).kill()
    processes.stop(API_SERVER)
    time.sleep(AWAY)
    world.sandbox.start(API_SERVER, commands.api_server(world.sandbox.layout))
    wait(lambda: world.sandbox.is_ready() or API_SERVER not in processes.running())
    back = API_SERVER in processes.running()
    tried.check("the API server came back", holds=back, seen=processes.last_lines(API_SERVER))
    wait(lambda: _controllers_stay(world))
    _start_kubelets_anew(world)


def _controllers_stay(world: World) -> bool:
    """Start controllers that exited while they waited for the API server, and tell if none may."""
    world.sandbox.revive()
    processes = map(world.sandbox.processes.process, commands.CONTROLLERS)
    return all(time.time() - each.create_time() > GIVES_UP for each in processes)
