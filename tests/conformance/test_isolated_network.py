"""A part in a network of its own: only loopback is there, and no signal leaves anything behind."""

import errno
import os
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable
from ipaddress import IPv4Network
from pathlib import Path
from types import SimpleNamespace

import pytest

from conformance import __main__ as program
from conformance import isolated_network
from conformance.__main__ import Context, run
from conformance.isolated_network import NetworkError, isolated, take_addresses
from toolchain.programs import ROOT

SOMEWHERE = ("192.0.2.1", 80)
"""An address that no machine has: RFC 5737."""


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let parts have their folders below the test's own: one that is killed leaves its behind."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.fixture(scope="module")
def network() -> None:
    """Skip a test where the system allows no network namespace."""
    try:
        isolated(lambda: None)
    except NetworkError as error:
        pytest.skip(str(error))


@pytest.mark.usefixtures("network")
def test_only_loopback_is_there_and_it_is_up() -> None:
    def look() -> tuple[bool, int, list[str]]:
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))
            server.listen()
            with socket.create_connection(server.getsockname(), 5):
                heard = True
        with socket.socket() as outwards:
            outwards.settimeout(5)
            answer = outwards.connect_ex(SOMEWHERE)
        found = [name for _, name in socket.if_nameindex()]
        return heard, answer, found

    heard, answer, found = isolated(look)
    assert heard
    assert answer == errno.ENETUNREACH
    assert "lo" in found
    assert not any(name.startswith(("eth", "en", "wl")) for name in found)


@pytest.mark.usefixtures("network")
def test_the_addresses_of_a_network_can_be_those_of_this_machine() -> None:
    def look() -> tuple[int, ...]:
        take_addresses(IPv4Network("192.0.2.0/24"))
        found = []
        for host in ("192.0.2.77", "198.51.100.1"):
            with socket.socket() as server, socket.socket() as client:
                server.bind(("0.0.0.0", 0))  # noqa: S104 - only loopback is there
                server.listen()
                client.settimeout(5)
                found.append(client.connect_ex((host, server.getsockname()[1])))
        return tuple(found)

    assert isolated(look) == (0, errno.ENETUNREACH)


@pytest.mark.usefixtures("network")
def test_a_port_in_use_outside_is_free_inside_and_cannot_be_reached() -> None:
    with socket.socket() as outside:
        outside.bind(("127.0.0.1", 0))
        outside.listen()
        address = outside.getsockname()

        def look() -> int:
            with socket.socket() as client, socket.socket() as server:
                refused = client.connect_ex(address)
                server.bind(address)
                return refused

        assert isolated(look) == errno.ECONNREFUSED


@pytest.mark.usefixtures("network")
def test_a_process_that_is_killed_in_it_fails_its_part(monkeypatch: pytest.MonkeyPatch) -> None:
    made = SimpleNamespace(run=lambda _: os.kill(os.getpid(), signal.SIGKILL))
    monkeypatch.setitem(program.PARTS, "killed", "killed")
    monkeypatch.setitem(sys.modules, "conformance.killed", made)
    monkeypatch.setattr(program, "OWN_NETWORK", frozenset({"killed"}))
    assert run("killed", 1, 1).failures == [
        "its process was killed, perhaps because memory ran out"
    ]


def test_a_system_that_allows_no_namespace_leaves_the_part_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def enter() -> None:
        raise PermissionError(errno.EPERM, "unshare: Operation not permitted")

    monkeypatch.setattr(isolated_network, "enter", enter)
    monkeypatch.setattr(program, "OWN_NETWORK", frozenset({"kept"}))
    (said,) = run("kept", 1, 1).left_out
    assert said == (
        "this system allows no network namespace: [Errno 1] unshare: Operation not permitted"
    )


@pytest.mark.usefixtures("network")
def test_what_a_part_checked_in_it_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def fine(context: Context) -> None:
        context.part.check("it is alone", holds=len(socket.if_nameindex()) >= 1)
        context.part.count("things")

    monkeypatch.setitem(program.PARTS, "fine", "fine")
    monkeypatch.setitem(sys.modules, "conformance.fine", SimpleNamespace(run=fine))
    monkeypatch.setattr(program, "OWN_NETWORK", frozenset({"fine"}))
    part = run("fine", 1, 1)
    assert (part.checks, part.failures, part.counts) == (1, [], {"things": 1})


@pytest.mark.usefixtures("network")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_what_a_part_started_in_it(number: signal.Signals, tmp_path: Path) -> None:
    folders, marks = tmp_path / "folders", tmp_path / "marks"
    folders.mkdir()
    marks.mkdir()
    script = textwrap.dedent(f"""
        import signal, subprocess, sys, tempfile, time
        signal.signal(signal.SIGINT, signal.default_int_handler)
        from pathlib import Path
        from types import SimpleNamespace
        import conformance.__main__ as program

        def run(context):
            child = subprocess.Popen(["sleep", "600"], start_new_session=True)
            try:
                Path({str(marks)!r}, "pid").write_text(str(child.pid) + "\\n")
                time.sleep(60)
            finally:
                child.terminate()
                child.wait()
                Path({str(marks)!r}, "ended").touch()

        tempfile.tempdir = {str(folders)!r}
        program.PARTS = {{"one": "one"}}
        program.OWN_NETWORK = frozenset(program.PARTS)
        program.ensure_sandbox = lambda *_: None
        sys.modules["conformance.one"] = SimpleNamespace(run=run)
        program.main([])
    """)
    pid = marks / "pid"
    with subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, stderr=subprocess.PIPE, start_new_session=True
    ) as command:
        wait_until(lambda: pid.exists() and pid.read_text().endswith("\n"))
        if number == signal.SIGINT:
            os.killpg(command.pid, number)
        else:
            command.send_signal(number)
        command.communicate(timeout=60)
    assert (marks / "ended").exists()
    assert not Path("/proc", pid.read_text().strip()).exists()
    assert list(folders.iterdir()) == []


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60  # far beyond any load; it only ends a test that hangs
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)
