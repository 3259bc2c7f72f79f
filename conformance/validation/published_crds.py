"""Compares our tables of custom resources' fields with the API server, by their published CRDs.

An API server without webhooks has the CRDs of the newest release in each table. The objects are
made from the CRDs, and not from the table: crd_objects.py. The API server and the table must reject
the same fields. What our check deliberately does differently is not compared:

- It does not run CEL rules, so that the CRDs are installed without them.
- A number must fit the integer that the controller reads, of 32 or 64 bits.
- A missing spec is reported where the spec has required fields.
- A string with a format must not be a list or a map, which the API server accepts.
- Fields of a map without declared fields are left to strict decoding.
- Webhooks fill in fields, and read some as uint32 (sources.py). Here, no webhook does.
"""

import json
import random
import re
import ssl
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from http.client import HTTPException, HTTPSConnection
from pathlib import Path
from threading import local
from typing import Any

from conformance.report import Part
from conformance.validation import crd_objects
from kthena_components.core.findings import Level
from kthena_components.core.schema.crds import load
from kthena_components.core.schema.language import MISSING, UNDECLARED, Fields, check_shape
from sandbox.cluster import Sandbox, up_bare
from sandbox.layout import Layout
from toolchain.crd_tables.__main__ import path_of
from toolchain.crd_tables.published import crds_of
from toolchain.crd_tables.sources import SOURCES, Source

