"""Whether Kubernetes, Volcano and Kthena are told as they are seen."""

from typing import Any

import pytest

from kthena_components.cluster.doctor import diagnose
from kthena_components.cluster.requirements import (
    MODEL_SERVING,
    POD_GROUP,
    requirements_of_backends,
)
from kthena_components.cluster.snapshot import Diagnostic, Status, exit_status, render_lines
from tests.cluster.doctored import GENERAL, HIDDEN, said, stack, with_rights
from tests.cluster.objects import JUST_NOW, LONG_AGO, config, deployment, healthy, pod_group, queue


def test_a_sound_cluster_fails_in_nothing() -> None:
    for need in (GENERAL, stack(), stack(backend="kthena")):
        lines = diagnose(with_rights(healthy(), need), need)
        assert {line.mark for line in lines} <= {Status.OK, Status.UNKNOWN}
        assert exit_status(lines) == 0


def test_lines_begin_with_their_mark() -> None:
    lines = [Diagnostic(Status.OK, "cluster", "a"), Diagnostic(Status.FAIL, "volcano", "b")]
    assert render_lines(lines) == "ok    cluster  a\nfail  volcano  b"
    assert exit_status(lines) == 1


def test_an_old_kubernetes_fails_for_native_alone() -> None:
    old = healthy(version="v1.27.9")
    assert said("cluster", old)[0][0] is Status.FAIL
    assert said("cluster", old, requirements_of_backends("default", ["kthena"]))[0][0] is Status.OK


def without(*groups: str) -> dict[str, Any]:
    served = {k: v for k, v in healthy().served.items() if k.partition("/")[0] not in groups}
    return {"served": served}


def test_without_volcano_its_version_to_install_is_named() -> None:
    seen = healthy(**without("scheduling.volcano.sh", "topology.volcano.sh"))
    ((mark, text),) = said("volcano", seen)
    assert mark is Status.FAIL
    assert "no PodGroup scheduling.volcano.sh/v1beta1" in text
    assert "Install Volcano 1.14 or later" in text
    assert said("Volcano's scheduler", seen) == []


def test_another_version_of_a_kind_is_named() -> None:
    served = {**healthy().served, "workload.serving.volcano.sh/v1": ["ModelServing"]}
    del served["workload.serving.volcano.sh/v1alpha1"]
    ((mark, text),) = said("kthena", healthy(served=served), stack(backend="kthena"))
    assert mark is Status.FAIL
    assert "no ModelServing workload.serving.volcano.sh/v1alpha1 (only v1)" in text


def test_a_volcano_without_sub_groups_is_too_old() -> None:
    schemas: dict[Any, Any] = {POD_GROUP: {"properties": {"spec": {"properties": {}}}}}
    ((mark, text),) = said("volcano", healthy(schemas=schemas))
    assert (mark, "older than 1.14" in text) == (Status.FAIL, True)
    ((mark, _),) = said("volcano", healthy(schemas={POD_GROUP: HIDDEN}))
    assert mark is Status.UNKNOWN


def test_without_hyper_nodes_only_a_topology_fails() -> None:
    seen = healthy(**without("topology.volcano.sh"))
    assert said("volcano", seen)[0][0] is Status.WARN
    assert said("volcano", seen, stack())[0][0] is Status.FAIL


def test_without_kthena_native_still_works() -> None:
    seen = healthy(**without("workload.serving.volcano.sh"))
    ((mark, text),) = said("kthena", seen)
    assert mark is Status.WARN
    assert "Install Kthena 1.0 with its CRDs" in text
    assert said("kthena", seen, stack()) == []
    assert said("kthena", seen, stack(backend="kthena"))[0][0] is Status.FAIL


def test_an_older_kthena_names_the_servings_that_are_written_for_1_0() -> None:
    schemas: dict[Any, Any] = {**healthy().schemas, MODEL_SERVING: {"properties": {}}}
    ((mark, text),) = said("kthena", healthy(schemas=schemas), stack(backend="kthena"))
    assert mark is Status.WARN
    assert "chat would be written for 1.0. Write kthena_version" in text


