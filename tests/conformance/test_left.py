"""All kinds of a namespace are listed, and are asked for once."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, cast

from conformance.support.observe import left
from kthena_components.cluster.client import Cluster


class Server:
    """An API server with one object of each kind."""

    def __init__(self) -> None:
        self.kinds = {"v1": ["Pod", "Event"], "apps/v1": ["Deployment"]}
        self.asked: Counter[str] = Counter()

    def ask(self, _method: str, path: str) -> dict[str, Any]:
        self.asked[path] += 1
        if path == "/apis":
            named = [{"preferredVersion": {"groupVersion": v}} for v in self.kinds if "/" in v]
            return {"groups": named}
        kinds = self.kinds[path.removeprefix("/apis/").removeprefix("/api/")]
        found = [{"kind": kind, "namespaced": True, "verbs": ["list"]} for kind in kinds]
        return {"resources": [*found, {"kind": "Node", "namespaced": False, "verbs": ["list"]}]}

    def list(self, _version: str, kind: str, _namespace: str = "") -> Iterator[dict[str, Any]]:
        yield {"metadata": {"name": kind.lower()}}


SHARED = {"HyperNode hypernode", "Queue queue"}


def test_kinds_are_asked_for_once() -> None:
    server = Server()
    api = cast("Cluster", server)
    for _ in range(3):
        assert left(api, "chat") == {"Pod pod", "Deployment deployment"} | SHARED
    assert server.asked == {"/apis": 3, "/api/v1": 1, "/apis/apps/v1": 1}


def test_a_new_group_is_seen() -> None:
    server = Server()
    api = cast("Cluster", server)
    before = left(api, "chat")
    server.kinds["batch/v1"] = ["Job"]
    assert left(api, "chat") - before == {"Job job"}
