"""docs/monitoring.md shows what is written, and names all of it."""

import re
from pathlib import Path

import pytest
import yaml

from kthena_components.cluster.doctor import diagnose
from kthena_components.cluster.snapshot import render_lines
from kthena_components.compiler.compile import compile_serving
from kthena_components.systems.prometheus.system import DASHBOARD
from tests.cluster.doctored import stack, with_rights
from tests.cluster.objects import healthy
from tests.systems.prometheus.monitored import alerts, made

PAGE = (Path(__file__).parents[3] / "docs" / "monitoring.md").read_text()
SERVING, MONITOR = map(yaml.safe_load, re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL))
ONE = compile_serving(SERVING)
ROW = re.compile(r"\| `(\w+)` \| (.+?) \| (.+?) \|")


def test_the_objects_are_those_of_the_page() -> None:
    added = [m for m in ONE.manifests if m.kind in {"PodMonitor", "PrometheusRule", "ConfigMap"}]
    rows = re.findall(r"\| (\w+) \| `(chat[\w-]*)` \|", PAGE)
    assert rows == [(manifest.kind, manifest.name) for manifest in added]
    assert made(ONE, "PodMonitor")[0] == MONITOR


def test_each_alert_is_on_the_page_with_its_delay() -> None:
    delays = {"3600s": "`ready_timeout_seconds`", "15m": "15m", None: "at once"}
    told = {name: after for name, _, after in ROW.findall(PAGE)}
    assert told == {rule["alert"]: delays[rule.get("for")] for rule in alerts(ONE)}


def test_the_command_finds_the_dashboard() -> None:
    [body] = made(ONE, "ConfigMap")
    name, namespace, key = re.findall(
        r"get configmap (\S+) --namespace (\S+) --output 'jsonpath=\{\.data\.(\S+)\}'", PAGE
    )[0]
    assert (name, namespace) == (body["metadata"]["name"], body["metadata"]["namespace"])
    assert list(body["data"]) == [key.replace("\\", "")]
    assert f'`{DASHBOARD}: "{body["metadata"]["labels"][DASHBOARD]}"`' in PAGE


def test_the_line_of_doctor_is_the_one_that_it_prints() -> None:
    need = stack(monitoring=True)
    lines = diagnose(with_rights(healthy(), need), need)
    [told] = [line for line in lines if line.subject == "monitoring"]
    assert f"```\n{render_lines([told])}\n```" in PAGE


@pytest.mark.parametrize("word", ["chat-serve", "chat-dashboard", "ServingGangWaiting"])
def test_a_name_is_that_of_an_object(word: str) -> None:
    assert word in str([m.body for m in ONE.manifests])
