"""Engines whose metrics Prometheus would not get are refused before anything is made."""

from typing import Any

import pytest

from kthena_components.compiler.compile import compile_serving
from kthena_components.core.findings import SpecError
from tests.support.specs import Args, changed, gpu_template
from tests.systems.prometheus.monitored import MONITORED, compiled, made

VLLM = "vllm serve m --tensor-parallel-size 8 --port 8080"
SGLANG = "python3 -m sglang.launch_server --model-path m --tp-size 8 --port 8080"
AT = "roles[0].entry_template.spec.containers[0].command"


def template(command: str, port: int | None = 8080) -> Args:
    """Give a monitored serving whose pods the user writes."""
    entry = gpu_template(command)
    if port is not None:
        entry["spec"]["containers"][0]["ports"] = [{"containerPort": port}]
    role = {"name": "serve", "entry_template": entry}
    return {"name": "chat", "monitoring": True, "roles": [role]}


def engine(*words: str) -> Args:
    """Give a monitored serving whose pods the package writes, with further words."""
    return changed(MONITORED["kthena"], {"roles[0].engine.extra_args": list(words)})


FIELD, OTHERWISE = "roles[0].engine.extra_args", ", or remove monitoring."
NO_STATISTICS = "starts vLLM with --disable-log-stats, so its metrics stay empty. Remove "
NO_ENGINE = "role 'serve' starts neither vLLM nor SGLang, so its pods are not scraped. Remove "


def undeclared(port: int) -> str:
    seen = f"listens on {port}, which no container declares, so Prometheus does not find it. "
    remedy = f"Add ports: [{{containerPort: {port}}}] to the container{OTHERWISE}"
    return f"roles[0].entry_template: {seen}{remedy}"


def without_metrics() -> str:
    seen = "starts SGLang without --enable-metrics, so it has no metrics. "
    return f"{AT}: {seen}Add --enable-metrics{OTHERWISE}"


def with_tls() -> str:
    seen = "has --ssl-keyfile, but the PodMonitor reads the metrics over plain HTTP. "
    return f"{FIELD}: {seen}Remove --ssl-keyfile, or write a PodMonitor of your own{OTHERWISE}"


GENERATION = "text-generation-launcher --model-id m --port 8080"
QUIET = "--disable-log-stats"
CASES: dict[str, tuple[Args, str]] = {
    "SGLang without metrics": (template(SGLANG), without_metrics()),
    "vLLM, quiet": (template(f"{VLLM} {QUIET}"), f"{AT}: {NO_STATISTICS}{QUIET}{OTHERWISE}"),
    "an engine, quiet": (engine(QUIET), f"{FIELD}: {NO_STATISTICS}{QUIET}{OTHERWISE}"),
    "an engine with TLS": (engine("--ssl-keyfile", "/tls/key"), with_tls()),
    "a port that nobody declares": (template(VLLM, None), undeclared(8080)),
    "another port": (template(VLLM.replace("--port 8080", ""), 8080), undeclared(8000)),
    "no engine at all": (template("sleep 1"), f"roles[0]: {NO_ENGINE}monitoring."),
    "metrics that are not known": (template(GENERATION), f"roles[0]: {NO_ENGINE}monitoring."),
}


def told(args: Args) -> list[str]:
    try:
        compile_serving(args)
    except SpecError as error:
        return [str(f) for f in error.findings if f.rule == "monitoring-metrics"]
    return []


@pytest.mark.parametrize("case", CASES)
def test_what_would_not_be_scraped_is_refused(case: str) -> None:
    args, message = CASES[case]
    assert told(args) == [f"{message} [monitoring-metrics]"]
    assert told(changed(args, {"monitoring": False})) == []


@pytest.mark.parametrize(
    ("command", "port", "expected"),
    [
        (VLLM, 8080, 8080),
        (VLLM.replace(" --port 8080", ""), 8000, 8000),
        (f"{SGLANG} --enable-metrics", 8080, 8080),
        (f"{SGLANG.replace(' --port 8080', '')} --enable-metrics", 30000, 30000),
        (f"{VLLM} --api-key secret", 8080, 8080),
    ],
)
def test_a_template_is_scraped_at_the_port_of_its_command(
    command: str, port: int, expected: int
) -> None:
    args = template(command, port)
    assert told(args) == []
    [body] = made(compile_serving(args), "PodMonitor")
    assert body["spec"]["podMetricsEndpoints"][0]["portNumber"] == expected


def test_a_port_that_is_not_known_is_refused() -> None:
    args = template(VLLM.replace("8080", "$(PORT)"))
    [line] = told(args)
    assert line.startswith(f"{AT}: has a --port that is not known: ")
    assert "Write the number, or remove monitoring." in line


def test_all_roles_are_told_at_once() -> None:
    changes: dict[str, Any] = {
        f"roles[{index}].engine.extra_args": ["--disable-log-stats"] for index in (0, 1)
    }
    found = told(changed(MONITORED["native"], changes))
    assert [line.partition(".")[0] for line in found] == ["roles[0]", "roles[1]"]


def test_a_sidecar_may_declare_the_port() -> None:
    """Prometheus makes a target of each port of a pod, at the pod's address."""
    args = template(VLLM, None)
    sidecar = {"name": "proxy", "image": "p:1", "ports": [{"containerPort": 8080}]}
    args = changed(args, {"roles[0].entry_template.spec.containers[1]": sidecar})
    assert told(args) == []


def test_monitoring_is_off_unless_it_is_asked_for() -> None:
    plain = changed(MONITORED["native"], {"monitoring": False})
    kinds = {manifest.kind for manifest in compile_serving(plain).manifests}
    assert kinds.isdisjoint({"PodMonitor", "PrometheusRule", "ConfigMap"})
    assert compiled("native").plan.monitoring
