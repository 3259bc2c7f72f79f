"""Options of Kthena's autoscaler that do not fit, and in which words that is refused."""

from typing import Any

import pytest

from kthena_components.compiler.compile import compile_serving
from kthena_components.core.findings import SpecError
from tests.support.for_each import for_each
from tests.support.specs import ENGINE_NATIVE, PREFILL_DECODE, Args, changed, template
from tests.systems.kthena.test_emit_production import ROLES, SCALING, SOURCE, WAITING

TEMPLATE: Args = {"name": "chat", "roles": [{"name": "serve", "entry_template": template()}]}
PROMETHEUS = {"prometheus": {"server_url": "http://prometheus:9090", "query": "sum(waiting)"}}
DECODE = {"min_replicas": 1, "max_replicas": 4}


def said(args: Args, options: dict[str, Any], version: str = "1.0") -> str:
    """Give the refusal, or an empty string."""
    changes = {"backend": "kthena", "backend_options": options, "kthena_version": version}
    try:
        compile_serving(changed(args, changes))
    except SpecError as refusal:
        return str(refusal)
    return ""


def groups(**changes: Any) -> dict[str, Any]:
    return {"autoscaling": {**SCALING, **changes}}


def roles(**changes: Any) -> dict[str, Any]:
    return {"autoscaling": {**ROLES, **changes}}


def ratio(least: str, most: str) -> dict[str, str]:
    both = {"numerator_role": "prefill", "denominator_role": "decode"}
    return {**both, "min_ratio": least, "max_ratio": most}


