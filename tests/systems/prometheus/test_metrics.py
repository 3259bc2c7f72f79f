"""Every metric that a dashboard or an alert asks for is published: by each release, with its kind.

toolchain.engine_metrics reads engine_metrics.json from the engines' sources. state_metrics.json has
rows of the documentation of kube-state-metrics at one commit.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from kthena_components.systems.prometheus.scrapes_and_panels import PANELS
from tests.support.for_each import for_each
from tests.systems.prometheus.monitored import MONITORED, alerts, compiled, expressions
from toolchain.engine_metrics import metrics_in, releases_of

FOLDER = Path(__file__).parent
ENGINES: dict[str, Any] = json.loads((FOLDER / "engine_metrics.json").read_text())
STATE: dict[str, Any] = json.loads((FOLDER / "state_metrics.json").read_text())["metrics"]
OF_ENGINE = re.compile(r"(?:vllm|sglang):[a-z0-9_]+")
OF_PODS = re.compile(r"(kube_[a-z_]+)\{(.*?)\}")
QUERIES = [
    (engine, panel.title, query.expr)
    for engine, panels in PANELS.items()
    for panel in panels
    for query in panel.queries
]


def kind_of(name: str, query: str) -> str:
    """Say what a query takes a metric for."""
    if f"{name}_bucket" in query or name.endswith("_bucket"):
        return "histogram"
    return "counter" if f"rate({name}{{" in query else "gauge"


@pytest.mark.parametrize("engine", ENGINES)
def test_the_oldest_and_the_newest_release_of_the_tables_are_read(engine: str) -> None:
    """`make engine-tables` reads them again."""
    assert tuple(ENGINES[engine]) == releases_of(engine)
    for version, release in ENGINES[engine].items():
        assert version in release["file"]
        assert len(release["sha256"]) == 64


@for_each(("engine", "title", "query"), QUERIES)
def test_a_query_finds_one_of_its_metrics_in_each_release(
    engine: str, title: str, query: str
) -> None:
    names = {name.removesuffix("_bucket") for name in OF_ENGINE.findall(query)}
    assert names, title
    for version, release in ENGINES[engine].items():
        found = {n: kind for n, kind in release["metrics"].items() if n in names}
        assert found, (version, names)
        assert {kind_of(name, query) for name in found} == set(found.values())


def test_every_alternative_is_in_some_release() -> None:
    for engine, _, query in QUERIES:
        known = {name for release in ENGINES[engine].values() for name in release["metrics"]}
        assert {name.removesuffix("_bucket") for name in OF_ENGINE.findall(query)} <= known


@pytest.mark.parametrize("name", MONITORED)
def test_what_is_asked_of_kube_state_metrics_is_stable_there(name: str) -> None:
    one = compiled(name)
    queries = [alert["expr"] for alert in alerts(one)] + expressions(one)
    found = [match for query in queries for match in OF_PODS.finditer(query)]
    assert {match[1] for match in found} == set(STATE)
    for metric, matchers in (match.groups() for match in found):
        labels = set(re.findall(r'([a-z_]+)=~?"', matchers))
        assert labels <= set(STATE[metric]["labels"])
        assert STATE[metric]["status"] == "STABLE"


def test_the_reader_finds_metrics_as_prometheus_shows_them(tmp_path: Path) -> None:
    (tmp_path / "metrics.py").write_text(
        'a = Counter(name="vllm:a", labels=[])\n'
        'b = self._counter_cls(name="vllm:b_total")\n'
        'c = prometheus_client.Gauge("vllm:c", "words")\n'
        'd = Histogram(name="vllm:d_seconds")\n'
        'e = log("vllm:e")\n'
        "f = Gauge(name=names[0])\n"
        'g = Gauge(name="other:g")\n'
    )
    assert metrics_in(tmp_path, "vllm:") == {
        "vllm:a_total": "counter",
        "vllm:b_total": "counter",
        "vllm:c": "gauge",
        "vllm:d_seconds": "histogram",
    }
