"""CRDs that an API server has stored, kept for the next cluster."""

import json
import socket
import threading
from base64 import b64decode, b64encode
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from sandbox.definitions import SOURCES, STORE, Kept, file_of, places_of, served
from sandbox.layout import Layout
from sandbox.pki import write_pki
from sandbox.processes import Processes, SandboxError
from toolchain.programs import known_programs

CRDS = b"/registry/apiextensions.k8s.io/customresourcedefinitions/"
QUEUES = {
    "spec": {
        "group": "scheduling.volcano.sh",
        "names": {"plural": "queues"},
        "versions": [{"name": "v1beta1", "served": True}, {"name": "v1alpha1", "served": False}],
    }
}


class Etcd(BaseHTTPRequestHandler):
    """The two calls of etcd's JSON API, on keys in memory."""

    def do_POST(self) -> None:
        held: dict[bytes, str] = self.server.held  # type: ignore[attr-defined]
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        key, found = b64decode(asked["key"]), dict[str, Any]()
        if self.path == "/v3/kv/put":
            held[key] = asked["value"]
        else:
            end = b64decode(asked["range_end"])
            kvs = [(k, v) for k, v in sorted(held.items()) if key <= k < end]
            found = {"kvs": [{"key": b64encode(k).decode(), "value": v} for k, v in kvs]}
        self.send_response(500 if self.server.fails else 200)  # type: ignore[attr-defined]
        self.end_headers()
        self.wfile.write(json.dumps(found).encode())

    def log_message(self, *_: object) -> None:
        """Keep the output readable."""


class Store:
    """A fake etcd, and the layout of its sandbox."""

    def __init__(self, folder: Path) -> None:
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Etcd)
        self.held: dict[bytes, str] = {}
        self.server.held, self.server.fails = self.held, False  # type: ignore[attr-defined]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        free = Layout.free(folder)
        self.layout = replace(free, ports={**free.ports, "etcd": self.server.server_port})


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[tuple[Store, Store]]:
    made = Store(tmp_path), Store(tmp_path)
    yield made
    for each in made:
        each.server.shutdown()
        each.server.server_close()


def test_the_next_cluster_has_the_same_definitions_and_nothing_else(
    stores: tuple[Store, Store], tmp_path: Path
) -> None:
    first, second = stores
    crds = {CRDS + b"queues": "cXVldWU=", CRDS + b"\xff": "//8="}
    others = {CRDS[:-1] + b"0": "bm8=", CRDS[:-2]: "bm8=", b"/registry/namespaces/a": "bm8="}
    first.held.update({**crds, **others})
    kept = Kept.of(first.layout, [QUEUES])
    kept.write(tmp_path / "kept.json")
    again = Kept.read(tmp_path / "kept.json")
    assert again == kept
    assert again is not None
    again.restore(second.layout)
    assert second.held == crds
    assert again.places == (("scheduling.volcano.sh", "v1beta1", "queues"),)
    assert [file.name for file in tmp_path.glob("kept*")] == ["kept.json"]


def test_what_etcd_refuses_is_named(stores: tuple[Store, Store]) -> None:
    store, _ = stores
    store.server.fails = True  # type: ignore[attr-defined]
    with pytest.raises(SandboxError, match="etcd answered put with 500"):
        Kept({"YQ==": "YQ=="}, ()).restore(store.layout)


def test_without_a_file_nothing_is_kept(tmp_path: Path) -> None:
    assert Kept.read(tmp_path / "none.json") is None


@pytest.mark.parametrize("name", [*STORE, *SOURCES])
def test_another_version_of_a_program_has_another_file(name: str, tmp_path: Path) -> None:
    programs = known_programs("sandbox")
    other = {**programs, name: replace(programs[name], version="0.0.0")}
    assert file_of(programs, tmp_path) == file_of(dict(programs), tmp_path)
    assert file_of(programs, tmp_path) != file_of(other, tmp_path)


def test_only_versions_that_are_served_are_waited_for() -> None:
    assert list(places_of([QUEUES])) == [("scheduling.volcano.sh", "v1beta1", "queues")]


def test_a_server_that_does_not_answer_serves_nothing(tmp_path: Path) -> None:
    layout = Layout.free(tmp_path)
    write_pki(layout)
    assert served(layout) == set()


def test_a_port_on_which_another_program_listens_is_not_ours(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    layout = Layout.free(tmp_path)
    processes = Processes(layout)
    script = tmp_path / "sleeper"
    script.write_text("#!/bin/sh\nexec sleep 60\n")
    script.chmod(0o755)
    processes.start("etcd", script, [])
    try:
        with socket.socket() as other:
            other.bind(("127.0.0.1", layout.ports["etcd"]))
            other.listen()
            assert not processes.listens("etcd", layout.ports["etcd"])
    finally:
        processes.stop_all()
