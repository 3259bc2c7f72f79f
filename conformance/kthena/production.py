"""Runs the example kthena-production with Kthena's webhook, controller and autoscaler.

The autoscaler reads its metric from a Prometheus that this part plays, and changes the numbers in
the ModelServing while Pulumi updates it.
"""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from conformance.__main__ import Context
from conformance.kthena.emission import namespace
from conformance.support import observe
from conformance.support.cluster import ROUTING, SERVING
from conformance.support.waiting import wait
from kthena_components.cluster.client import Cluster, ClusterError
from sandbox.cluster import Sandbox, Size
from tests.support.engine import ROOT, Run, Stack

ROOM = Size(racks=4, nodes=8, gpus=8)
_SETTLES = 240
"""Seconds for the autoscaler, which looks every 15 seconds and grows step by step."""
_MUCH, _ENOUGH = 1000, 5
"""Values of the metric: the first one asks for as many replicas as possible."""
_IMAGES = ("vllm/vllm-openai:v0.33.0", "vllm/vllm-openai:v0.32.0", "vllm/vllm-openai:v0.31.0")
_SOURCE = '{"pod": {"name": "vllm:num_requests_waiting"}}'
_CLAIM = '"persistentVolumeClaim": claim'
_PLACE = "chat = ModelServing"
_GROUPS = {"min_replicas": 1, "max_replicas": 3}
_MADE = ((SERVING, "ModelServing"), (SERVING, "AutoscalingPolicy"), (ROUTING, "ModelServer"),
         (ROUTING, "ModelRoute"))  # fmt: skip


def run(context: Context) -> None:
    """Scale roles, then whole groups."""
    sandbox = context.sandbox(ROOM)
    try:
        _refuses(context, sandbox.api)
        with _prometheus() as address:
            roles = _Case(context, sandbox, "roles", address, most=(4, 8))
            groups = _Case(context, sandbox, "groups", address, most=(3,))
            for case in (roles, groups):
                case.run()
        sandbox.processes.check()
    finally:
        sandbox.processes.stop_all()


def _refuses(context: Context, api: Cluster) -> None:
    """Begin with objects that the webhooks must reject: else they are not asked."""
    target = {"kind": "ModelServing", "name": "chat"}
    bounds = {"minReplicas": 3, "maxReplicas": 2}
    roles = {"targetRef": target, "roles": {"decode": bounds}}
    policy = {"metrics": [{"name": "a", "targetValue": "1"}], "disaggregatedTarget": roles}
    route = {"modelName": "", "rules": []}
    for kind, spec in (("AutoscalingPolicy", policy), ("ModelRoute", route)):
        body = {"apiVersion": SERVING if kind == "AutoscalingPolicy" else ROUTING, "kind": kind,
                "metadata": {"name": "wrong", "namespace": "serving"}, "spec": spec}  # fmt: skip
        try:
            api.create(body)
            said = ""
        except ClusterError as error:
            said = str(error)
        context.part.check(f"a wrong {kind} is rejected", holds=bool(said), seen=said)


class _Answer(BaseHTTPRequestHandler):
    """Answers each query with the value that is asked for."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.do_GET()

    def do_GET(self) -> None:
        sample = {"metric": {}, "value": [time.time(), str(_MUCH)]}
        data = {"resultType": "vector", "result": [sample]}
        body = json.dumps({"status": "success", "data": data}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep the output readable."""


