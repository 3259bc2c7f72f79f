"""What looks for faults finds them: each kind of fault, made on purpose, in its own process."""

import json
import os
import signal
import subprocess
import sys

import pytest

from tests.toughness.targets import ROOT

PROGRAM = """
import json, os, pathlib, shutil, socket, subprocess, sys, tempfile
from kthena_components.checker.manifest import check_manifest
from kthena_components.core.rules.shm import shm_size
from tests.toughness import fuzz, guard
from tests.toughness.targets import Target

def broken(*_):
    raise KeyError("x")

def rule(body):
    code, shm_size.__code__ = shm_size.__code__, broken.__code__
    try:
        check_manifest(body)
    finally:
        shm_size.__code__ = code

def endless():
    while True:
        pass

engine = {"name": "e", "command": ["vllm", "serve", "m"], "image": "i"}
pods = {"template": {"spec": {"containers": [engine]}}}
body = {"apiVersion": "apps/v1", "kind": "Deployment", "spec": pods}
guard.SECONDS, fuzz._WARM, fuzz.TARGETS = 1, 0, {}
fuzz.findings._raised = fuzz._fail
found = {}
with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    own = folder / "own"
    for fault in json.load(sys.stdin):
        own.touch()
        take = eval(f"lambda given, folder: {fault}")
        make = lambda draw, folder, number: "the input"
        fuzz.TARGETS["own"] = Target(make=make, take=take)
        found[fault] = "".join(fuzz._run("own", range(1), folder))
print(json.dumps(found))
"""
FAULTS = {
    "broken()": "KTHENA_SEED=7 own 0: ",
    "rule(body)": "RuleFaultError",
    "endless()": "1 s of processor time were not enough for 'the input'",
    "subprocess.run(['true'])": "subprocess.Popen(",
    "os.system('true')": "os.system(",
    "os.posix_spawn('/bin/true', ['true'], {})": "os.posix_spawn(",
    "os.waitpid(os.fork() or os._exit(0), 0)": "os.fork(",
    "socket.socket().connect_ex(('127.0.0.1', 9))": "socket.connect(",
    "open('/etc/passwd')": "open('/etc/passwd'",
    "open(own, 'w')": "open(",
    "os.open(own, os.O_RDWR)": "open(",
    "os.rename(own, own)": "os.rename(",
    "shutil.copy(own, folder / 'two')": "shutil.copy",
    "os.mkdir(folder / 'three')": "os.mkdir(",
    "os.listdir('/')": "os.listdir(",
    "own.read_text()": "",
    "check_manifest(body)": "",
}


@pytest.fixture(scope="module")
def found() -> dict[str, str]:
    """Give what is told of each fault."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM],
        cwd=ROOT, env={**os.environ, "KTHENA_SEED": "7"}, input=json.dumps([*FAULTS]), check=False,
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return told


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_and_told(fault: str, found: dict[str, str]) -> None:
    assert FAULTS[fault] in found[fault]
    assert bool(found[fault]) == bool(FAULTS[fault])


def test_a_call_into_c_that_does_not_return_ends_the_process_and_its_place_is_told() -> None:
    program = PROGRAM.replace("guard.SECONDS", "fuzz._STUCK, guard.SECONDS", 1).replace(
        "= 1, 0, {}", "= 1, 1, 0, {}", 1
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        cwd=ROOT, env={**os.environ, "KTHENA_SEED": "7"}, input=json.dumps(["sum(range(10**15))"]),
        check=False, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == -signal.SIGPROF
    assert "in _take" in done.stderr
