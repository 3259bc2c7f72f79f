"""Serves a repository over HTTP on the loopback interface, to those with a password: private."""

import base64
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


@contextmanager
def serving(repository: Path, user: str, password: str) -> Iterator[str]:
    """Start the server, and give its address. The repository's path is /a/b.

    Args:
        repository: A git directory.
        user: The user that every request must name.
        password: The password of the user.
    """
    allowed = f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"

    class Server(BaseHTTPRequestHandler):
        def answer(self) -> None:
            if self.headers.get("Authorization") != allowed:
                self.send_response(401)
                self.send_header("WWW-Authenticate", "Basic")
                self.end_headers()
                return
            path, _, query = self.path.partition("?")
            ran = subprocess.run(
                ["git", "http-backend"],
                input=self.rfile.read(int(self.headers.get("Content-Length") or 0)),
                env={
                    "GIT_PROJECT_ROOT": str(repository), "GIT_HTTP_EXPORT_ALL": "1",
                    "PATH_INFO": path.removeprefix("/a/b"), "QUERY_STRING": query,
                    "REQUEST_METHOD": self.command, "REMOTE_USER": user, "PATH": "/usr/bin:/bin",
                    "CONTENT_TYPE": self.headers.get("Content-Type") or "",
                    "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding") or "",
                    "GIT_PROTOCOL": self.headers.get("Git-Protocol") or "",
                },
                capture_output=True, check=True,
            )  # fmt: skip
            head, _, body = ran.stdout.partition(b"\r\n\r\n")
            headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
            self.send_response(int(headers.pop("Status", "200").split()[0]))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = answer  # noqa: N815 - names that the server looks for

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