@pytest.mark.parametrize(
    ("subject", "label"),
    [
        ("Volcano's scheduler", ("app", "volcano-scheduler")),
        ("Volcano's controllers", ("app", "volcano-controller")),
        ("Kthena's controller", ("app.kubernetes.io/component", "kthena-controller-manager")),
    ],
)
def test_a_deployment_shows_whether_a_controller_runs(subject: str, label: Any) -> None:
    ((mark, text),) = said(subject, healthy(deployments=[deployment(*label)]))
    assert mark is Status.OK
    assert text == f"Deployment system/{label[1]} has 1 of 1 pod ready, image {label[1]}:v1.14.1"
    assert (
        said(subject, healthy(deployments=[deployment(label[0], label[1], ready=0)]))[0][0]
        is Status.FAIL
    )


def lease(name: str, renewed: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "volcano-system"},
            "spec": {"renewTime": renewed}}  # fmt: skip


def test_a_lease_shows_it_without_a_deployment() -> None:
    fresh = healthy(leases=[lease("volcano", "2026-01-02T11:59:57.123456Z")])
    assert said("Volcano's scheduler", fresh) == [
        (Status.OK, "has renewed its Lease volcano-system/volcano 2 s ago")
    ]
    stale = healthy(leases=[lease("volcano", LONG_AGO)])
    assert said("Volcano's scheduler", stale) == [
        (Status.FAIL, "has not renewed its Lease volcano-system/volcano for 3600 s. Start it")
    ]


def serving(made: str, **status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "chat", "namespace": "serving", "creationTimestamp": made},
            "spec": {"replicas": 1}, "status": status}  # fmt: skip


def test_what_only_a_controller_writes_shows_that_it_has_run() -> None:
    assert said("Volcano's scheduler", healthy())[0][0] is Status.OK
    assert said("Kthena's controller", healthy())[0][0] is Status.UNKNOWN
    ran = healthy(model_servings=[serving(LONG_AGO, observedGeneration=1)])
    assert said("Kthena's controller", ran)[0][0] is Status.OK
    nothing = healthy(queues=[], deployments=HIDDEN)
    assert said("Volcano's scheduler", nothing)[0] == (
        Status.UNKNOWN, "whether it runs is unknown: you may not read it",
    )  # fmt: skip


def test_what_a_controller_should_have_written_shows_that_it_does_not_run() -> None:
    dead = healthy(pod_groups=[pod_group(phase="")], queues=[queue(), queue("q", "")],
                   model_servings=[serving(LONG_AGO)])  # fmt: skip
    for subject, what in (
        ("Volcano's scheduler", "PodGroup serving/chat-0 has no phase"),
        ("Volcano's controllers", "Queue q has no state"),
        ("Kthena's controller", "ModelServing serving/chat has no status"),
    ):
        ((mark, text),) = said(subject, dead)
        assert (mark, what in text) == (Status.FAIL, True)
    young = healthy(model_servings=[serving(JUST_NOW)])
    assert said("Kthena's controller", young)[0][0] is Status.UNKNOWN


def test_the_plugin_of_the_scheduler_is_looked_for() -> None:
    off = healthy(scheduler_config=config("gang", "binpack"))
    assert said("scheduler config", off)[0][0] is Status.WARN
    ((mark, text),) = said("scheduler config", off, stack())
    assert (mark, "Add `- name: network-topology-aware`" in text) == (Status.FAIL, True)
    broken = healthy(scheduler_config={"metadata": {"name": "c"}, "data": {"a": "[", "b": "x"}})
    assert "contains no readable scheduler config" in said("scheduler config", broken)[0][1]
    for unseen in (None, HIDDEN):
        assert said("scheduler config", healthy(scheduler_config=unseen))[0][0] is Status.UNKNOWN


