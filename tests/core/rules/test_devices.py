"""Whether pods get the GPUs that their templates seem to give: rules that need no command line."""

from typing import Any

import pytest

from kthena_components.core.facts.pod import read_pod
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.rules.devices import gpu_requests_equal_limits, leader_worker_same_gpus
from tests.support.specs import Args, gpu_template
from tests.support.strategies import LATE

GPU = "nvidia.com/gpu"


def said(entry: Args, worker: Args | None = None, command: str = "vllm serve m -tp 8") -> list[str]:
    """Judge an engine whose containers have these resources by the two rules."""
    first, second = (
        template(resources, line) for resources, line in ((entry, command), (worker, "ray start"))
    )
    engine = EngineFacts(
        path="e",
        name="e",
        pods=1 if worker is None else 2,
        replicas=1,
        entry=read_pod(first, "entry"),
        worker=None if worker is None else read_pod(second, "worker"),
    )
    facts = ServingFacts(path="", name="s", engines=(engine,))
    rules = (leader_worker_same_gpus, gpu_requests_equal_limits)
    return [str(finding) for rule in rules for finding in rule(facts)]


def template(resources: Any, command: str) -> Args:
    made = gpu_template(command)
    made["spec"]["containers"][0]["resources"] = resources
    return made


def both(gpus: object) -> Args:
    return {"limits": {GPU: gpus}, "requests": {GPU: gpus}}


def test_equal_pods_are_right() -> None:
    assert said(both(8), both("8")) == []


def test_entry_and_workers_hold_the_same_gpus() -> None:
    assert said(both(8), both(4)) == [
        (
            "worker.spec.containers[0].resources: engine 'e' gives its entry pod 8 GPUs and each "
            "worker 4, and an engine distributes its ranks evenly. Write 8 in both, or 4 in both. "
            "[leader-worker-same-gpus]"
        )
    ]


@pytest.mark.parametrize(
    ("resources", "stated", "remedy"),
    [
        (
            {"limits": {GPU: 8}, "requests": {GPU: 4}},
            "a request of 4 and a limit of 8",
            "Write 8 in both",
        ),
        ({"requests": {GPU: 8}}, "a request of 8 and no limit", "Write 8 in both"),
    ],
    ids=["differ", "no-limit"],
)
def test_requests_of_gpus_equal_their_limits(resources: Args, stated: str, remedy: str) -> None:
    assert said(resources) == [
        (
            "entry.spec.containers[0].resources: engine 'e', container 'engine' states "
            f"nvidia.com/gpu with {stated}, and Kubernetes requires both to be equal. {remedy}. "
            "[gpu-requests-equal-limits]"
        )
    ]


def test_a_request_that_is_not_known_is_told() -> None:
    (line,) = said({"limits": {GPU: 8}, "requests": {GPU: LATE}})
    assert line.startswith("entry.spec.containers[0].resources: engine 'e' was not checked")
    assert line.endswith("[gpu-requests-equal-limits]")


def test_gpus_of_workers_that_are_not_known_are_told_where_no_rank_is_counted() -> None:
    told = said(both(8), both(LATE), "sleep infinity")
    assert "[leader-worker-same-gpus]" in told[0]
    assert "was not checked" in told[0]


def test_what_world_size_equals_gpus_says_already_is_not_said_again() -> None:
    assert said(both(LATE)) == []
