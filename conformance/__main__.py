"""Test the package against the real Kubernetes, Volcano, Kthena and Pulumi, in local clusters."""

import argparse
import importlib
import math
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from multiprocessing import active_children, get_context
from multiprocessing.connection import Connection
from pathlib import Path

from conformance.isolated_network import NetworkError, isolated
from conformance.report import Part, passed, render
from sandbox.cluster import Sandbox, Size, up
from toolchain.locate import ensure_sandbox, unbuilt
from toolchain.programs import ToolchainError, minutes_of

PARTS: Mapping[str, str] = {
    "privilege": "pulumi.privilege",
    "faults": "pulumi.faults",
    "sandbox": "sandbox.part",
    "validation": "validation.part",
    "lws": "lws.created_objects",
    "load": "pulumi.load",
    "kaito": "kaito.part",
    "kills": "pulumi.kills",
    "adoption": "pulumi.adoption",
    "scheduling": "volcano.scheduling",
    "lifecycle": "pulumi.lifecycle",
    "hangs": "hangs.part",
    "monitoring": "prometheus.monitoring",
    "kserve": "kserve.part",
    "fit": "fit.part",
    "workerspec": "kserve.workerspec",
    "production": "kthena.production",
    "emission": "kthena.emission",
    "matrixinfer": "matrixinfer.created_objects",
    "booster": "kthena.booster",
    "fuzz": "reading.fuzz",
    "answers": "fit.two_answers",
    "shell": "reading.launch_scripts",
}
"""Each part's module, which has a function `run(context)`.

The longest come first, by the time of `--scale 0.5 --jobs 4` on two cores. Otherwise the last one
would run alone for minutes.
"""
SHARED = (("lws", "booster", "emission"),)
"""Parts that need the same cluster and cannot disturb one another, because each has its own
namespaces. They run one after another on one cluster. The last one names the tiers of the nodes.
The report counts the processor time of the cluster in the last one.
"""
IN_BACKGROUND = frozenset({"answers", "fuzz"})
"""Parts without a cluster, which wait for nothing and whose limits count processor time.

They run from the start, one after the other, with the processor time that the others leave.
"""
LAST = frozenset({"shell"})
"""Parts that have limits of a few seconds. They run after the others."""
OWN_NETWORK = frozenset({"kaito", "kserve", "matrixinfer", "monitoring", "workerspec"})
"""Parts with programs that listen on every address. They run where only loopback exists."""
OPTIONAL = frozenset({"kaito", "kserve", "monitoring", "workerspec"})
"""Parts with programs that nothing else needs. Only a run that names such a part builds them."""
NICE = 10
"""Priority of the parts in the background: a tenth of the usual weight. 19 would starve them."""
_FORK = get_context("fork")
_KILLED = "its process was killed, perhaps because memory ran out"