LWS = "leaderworkerset.x-k8s.io/v1"


def test_a_stack_for_lws_needs_its_own_kind_alone() -> None:
    need = stack(backend="lws", network_topology=None)
    ((mark, text),) = said("lws", healthy(), need)
    assert mark is Status.FAIL
    assert text == (
        f"the cluster has no LeaderWorkerSet {LWS}. Install LeaderWorkerSet 0.9 or later with its "
        "CRDs, or use backend: native"
    )
    others = {at: kinds for at, kinds in healthy().served.items() if "ModelServing" not in kinds}
    served = {**others, LWS: ["LeaderWorkerSet"]}
    assert said("lws", healthy(served=served), need) == [(Status.OK, f"LeaderWorkerSet {LWS}")]
    assert said("lws", healthy(served=served), stack()) == []


PROMETHEUS = "monitoring.coreos.com/v1"


def test_a_monitored_serving_needs_the_prometheus_operator() -> None:
    need = stack(monitoring=True)
    ((mark, text),) = said("monitoring", healthy(), need)
    assert mark is Status.FAIL
    assert text == (
        f"the cluster has no PodMonitor {PROMETHEUS} and no PrometheusRule {PROMETHEUS}. Install "
        "the Prometheus Operator 0.79 or later with its CRDs, or remove monitoring"
    )
    served = {**healthy().served, PROMETHEUS: ["PodMonitor", "PrometheusRule", "Probe"]}
    assert said("monitoring", healthy(served=served), need) == [
        (Status.OK, f"PodMonitor {PROMETHEUS} and PrometheusRule {PROMETHEUS}")
    ]
    assert said("monitoring", healthy(), stack()) == []


def test_a_user_who_may_not_write_pod_monitors_is_told() -> None:
    need = stack(monitoring=True)
    lines = diagnose(with_rights(healthy(), need, "podmonitors"), need)
    assert any(line.mark is Status.FAIL and "podmonitors" in line.text for line in lines)


def test_lws_beside_kthena_is_warned_about() -> None:
    need = stack(backend="lws", network_topology=None)
    served = {**healthy().served, LWS: ["LeaderWorkerSet"]}
    (_, (mark, text)) = said("lws", healthy(served=served), need)
    assert mark is Status.WARN
    assert text.startswith("Kthena 0.3 and later creates a ModelServing for each LeaderWorkerSet.")


def test_without_a_stack_lws_is_optional() -> None:
    assert said("lws", healthy()) == []
    served = {**healthy().served, LWS: ["LeaderWorkerSet"]}
    assert said("lws", healthy(served=served)) == [(Status.OK, f"LeaderWorkerSet {LWS}")]


INFERS = [f"workload.{group}/v1alpha1" for group in ("matrixinfer.ai", "volcano.sh")]


def test_a_model_infer_of_one_group_is_enough() -> None:
    assert said("matrixinfer", healthy()) == []
    for group in INFERS:
        served = healthy(served={**healthy().served, group: ["ModelInfer"]})
        assert said("matrixinfer", served) == [(Status.OK, f"ModelInfer {group}")]


def test_a_stack_for_matrixinfer_needs_the_group_that_it_names() -> None:
    need = stack(backend="matrixinfer", backend_options={"api_group": "workload.volcano.sh"})
    old, new = ({**healthy().served, group: ["ModelInfer"]} for group in INFERS)
    assert said("matrixinfer", healthy(served=new), need) == [
        (Status.OK, f"ModelInfer {INFERS[1]}")
    ]
    assert said("matrixinfer", healthy(served=old), need) == [
        (
            Status.FAIL,
            (
                f"the cluster has no ModelInfer {INFERS[1]}. Install MatrixInfer with its CRDs, "
                "or write the API group of the installed one in backend_options, or use backend: "
                "native"
            ),
        )
    ]
