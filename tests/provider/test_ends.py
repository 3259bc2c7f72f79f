"""The provider does not outlive the program that has started it."""

import subprocess
import sys
import time

import psutil

PROGRAM = "from kthena_components.provider.host import run; run()"
STARTER = f"""
import subprocess, sys, time
started = subprocess.Popen(
    [sys.executable, "-c", {PROGRAM!r}, "127.0.0.1:1"], stdout=subprocess.PIPE
)
started.stdout.readline()  # the port, when it serves
print(started.pid, flush=True)
sys.stdin.read()
"""
PATIENCE = 60


def test_it_ends_when_its_parent_has_ended() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STARTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as starter:
        assert starter.stdin
        assert starter.stdout
        served = psutil.Process(int(starter.stdout.readline()))
        time.sleep(2)
        assert served.is_running()
        starter.stdin.close()
        assert starter.wait(PATIENCE) == 0
    gone, alive = psutil.wait_procs([served], timeout=PATIENCE)
    for each in alive:
        each.kill()
    assert gone == [served]
