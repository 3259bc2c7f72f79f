"""The objects of the Prometheus Operator that are written, and checked against their CRDs."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from kthena_components.core import naming
from kthena_components.core.engines.options import TITLES
from kthena_components.core.findings import count_of
from kthena_components.core.plan.manifest import CONFIG_MAPS, Manifest, Resource
from kthena_components.core.plan.serving_plan import ScrapeTargets, ServingPlan, Unit
from kthena_components.systems.prometheus.scrapes_and_panels import (
    PANELS,
    Panel,
    Query,
    Scrape,
    scrapes,
)
from kthena_components.systems.system import Kind, System, as_it_is

# Writes what `monitoring: true` adds: PodMonitors, a PrometheusRule and a Grafana dashboard.
#
# Source of the fields: Grafana 11 packages/grafana-schema, Dashboard and TimeSeries (version 39);
# of the metrics: see scrapes_and_panels.py.
#
# kube-state-metrics knows pods by their names; labels only if it is told to export them. All these
# metrics are STABLE there. Volcano has a number of tasks that wait, but by the name of a PodGroup
# without its namespace (volcano_unschedule_task_count). Source: kube-state-metrics v2
# docs/metrics/workload/pod-metrics.md; Volcano v1.14.1 pkg/scheduler/metrics/metrics.go.
#
# Source: prometheus-operator v0.79 to v0.93 pkg/apis/monitoring/v1; kiwigrid/k8s-sidecar README.md.


_SCHEMA = 39
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_COLUMNS, _WIDTH, _HEIGHT = 24, 8, 8


def write_dashboard(
    plan: ServingPlan, targets: ScrapeTargets, scrapes: Sequence[Scrape]
) -> dict[str, Any]:
    """Write the dashboard of a serving, with panels for the engines that it has."""
    own = f'namespace="{plan.namespace}",serving="{plan.name}"'
    chosen = f'{own},role=~"$role",group=~"$group"'
    panels = [_panel(panel, chosen) for panel in _of_pods(plan, targets)]
    for engine in sorted({scrape.engine for scrape in scrapes}):
        panels += [_row(TITLES[engine]), *(_panel(panel, chosen) for panel in PANELS[engine])]
    return {
        "title": f"{plan.namespace} / {plan.name}",
        "tags": ["kthena-components"],
        "schemaVersion": _SCHEMA,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {"list": [_sources(), _choice("role", own), _choice("group", own)]},
        "panels": list(_side_by_side(panels)),
    }


def _of_pods(plan: ServingPlan, targets: ScrapeTargets) -> Iterator[Panel]:
    """Yield the panels about pods and about engines that answer."""
    answering = Query("sum by (role, group) (up{$own})", "{{role}} {{group}}")
    yield Panel("Engines that answer", "short", (answering,))
    if not targets.units:
        return
    yield Panel(
        "Ready pods",
        "short",
        tuple(
            Query(f"sum by (group) ({ready_pods(plan, unit)})", "{{group}}")
            for unit in targets.units
        ),
    )
    yield Panel(
        "Pods without a node",
        "short",
        tuple(
            Query(
                f"count by (group) ({series_of(plan, unit, 'kube_pod_info', _NO_NODE)})",
                "{{group}}",
            )
            for unit in targets.units
        ),
    )


_NO_NODE = 'node="",'


def _panel(panel: Panel, chosen: str) -> dict[str, Any]:
    """Write one panel of the dashboard, with a query for each line."""
    return {
        "type": "timeseries",
        "title": panel.title,
        "datasource": _SOURCE,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {
                "refId": chr(ord("A") + index),
                "datasource": _SOURCE,
                "expr": query.expr.replace("$own", chosen),
                "legendFormat": query.legend,
            }
            for index, query in enumerate(panel.queries)
        ],
    }


def _row(title: str) -> dict[str, Any]:
    return {"type": "row", "title": title, "collapsed": False, "panels": []}


def _side_by_side(panels: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Place three panels side by side; a single row gets its own line."""
    x, y = 0, 0
    for number, panel in enumerate(panels, 1):
        is_row = panel["type"] == "row"
        if x and (is_row or x + _WIDTH > _COLUMNS):
            x, y = 0, y + _HEIGHT
        size = {"w": _COLUMNS, "h": 1} if is_row else {"w": _WIDTH, "h": _HEIGHT}
        yield {"id": number, **panel, "gridPos": {"x": x, "y": y, **size}}
        x, y = (0, y + 1) if is_row else (x + _WIDTH, y)


def _sources() -> dict[str, Any]:
    return {
        "type": "datasource",
        "name": "datasource",
        "label": "Data source",
        "query": "prometheus",
    }


