"""No ConfigMap beside an object, and nothing that refers to one, makes a rule raise or hang."""

from functools import partial

import pytest

from kthena_components.checker.manifest import check_manifest
from kthena_components.core.facts.context import Context, gather
from kthena_components.core.findings import Finding, Level
from tests.rules.cases import documents
from tests.toughness.corpus import LATE, ODD, put
from tests.toughness.guard import check
from tests.toughness.test_fuzz import fields

DEPLOYMENT, CONFIG_MAP = documents("config-map")
pytestmark = pytest.mark.property


def judged(body: object, config_map: object) -> list[Finding]:
    around = Context(config_maps=gather([config_map]))  # type: ignore[list-item]
    return check_manifest(body, context=around)  # type: ignore[arg-type]


def test_every_field_of_an_object_and_its_config_map_may_hold_anything() -> None:
    for value in ODD:
        for place in fields(DEPLOYMENT):
            check((place, value), partial(judged, put(DEPLOYMENT, place, value), CONFIG_MAP))
        for place in fields(CONFIG_MAP):
            check((place, value), partial(judged, DEPLOYMENT, put(CONFIG_MAP, place, value)))


def test_an_unknown_value_in_a_config_map_refuses_nothing() -> None:
    for place in fields(CONFIG_MAP):
        found = check(place, partial(judged, DEPLOYMENT, put(CONFIG_MAP, place, LATE)))
        assert [str(f) for f in found if f.level is Level.MANDATORY] == [], place


def test_much_of_everything_comes_to_an_end() -> None:
    many = 3000
    engine = {
        "name": "e",
        "command": ["bash", "/c/start"],
        "env": [{"name": f"V{n}", "value": f"$(V{n - 1})"} for n in range(many)] + [LATE] * many,
        "envFrom": [{"prefix": f"P{n}", "secretRef": {"name": "s"}} for n in range(many)],
        "volumeMounts": [{"name": "c", "mountPath": f"/c/{n}"} for n in range(many)]
        + [{"name": "c", "mountPath": "/c"}],
    }
    items = [{"key": "start", "path": f"start{n}"} for n in range(many)]
    volumes = [{"name": "c", "configMap": {"name": "engine", "items": items}}]
    pods = {"spec": {"containers": [engine] * 10, "volumes": volumes}}
    body = {**DEPLOYMENT, "spec": {"template": pods}}
    data = {"start": "/c/start0\n" * many + "vllm serve M -tp $V9 -pp $P1X\n"}
    check("much", partial(judged, body, {**CONFIG_MAP, "data": data}))