@contextmanager
def _prometheus() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answer)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass(slots=True)
class _Case:
    """One stack of the example, and what the autoscaler makes of it."""

    context: Context
    sandbox: Sandbox
    scaled: str
    """What is scaled: roles or groups."""
    prometheus: str
    most: tuple[int, ...]
    """The largest numbers of replicas."""
    _image: int = field(default=0)

    @property
    def space(self) -> str:
        return f"production-{self.scaled}"

    def run(self) -> None:
        api = self.sandbox.api
        namespace(api, self.space)
        folder = self.context.folder / self.space
        folder.mkdir()
        kubeconfig = {"KUBECONFIG": str(self.sandbox.layout.kubeconfig)}
        stack = Stack.make(ROOT / "examples" / "kthena-production", "dev", folder, kubeconfig)
        self._prepare(stack)
        self._ends_well(stack.up(), "up")
        for version, kind in _MADE:
            found = [body["metadata"]["name"] for body in api.list(version, kind, self.space)]
            self._check(f"there is a {kind}", bool(found), found)
        self._check("the autoscaler grows it", wait(self._is_full, _SETTLES), self._numbers())
        self._check("its pods run", wait(self._runs, _SETTLES), self._phases())
        same = stack.preview("--expect-no-changes")
        self._check("Pulumi has nothing to do", same.code == 0, same.text)
        self._updates(stack, "--refresh")
        if self.scaled == "groups":
            self._updates(stack)
        else:
            self._renew(stack)
            self._ends_well(stack.up(), "up without --refresh")
            full = wait(self._is_full, _SETTLES)
            self._check("the autoscaler grows the roles again", full, self._numbers())
        self._ends_well(stack.destroy(), "destroy")
        gone = wait(lambda: not observe.pods(api, self.space), _SETTLES)
        self._check("no pod is left", gone, self._phases())

    def _prepare(self, stack: Stack) -> None:
        """Put the program in a namespace, with a metric that can be asked for."""
        program = stack.project / "__main__.py"
        text = program.read_text()
        source = {"prometheus": {"server_url": self.prometheus, "query": "waiting"}}
        scaling = {**_GROUPS, "metrics": [{"name": "waiting", "target_value": str(_ENOUGH)}],
                   "metric_sources": {"waiting": source}}  # fmt: skip
        other = "" if self.scaled == "roles" else f'options["autoscaling"] = {scaling!r}\n'
        for old, new in (
            (_SOURCE, repr(source)),
            (_CLAIM, '"emptyDir": {}'),
            ('{"backend": "kthena", ', f'{{"backend": "kthena", "namespace": "{self.space}", '),
            (_PLACE, f"{other}{_PLACE}"),
        ):
            if text.count(old) != 1:
                raise ValueError(f"{old} is not in the example once")
            text = text.replace(old, new)
        program.write_text(text)

    def _renew(self, stack: Stack) -> None:
        """Give the engines another image."""
        program = stack.project / "__main__.py"
        old, new = _IMAGES[self._image : self._image + 2]
        self._image += 1
        program.write_text(program.read_text().replace(old, new))

    def _updates(self, stack: Stack, *flags: str) -> None:
        """Update while the autoscaler watches, and check that the numbers stay."""
        self._renew(stack)
        seen: set[tuple[int, ...]] = set()
        done = threading.Event()

        def watch() -> None:
            while not done.wait(0.2):
                seen.add(self._numbers())

        watching = threading.Thread(target=watch, daemon=True)
        watching.start()
        try:
            self._ends_well(stack.up(*flags), " ".join(("up", *flags)))
        finally:
            done.set()
            watching.join()
        what = f"an update {' '.join(flags)} keeps the autoscaler's numbers"
        self._check(what.replace("  ", " "), seen == {self.most}, seen)
        self._check("its pods run afterwards", wait(self._runs, _SETTLES), self._phases())

    def _numbers(self) -> tuple[int, ...]:
        (body,) = self.sandbox.api.list(SERVING, "ModelServing", self.space)
        spec: Any = body["spec"]
        if self.scaled == "groups":
            return (spec["replicas"],)
        return tuple(role["replicas"] for role in spec["template"]["roles"])

    def _is_full(self) -> bool:
        return self._numbers() == self.most

    def _phases(self) -> list[str]:
        pods = observe.pods(self.sandbox.api, self.space)
        return [(pod.get("status") or {}).get("phase", "") for pod in pods]

    def _runs(self) -> bool:
        # Each group has one engine of prefill and two of decode, if the roles are not scaled.
        wanted = sum(self.most) if self.scaled == "roles" else 3 * self.most[0]
        return self._phases() == ["Running"] * wanted

    def _ends_well(self, run: Run, what: str) -> None:
        self.context.part.count("Pulumi commands")
        self._check(f"{what} ends well", run.code == 0, run.text)

    def _check(self, what: str, holds: bool, seen: object) -> bool:
        return self.context.part.check(f"{self.scaled}: {what}", holds=holds, seen=seen)
