"""Programs of a sandbox: started, watched, named when they die, and ended, others left alone."""

import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from sandbox.cluster import Sandbox
from sandbox.commands import CONTROLLERS
from sandbox.layout import PORTS, Layout
from sandbox.processes import LINES, Processes, SandboxError


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    (tmp_path / "log").mkdir()
    return Layout.free(tmp_path)


@pytest.fixture
def processes(layout: Layout) -> Iterator[Processes]:
    made = Processes(layout)
    yield made
    made.stop_all()


def script(folder: Path, body: str) -> Path:
    path = folder / "program"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def test_a_missing_program_is_named(processes: Processes, tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match="etcd is missing: run `make sandbox`, which builds it"):
        processes.start("etcd", tmp_path / "etcd", [])
    assert processes.running() == []


def test_a_port_in_use_ends_a_program_which_is_named_with_its_words(
    processes: Processes, tmp_path: Path, layout: Layout
) -> None:
    words = "listen tcp 127.0.0.1:2379: bind: address already in use"
    processes.start("etcd", script(tmp_path, f"echo {words}; exit 1"), [])
    with pytest.raises(SandboxError) as refused:
        processes.wait("etcd", lambda: False)
    assert str(refused.value) == f"etcd has exited. The end of {layout.log('etcd')}:\n  {words}"


def test_only_the_last_lines_of_a_log_are_shown(processes: Processes, tmp_path: Path) -> None:
    processes.start("kwok", script(tmp_path, "seq 1000; exit 3"), [])
    with pytest.raises(SandboxError) as refused:
        processes.wait("kwok", lambda: False)
    shown = str(refused.value).splitlines()[1:]
    assert [line.strip() for line in shown] == [str(n) for n in range(1001 - LINES, 1001)]


def test_what_is_never_ready_names_the_logs(
    processes: Processes, tmp_path: Path, layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sandbox.processes.PATIENCE", 0.2)
    processes.start("etcd", script(tmp_path, "exec sleep 60"), [])
    with pytest.raises(SandboxError, match=rf"API server is not ready .* see {layout.folder}/log"):
        processes.wait("the API server", lambda: False)


def test_down_ends_what_was_started_and_nothing_else(
    processes: Processes, tmp_path: Path, layout: Layout
) -> None:
    program = script(tmp_path, "exec sleep 60")
    with subprocess.Popen([program]) as other:
        processes.start("etcd", program, [])
        later = Processes(layout)  # as another command sees them
        assert later.running() == ["etcd"]
        later.stop_all()
        assert processes.running() == []
        assert other.poll() is None
        other.kill()


def test_a_stopped_program_holds_no_port(processes: Processes, tmp_path: Path) -> None:
    """As after SIGKILL on a busy machine: a zombie, whose other thread holds the port."""
    body = """
import ctypes, os, socket, sys, threading, time

def hold():
    with open("zombie", "w") as _:
        time.sleep(1)
    os._exit(0)

taken = socket.create_server(("127.0.0.1", int(sys.argv[1])))
threading.Thread(target=hold).start()
ctypes.CDLL(None).pthread_exit(None)
"""
    port = processes._layout.ports["api"]
    program = script(tmp_path, f"exec {sys.executable} -c '{body}' {port}")
    processes.start("kube-apiserver", program, [])
    until = time.monotonic() + 30
    while processes.running() or not (tmp_path / "zombie").exists():
        assert time.monotonic() < until
        time.sleep(0.01)
    with pytest.raises(OSError, match="in use"), socket.create_server(("127.0.0.1", port)):
        pass
    processes.stop("kube-apiserver")
    with socket.create_server(("127.0.0.1", port)):
        pass


def test_a_controller_that_exits_is_started_again(
    layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, program = Sandbox(layout, {}), script(tmp_path, "exec sleep 60")
    processes = made.processes
    monkeypatch.setattr(made, "start_controller", lambda name: processes.start(name, program, []))
    try:
        for name in CONTROLLERS:
            made.start_controller(name)
        first = {name: processes.process(name).pid for name in CONTROLLERS}
        processes.process("kube-controller-manager").kill()
        while "kube-controller-manager" in processes.running():
            time.sleep(0.01)
        made.revive()
        then = {name: processes.process(name).pid for name in CONTROLLERS}
    finally:
        processes.stop_all()
    assert {name for name in CONTROLLERS if first[name] != then[name]} == {
        "kube-controller-manager"
    }


def test_a_folder_that_another_command_has_removed_is_no_error(tmp_path: Path) -> None:
    folder = tmp_path / "sandbox"
    (folder / "log").mkdir(parents=True)
    processes = Processes(Layout.free(folder))
    processes.start("etcd", script(tmp_path, "exec sleep 60"), [])
    Processes(Layout.free(folder)).stop_all()
    shutil.rmtree(folder)
    processes.stop_all()
    assert not folder.exists()


def test_an_id_that_was_given_away_again_is_not_ours(processes: Processes, tmp_path: Path) -> None:
    program = script(tmp_path, "exec sleep 60")
    with subprocess.Popen([program]) as other:
        processes._started["etcd"] = (other.pid, 1.0)
        assert processes.running() == []
        processes.stop_all()
        assert other.poll() is None
        other.kill()


def test_two_sandboxes_get_ports_of_their_own(tmp_path: Path) -> None:
    first, second = Layout.free(tmp_path / "a"), Layout.free(tmp_path / "b")
    given = [*first.ports.values(), *second.ports.values()]
    assert len(set(given)) == 2 * len(PORTS)
    assert max(given) < 32768, "connections are given ports from there on"
    assert first.folder != second.folder


def test_a_layout_is_read_as_it_was_written(tmp_path: Path) -> None:
    layout = Layout.free(tmp_path)
    layout.write()
    assert Layout.read(tmp_path) == layout


def test_everything_listens_on_loopback(layout: Layout) -> None:
    assert all(layout.address(port).startswith("127.0.0.1:") for port in PORTS)
    with closing(layout.log("etcd").open("wb")) as log:
        assert log.name.endswith("log/etcd.log")