def _choice(label: str, own: str) -> dict[str, Any]:
    """Write a variable with the values of a label; all of them at first."""
    return {
        "type": "query",
        "name": label,
        "label": label.capitalize(),
        "datasource": _SOURCE,
        "query": {"query": f"label_values(up{{{own}}}, {label})", "refId": label},
        "refresh": 2,
        "sort": 3,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


_WAIT = "15m"
"""How long pods may be without a node, or be missing, before that is reported."""
RESTARTS = 3
"""Restarts or replacements in an hour that are reported. An update replaces each pod once."""


def write_alerts(plan: ServingPlan, targets: ScrapeTargets) -> list[dict[str, Any]]:
    """Write the alerts of all units. Those of several units differ in the label `roles`."""
    return [
        _with_serving_labels(plan, unit, alert)
        for unit in targets.units
        for alert in (*_not_whole(plan, unit), _waiting(plan, unit), *_failing(plan, unit))
    ]


def series_of(plan: ServingPlan, unit: Unit, metric: str, more: str = "", over: str = "") -> str:
    """Write a metric of the pods of a unit, with the name of their group as a label.

    Args:
        metric: A metric of kube-state-metrics.
        more: Further matchers, each with a comma at its end.
        over: A function over the last hour.
    """
    series = f'{metric}{{{more}namespace="{plan.namespace}",pod=~"{unit.pods}"}}'
    series = f"{over}({series}[1h])" if over else series
    return f'label_replace({series}, "group", "$1", "pod", "{unit.pods}")'


def ready_pods(plan: ServingPlan, unit: Unit) -> str:
    """Write a 1 for each ready pod of a unit, and a 0 for the others.

    A pod without a node has no condition Ready yet, and then kube-state-metrics has no series of
    it. Source: kube-state-metrics v2.16.0 internal/store/pod.go.
    """
    ready = series_of(plan, unit, "kube_pod_status_ready", 'condition="true",')
    return f"{ready} or 0 * {series_of(plan, unit, 'kube_pod_info')}"


def _not_whole(plan: ServingPlan, unit: Unit) -> Iterator[dict[str, Any]]:
    """Yield the alerts about groups that lack pods, and about missing groups."""
    of = "" if unit.size is None else f" of {count_of(unit.size, 'pod')}"
    are = "is" if unit.size == 1 else "are"
    yield _alert(
        "ServingGroupNotWhole",
        f"sum by (namespace, group) ({ready_pods(plan, unit)}) < {_size(plan, unit)}",
        f"only {{{{ $value }}}}{of or ' pods'} of {{{{ $labels.group }}}} {are} ready",
        "It serves only with all of its pods. Read the events of those that are not ready.",
        # Until then it may be loading its weights.
        after=f"{plan.ready_timeout_seconds}s",
    )
    if unit.number is None:
        return
    exists = series_of(plan, unit, "kube_pod_info")
    have = "has pods" if unit.number == 1 else "have pods"
    yield _alert(
        "ServingGroupMissing",
        f"(count(count by (group) ({exists})) or vector(0)) < {unit.number}",
        f"only {{{{ $value }}}} of {count_of(unit.number, 'group')} {have}",
        "The controller does not create the others, or kube-state-metrics is not scraped.",
        after=_WAIT,
    )


def _size(plan: ServingPlan, unit: Unit) -> str:
    """Write the pods of a unit: as planned, or those that exist if an autoscaler decides."""
    if unit.size is not None:
        return str(unit.size)
    return f"count by (namespace, group) ({series_of(plan, unit, 'kube_pod_info')})"


def _waiting(plan: ServingPlan, unit: Unit) -> dict[str, Any]:
    """Write the alert for pods that no node has room for."""
    waiting = series_of(plan, unit, "kube_pod_info", 'node="",')
    return _alert(
        "ServingGangWaiting",
        f"count by (namespace, group) ({waiting})",
        "{{ $value }} pods of {{ $labels.group }} have no node",
        "The scheduler finds no room for them. `kthena-components status` shows why.",
        after=_WAIT,
    )


def _failing(plan: ServingPlan, unit: Unit) -> Iterator[dict[str, Any]]:
    """Write the alerts for restarted containers and for pods that a controller replaces."""
    restarts = series_of(plan, unit, "kube_pod_container_status_restarts_total", over="increase")
    yield _alert(
        "ServingPodRestarts",
        f"max by (namespace, group, pod) ({restarts}) >= {RESTARTS}",
        "a container of {{ $labels.pod }} has restarted "
        '{{ $value | printf "%.0f" }} times in an hour',
        "Read the end of its last log: `kubectl logs --previous`.",
    )
    created = series_of(plan, unit, "kube_pod_created", over="last_over_time")
    yield _alert(
        "ServingPodsReplaced",
        f"count by (namespace, group) ({created}) > {RESTARTS} * {_size(plan, unit)}",
        "{{ $labels.group }} has had {{ $value }} pods in an hour, "
        f"more than {RESTARTS} for each of its places",
        "Its controller replaces failed pods instead of restarting them. Read its events.",
    )


def _alert(name: str, expr: str, summary: str, description: str, after: str = "") -> dict[str, Any]:
    annotations = {"summary": summary, "description": description}
    wait = {"for": after} if after else {}
    return {"alert": name, "expr": expr, **wait, "annotations": annotations}


def _with_serving_labels(plan: ServingPlan, unit: Unit, alert: dict[str, Any]) -> dict[str, Any]:
    """Add the serving and its roles, by which a user finds the unit."""
    labels = {"severity": "warning", "serving": plan.name, "roles": " ".join(unit.roles)}
    notes = {**alert["annotations"], "summary": f"{plan.name}: {alert['annotations']['summary']}"}
    return {**alert, "labels": labels, "annotations": notes}


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


SYSTEM = System(
    name="prometheus",
    title="Prometheus Operator",
    kinds=tuple(
        Kind(group=GROUP, name=name, view=as_it_is, only_fields=True, kept=None) for name in KINDS
    ),
    extras={
        "monitoring": (
            *(
                Resource(api_version=API_VERSION, kind=kind, plural=f"{kind.lower()}s")
                for kind in KINDS
            ),
            CONFIG_MAPS,
        )
    },
)
