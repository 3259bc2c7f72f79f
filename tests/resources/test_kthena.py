"""What a ModelServing registers on the kthena backend: one object, and its front Service."""

import pytest

from tests.resources.build import serving
from tests.support.recorder import Recorded, record
from tests.support.specs import ENGINE_RAY, changed


@pytest.fixture(scope="module", name="chat")
def registered_chat() -> Recorded:
    return record(lambda: serving(changed(ENGINE_RAY, {"backend": "kthena"})))


def test_one_object_stands_for_all_groups(chat: Recorded) -> None:
    assert [(r.type, r.name) for r in chat.resources] == [
        ("kthena:index:ModelServing", "chat"),
        ("kubernetes:workload.serving.volcano.sh/v1alpha1:ModelServing", "chat"),
        ("kubernetes:core/v1:Service", "chat"),
        ("kubernetes:policy/v1:PodDisruptionBudget", "chat"),
    ]


def test_the_object_hangs_directly_below_the_component(chat: Recorded) -> None:
    assert [chat.parents(r) for r in chat.resources] == [[], *[["chat"]] * 3]


def test_the_object_is_awaited_and_made_anew_when_its_gang_changes(chat: Recorded) -> None:
    request = chat.resources[1].request
    assert (request.customTimeouts.create, request.customTimeouts.update) == ("3600s", "3600s")
    assert list(request.replaceOnChanges) == ["spec.template.gangPolicy"]
    assert request.deleteBeforeReplace


def test_policies_see_the_backend_and_the_counts(chat: Recorded) -> None:
    props = chat.resources[0].props
    (row,) = props["shape"]
    assert (props["backend"], props["replicas"], row["gpus"]) == ("kthena", 2, 32)
