"""Writes a Grafana dashboard of a serving: its engines' metrics by group and role, and its pods.

Source of the fields: Grafana 11 packages/grafana-schema, Dashboard and TimeSeries (version 39);
of the metrics: see panels.py.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from kthena_components.core.engines.options import TITLES
from kthena_components.core.plan.scrape_targets import ScrapeTargets
from kthena_components.core.plan.serving_plan import ServingPlan
from kthena_components.systems.prometheus.alerts import ready_pods, series_of
from kthena_components.systems.prometheus.panels import PANELS, Panel, Query
from kthena_components.systems.prometheus.scrapes import Scrape

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
        "panels": list(_placed(panels)),
    }


def _of_pods(plan: ServingPlan, targets: ScrapeTargets) -> Iterator[Panel]:
    answering = Query("sum by (role, group) (up{$own})", "{{role}} {{group}}")
    yield Panel("Engines that answer", "short", (answering,))
    if not targets.units:
        return
    yield Panel(
        "Ready pods",
        "short",
        tuple(
            Query(
                f"sum by (group) ({ready_pods(plan, unit)})",
                "{{group}}",
            )
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


def _placed(panels: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
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