AT = "backend_options.autoscaling"
SCALED: dict[str, tuple[Args, dict[str, Any], str]] = {
    "no-bounds": (
        ENGINE_NATIVE,
        groups(min_replicas=None, max_replicas=None),
        (
            f"{AT}: has no min_replicas and max_replicas, and no roles. "
            "Write min_replicas and max_replicas, or roles. [backend-options]"
        ),
    ),
    "one-bound": (
        ENGINE_NATIVE,
        groups(min_replicas=None),
        f"{AT}: has no min_replicas, and no roles. Write min_replicas, or roles. [backend-options]",
    ),
    "bounds-and-roles": (
        PREFILL_DECODE,
        roles(min_replicas=1),
        (
            f"{AT}.min_replicas: is given, but `roles` scales the roles of each group, and a "
            "policy "
            "scales only one. Remove it, or `roles`. [backend-options]"
        ),
    ),
    "bounds-the-wrong-way-round": (
        ENGINE_NATIVE,
        groups(min_replicas=5),
        f"{AT}.min_replicas: is 5, more than max_replicas, 4. Write at most 4. [backend-options]",
    ),
    "replicas-outside": (
        ENGINE_NATIVE,
        groups(min_replicas=3),
        f"replicas: is 2, but {AT} scales from 3 to 4. Write 3, or other bounds. [backend-options]",
    ),
    "replicas-of-a-role-outside": (
        PREFILL_DECODE,
        roles(roles={"decode": {"min_replicas": 2, "max_replicas": 4}}),
        (
            f"roles[1].replicas: is 1, but {AT}.roles.decode scales from 2 to 4. Write 2, or other "
            "bounds. [backend-options]"
        ),
    ),
    "unknown-role": (
        PREFILL_DECODE,
        roles(roles={"decod": DECODE}),
        (
            f"{AT}.roles.decod: is not a role; the roles are prefill, decode. Write 'decode'. "
            "[backend-options]"
        ),
    ),
    "no-metric": (
        ENGINE_NATIVE,
        groups(metrics=[], metric_sources={}),
        f"{AT}.metrics: is empty. Write a metric with its target_value. [backend-options]",
    ),
    "metric-that-nobody-reads": (
        ENGINE_NATIVE,
        groups(metric_sources={}),
        (
            f"{AT}.metric_sources: has no 'waiting', so that metric would never be read. Write "
            "a pod "
            "or prometheus for it. [backend-options]"
        ),
    ),
    "source-of-no-metric": (
        ENGINE_NATIVE,
        groups(metric_sources={**SOURCE, "wait": {"pod": {}}}),
        (
            f"{AT}.metric_sources.wait: is not a metric; the metrics are waiting. Remove it, "
            "because waiting is stated, too. [backend-options]"
        ),
    ),
    "metric-twice": (
        ENGINE_NATIVE,
        groups(metrics=[WAITING, WAITING]),
        (
            f"{AT}.metrics[1].name: is 'waiting', already the name of metrics[0]. Remove one of "
            "them. "
            "[backend-options]"
        ),
    ),
    "two-sources": (
        ENGINE_NATIVE,
        groups(metric_sources={"waiting": {"pod": {}, **PROMETHEUS}}),
        (
            f"{AT}.metric_sources.waiting: has both pod and prometheus. Write one of the two. "
            "[backend-options]"
        ),
    ),
    "no-source": (
        ENGINE_NATIVE,
        groups(metric_sources={"waiting": {}}),
        (
            f"{AT}.metric_sources.waiting: has neither pod nor prometheus. Write one of the two. "
            "[backend-options]"
        ),
    ),
    "unknown-port": (
        TEMPLATE,
        groups(),
        (
            f"{AT}.metric_sources.waiting.pod.port: is not given, and the command lines of the "
            "engines "
            "do not show one port for all. Write the port on which the pods show the metric. "
            "[backend-options]"
        ),
    ),
    "zero-by-metrics-of-pods": (
        ENGINE_NATIVE,
        groups(min_replicas=0),
        (
            f"{AT}.min_replicas: is 0, but without a pod no metric of pods is read, so nothing "
            "would "
            "start again. Write 1, or a metric of Prometheus. [backend-options]"
        ),
    ),
    "target-of-zero": (
        ENGINE_NATIVE,
        groups(metrics=[{"name": "waiting", "target_value": "0"}]),
        (
            f"{AT}.metrics[0].target_value: is '0', but must be more than 0. Write such a value. "
            "[value]"
        ),
    ),
    "long-period": (
        ENGINE_NATIVE,
        groups(behavior={"scale_down": {"period": "31m"}}),
        (
            f"{AT}.behavior.scale_down.period: is '31m', but must be a duration from 0s to 30m, "
            "such "
            "as 15s or 1m30s. Write such a value. [value]"
        ),
    ),
    "no-address": (
        ENGINE_NATIVE,
        groups(metric_sources={"waiting": {"prometheus": {"server_url": "p:9", "query": "q"}}}),
        (
            f"{AT}.metric_sources.waiting.prometheus.server_url: is 'p:9', but must be an address, "
            "such as http://prometheus.monitoring:9090. Write such a value. [value]"
        ),
    ),
    "unknown-field-of-a-role": (
        PREFILL_DECODE,
        roles(roles={"decode": {**DECODE, "min_replica": 1}}),
        (
            f"{AT}.roles.decode.min_replica: there is no field 'min_replica' here. Remove it, "
            "because min_replicas is stated, too. [unknown-field]"
        ),
    ),
    "two-autoscalers": (
        {**ENGINE_NATIVE, "autoscaled": True},
        groups(),
        (
            "autoscaled: is true, but backend_options.autoscaling scales the ServingGroups, too, "
            "and each would undo what the other does. Remove one of them. [backend-options]"
        ),
    ),
    "ratio-of-one-role": (
        PREFILL_DECODE,
        roles(roles={"decode": DECODE}, ratio_constraint=ratio("0.5", "2")),
        (
            f"{AT}.ratio_constraint: relates two roles, but `roles` has 1. Write two roles, or "
            "remove "
            "it. [backend-options]"
        ),
    ),
    "ratio-the-wrong-way-round": (
        PREFILL_DECODE,
        roles(ratio_constraint=ratio("2", "1")),
        (
            f"{AT}.ratio_constraint.min_ratio: is '2', more than max_ratio, '1'. Write at most "
            "max_ratio. [backend-options]"
        ),
    ),
    "role-below-its-gang": (
        PREFILL_DECODE,
        roles(
            roles={"prefill": {"min_replicas": 0, "max_replicas": 8}},
            metric_sources={"waiting": PROMETHEUS},
        ),
        (
            f"{AT}.roles.prefill.min_replicas: is 0, which Kthena rejects: "
            "spec.template.gangPolicy.minRoleReplicas.prefill is 1, but role 'prefill' has 0 "
            "replicas. "
            "Write another number, or change that. [backend-options]"
        ),
    ),
    "budget-of-nothing": (
        changed(
            ENGINE_NATIVE,
            {"rollout_strategy.rolling_update_configuration": {"max_unavailable": "50%"}},
        ),
        groups(),
        (
            f"{AT}.min_replicas: is 1, which Kthena rejects: "
            "spec.rolloutStrategy.rollingUpdateConfiguration.maxUnavailable is 50%, which of 1 "
            "group "
            "rounds down to 0, so nothing could ever be updated. Write another number, or "
            "change that. "
            "[backend-options]"
        ),
    ),
}
OLDER: dict[str, tuple[Args, dict[str, Any], str, str]] = {
    "ratio": (
        PREFILL_DECODE,
        roles(ratio_constraint=ratio("0.5", "2")),
        "0.4",
        (
            f"{AT}.ratio_constraint: a ratio needs Kthena 1.0, and kthena_version is 0.4. "
            "Remove it, "
            "or write kthena_version: '1.0'. [backend-options]"
        ),
    ),
    "prometheus": (
        ENGINE_NATIVE,
        groups(metric_sources={"waiting": PROMETHEUS}),
        "0.4",
        (
            f"{AT}.metric_sources.waiting.prometheus: a metric of Prometheus needs Kthena 1.0, and "
            "kthena_version is 0.4. Remove it, or write kthena_version: '1.0'. [backend-options]"
        ),
    ),
    "two-places": (
        ENGINE_NATIVE,
        groups(
            metrics=[WAITING, {"name": "busy", "target_value": "1"}],
            metric_sources={**SOURCE, "busy": {"pod": {"port": 1}}},
        ),
        "0.4",
        (
            f"{AT}.metric_sources.waiting: is read from a different place than 'busy', and Kthena "
            "0.4 reads all metrics from one. Write the same place as 'busy'. [backend-options]"
        ),
    ),
    "fixed-role": (
        PREFILL_DECODE,
        roles(roles={"decode": {"min_replicas": 1, "max_replicas": 1}}),
        "0.4",
        (
            f"{AT}.roles.decode.metrics: is empty, and only Kthena 1.0 keeps a role at a "
            "number. Write "
            "a metric with its target_value. [backend-options]"
        ),
    ),
    "autoscaling": (
        changed(TEMPLATE, {"replicas": 1}),
        groups(metric_sources={"waiting": {"pod": {"port": 8000}}}),
        "0.1",
        (
            f"{AT}: autoscaling needs Kthena 0.2 or later, and kthena_version is 0.1. Remove "
            "it, or "
            "write kthena_version: '0.2'. [backend-loss]"
        ),
    ),
    "gateway": (
        TEMPLATE,
        {
            "model_route": {
                "model_name": "a",
                "rules": [{"target_models": [{"model_server_name": "a"}]}],
                "parent_refs": [{"name": "a"}],
            }
        },
        "0.1",
        (
            "backend_options.model_route.parent_refs: a gateway of a route needs Kthena 0.2 or "
            "later, "
            "and kthena_version is 0.1. Remove it, or write kthena_version: '0.2'. [backend-loss]"
        ),
    ),
}


@for_each("name", SCALED)
def test_what_cannot_be_scaled_is_refused(name: str) -> None:
    args, options, words = SCALED[name]
    assert said(args, options) == words


@pytest.mark.parametrize("name", OLDER)
def test_what_an_older_release_lacks_is_refused(name: str) -> None:
    args, options, version, words = OLDER[name]
    assert said(args, options, version) == words


@pytest.mark.parametrize("number", [0, 1])
def test_the_bounds_may_be_what_the_serving_has(number: int) -> None:
    bounds = {"min_replicas": number, "max_replicas": 2}
    options = groups(**bounds, metric_sources={"waiting": PROMETHEUS})
    assert said(changed(ENGINE_NATIVE, {"replicas": max(number, 1)}), options) == ""
