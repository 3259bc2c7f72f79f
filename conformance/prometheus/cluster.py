"""Starts the Prometheus Operator, kube-state-metrics and Prometheus in a sandbox.

The operator writes the configuration of a Prometheus into a Secret and its rules into ConfigMaps.
Its StatefulSet would run Prometheus in a pod; here it runs as a process, with the same files.
Source: prometheus-operator v0.93.0 cmd/operator/main.go and pkg/prometheus/server.
"""

import base64
import gzip
import json
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from conformance.__main__ import Context
from conformance.kthena.emission import namespace
from conformance.support.waiting import wait
from kthena_components.cluster.client import ClusterError
from kthena_components.reading.loader import Loader
from sandbox.cluster import Sandbox, Size, listens
from toolchain.locate import ensure_sandbox
from toolchain.programs import cache_root

NAME = "monitoring"
_OPERATOR, _STATE_METRICS, _PROMETHEUS = "prometheus-operator", "kube-state-metrics", "prometheus"
_PORTS = {
    "prometheus-operator": 9180,
    "kube-state-metrics": 9181,
    "telemetry": 9182,
    "prometheus": 9190,
}
"""They run in a network of their own, so nothing else has these ports."""
_MOUNTED = "/etc/prometheus/rules/"
"""Where the pod of a Prometheus has its rules."""
_OBJECT = {"apiVersion": "monitoring.coreos.com/v1", "kind": "Prometheus",
           "metadata": {"name": "judge", "namespace": NAME}}  # fmt: skip
_ENVIRON = {"$(SHARD)": "0", "$(POD_NAME)": "judge-0"}
"""What the operator's sidecar replaces in the configuration."""
Body = dict[str, Any]


@dataclass(slots=True)
class Monitored:
    """A sandbox whose pods Prometheus watches as its operator says."""

    sandbox: Sandbox
    _written: dict[str, str] = field(default_factory=dict)

    @property
    def _folder(self) -> Path:
        return self.sandbox.layout.folder / _PROMETHEUS

    def follow(self) -> bool:
        """Give Prometheus what the operator has written. Return whether that was new."""
        found = self._rules()
        config = self._config()
        if config is None:
            return False
        found["prometheus.yaml"] = config
        if found == self._written:
            return False
        for name, text in found.items():
            (self._folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self._folder / name).write_text(text)
        for name in self._written.keys() - found.keys():
            (self._folder / name).unlink()
        self._written = found
        if _PROMETHEUS in self.sandbox.processes.running():
            self._ask("POST", "/-/reload")
        return True

    def knows(
        self, monitors: Sequence[Mapping[str, Any]], rules: Sequence[Mapping[str, Any]]
    ) -> bool:
        """Wait until the operator has written these PodMonitors and PrometheusRules."""

        def all_there() -> bool:
            self.follow()
            config = self._written.get("prometheus.yaml", "")
            files = " ".join(self._written)
            return all(
                f"job_name: podMonitor/{key(body)}/0" in config for body in monitors
            ) and all(key(body).replace("/", "-") in files for body in rules)

        return wait(all_there)

    def targets(self) -> list[Body]:
        """Return the pods that Prometheus scrapes, or tries to."""
        found: list[Body] = self._get("targets", state="active")["activeTargets"]
        return [each for each in found if each["scrapePool"].startswith("podMonitor/")]

    def dropped(self, monitor: Mapping[str, Any]) -> int:
        """Return how many pods and ports a PodMonitor leaves out."""
        counts = self._get("targets", state="dropped")["droppedTargetCounts"]
        return int(counts.get(f"podMonitor/{key(monitor)}/0", 0))

    def rules(self) -> list[Body]:
        """Return the alerts that Prometheus evaluates, each with its state."""
        return [rule for group in self._get("rules")["groups"] for rule in group["rules"]]

    def alerts(self, space: str) -> dict[str, Body]:
        """Return the pending and firing alerts of a namespace by name; the first of each name."""
        found: dict[str, Body] = {}
        for rule in self.rules():
            for alert in rule.get("alerts", []):
                if f'namespace="{space}"' in rule["query"]:
                    found.setdefault(rule["name"], alert)
        return found

    def query(self, text: str) -> list[Body]:
        """Evaluate a query now, and return the series."""
        found: list[Body] = self._get("query", query=text)["result"]
        return found

    def _get(self, what: str, **parameters: str) -> Any:
        words = f"?{urllib.parse.urlencode(parameters)}" if parameters else ""
        return json.loads(self._ask("GET", f"/api/v1/{what}{words}"))["data"]

    def _ask(self, method: str, path: str) -> str:
        address = f"http://127.0.0.1:{_PORTS[_PROMETHEUS]}{path}"
        try:
            with urllib.request.urlopen(urllib.request.Request(address, method=method)) as answer:
                return str(answer.read().decode())
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"Prometheus: {error.code} {error.read().decode()}") from error

    def _config(self) -> str | None:
        named = {"apiVersion": "v1", "kind": "Secret",
                 "metadata": {"name": "prometheus-judge", "namespace": NAME}}  # fmt: skip
        try:
            data = self.sandbox.api.get(named).get("data") or {}
        except ClusterError:
            return None
        if "prometheus.yaml.gz" not in data:
            return None
        text = gzip.decompress(base64.b64decode(data["prometheus.yaml.gz"])).decode()
        for placed, value in (*_ENVIRON.items(), (_MOUNTED, f"{self._folder}/")):
            text = text.replace(placed, value)
        return text

    def _rules(self) -> dict[str, str]:
        return {
            f"{body['metadata']['name']}/{name}": text
            for body in self.sandbox.api.list("v1", "ConfigMap", NAME)
            if body["metadata"]["name"].startswith("prometheus-judge-rulefiles")
            for name, text in (body.get("data") or {}).items()
        }


