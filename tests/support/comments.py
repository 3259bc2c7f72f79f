"""A host of pull requests on the loopback interface, with the comments of one pull request."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, ClassVar

import pytest


class Host(BaseHTTPRequestHandler):
    """The parts of GitHub's and GitLab's interfaces that the script asks."""

    notes: ClassVar[list[dict[str, Any]]] = []
    asked: ClassVar[list[tuple[str, str, Any]]] = []
    refuses: ClassVar[dict[str, list[int]]] = {}
    """The status of the next requests with a method, instead of the answer."""
    jobs: ClassVar[list[dict[str, Any]]] = []
    """The jobs of the pipeline, in GitLab."""
    kept: ClassVar[dict[str, bytes]] = {}
    """What they have kept, by `NUMBER/artifacts/FILE`."""
    most: ClassVar[int] = 65_536
    """How many characters of a comment are taken."""

    def answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        self.asked.append((self.command, self.path.partition("?")[0], body))
        status, found = self._answer(body)
        self.send_response(status)
        self.end_headers()
        self.wfile.write(found if isinstance(found, bytes) else json.dumps(found).encode())

    def _answer(self, body: Any) -> tuple[int, Any]:
        if self.refuses.get(self.command):
            return self.refuses[self.command].pop(0), {"message": "no\n::error::more"}
        if self.command != "GET":
            if len(body["body"]) > self.most:
                return 422, {"message": "Body is too long"}
            return 200, {"id": 3}
        if self.path.endswith("/user"):
            return 200, {"id": 7}
        if "/artifacts/" in self.path:
            found = self.kept.get(self.path.partition("/jobs/")[2])
            return (404, {"message": "404 Not Found"}) if found is None else (200, found)
        page = int(self.path.rpartition("&page=")[2])
        listed = self.jobs if "/jobs?" in self.path else self.notes
        return 200, listed[100 * (page - 1) : 100 * page]

    do_GET = do_POST = do_PUT = do_PATCH = answer  # noqa: N815 - names that the server looks for

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def host() -> Iterator[str]:
    Host.notes, Host.asked, Host.refuses, Host.most = [], [], {}, 65_536
    Host.jobs, Host.kept = [], {}
    server = HTTPServer(("127.0.0.1", 0), Host)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()
