"""What a ModelServing registers on the lws backend: one set, and its front Service."""

from kthena_components.core import naming
from tests.resources.build import serving
from tests.support.recorder import record
from tests.support.specs import changed, example_for

ENGINE = example_for("lws", "engine-ray")


def test_one_set_stands_for_all_groups() -> None:
    chat = record(lambda: serving(ENGINE))
    assert [(r.type, r.name) for r in chat.resources] == [
        ("kthena:index:ModelServing", "chat"),
        ("kubernetes:leaderworkerset.x-k8s.io/v1:LeaderWorkerSet", "chat-decode"),
        ("kubernetes:core/v1:Service", "chat"),
        ("kubernetes:policy/v1:PodDisruptionBudget", "chat"),
    ]
    made = chat.resources[1]
    assert (made.request.customTimeouts.create, made.props["spec"]["replicas"]) == ("3600s", 2)
    assert list(made.request.replaceOnChanges) == []


def test_several_roles_are_one_set_that_nothing_waits_for() -> None:
    split = record(lambda: serving(example_for("lws", "prefill-decode")))
    made = split.resources[1]
    assert made.type == "kubernetes:disaggregatedset.x-k8s.io/v1:DisaggregatedSet"
    assert [role["name"] for role in made.props["spec"]["roles"]] == ["prefill", "decode"]
    assert not made.request.customTimeouts.create


def test_the_queue_is_an_annotation() -> None:
    seen = record(lambda: serving(changed(ENGINE, {"queue": "research"})))
    annotations = seen.resources[1].props["metadata"]["annotations"]
    assert annotations[naming.QUEUE_NAME] == "research"
