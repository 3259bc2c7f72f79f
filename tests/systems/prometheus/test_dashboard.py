"""Dashboards are held against Grafana's published schema, by the types that it generates of it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.systems.prometheus.monitored import MONITORED, compiled, dashboard, expressions

each = pytest.mark.parametrize("name", MONITORED)
REASON = "the package grafana-foundation-sdk of requirements.lock is not installed: run make venv"


def read_by_grafana(board: Any) -> Any:
    """Read a dashboard as Grafana does, and write it again: unknown fields are lost."""
    models = pytest.importorskip("grafana_foundation_sdk.models.dashboard", reason=REASON)
    plugins = pytest.importorskip("grafana_foundation_sdk.cog.plugins", reason=REASON)
    encoder = pytest.importorskip("grafana_foundation_sdk.cog.encoder", reason=REASON)
    plugins.register_default_plugins()
    found = models.Dashboard.from_json(board)
    return json.loads(encoder.JSONEncoder().encode(found))


def lost(given: Any, read: Any, path: str = "") -> Iterator[str]:
    """Name the places of one tree that another one does not have alike."""
    if isinstance(given, dict) and isinstance(read, dict):
        for key, value in given.items():
            yield from lost(value, read.get(key), f"{path}.{key}")
    elif isinstance(given, list) and isinstance(read, list) and len(given) == len(read):
        for index, value in enumerate(given):
            yield from lost(value, read[index], f"{path}[{index}]")
    elif given != read:
        yield path


@each
def test_grafana_knows_each_field(name: str) -> None:
    board = dashboard(compiled(name))
    assert list(lost(board, read_by_grafana(board))) == []


def test_a_field_that_grafana_does_not_know_is_noticed() -> None:
    board = dashboard(compiled("native"))
    board["panels"][0]["gridPosition"] = board["panels"][0].pop("gridPos")
    board["panels"][1]["fieldConfig"]["defaults"]["units"] = "s"
    assert list(lost(board, read_by_grafana(board))) == [
        ".panels[0].gridPosition",
        ".panels[1].fieldConfig.defaults.units",
    ]


@each
def test_panels_do_not_overlap_and_stay_inside(name: str) -> None:
    panels = dashboard(compiled(name))["panels"]
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert max(x for x, _ in cells) < 24
        assert taken.isdisjoint(cells)
        taken |= cells
    assert len({panel["id"] for panel in panels}) == len(panels)


@pytest.mark.parametrize(("name", "engines"), [("native", {"vllm"}), ("native sglang", {"sglang"})])
def test_there_are_panels_for_the_engines_of_the_serving_alone(
    name: str, engines: set[str]
) -> None:
    found = {word.split(":")[0] for query in expressions(compiled(name)) for word in split(query)}
    assert found == engines


def split(query: str) -> list[str]:
    return [word for word in query.replace("(", " ").split() if word.startswith(("vllm:", "sgl"))]


@each
def test_every_query_of_an_engine_is_of_this_serving_alone(name: str) -> None:
    one = compiled(name)
    own = f'namespace="{one.plan.namespace}",serving="{one.plan.name}",role=~"$role"'
    asked = [query for query in expressions(one) if split(query)]
    assert asked
    for query in asked:
        assert query.count(own) == len(split(query))
