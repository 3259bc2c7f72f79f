"""The groups of pods that objects become, for every kind that is read."""

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kthena_components.compiler.compile import compile_serving
from kthena_components.core import naming
from kthena_components.core.topology.domains import holds
from kthena_components.core.values.read import mapping, sequence
from kthena_components.placement.model import PodGroup, PodSet
from kthena_components.placement.workloads import pod_groups_of
from tests.support.for_each import for_each
from tests.support.specs import changed, example_for
from tests.support.strategies import answering, damaged, law, servings

BASES = sorted(Path("tests/systems").glob("*/bases/*.yaml"))


def groups_in(text: str) -> list[PodGroup]:
    bodies = [body for body in yaml.safe_load_all(text) if isinstance(body, dict)]
    return pod_groups_of(bodies)


def groups_of(args: Mapping[str, Any]) -> list[PodGroup]:
    return pod_groups_of([manifest.body for manifest in compile_serving(args).manifests])


def members(group: PodGroup) -> list[tuple[str, int]]:
    """Count the pods of each subgroup, as Volcano forms them: policy, then values of its keys."""
    counted: dict[str, int] = {}
    for pods in group.pods:
        name = _subgroup(group, pods)
        counted[name] = counted.get(name, 0) + pods.count
    return sorted(counted.items())


def _subgroup(group: PodGroup, pods: PodSet) -> str:
    for policy in group.subgroups:
        plain = mapping(policy.match_labels.get("matchLabels"))
        stated = sequence(policy.match_labels.get("matchExpressions"))
        values = [pods.labels.get(key) for key in policy.match_label_keys]
        fits = all(pods.labels.get(key) == value for key, value in plain.items())
        if fits and all(holds(mapping(one), pods.labels) for one in stated) and all(values):
            return "-".join([policy.name, *map(str, values)])
    return ""


@pytest.mark.property
@pytest.mark.parametrize("backend", ["native", "kthena"])
@law
@given(st.data())
def test_a_backend_makes_the_groups_of_the_plan(backend: str, data: st.DataObject) -> None:
    args = answering(data.draw(servings(backend)))
    compiled = compile_serving(args)
    plan = compiled.plan
    found = [one for one in pod_groups_of([m.body for m in compiled.manifests]) if one.size]
    assert sum(one.size for one in found) == plan.groups * plan.pods_per_group
    if not plan.gang or not plan.min_member or plan.pod_group is not None:
        return
    assert [one.name for one in found] == [
        naming.group_name(plan.name, number) for number in plan.group_numbers()
    ]
    for group in found:
        assert (group.minimum, group.size) == (plan.min_member, plan.pods_per_group)
        assert (group.min_resources or {}) == plan.min_resources
        assert members(group) == sorted(
            (f"{role.name}-{naming.role_id(role.name, number)}", role.pods)
            for role in plan.roles
            for number in range(role.replicas)
        )


def test_native_and_kthena_make_the_same_groups() -> None:
    tier = {"network_topology.group_policy": {"mode": "hard", "highest_tier_allowed": 1}}
    native, kthena = (
        groups_of(changed(example_for(backend, "prefill-decode"), tier))
        for backend in ("native", "kthena")
    )
    assert [one.title for one in native] == [one.title for one in kthena]
    for one, other in zip(native, kthena, strict=True):
        assert (one.topology, one.minimum, one.size) == (other.topology, other.minimum, other.size)
        assert members(one) == members(other)
        assert one.owner == other.owner


@for_each("path", BASES, ids=[path.name for path in BASES])
def test_every_kind_with_pods_becomes_groups_or_says_why_not(path: Path) -> None:
    for group in groups_in(path.read_text()):
        assert group.unknown is not None or group.size, group
        assert group.minimum <= group.size
        assert "?" not in group.title or group.unknown


LWS = """
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: chat, namespace: serving, annotations: {scheduling.volcano.sh/queue-name: team}}
spec:
  replicas: 2
  leaderWorkerTemplate:
    size: 3
    workerTemplate:
      spec:
        schedulerName: SCHEDULER
        priorityClassName: high
        overhead: {cpu: 100m}
        initContainers: [{name: i, resources: {requests: {cpu: "4"}}}]
        containers: [{name: e, resources: {limits: {nvidia.com/gpu: 8, cpu: "1"}}}]
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 9
"""


