"""What monitoring adds to a serving: whose pods are scraped, and where."""

import re
from typing import Any

import pytest

from kthena_components.compiler.compile import compile_serving
from kthena_components.core import naming
from kthena_components.core.plan.limits import taken
from kthena_components.core.values.unknown import OUTPUT_CLOSE, OUTPUT_OPEN
from kthena_components.systems import EMITTERS, find_emitter
from tests.support.crds import schema_errors
from tests.support.specs import SGLANG, changed, gpu_template
from tests.systems.prometheus.monitored import MONITORED, compiled, dashboard, made

OURS = ("PodMonitor", "PrometheusRule")
each = pytest.mark.parametrize("name", MONITORED)


def test_every_backend_that_takes_monitoring_is_among_the_examples() -> None:
    emitters = {name: find_emitter(name) for name in EMITTERS}
    takes = {
        name
        for name, one in emitters.items()
        if one and taken("monitoring", one.limits) is not None
    }
    assert {args.get("backend", "native") for args in MONITORED.values()} == takes
    assert set(EMITTERS) - takes == {"booster"}


@each
def test_nothing_else_of_a_serving_changes(name: str) -> None:
    plain = compile_serving(changed(MONITORED[name], {"monitoring": False}))
    watched = compiled(name)
    bodies = [m.body for m in watched.manifests][: len(plain.manifests)]
    if name != "native sglang":
        assert bodies == [m.body for m in plain.manifests]
    kinds = [m.kind for m in watched.manifests[len(plain.manifests) :]]
    assert kinds == [*["PodMonitor"] * len(watched.plan.roles), "PrometheusRule", "ConfigMap"]


@each
def test_every_field_is_in_the_crds(name: str) -> None:
    bodies = [body for kind in OURS for body in made(compiled(name), kind)]
    assert bodies
    assert [error for body in bodies for error in schema_errors(body)] == []


def test_a_field_that_is_in_no_crd_is_found() -> None:
    [body] = made(compiled("kserve"), "PodMonitor")
    body["spec"]["podMetricsEndpoints"][0]["portNumbers"] = 8080
    assert [error.partition(":")[0] for error in schema_errors(body)] == [
        "spec.podMetricsEndpoints[0].portNumbers"
    ]


@each
def test_a_pod_monitor_selects_the_entries_that_the_front_service_selects(name: str) -> None:
    """That Service is tried with each real controller in conformance."""
    for role in compiled(name).plan.roles:
        one = compiled(name, {"expose": {"role": role.name}})
        [service] = [s for s in made(one, "Service") if s["metadata"]["name"] == one.plan.name]
        [monitor] = [
            m for m in made(one, "PodMonitor") if m["metadata"]["name"].endswith(f"-{role.name}")
        ]
        labels = monitor["spec"]["selector"]["matchLabels"]
        assert service["spec"]["selector"].items() <= labels.items()


def declared(template: Any) -> set[tuple[str, int]]:
    return {
        (container["name"], port["containerPort"])
        for container in template["spec"]["containers"]
        for port in container.get("ports", [])
    }


@each
def test_the_port_of_a_pod_monitor_is_that_of_the_engine(name: str) -> None:
    one = compiled(name)
    found = {body["metadata"]["name"]: body for body in made(one, "PodMonitor")}
    for role in one.plan.roles:
        [endpoint] = found[f"{one.plan.name}-{role.name}"]["spec"]["podMetricsEndpoints"]
        words = " ".join(role.entry["spec"]["containers"][0]["command"])
        assert f"--port {endpoint['portNumber']} " in f"{words} "
        assert endpoint["portNumber"] in {port for _, port in declared(role.entry)}
        assert endpoint["path"] == "/metrics"


def test_sglang_gets_the_option_without_which_it_has_no_metrics() -> None:
    sets = made(compiled("native sglang"), "StatefulSet")
    for body in sets:
        assert "--enable-metrics" in str(body["spec"]["template"])
    stated = changed(SGLANG, {"roles[0].engine.extra_args": ["--enable-metrics"]})
    kept = compile_serving(changed(stated, {"monitoring": True}))
    assert [m.body for m in kept.manifests][: len(sets)] == [
        m.body for m in compile_serving(stated).manifests
    ][: len(sets)]


def test_a_role_without_an_engine_is_told_and_not_scraped() -> None:
    container = {"name": "r", "image": "r:1", "resources": {"requests": {"cpu": "1"}}}
    router = {"name": "router", "entry_template": {"spec": {"containers": [container]}}}
    one = compiled("native", {"roles[2]": router})
    assert len(made(one, "PodMonitor")) == 2
    [told] = [str(f) for f in one.findings if f.rule == "monitoring-metrics"]
    assert told == (
        "roles[2]: role 'router' starts neither vLLM nor SGLang, so its pods are not scraped. "
        "[monitoring-metrics]"
    )


