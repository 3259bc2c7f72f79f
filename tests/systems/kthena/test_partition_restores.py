"""What Kthena stored of roles, compared with an update whose partition holds groups back.

The objects are as Kthena 1.0.0 left them in a sandbox after its role was scaled.
"""

from typing import Any

import pytest

from kthena_components.systems.kthena.view import restored_roles

Body = dict[str, Any]


def serving(engines: int, partition: int | str | None = 1, revision: str = "7f5") -> Body:
    strategy = {"rollingUpdateConfiguration": {"partition": partition}}
    return {
        "apiVersion": "workload.serving.volcano.sh/v1alpha1",
        "kind": "ModelServing",
        "metadata": {"name": "chat", "namespace": "serving"},
        "spec": {
            "replicas": 2,
            "rolloutStrategy": strategy,
            "template": {"roles": [{"name": "serve", "replicas": engines}]},
        },
        "status": {"currentRevision": revision},
    }


def stored(engines: int, revision: str = "7f5") -> Body:
    labels = {"modelserving.volcano.sh/name": "chat", "modelserving.volcano.sh/revision": revision}
    data = {"data": [{"name": "serve", "replicas": engines}]}
    return {"metadata": {"name": f"chat-{revision}", "labels": labels}, "data": data}


def said(after: Body, *revisions: Body, live: Body | None = None) -> list[str]:
    return list(map(str, restored_roles(after, live or serving(1, None), revisions)))


def test_a_role_that_was_scaled_before_the_partition_is_named() -> None:
    assert said(serving(1), stored(5, "other"), stored(2)) == [
        (
            "spec.template.roles[0].replicas: is 1, but Kthena stored 2 when it created groups, "
            "and gives the 1 group that the partition holds back 2 again; the ModelServing then "
            "does not become Available. Remove the partition in this update, which updates all "
            "groups, or first write replicas: 2 in an update without a partition. "
            "[kthena-partition-restores]"
        )
    ]


def test_a_role_that_grew_since_loses_engines() -> None:
    (one,) = said(serving(2), stored(1))
    assert "stored 1 when it created groups" in one
    assert "Available" not in one


@pytest.mark.parametrize(
    ("after", "revisions"),
    [
        (serving(2), [stored(2)]),
        (serving(1, None), [stored(2)]),
        (serving(1, 0), [stored(2)]),
        (serving(1), []),
        (serving(1), [stored(2, "other")]),
        (serving(1), [{"metadata": {}, "data": None}]),
        (serving(1), [{**stored(2), "data": {"data": "x"}}]),
    ],
)
def test_nothing_is_said_of_other_updates(after: Body, revisions: list[Body]) -> None:
    assert said(after, *revisions) == []


def test_groups_that_do_not_exist_yet_are_not_held() -> None:
    live = serving(1, None)
    live["spec"]["replicas"] = 0
    assert said(serving(1), stored(2), live=live) == []