def key(body: Mapping[str, Any]) -> str:
    """Return the namespace and the name of an object."""
    return f"{body['metadata']['namespace']}/{body['metadata']['name']}"


def start(context: Context, size: Size) -> Monitored:
    """Start everything. The caller must stop it."""
    programs = ensure_sandbox(os.environ, context.part.say, NAME)
    sandbox = context.sandbox(size)
    try:
        files = sorted(programs[_OPERATOR].data(cache_root()).glob("*.yaml"))
        # Not PyYAML itself: the CRDs have a plain `=`, which YAML 1.1 takes for a tag.
        sandbox.define(Loader(file.read_text()).get_single_data() for file in files)
        namespace(sandbox.api, NAME)
        for body in _installation(sandbox):
            sandbox.api.create(body)
        monitored = Monitored(sandbox)
        for name, arguments in (
            (_OPERATOR, _operator(sandbox)),
            (_STATE_METRICS, _state_metrics(sandbox)),
        ):
            sandbox.processes.start(name, programs[name].binary(cache_root()), arguments)
            sandbox.processes.wait(name, partial(listens, _PORTS[name]))
        sandbox.processes.wait("the configuration of Prometheus", monitored.follow)
        binary = programs[_PROMETHEUS].binary(cache_root())
        sandbox.processes.start(_PROMETHEUS, binary, _prometheus(sandbox))
        sandbox.processes.wait(_PROMETHEUS, partial(listens, _PORTS[_PROMETHEUS]))
    except BaseException:
        sandbox.processes.stop_all()
        raise
    return monitored


def _operator(sandbox: Sandbox) -> list[str]:
    layout = sandbox.layout
    return [
        f"--apiserver={layout.server}",
        f"--ca-file={layout.authority}",
        f"--cert-file={layout.pki('admin.crt')}",
        f"--key-file={layout.pki('admin.key')}",
        f"--web.listen-address=127.0.0.1:{_PORTS[_OPERATOR]}",
    ]


def _state_metrics(sandbox: Sandbox) -> list[str]:
    return [
        f"--kubeconfig={sandbox.layout.programs}",
        "--resources=pods",
        "--host=127.0.0.1",
        f"--port={_PORTS[_STATE_METRICS]}",
        "--telemetry-host=127.0.0.1",
        f"--telemetry-port={_PORTS['telemetry']}",
    ]


def _prometheus(sandbox: Sandbox) -> list[str]:
    folder = sandbox.layout.folder / _PROMETHEUS
    return [
        f"--config.file={folder / 'prometheus.yaml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{_PORTS[_PROMETHEUS]}",
        "--web.enable-lifecycle",
    ]


def _installation(sandbox: Sandbox) -> list[Body]:
    """Return a Prometheus that takes all objects, and scrapes kube-state-metrics as usual."""
    layout = sandbox.layout
    certificates = {"caFile": str(layout.authority), "certFile": str(layout.pki("admin.crt")),
                    "keyFile": str(layout.pki("admin.key"))}  # fmt: skip
    scrape = {
        "job_name": _STATE_METRICS,
        "honor_labels": True,
        "static_configs": [{"targets": [f"127.0.0.1:{_PORTS[_STATE_METRICS]}"]}],
    }
    spec = {
        "podMonitorSelector": {},
        "podMonitorNamespaceSelector": {},
        "ruleSelector": {},
        "ruleNamespaceSelector": {},
        "scrapeInterval": "1s",
        "scrapeTimeout": "1s",
        "evaluationInterval": "1s",
        "apiserverConfig": {"host": layout.server, "tlsConfig": certificates},
        "additionalScrapeConfigs": {"name": "more", "key": "more.yaml"},
    }
    more = {"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "more", "namespace": NAME},
            "stringData": {"more.yaml": yaml.safe_dump([scrape])}}  # fmt: skip
    return [more, {**_OBJECT, "spec": spec}]
