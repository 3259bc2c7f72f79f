"""What is written for TensorRT-LLM over several pods, run by the real Open MPI.

Each pod is a shell with its own environment and temporary folder, in one network that has only
loopback. Daemons of Open MPI that start at once in one folder make the same folders there, and one
of them ends.
trtllm-llmapi-launch is a stub that does as its original does with the words that it is given.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from conformance.isolated_network import isolated
from kthena_components.core.engines import Commands, write_commands
from tests.support.launches import launch

PATH = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
pytestmark = [
    pytest.mark.programs,
    pytest.mark.skipif(
        shutil.which("mpirun", path=PATH) is None, reason="there is no mpirun (Open MPI)"
    ),
]
PODS, GPUS, SECONDS = 3, 2, 30
LAUNCHER = """\
#!/bin/bash
task_with_command="${@:1}"
rank=$OMPI_COMM_WORLD_RANK
echo "$POD $OMPI_COMM_WORLD_LOCAL_RANK $OMPI_COMM_WORLD_SIZE" >"$SEEN/$rank"
if [ "$rank" = 0 ]; then $task_with_command; fi
sleep 1
[ "$rank" = "$FAILING" ] && exit 3
exit 0
"""
SERVER = f"""\
#!{sys.executable}
import json, os, sys
json.dump(sys.argv, open(os.environ["SEEN"] + "/served", "w"))
"""


@dataclass(frozen=True)
class Ended:
    """The exit code of each pod, the entry's first; what each pod wrote; who ran each rank."""

    codes: tuple[int, ...]
    said: tuple[str, ...]
    ranks: Mapping[int, str]


def words(command: tuple[str, ...], pod: int) -> list[str]:
    """Expand references as the kubelet does."""
    values = {"$(ENTRY_ADDRESS)": "localhost", "$(WORKER_INDEX)": str(pod)}
    expanded = list(command)
    for name, value in values.items():
        expanded = [word.replace(name, value) for word in expanded]
    return expanded


def run_pods(commands: Commands, folder: Path, *, failing: str = "", late: int = 0) -> Ended:
    """Run all pods until they end.

    Args:
        commands: The commands of the engine.
        folder: An empty folder.
        failing: The rank that fails.
        late: The pod that starts a second after the others.
    """
    seen, stubs = folder / "seen", folder / "stubs"
    seen.mkdir()
    stubs.mkdir()
    for name, text in (("trtllm-llmapi-launch", LAUNCHER), ("trtllm-serve", SERVER)):
        (stubs / name).write_text(text)
        (stubs / name).chmod(0o755)
    started = []
    for pod in sorted(range(PODS), key=lambda pod: pod == late):
        time.sleep(float(pod == late))
        env = {"PATH": f"{stubs}:{PATH}", "POD": str(pod), "SEEN": str(seen), "FAILING": failing}
        command = commands.worker if pod else commands.entry
        with (folder / f"{pod}.log").open("w") as log:
            argv = words(command or (), pod)
            temporary = folder / f"tmp-{pod}"
            temporary.mkdir()
            env |= {"HOME": str(folder), "TMPDIR": str(temporary)}
            process = subprocess.Popen(
                argv, env=env, cwd=folder, stdout=log, stderr=log, start_new_session=True
            )
        started.append((pod, process))
    codes = dict.fromkeys(range(PODS), -1)
    try:
        for pod, process in started:
            with suppress(subprocess.TimeoutExpired):
                codes[pod] = process.wait(SECONDS)
    finally:
        for _, process in started:
            end_session(process)
    said = tuple((folder / f"{pod}.log").read_text() for pod in range(PODS))
    ranks = {int(path.name): path.read_text().strip() for path in seen.glob("[0-9]*")}
    return Ended(tuple(codes.values()), said, ranks)


def end_session(process: subprocess.Popen[bytes]) -> None:
    """End what a pod leaves behind, as the end of its first process does in a cluster."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()


def written(*extra: str) -> Commands:
    sizes = {"tensor": GPUS, "pipeline": PODS, "pods": PODS, "gpus_per_pod": GPUS}
    return write_commands(launch("trtllm", launcher="mpi", extra_args=extra, **sizes))


@pytest.mark.parametrize("late", range(PODS))
def test_each_pod_runs_its_ranks_and_the_entry_serves(late: int, tmp_path: Path) -> None:
    commands = written("--log_level=info", '--set={"a":"b$c*"}')

    ended = isolated(lambda: run_pods(commands, tmp_path, late=late))

    assert ended.codes == (0, 0, 0), ended.said
    everyone = PODS * GPUS
    assert ended.ranks == {n: f"{n // GPUS} {n % GPUS} {everyone}" for n in range(everyone)}
    served = json.loads((tmp_path / "seen" / "served").read_text())
    assert served[1:] == [
        *("org/M", "--host", "0.0.0.0", "--port", "8080", "--tp_size", "2", "--pp_size", "3"),  # noqa: S104
        *("--log_level=info", '--set={"a":"b$c*"}'),
    ]


@pytest.mark.parametrize("failing", ["0", "5"])
def test_a_rank_that_fails_ends_every_pod(failing: str, tmp_path: Path) -> None:
    ended = isolated(lambda: run_pods(written(), tmp_path, failing=failing))

    assert ended.codes[0] == 3, ended.said
    assert -1 not in ended.codes


def test_a_worker_without_an_entry_ends_when_it_is_told_to(tmp_path: Path) -> None:
    commands = written()

    def work() -> int:
        argv = ["unshare", "--pid", "--fork", *words(commands.worker or (), 1)]
        pod = subprocess.Popen(argv, env={"PATH": PATH}, cwd=tmp_path, start_new_session=True)
        try:
            time.sleep(1)
            first = Path(f"/proc/{pod.pid}/task/{pod.pid}/children").read_text().split()
            os.kill(int(first[0]), signal.SIGTERM)
            return pod.wait(10)
        finally:
            end_session(pod)

    assert isolated(work) == 128 + signal.SIGTERM