@dataclass(slots=True)
class Clusters:
    """Clusters that one or several parts use one after another, by size."""

    folder: Path
    _started: dict[Size, Sandbox] = field(default_factory=dict)

    def get(self, size: Size, say: Callable[[str], None]) -> Sandbox:
        """Start a cluster, or give the one of this size."""
        if size not in self._started:
            self._started[size] = up(self.folder / f"sandbox-{len(self._started)}", size, say)
        return self._started[size]

    def stop(self) -> None:
        """Stop them."""
        for sandbox in self._started.values():
            sandbox.processes.stop_all()


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The input of a part."""

    part: Part
    folder: Path
    """A temporary folder."""
    seed: int
    scale: float
    """1 for everything, less for a smoke test."""
    shared: Clusters | None = None
    """The clusters of the parts that run one after another with this one."""

    @contextmanager
    def cluster(self, size: Size) -> Iterator[Sandbox]:
        """Give a cluster, which other parts may share. All its programs must still run after it."""
        clusters = self.shared or Clusters(self.folder)
        try:
            sandbox = clusters.get(size, self.part.say)
            yield sandbox
            sandbox.processes.check()
        finally:
            if self.shared is None:
                clusters.stop()

    def sandbox(self, size: Size | None = None, name: str = "sandbox") -> Sandbox:
        """Start a cluster. The caller must stop it: `sandbox.processes.stop_all()`."""
        return up(self.folder / name, size or Size(), self.part.say)

    def many(self, number: int) -> int:
        """Scale a number of tries."""
        return max(1, round(number * self.scale))


def main(arguments: list[str] | None = None) -> int:
    """Run the parts. Return 1 if a part failed or did not run."""
    signal.signal(signal.SIGTERM, _leave)
    options = _parser().parse_args(arguments)
    say = Part("programs").say
    until = math.inf if options.minutes is None else time.monotonic() + 60 * options.minutes
    names = options.parts or [name for name in turned(options.turn) if not left_out(name)]
    with suppress(ToolchainError):  # each part reports this error itself
        ensure_sandbox(os.environ, say)
        for name in OPTIONAL.intersection(names):
            ensure_sandbox(os.environ, say, name)
    beside = [name for name in names if name not in LAST]
    parts = run_beside(beside, options.seed, options.scale, options.jobs, until)
    parts += [run(name, options.seed, options.scale, until) for name in names if name in LAST]
    parts += [] if options.parts else [part for part in map(left_out, PARTS) if part]
    sys.stdout.write(f"seed {options.seed}, scale {options.scale:g}\n\n{render(parts)}\n")
    return 0 if passed(parts) else 1


def turned(turn: int) -> tuple[str, ...]:
    """Return the parts, beginning with another one each turn."""
    names, first = tuple(PARTS), turn % len(PARTS)
    return (*names[first:], *names[:first])


def left_out(name: str) -> Part | None:
    """Return the report of an optional part whose programs are not built; None for any other."""
    missing = unbuilt(name, os.environ) if name in OPTIONAL else []
    if not missing:
        return None
    part, minutes = Part(name), sum(program.minutes for program in missing)
    programs = ", ".join(program.title for program in missing)
    part.leave_out(
        f"{programs}, which only this part needs, is not built: "
        f"`make conformance ARGS={name}` builds it in about {minutes_of(minutes)}"
    )
    return part


def run_beside(
    names: Sequence[str], seed: int, scale: float, jobs: int, until: float = math.inf
) -> list[Part]:
    """Run several parts in parallel, each in its own process, because they mostly wait."""
    beside = [name for name in names if name not in IN_BACKGROUND] or list(names)
    behind = [name for name in names if name not in beside]
    collect = _start_in_background(behind, seed, scale, until)
    with ProcessPoolExecutor(jobs, _FORK, _begin) as pool:
        try:
            tasks = _tasks(beside)
            found = [pool.submit(_in_child, task, seed, scale, until) for task in tasks]
            results = map(_result, tasks, found)
            parts = [*chain.from_iterable(results), *collect()]
        except BaseException:
            for child in active_children():
                child.terminate()  # it then stops its clusters and exits
            raise
    return sorted(parts, key=lambda part: names.index(part.name))


def _tasks(names: Sequence[str]) -> list[tuple[str, ...]]:
    """Group the parts that share a cluster, at the place of the first one."""
    groups = {name: group for group in SHARED for name in group}
    of_each = (groups.get(name, (name,)) for name in names)
    return list(dict.fromkeys(tuple(one for one in task if one in names) for task in of_each))


def _start_in_background(
    names: Sequence[str], seed: int, scale: float, until: float
) -> Callable[[], list[Part]]:
    """Start a process that runs parts one by one. Return a function that waits for the results."""
    if not names:
        return list
    receiver, sender = _FORK.Pipe(duplex=False)
    process = _FORK.Process(target=_in_background, args=(sender, names, seed, scale, until))
    process.start()
    sender.close()

    def collect() -> list[Part]:
        found: list[Part] = []
        with suppress(EOFError):
            while len(found) < len(names):
                found.append(receiver.recv())
        process.join()
        return found + [_killed(name) for name in names[len(found) :]]

    return collect


def _in_background(
    sender: Connection, names: Sequence[str], seed: int, scale: float, until: float
) -> None:
    """Run parts with the processor time that other processes leave."""
    os.setsid()
    os.nice(NICE)
    # Linux may share the processors among sessions first. Then nice counts only inside a session.
    with suppress(OSError):
        Path("/proc/self/autogroup").write_text(str(NICE))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _end_session)
    for name in names:
        sender.send(run(name, seed, scale, until))


def _end_session(number: int, _frame: object) -> None:
    """End this process and all that it started. No cluster is to be stopped."""
    signal.signal(number, signal.SIG_IGN)
    os.killpg(0, number)
    os._exit(128 + number)


def _begin() -> None:
    """Ignore Ctrl-C: the parent process handles it, and then terminates this one."""
    signal.signal(signal.SIGINT, lambda *_: None)
    signal.signal(signal.SIGTERM, _leave)


def _in_child(task: Sequence[str], seed: int, scale: float, until: float) -> list[Part]:
    """Run a task. Exit after a signal, because the process would otherwise run the next one."""
    try:
        return run_together(task, seed, scale, until)
    except SystemExit as error:
        os._exit(int(str(error.code)))


def run_together(task: Sequence[str], seed: int, scale: float, until: float) -> list[Part]:
    """Run parts one after another. If there are several, they share their clusters."""
    if len(task) == 1:
        return [run(task[0], seed, scale, until)]
    about = f"kthena-conformance-{'-'.join(task)}-"
    with tempfile.TemporaryDirectory(prefix=about, ignore_cleanup_errors=True) as folder:
        shared, parts = Clusters(Path(folder)), list[Part]()
        try:
            parts += [run(name, seed, scale, until, shared) for name in task]
        finally:
            with parts[-1].timed() if parts else nullcontext():
                shared.stop()
        return parts


def _result(task: Sequence[str], future: Future[list[Part]]) -> list[Part]:
    try:
        return future.result()
    except BrokenProcessPool:
        return [_killed(name) for name in task]


def _killed(name: str) -> Part:
    part = Part(name)
    part.fail(_KILLED)
    return part


def run(
    name: str, seed: int, scale: float, until: float = math.inf, shared: Clusters | None = None
) -> Part:
    """Run one part, in a network of its own if it needs one. Leave it out if it is too late."""
    part = Part(name)
    if time.monotonic() > until:
        part.leave_out(f"the time was up: `make conformance ARGS={name}` runs it")
        return part
    if name not in OWN_NETWORK:
        return _run(name, seed, scale, shared)
    try:
        return isolated(partial(_run, name, seed, scale))
    except NetworkError as error:
        part.leave_out(str(error))
    except EOFError:
        return _killed(name)
    return part


def _run(name: str, seed: int, scale: float, shared: Clusters | None = None) -> Part:
    """Run one part. An exception is a failure, and the next part still runs."""
    part = Part(name)
    about = f"kthena-conformance-{name}-"
    with tempfile.TemporaryDirectory(prefix=about, ignore_cleanup_errors=True) as folder:
        context = Context(part=part, folder=Path(folder), seed=seed, scale=scale, shared=shared)
        with part.timed():
            try:
                importlib.import_module(f"conformance.{PARTS[name]}").run(context)
            except ToolchainError as error:
                part.skip("the whole part", str(error))
            except Exception:  # noqa: BLE001 - the other parts must still run
                part.fail(traceback.format_exc())
    part.say(f"{part.checks} checks, {len(part.failures)} failed, {part.seconds:.0f} s")
    return part


def _leave(number: int, _frame: object) -> None:
    """Turn the first signal into an exception, so that the clusters are stopped."""
    signal.signal(number, signal.SIG_IGN)
    raise SystemExit(128 + number)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m conformance", description=__doc__)
    parser.add_argument(
        "parts", nargs="*", choices=[*PARTS, []], metavar="PART", help=", ".join(PARTS)
    )
    parser.add_argument(
        "--jobs", type=_positive, default=3, help="number of parallel parts; default: 3"
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of random objects; default: 1")
    parser.add_argument(
        "--scale",
        type=float,
        default=1,
        help="share of the tries; default: 1; 0.01 is a smoke test",
    )
    parser.add_argument(
        "--minutes",
        type=float,
        help="leave out parts that would begin later than this; default: none",
    )
    parser.add_argument(
        "--turn",
        type=lambda text: int(text, 0),
        default=0,
        help="number of the part to begin with, so that --minutes leaves out others; default: 0",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
