"""Queues: what one says, and what Volcano would refuse, alone and beside its parent."""

from typing import Any

import pytest

from kthena_components.core.findings import SpecError
from kthena_components.core.spec.serving_spec import QueueSpec
from kthena_components.systems.volcano.emit_cluster import check_queues, compile_queue, emit_queue
from tests.support.crds import schema_errors

GPU = "nvidia.com/gpu"


@pytest.mark.parametrize(
    ("fields", "spec"),
    [
        ({}, {"weight": 1, "reclaimable": True}),
        (
            {
                "weight": 4,
                "reclaimable": False,
                "parent": "root",
                "capability": {"nvidia.com/gpu": "64"},
                "deserved": {"nvidia.com/gpu": "32"},
                "guarantee": {"nvidia.com/gpu": "16"},
            },
            {
                "weight": 4,
                "reclaimable": False,
                "parent": "root",
                "capability": {"nvidia.com/gpu": "64"},
                "deserved": {"nvidia.com/gpu": "32"},
                "guarantee": {"resource": {"nvidia.com/gpu": "16"}},
            },
        ),
    ],
    ids=["plain", "full"],
)
def test_a_queue_is_written_as_the_crd_wants_it(
    fields: dict[str, Any], spec: dict[str, Any]
) -> None:
    body = emit_queue(QueueSpec.model_validate({"name": "research", **fields})).body
    assert body["spec"] == spec
    assert body["metadata"]["name"] == "research"
    assert schema_errors(body) == []


def test_a_queue_is_there_when_it_is_open() -> None:
    # Volcano's webhook refuses a PodGroup whose Queue its controller has not opened yet.
    manifest = emit_queue(QueueSpec(name="research"))
    annotations = manifest.body["metadata"]["annotations"]
    assert annotations == {"pulumi.com/waitFor": "jsonpath={.status.state}=Open"}
    assert manifest.timeout_seconds == 60


def judged(*queues: dict[str, Any]) -> list[str]:
    return [str(finding) for finding in check_queues([QueueSpec.model_validate(q) for q in queues])]


def test_a_queue_that_volcano_refuses_is_refused_in_the_words_of_its_args() -> None:
    args = {"name": "research", "guarantee": {GPU: 8}}
    with pytest.raises(SpecError) as caught:
        compile_queue(args)
    (finding,) = caught.value.findings
    assert (finding.path, finding.rule) == ("guarantee", "queue-quantities")
    assert [text.partition(" ")[0] for text in judged(args)] == ["queues[0].guarantee:"]


def test_a_queue_that_volcano_takes_is_compiled() -> None:
    args = {"name": "research", "guarantee": {GPU: 8}, "deserved": {GPU: 8}}
    assert compile_queue(args).body["spec"]["guarantee"] == {"resource": {GPU: 8}}
    assert judged(args) == []


def test_a_queue_is_checked_beside_its_parent() -> None:
    org = {"name": "org", "deserved": {GPU: 8}, "capability": {GPU: 16}}
    night = {"name": "night", "parent": "org", "capability": {GPU: 24}, "deserved": {GPU: 6}}
    day = {"name": "day", "parent": "org", "deserved": {GPU: 6}}
    assert judged(night, org, day) == [
        (
            "queues[0].capability.nvidia.com/gpu: is 24, but the capability of 'org', the nearest "
            "queue above that names it, has 16, and Volcano's webhook rejects more. Write at most "
            "16. [queue-within-parent]"
        ),
        (
            "queues[1].deserved.nvidia.com/gpu: is 8, but the queues below 'org' deserve 12 of "
            "'nvidia.com/gpu' together, and Volcano's webhook rejects more than that. Write at "
            "least 12. [queue-within-parent]"
        ),
    ]


def test_the_volcano_of_a_queue_says_what_a_capability_leaves_open() -> None:
    args = {"name": "research", "capability": {GPU: 8}, "deserved": {GPU: 8, "cpu": 4}}
    assert judged(args) == []
    (text,) = judged({**args, "volcano_version": "1.14.1"})
    assert text.startswith("queues[0].deserved.cpu: is 4, but capability does not name it")
    with pytest.raises(SpecError):
        compile_queue({**args, "volcano_version": "1.14.1"})


def test_of_a_parent_that_another_stack_makes_nothing_is_said() -> None:
    assert judged({"name": "night", "parent": "org", "capability": {GPU: 24}}) == []


def test_a_place_in_a_queue_is_named_as_in_its_args() -> None:
    odd = "spec.metadata.example.com/gpu"
    (text,) = judged({"name": "q", "capability": {odd: 1}, "deserved": {odd: 2}})
    assert text.startswith(f"queues[0].deserved.{odd}: is 2, but capability has 1")
    with pytest.raises(SpecError) as caught:
        compile_queue({"name": "q", "guarantee": {odd: "1500m"}, "deserved": {odd: 2}})
    assert [finding.path for finding in caught.value.findings] == [f"guarantee.{odd}"]


def test_as_much_memory_as_volcano_can_count_is_no_mistake() -> None:
    assert judged({"name": "q", "capability": {"memory": "9Pi"}}) == []
    (text,) = judged({"name": "q", "capability": {"ephemeral-storage": "9Pi"}})
    assert "more than Volcano can count" in text


@pytest.mark.parametrize("name", ["a..b", "a.-b", ".a", "a.", "-a", "A", "a_b", ""])
def test_what_names_no_queue_is_refused_everywhere(name: str) -> None:
    for args in ({"name": name}, {"name": "q", "parent": name}):
        with pytest.raises(SpecError) as caught:
            compile_queue(args)
        assert caught.value.findings[0].rule == "pattern"


@pytest.mark.parametrize("name", ["a.b", "team-1.org.example", "9"])
def test_dots_may_part_the_name_of_a_queue(name: str) -> None:
    assert compile_queue({"name": "q", "parent": name}).body["spec"]["parent"] == name
