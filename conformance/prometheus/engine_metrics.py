"""Serves the metrics of vLLM and SGLang at all addresses of pods, with the names of a release.

It runs in a network of its own, where the addresses of the pods are those of this machine.
"""

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from toolchain.programs import ROOT

_METRICS: Mapping[str, Any] = json.loads(
    (ROOT / "tests/systems/prometheus/engine_metrics.json").read_text()
)
PORTS = {8000: "vllm", 8080: "vllm", 30000: "sglang"}
"""The ports of the servings that are tried."""
_BUCKETS = ("0.1", "1", "+Inf")


@dataclass(slots=True)
class Engines:
    """Who was asked for metrics."""

    asked: set[str] = field(default_factory=set)
    """Addresses, each with the port."""


@contextmanager
def serving() -> Iterator[Engines]:
    """Serve until the block ends."""
    engines = Engines()
    servers = [
        ThreadingHTTPServer(("0.0.0.0", port), _handler(engines, kind))  # noqa: S104 - loopback
        for port, kind in PORTS.items()
    ]
    threads = [threading.Thread(target=each.serve_forever, daemon=True) for each in servers]
    for thread in threads:
        thread.start()
    try:
        yield engines
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()


def _handler(engines: Engines, kind: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            host, port = self.connection.getsockname()
            engines.asked.add(f"{host}:{port}")
            body = "".join(_lines(kind)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Keep the output readable."""

    return Handler


def _lines(kind: str) -> Iterator[str]:
    """Write every metric of the newest release that is known; counters grow with time."""
    *_, newest = _METRICS[kind].values()
    number, labels = int(time.monotonic()), 'model_name="chat"'
    for name, sort in newest["metrics"].items():
        yield f"# TYPE {name} {sort}\n"
        if sort == "histogram":
            for bound in _BUCKETS:
                yield f'{name}_bucket{{{labels},le="{bound}"}} {number}\n'
            yield f"{name}_sum{{{labels}}} {number}\n{name}_count{{{labels}}} {number}\n"
        else:
            yield f"{name}{{{labels}}} {number if sort == 'counter' else 0.5}\n"
