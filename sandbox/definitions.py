"""Keeps CRDs as the API server has stored them, so that later clusters start with them.

To accept CRDs takes the API server as long as the rest of its start. It accepts them once for each
version of the programs. Later clusters get the stored objects into etcd before their API server
starts, which then reads them as after a restart. No other object is kept: each cluster has its own
namespaces, accounts and roles.
"""

import hashlib
import json
import os
import ssl
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any, Self

from sandbox.layout import Layout
from sandbox.processes import SandboxError
from toolchain.programs import Program

STORE = ("etcd", "kube-apiserver")
"""The programs that decide how a CRD is stored."""
SOURCES = ("vc-controller-manager", "kthena-controller-manager", "lws")
"""The programs whose data files have the CRDs."""
_PREFIX = b"/registry/apiextensions.k8s.io/customresourcedefinitions/"
_SECONDS = 60
_DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
"""The list of all kinds, which controllers read. Source: Kubernetes 1.34, aggregated discovery."""
Place = tuple[str, str, str]
"""API group, version, resource."""


@dataclass(frozen=True, slots=True)
class Kept:
    """The stored CRDs."""

    stored: dict[str, str]
    """etcd's keys and values, both in base64."""
    places: tuple[Place, ...]
    """What the API server serves with them."""

    @classmethod
    def read(cls, file: Path) -> Self | None:
        """Read a file that `write` has written; None if there is none."""
        if not file.exists():
            return None
        found = json.loads(file.read_text())
        return cls(found["stored"], tuple((g, v, r) for g, v, r in found["places"]))

    @classmethod
    def of(cls, layout: Layout, definitions: Iterable[Mapping[str, Any]]) -> Self:
        """Read from etcd how the API server has stored CRDs that are established."""
        places = tuple(places_of(definitions))
        bounds = {"key": _encoded(_PREFIX), "range_end": _encoded(_PREFIX[:-1] + b"0")}
        found = _ask(layout, "range", bounds).get("kvs", [])
        return cls({each["key"]: each["value"] for each in found}, places)

    def write(self, file: Path) -> None:
        """Write the file. Clusters that start at the same time may write the same one."""
        partial = file.with_name(f"{file.name}.partial-{os.getpid()}")
        partial.write_text(json.dumps(asdict(self)))
        partial.replace(file)

    def restore(self, layout: Layout) -> None:
        """Put the CRDs into etcd, before the API server starts."""
        for key, value in self.stored.items():
            _ask(layout, "put", {"key": key, "value": value})


def file_of(programs: Mapping[str, Program], cache: Path) -> Path:
    """Return the file for these versions of the programs."""
    keys = [programs[name].key() for name in (*STORE, *SOURCES)]
    digest = hashlib.sha256("\0".join(keys).encode()).hexdigest()[:12]
    return cache / f"definitions-{digest}.json"


def places_of(definitions: Iterable[Mapping[str, Any]]) -> Iterator[Place]:
    """Return what the API server serves with these CRDs."""
    for body in definitions:
        spec = body["spec"]
        for version in spec["versions"]:
            if version["served"]:
                yield spec["group"], version["name"], spec["names"]["plural"]


def served(layout: Layout) -> set[Place]:
    """Return what the API server lists. Empty while it does not answer."""
    context = ssl.create_default_context(cafile=str(layout.authority))
    context.load_cert_chain(layout.pki("admin.crt"), layout.pki("admin.key"))
    connection = HTTPSConnection(layout.address("api"), timeout=_SECONDS, context=context)
    try:
        status, content = _exchange(connection, "GET", "/apis", accept=_DISCOVERY)
    except (OSError, HTTPException):
        return set()
    groups = json.loads(content)["items"] if status == HTTPStatus.OK else []
    return {
        (group["metadata"]["name"], version["version"], resource["resource"])
        for group in groups
        for version in group["versions"]
        for resource in version.get("resources", [])
    }


def _ask(layout: Layout, call: str, body: Mapping[str, str]) -> Any:
    """Send one request to etcd's JSON API.

    Source: etcd 3.6, its documentation of the gRPC gateway. Keys and values are in base64.
    """
    connection = HTTPConnection(layout.address("etcd"), timeout=_SECONDS)
    status, content = _exchange(connection, "POST", f"/v3/kv/{call}", json.dumps(body))
    if status != HTTPStatus.OK:
        raise SandboxError(f"etcd answered {call} with {status}: {content.decode()[:300]}")
    return json.loads(content)


def _exchange(
    connection: HTTPConnection, method: str, path: str, body: str = "", accept: str = ""
) -> tuple[int, bytes]:
    try:
        connection.request(method, path, body, {"Accept": accept} if accept else {})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def _encoded(text: bytes) -> str:
    return b64encode(text).decode()