def test_an_autoscaled_serving_has_no_alert_about_its_number() -> None:
    names = {
        name: [rule["alert"] for body in made(compiled(name), "PrometheusRule")
               for rule in body["spec"]["groups"][0]["rules"]]
        for name in ("kthena", "kthena autoscaled", "kthena roles")
    }  # fmt: skip
    assert "ServingGroupMissing" in names["kthena"]
    assert "ServingGroupMissing" not in names["kthena autoscaled"]
    [alert] = [
        rule
        for rule in made(compiled("kthena roles"), "PrometheusRule")[0]["spec"]["groups"][0][
            "rules"
        ]
        if rule["alert"] == "ServingGroupNotWhole"
    ]
    assert "< count by (namespace, group)" in alert["expr"]


def test_a_serving_without_pods_has_no_alerts() -> None:
    one = compiled("native", {"replicas": 0})
    assert made(one, "PrometheusRule") == []
    assert dashboard(one)["panels"]


def test_an_output_in_the_namespace_stays_a_token() -> None:
    late = f"{OUTPUT_OPEN}7{OUTPUT_CLOSE}"
    one = compiled("native", {"namespace": late})
    [config] = [m.body for m in one.manifests if m.kind == "ConfigMap"]
    assert f'serving=\\"{one.plan.name}\\"' in config["data"][f"{one.plan.name}.json"]
    assert config["data"][f"{one.plan.name}.json"].count(late) > 5
    assert config["metadata"]["annotations"] == {"k8s-sidecar-target-directory": late}


@each
def test_labels_of_the_serving_are_on_everything(name: str) -> None:
    """The Helm chart of Prometheus takes only monitors with its release as a label."""
    one = compiled(name, {"labels": {"release": "prometheus"}})
    bodies = [body for kind in OURS for body in made(one, kind)]
    assert {body["metadata"]["labels"]["release"] for body in bodies} == {"prometheus"}


POD_NAMES = {
    "native": ["split-0-prefill-0-0", "split-3-decode-11-0", "split-0-decode-0-w-2"],
    "kthena": ["chat-0-{role}-0-0", "chat-12-{role}-3-1"],
    "matrixinfer": ["split-0-prefill-0-0", "split-0-decode-1-2"],
    "lws": ["{set}-0", "{set}-0-1", "{set}-10", "{set}-10-3"],
    "lws roles": ["split-0a1b2c3d-prefill-0", "split-0-0a1b2c3d-prefill-0-1"],
    "kaito": ["{set}-0"],
    "kaito set": ["{set}-x7k2p-0", "{set}-x7k2p-1"],
    "kserve": ["{set}-predictor-5b9f8d7c4d-x2x9z"],
    "kserve several": [
        "{set}-predictor-5b9f8d7c4d-x2x9z",
        "{set}-predictor-worker-66c9dd8fbc-zzz9k",
    ],
    "kserve llm": ["split-kserve-mn-0", "split-kserve-mn-0-1", "split-kserve-mn-prefill-2-1"],
}
"""As the published functions of each controller build them: see the module of each backend."""


@pytest.mark.parametrize("name", POD_NAMES)
def test_the_names_of_pods_are_recognised(name: str) -> None:
    one = compiled(name)
    role = one.plan.roles[0].name
    patterns = set(re.findall(r'pod=~"([^"]+)"', str([m.body for m in one.manifests])))
    for written in POD_NAMES[name]:
        pod = written.format(role=role, set=f"{one.plan.name}-{role}")
        found = [match for p in patterns if (match := re.fullmatch(p, pod))]
        assert len(found) == 1, (pod, patterns)
        assert pod.startswith(found[0][1])


@pytest.mark.parametrize("name", ["native", "kthena", "lws"])
def test_the_pods_of_another_serving_are_not_meant(name: str) -> None:
    one = compiled(name)
    [pattern, *_] = re.findall(r'pod=~"([^"]+)"', str([m.body for m in one.manifests]))
    role = one.plan.roles[0].name
    for other in (f"{one.plan.name}-2-0-{role}-0-0-0", f"my-{one.plan.name}-0-{role}-0-0", "chat"):
        assert not re.fullmatch(pattern, other)


def test_a_template_is_scraped_where_its_command_listens() -> None:
    entry = gpu_template("vllm serve m --tensor-parallel-size 8", ports=[{"containerPort": 8000}])
    args = {"name": "chat", "monitoring": True, "roles": [{"name": "a", "entry_template": entry}]}
    [body] = made(compile_serving(args), "PodMonitor")
    assert body["spec"]["podMetricsEndpoints"][0]["portNumber"] == 8000
    assert body["spec"]["selector"]["matchLabels"][naming.ROLE] == "a"


@pytest.mark.parametrize(("word", "errors"), [("warn", 0), ("ABORT", 0), ("", 0), ("stop", 1)])
def test_a_pattern_of_a_crd_with_a_flag_is_read_as_go_reads_it(word: str, errors: int) -> None:
    """regexp/syntax: a flag holds from its place on, which need not be the start."""
    [body] = made(compiled("kserve"), "PrometheusRule")
    body["spec"]["groups"][0]["partial_response_strategy"] = word
    assert len(schema_errors(body)) == errors
