"""What a ModelServing registers on the matrixinfer backend: one object, and a front Service."""

import pytest

from tests.resources.build import serving
from tests.support.recorder import record
from tests.support.specs import changed, example_for

ENGINE = example_for("matrixinfer", "engine-ray")


@pytest.mark.parametrize("group", ["workload.matrixinfer.ai", "workload.volcano.sh"])
def test_one_model_infer_stands_for_all_groups(group: str) -> None:
    chosen = {"backend_options": {"api_group": group}}
    chat = record(lambda: serving(changed(ENGINE, chosen)))
    assert [(r.type, r.name) for r in chat.resources] == [
        ("kthena:index:ModelServing", "chat"),
        (f"kubernetes:{group}/v1alpha1:ModelInfer", "chat"),
        ("kubernetes:core/v1:Service", "chat"),
        ("kubernetes:policy/v1:PodDisruptionBudget", "chat"),
    ]
    made = chat.resources[1]
    assert (made.request.customTimeouts.create, made.props["spec"]["replicas"]) == ("3600s", 2)
    assert list(made.request.replaceOnChanges) == []
