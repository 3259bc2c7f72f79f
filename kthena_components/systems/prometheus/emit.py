"""Writes what `monitoring: true` adds: PodMonitors, a PrometheusRule and a Grafana dashboard.

Source: prometheus-operator v0.79 to v0.93 pkg/apis/monitoring/v1; kiwigrid/k8s-sidecar README.md.
"""

import json
from collections.abc import Iterator
from typing import Any

from kthena_components.core import naming
from kthena_components.core.plan.manifest import Manifest
from kthena_components.core.plan.serving_plan import ScrapeTargets, ServingPlan, Unit
from kthena_components.systems.prometheus.alerts_and_dashboard import write_alerts, write_dashboard
from kthena_components.systems.prometheus.scrapes_and_panels import Scrape, scrapes

GROUP = "monitoring.coreos.com"
API_VERSION = f"{GROUP}/v1"
KINDS = ("PodMonitor", "PrometheusRule")
INSTALL = "Install the Prometheus Operator 0.79 or later with its CRDs, or remove monitoring"
DASHBOARD = "grafana_dashboard"
"""The label by which the sidecar of Grafana's Helm chart finds dashboards. Its default value is 1,
or any."""
_FOLDER = "k8s-sidecar-target-directory"


def emit_monitoring(plan: ServingPlan, targets: ScrapeTargets) -> tuple[Manifest, ...]:
    """Write the objects that monitor a serving."""
    found = scrapes(plan)
    monitors = (_pod_monitor(plan, targets, scrape) for scrape in found)
    return (*monitors, *_rules(plan, targets), _dashboard(plan, targets, found))


def _pod_monitor(plan: ServingPlan, targets: ScrapeTargets, scrape: Scrape) -> Manifest:
    """Write the PodMonitor of a role: its pods serve at one port, and get its name as a label."""
    name = scrape.role.name
    unit = next((unit for unit in targets.units if name in unit.roles), None)
    endpoint = {
        "portNumber": scrape.port,
        "path": "/metrics",
        "relabelings": list(_relabelings(plan, name, unit)),
    }
    spec = {
        "selector": {"matchLabels": dict(targets.entries[name])},
        "podMetricsEndpoints": [endpoint],
    }
    body = _object(plan, "PodMonitor", f"{plan.name}-{name}", spec)
    return Manifest(body=body, role=name)


def _relabelings(plan: ServingPlan, role: str, unit: Unit | None) -> Iterator[dict[str, Any]]:
    yield {"targetLabel": "serving", "replacement": plan.name}
    yield {"targetLabel": "role", "replacement": role}
    if unit is not None:
        # As the alerts, which know no labels of pods.
        pods = {"sourceLabels": ["__meta_kubernetes_pod_name"], "regex": unit.pods}
        yield {**pods, "targetLabel": "group", "replacement": "$1"}


def _rules(plan: ServingPlan, targets: ScrapeTargets) -> Iterator[Manifest]:
    if targets.units:
        groups = [{"name": plan.name, "rules": write_alerts(plan, targets)}]
        yield Manifest(body=_object(plan, "PrometheusRule", plan.name, {"groups": groups}))


def _dashboard(plan: ServingPlan, targets: ScrapeTargets, found: tuple[Scrape, ...]) -> Manifest:
    """Write the ConfigMap with the dashboard.

    Without a folder of their own, the sidecar would write the dashboards of two servings of one
    name to the same file. The text may contain late tokens, so it is not escaped.
    """
    text = json.dumps(write_dashboard(plan, targets, found), indent=1, ensure_ascii=False)
    metadata = {
        "name": f"{plan.name}-dashboard",
        "namespace": plan.namespace,
        "labels": {naming.NAME: plan.name, DASHBOARD: "1"},
        "annotations": {_FOLDER: plan.namespace},
    }
    data = {f"{plan.name}.json": text}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    return Manifest(body=body)


def _object(plan: ServingPlan, kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    labels = {naming.NAME: plan.name}
    metadata = {"name": name, "namespace": plan.namespace, "labels": labels}
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}