NUMBER, LEAST = 40, 10
"""Objects of each version of a kind. There are 22,000 in all, which take 9 minutes."""
_THREADS = 3
_SECONDS = 60
_CEL = "x-kubernetes-validations"
_KEY = re.compile(r"\[([^\]]*[^\]0-9][^\]]*)\]")
_NAMED = re.compile(r'"([^"]*)" must validate at least one schema')
_UNKNOWN = re.compile(r'unknown field "([^"]+)"')
_WIDE = "but must be from "
_SHOWN = 5
Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a kind: its schema in the CRD, and ours."""

    head: Body
    path: str
    published: Mapping[str, Any]
    ours: Fields


def compare_tables(part: Part, folder: Path, seed: int, number: int) -> None:
    """Send objects of all kinds, and compare which fields are rejected."""
    found = {source.system: _crds(source) for source in SOURCES}
    missing = [system for system, crds in found.items() if not crds]
    if missing:
        part.say(f"no CRDs here of {', '.join(missing)}: `make crd-tables` keeps them")
    began, sandbox = time.monotonic(), up_bare(folder, part.say)
    try:
        sandbox.define(crd for crds in found.values() for crd in crds)
        versions = [v for source in SOURCES for v in _versions(source, found[source.system])]
        part.say(f"{len(versions)} versions of kinds in {time.monotonic() - began:.0f} s")
        _compare(part, sandbox, versions, seed, number)
    finally:
        sandbox.processes.stop_all()


def _compare(
    part: Part, sandbox: Sandbox, versions: Iterable[Version], seed: int, number: int
) -> None:
    draw, began = random.Random(f"tables {seed}"), time.monotonic()  # noqa: S311 - a test
    server, differ, counts = Server(sandbox.layout), list[str](), Counter[str]()
    for version in versions:
        drawn = _drawn(draw, version, number)
        counts["objects with fields of published CRDs"] += len(drawn) + 1
        with ThreadPoolExecutor(_THREADS) as pool:
            for paths, told in pool.map(partial(_judged, server, version), drawn):
                counts["fields that the API server rejected"] += paths
                differ += told
        differ += _undeclared(server, version)
    for what, times in counts.items():
        part.count(what, times)
    part.say(f"{counts.total():,} objects and fields in {time.monotonic() - began:.0f} s")
    seen = f"{len(differ)}:\n" + "\n".join(differ[:_SHOWN])
    part.check("fields of CRDs are checked as by the API server", holds=not differ, seen=seen)


def _drawn(draw: random.Random, version: Version, number: int) -> list[Body]:
    known = crd_objects.plans(version.published)
    drawn = draw.sample(known, min(number, len(known)))
    return [crd_objects.made(version.head, version.published, plan) for plan in drawn]


def _crds(source: Source) -> list[Body]:
    """Return the CRDs of the newest release in a table, without what is not compared."""
    release = json.loads(path_of(source.system).read_text())["releases"][-1]
    return [_plain(crd) for crd in crds_of(source, release)]


def _plain(crd: Body) -> Body:
    spec = {key: _without_cel(value) for key, value in crd["spec"].items() if key != "conversion"}
    return {**{key: value for key, value in crd.items() if key != "status"}, "spec": spec}


def _without_cel(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_cel(each) for key, each in value.items() if key != _CEL}
    return [_without_cel(each) for each in value] if isinstance(value, list) else value


def _versions(source: Source, crds: Iterable[Body]) -> Iterator[Version]:
    loaded = load(f"kthena_components.systems.{source.system}")
    if loaded is None:
        raise FileNotFoundError(f"the table of {source.title}")
    table = replace(loaded, filled={}, unsigned=(), _roots={}, _shapes={})
    for crd in crds:
        spec = crd["spec"]
        kind, inside = spec["names"]["kind"], spec["scope"] == "Namespaced"
        for version in spec["versions"]:
            served = f"{spec['group']}/{version['name']}"
            number = table.number(kind, served, table.place(None))
            if not version["served"] or number is None:
                continue
            space = "/namespaces/default" if inside else ""
            path = f"/apis/{served}{space}/{spec['names']['plural']}"
            head = {"apiVersion": served, "kind": kind, "metadata": {"name": "a"}}
            ours, _ = table.root(number, kind)
            yield Version(head, path, version["schema"]["openAPIV3Schema"], ours)


def _judged(server: "Server", version: Version, body: Body) -> tuple[int, list[str]]:
    """Return how many fields the API server rejects, and on which ones we disagree."""
    theirs, ours = server.rejected(version.path, body), _ours(version, body)
    told = [
        *(f"{path}\n  API: {said}" for path, said in theirs.items()
          if not _shared(path, said, ours)),
        *(f"{path}\n  check: {seen}" for path, seen in ours.items()
          if path not in theirs and not _deliberate(path, seen, theirs)),
    ]  # fmt: skip
    return len(theirs), [f"{version.head['kind']} {version.head['apiVersion']}: {t}" for t in told]


def _ours(version: Version, body: Body) -> dict[str, str]:
    found = check_shape(body, version.ours)
    return {
        _place(finding.path): finding.seen
        for finding in found
        if finding.level is Level.MANDATORY and finding.seen != UNDECLARED
    }


def _shared(path: str, said: str, ours: Mapping[str, str]) -> bool:
    """Return whether we report a field, too. The API server reads `spec.replicas` a second time."""
    return path in ours or ("accessor error" in said and "spec" in ours)


def _deliberate(path: str, seen: str, theirs: Mapping[str, str]) -> bool:
    """Return whether we report something on purpose that the API server does not."""
    beside = re.sub(r"\[\d+\]$", "", path)
    again = any(re.sub(r"\[\d+\]$", "", p) == beside and "Duplicate" in theirs[p] for p in theirs)
    of_format = seen in {"is a list, but must be a string", "is a map, but must be a string"}
    return (
        _WIDE in seen or (path == "spec" and seen == MISSING) or of_format
        or ("duplicates" in seen and again)
    )  # fmt: skip


def _undeclared(server: "Server", version: Version) -> list[str]:
    """Compare which fields are not declared, with one object that has one in each map."""
    body = crd_objects.whole(version.head, version.published)
    said = server.decoded(version.path, body)
    theirs = {_place(path) for path in _UNKNOWN.findall(said)}
    ours = {_place(f.path) for f in check_shape(body, version.ours) if f.seen == UNDECLARED}
    kind = version.head["kind"]
    return [f"{kind}: undeclared only for one: {path}" for path in sorted(theirs ^ ours)]


def _place(path: str) -> str:
    """Write a path like ours: the API server has keys of maps in brackets."""
    return _KEY.sub(r".\1", path.removeprefix("."))


class Server:
    """The API server, with a connection for each thread."""

    def __init__(self, layout: Layout) -> None:
        """Take the certificates of the administrator."""
        self._address, self._mine = layout.address("api"), local()
        self._context = ssl.create_default_context(cafile=str(layout.authority))
        self._context.load_cert_chain(layout.pki("admin.crt"), layout.pki("admin.key"))

    def rejected(self, path: str, body: Body) -> dict[str, str]:
        """Return the paths of the fields that are rejected, with what the API server says."""
        answer, found = self._ask(path, body, "Ignore"), dict[str, str]()
        for cause in (answer.get("details") or {}).get("causes", ()):
            said, field = cause["message"], cause.get("field", "")
            if field == "<nil>":
                named = _NAMED.search(said)
                if named is None:  # that CEL rules were not checked
                    continue
                field = named[1]
            place = _place(field)
            if "accessor error" not in found.get(place, "accessor error"):
                continue
            found[place] = said
        if answer.get("code") == HTTPStatus.BAD_REQUEST:
            raise ValueError(f"{path}: {answer['message']}")
        return found

    def decoded(self, path: str, body: Body) -> str:
        """Return what strict decoding says."""
        return str(self._ask(path, body, "Strict").get("message"))

    def _ask(self, path: str, body: Body, validation: str) -> Body:
        query = f"?dryRun=All&fieldValidation={validation}"
        try:
            answer = self._sent(path + query, body)
        except (OSError, HTTPException):  # closed, because it was idle
            del self._mine.connection
            answer = self._sent(path + query, body)
        return answer if answer.get("kind") == "Status" else {}

    def _sent(self, path: str, body: Body) -> Body:
        if not hasattr(self._mine, "connection"):
            self._mine.connection = HTTPSConnection(
                self._address, timeout=_SECONDS, context=self._context
            )
        connection = self._mine.connection
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        found: Body = json.loads(connection.getresponse().read())
        return found