def test_a_leader_worker_set_is_a_gang_only_with_volcano() -> None:
    gangs = groups_in(LWS.replace("SCHEDULER", "volcano"))
    assert [(one.title, one.minimum, one.size, one.queue) for one in gangs] == [
        ("serving/chat-0", 3, 3, "team"), ("serving/chat-1", 3, 3, "team"),
    ]  # fmt: skip
    (leader, worker) = gangs[0].pods
    assert (leader.count, worker.count, leader.priority) == (1, 2, 9)
    assert worker.requests == {"nvidia.com/gpu": 8, "cpu": Decimal("4.1")}
    alone = groups_in(LWS.replace("SCHEDULER", "default-scheduler"))
    assert [(one.minimum, one.size, one.scheduler) for one in alone] == [
        (0, 3, "default-scheduler"), (0, 3, "default-scheduler"),
    ]  # fmt: skip


HAND = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: gang, namespace: a}
spec: {minMember: 2, networkTopology: {mode: hard, highestTierName: rack}, queue: team}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: set, namespace: a}
spec:
  replicas: COPIES
  template:
    metadata: {annotations: {scheduling.k8s.io/group-name: gang, volcano.sh/task-spec: worker}}
    spec:
      schedulerName: volcano
      nodeSelector: {pool: a}
      containers: [{name: e, resources: {requests: {nvidia.com/gpu: GPUS}}}]
"""


def test_pods_that_name_a_pod_group_are_its_gang() -> None:
    (gang,) = groups_in(HAND.replace("COPIES", "2").replace("GPUS", "8"))
    assert (gang.owner, gang.minimum, gang.size) == ("PodGroup a/gang", 2, 2)
    assert gang.topology is not None
    assert gang.topology.highest_tier_name == "rack"
    assert gang.pods[0].task == "worker"
    assert gang.pods[0].spec["nodeSelector"] == {"pool": "a"}


def test_what_is_not_known_is_not_guessed() -> None:
    token = "\ue000" + "1" + "\ue001"
    bodies = list(yaml.safe_load_all(HAND.replace("COPIES", "2").replace("GPUS", "8")))
    (gang,) = pod_groups_of(bodies)
    assert gang.unknown is None
    bodies[1]["spec"]["replicas"] = token
    (late,) = pod_groups_of(bodies)
    assert late.unknown is not None
    claims = "resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]\n      containers:"
    (claimed,) = groups_in(
        HAND.replace("COPIES", "2").replace("GPUS", "8").replace("containers:", claims)
    )
    assert claimed.unknown is not None
    assert "ResourceClaimTemplate 'gpu' is not among the objects" in claimed.unknown.because


JOB = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train, namespace: a}
spec:
  queue: team
  networkTopology: {mode: hard, highestTierAllowed: 2}
  tasks:
  - {name: master, replicas: 1, template: {spec: {containers: [{name: e}]}}}
  - name: worker
    replicas: 4
    minAvailable: 2
    partitionPolicy: {totalPartitions: 2, partitionSize: 2, minPartitions: 1,
      networkTopology: {mode: hard, highestTierAllowed: 1}}
    template: {spec: {containers: [{name: e, resources: {limits: {nvidia.com/gpu: 8}}}]}}
"""


def test_a_volcano_job_has_the_minima_and_partitions_of_its_tasks() -> None:
    (job,) = groups_in(JOB)
    assert (job.minimum, dict(job.task_minimum), job.size) == (3, {"master": 1, "worker": 2}, 5)
    assert (job.queue, job.scheduler) == ("team", "volcano")
    assert members(job) == [("", 1), ("worker-0", 2), ("worker-1", 2)]
    assert job.subgroups[0].topology is not None
    assert job.subgroups[0].topology.highest_tier == 1


@pytest.mark.property
@law
@given(st.data())
def test_no_object_breaks_it(data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(BASES))
    bodies = [body for body in yaml.safe_load_all(path.read_text()) if isinstance(body, dict)]
    for group in pod_groups_of([data.draw(damaged(body)) for body in bodies]):
        assert group.minimum >= 0
        assert group.size >= 0
