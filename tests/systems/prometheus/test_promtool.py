"""Alerts and dashboards are checked by Prometheus' promtool: their syntax, and when they fire."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.programs import program
from tests.systems.prometheus.monitored import MONITORED, alerts, compiled, expressions, made

pytestmark = pytest.mark.programs
each = pytest.mark.parametrize("name", MONITORED)


def promtool(*words: str, folder: Path) -> tuple[int, str]:
    done = subprocess.run(
        [program("promtool"), *words], capture_output=True, text=True, cwd=folder, check=False
    )
    return done.returncode, done.stdout + done.stderr


def written(folder: Path, name: str, **changes: Any) -> Any:
    """Write the rules of a serving where promtool reads them."""
    one = compiled(name, changes)
    groups = [group for body in made(one, "PrometheusRule") for group in body["spec"]["groups"]]
    (folder / "rules.yaml").write_text(yaml.safe_dump({"groups": groups}))
    return one


@each
def test_the_alerts_are_rules_of_prometheus(name: str, tmp_path: Path) -> None:
    one = written(tmp_path, name)
    status, said = promtool(
        "check", "rules", "--lint=all", "--lint-fatal", "rules.yaml", folder=tmp_path
    )
    assert status == 0, said
    assert f"SUCCESS: {len(alerts(one))} rules found" in said


@each
def test_the_queries_of_the_dashboard_are_queries_of_prometheus(name: str, tmp_path: Path) -> None:
    queries = expressions(compiled(name))
    for variable, value in {"$__rate_interval": "5m", "$role": ".*", "$group": ".*"}.items():
        queries = [query.replace(variable, value) for query in queries]
    assert not any("$" in query.replace('"$1"', "") for query in queries)
    rules = [{"record": f"q{index}", "expr": query} for index, query in enumerate(queries)]
    (tmp_path / "rules.yaml").write_text(
        yaml.safe_dump({"groups": [{"name": "q", "rules": rules}]})
    )
    status, said = promtool("check", "rules", "rules.yaml", folder=tmp_path)
    assert status == 0, said


def test_a_wrong_query_is_noticed(tmp_path: Path) -> None:
    rules = {"groups": [{"name": "q", "rules": [{"record": "q", "expr": "sum by (a) ("}]}]}
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(rules))
    status, said = promtool("check", "rules", "rules.yaml", folder=tmp_path)
    assert (status, "parse error" in said) == (1, True)


NAME = "native"
SPACE, READY, INFO = "serving", "kube_pod_status_ready", "kube_pod_info"
PODS = [
    *(f"split-0-prefill-0-{end}" for end in ("0", "w-1", "w-2", "w-3")),
    *(f"split-0-decode-0-{end}" for end in ("0", "w-1", "w-2")),
]
"""Pods of a group of a serving with a prefill engine of 4 pods, and a decode engine of 3."""
SMALL = {"roles[0].replicas": 1, "roles[1].replicas": 1, "gang_policy": None}


def series(metric: str, pod: str, values: str, **labels: str) -> dict[str, str]:
    stated = {"namespace": SPACE, "pod": pod, "uid": f"u-{pod}", **labels}
    text = ",".join(f'{key}="{value}"' for key, value in stated.items())
    return {"series": f"{metric}{{{text}}}", "values": values}


def ready(pod: str, values: str = "1x200", space: str = SPACE) -> dict[str, str]:
    return series(READY, pod, values, condition="true", namespace=space)


def placed(pod: str, node: str = "n1", values: str = "1x200") -> dict[str, str]:
    return series(INFO, pod, values, node=node)


def restarted(pod: str, values: str) -> dict[str, str]:
    return series("kube_pod_container_status_restarts_total", pod, values, container="engine")


def created(pod: str, uid: str, values: str) -> dict[str, str]:
    return series("kube_pod_created", pod, values, uid=uid)


HEALTHY = [*map(ready, PODS), *map(placed, PODS), *(restarted(pod, "2x200") for pod in PODS)]
NOT_READY = [ready(PODS[0], "0x200"), *map(ready, PODS[1:]), *map(placed, PODS)]
OTHERS = [ready("split-0-prefill-0-0", "0x200", "elsewhere"), ready("split-a-0", "0x200")]
STARTING = [ready(PODS[0], "0x25 1x175"), *map(ready, PODS[1:]), *map(placed, PODS)]
# kube-state-metrics has no kube_pod_status_ready of a pod without the condition Ready, which a pod
# only has after it has a node.
ALL_WAIT = [placed(pod, "") for pod in PODS]
SOME_WAIT = [*map(ready, PODS[:5]), *map(placed, PODS[:5]), *ALL_WAIT[5:]]
PLACED_LATE = [
    *(placed(pod, "", "1x10 _x190") for pod in PODS),
    *(placed(pod, "n1", "_x11 1x189") for pod in PODS),
    *(ready(pod, "_x11 1x189") for pod in PODS),
]
CRASHING = [*HEALTHY[:-1], restarted(PODS[-1], "2x100 3x9 4x9 5x82")]
ONCE = [*HEALTHY[:-1], restarted(PODS[-1], "2x100 3x100")]
REPLACED, UPDATED = (
    [
        *HEALTHY,
        *(created(pod, f"{pod}-{n}", f"_x{n * 10} 1x9") for pod in PODS for n in range(times)),
    ]
    for times in (4, 2)
)
"""Series by minute."""
MINUTES = {"15m": 15, "3600s": 60}
SITUATIONS: dict[str, tuple[list[dict[str, str]], dict[str, str]]] = {
    "not ready": (NOT_READY, {"ServingGroupNotWhole": "group split-0 6"}),
    "starting": (STARTING, {}),
    "healthy": (HEALTHY, {}),
    "others not ready": (HEALTHY + OTHERS, {}),
    "no pods": (OTHERS, {"ServingGroupMissing": " 0"}),
    "none has a node": (
        ALL_WAIT,
        {"ServingGangWaiting": "group split-0 7", "ServingGroupNotWhole": "group split-0 0"},
    ),
    "some have no node": (
        SOME_WAIT,
        {"ServingGangWaiting": "group split-0 2", "ServingGroupNotWhole": "group split-0 5"},
    ),
    "gang waited": (PLACED_LATE, {}),
    "crash loop": (CRASHING, {"ServingPodRestarts": "pod split-0-decode-0-w-2 3"}),
    "one restart": (ONCE, {}),
    "replaced again and again": (REPLACED, {"ServingPodsReplaced": "group split-0 28"}),
    "an update": (UPDATED, {}),
}
"""Series, and the alerts that fire: each with a label and its value."""


@pytest.mark.parametrize("case", SITUATIONS)
def test_an_alert_fires_when_it_must_and_only_then(case: str, tmp_path: Path) -> None:
    input_series, expected = SITUATIONS[case]
    minute = 45 if input_series in (REPLACED, UPDATED) else 150
    tried = []
    for alert in alerts(written(tmp_path, NAME, **SMALL)):
        name = alert["alert"]
        fires = [fired(alert, expected[name])] if name in expected else []
        at = {"alertname": name, "exp_alerts": fires}
        tried += [{"eval_time": f"{minute}m", **at}]
        if fires and "for" in alert:
            early = {"eval_time": f"{MINUTES[alert['for']] - 1}m", **at, "exp_alerts": []}
            tried += [early, {"eval_time": f"{MINUTES[alert['for']]}m", **at}]
    test = {"interval": "1m", "input_series": input_series, "alert_rule_test": tried}
    (tmp_path / "test.yaml").write_text(
        yaml.safe_dump({"rule_files": ["rules.yaml"], "tests": [test]})
    )
    status, said = promtool("test", "rules", "test.yaml", folder=tmp_path)
    assert status == 0, said


def fired(alert: Any, expected: str) -> dict[str, Any]:
    """Give the labels and annotations of an alert that fires."""
    *pair, value = expected.split(" ")
    label, found = pair if len(pair) == 2 else ("", "")
    labels = {"group": "split-0", "namespace": SPACE, label: found} if label else {}
    text = json.dumps(alert["annotations"]).replace("{{ $value }}", value)
    text = text.replace(r"{{ $value | printf \"%.0f\" }}", value)
    for key, word in labels.items():
        text = text.replace(f"{{{{ $labels.{key} }}}}", word)
    return {"exp_labels": {**alert["labels"], **labels}, "exp_annotations": json.loads(text)}
