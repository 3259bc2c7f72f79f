"""An API server that only says which kinds it knows, as JSON over loopback."""

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import yaml

tokens: list[str] = []
"""What has been sent to log in."""
paths: list[str] = []
"""What has been asked for."""
KNOWN = {
    "v1": ("Service", "Secret", "Pod"),
    "apps/v1": ("StatefulSet",),
    "scheduling.volcano.sh/v1beta1": ("PodGroup", "Queue"),
    "topology.volcano.sh/v1alpha1": ("HyperNode",),
    "workload.serving.volcano.sh/v1alpha1": ("ModelServing",),
}


@contextmanager
def discovery(
    *missing: str,
    status: int = 404,
    known: Mapping[str, tuple[str, ...]] = KNOWN,
    says: bytes | None = None,
    everything: dict[str, Any] | None = None,
    seconds: float = 0,
) -> Iterator[str]:
    """Serve what is known without some groups, which answer with a status; give a kubeconfig.

    With `says`, that is the answer to everything. `everything` is each object.
    Each answer takes some seconds.
    """
    refused = {_path(version) for version in missing}

    def answer(path: str) -> dict[str, Any] | None:
        answers = {_path(version): _listed(version, kinds) for version, kinds in known.items()}
        answers |= {"/version": {"gitVersion": "v1.34.4"}}
        other = everything if "/namespaces/" in path else None
        return None if path in refused else answers.get(path, other)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            tokens.append(self.headers.get("Authorization", ""))
            paths.append(self.path)
            time.sleep(seconds)
            found = answer(self.path)
            body = found or {"kind": "Status", "reason": "None", "message": "no"}
            self.send_response(200 if found or says is not None else status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(body).encode() if says is None else says)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield kubeconfig(f"http://127.0.0.1:{server.server_port}")
        finally:
            server.shutdown()
            thread.join()


def kubeconfig(server: str) -> str:
    """Write a kubeconfig with one context, `here`."""
    return yaml.safe_dump({
        "current-context": "here",
        "users": [{"name": "me", "user": {"token": "hush"}}],
        "contexts": [{"name": "here", "context": {"cluster": "it", "user": "me"}}],
        "clusters": [{"name": "it", "cluster": {"server": server}}],
    })  # fmt: skip


def _path(version: str) -> str:
    return f"/apis/{version}" if "/" in version else f"/api/{version}"


def _listed(version: str, kinds: tuple[str, ...]) -> dict[str, Any]:
    resources = [{"name": f"{k.lower()}s", "kind": k, "namespaced": True} for k in kinds]
    return {"kind": "APIResourceList", "groupVersion": version, "resources": resources}
