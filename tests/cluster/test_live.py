"""Live objects as somebody applied them. `conformance adoption` asks a real API server."""

import json
from typing import Any

import pytest

from kthena_components.cluster.client import Cluster, ClusterError
from kthena_components.cluster.live import as_applied, exists, fetch_live

LAST = "kubectl.kubernetes.io/last-applied-configuration"
SERVER = {
    "uid": "1", "resourceVersion": "7", "generation": 3,
    "creationTimestamp": "2026-11-01T00:00:00Z",
    "managedFields": [], "finalizers": ["kaito.sh/workspace"],
}  # fmt: skip


def live(annotations: dict[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    given = {"annotations": annotations} if annotations else {}
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "chat", "namespace": "serving", **SERVER, **given, **metadata},
        "spec": {
            "replicas": 3,
            "startupPolicy": "LeaderCreated",
            "containers": [
                {"name": "a", "args": ["x", "y"], "pullPolicy": "Always"},
                {"name": "sidecar", "image": "i"},
            ],
            "tolerations": [{"key": "gpu"}],
        },
        "status": {"replicas": 3},
    }


Fields = dict[str, Any]


def applied(*fields: Fields) -> dict[str, Any]:
    managers = [{"manager": f"m{i}", "operation": "Apply", "fieldsV1": one}
                for i, one in enumerate(fields)]  # fmt: skip
    policy: Fields = {"fieldsV1": {"f:spec": {"f:startupPolicy": {}}}}
    others = [
        {"manager": "manager", "operation": "Update", **policy},
        {"manager": "hpa", "operation": "Apply", "subresource": "status", **policy},
    ]
    return live(managedFields=[*managers, *others])


NAMED = {"name": "chat", "namespace": "serving"}


def test_kubectl_apply_says_which_fields_are_its_users_and_the_cluster_their_values() -> None:
    said = {
        "apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet",
        "metadata": {"name": "chat", "labels": {"gone": "since"}},
        "spec": {"replicas": 2, "containers": [{"name": "a", "args": ["x"]}, {"name": "s"}]},
    }  # fmt: skip
    found = as_applied(live({LAST: json.dumps(said), "note": "of a controller"}))
    assert found == {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": NAMED,
        "spec": {
            "replicas": 3,
            "containers": [{"name": "a", "args": ["x", "y"]}, {"name": "sidecar"}],
        },
    }


def test_a_list_of_another_length_is_taken_whole() -> None:
    said = {"metadata": {"name": "chat"}, "spec": {"containers": [{"name": "a"}]}}
    found = as_applied(live({LAST: json.dumps(said)}))
    assert found["spec"] == {"containers": live()["spec"]["containers"]}


def test_managers_that_apply_on_the_server_have_their_fields_together() -> None:
    one: Fields = {
        "f:spec": {"f:containers": {'k:{"name":"a"}': {".": {}, "f:name": {}, "f:args": {}}}}
    }
    other = {"f:spec": {"f:replicas": {}}, "f:metadata": {"f:annotations": {".": {}, "f:b": {}}}}
    body = applied(one, other)
    body["metadata"]["annotations"] = {"a": "1", "b": "2"}
    found = as_applied(body)
    assert found["spec"] == {"replicas": 3, "containers": [{"name": "a", "args": ["x", "y"]}]}
    assert found["metadata"] == {**NAMED, "annotations": {"b": "2"}}


@pytest.mark.parametrize(
    ("fields", "seen"),
    [
        ({"f:containers": {}}, {"containers": live()["spec"]["containers"]}),
        ({"f:containers": {"i:1": {"f:image": {}}}}, {"containers": [{"image": "i"}]}),
        ({"f:tolerations": {".": {}}}, {"tolerations": []}),
        ({"f:none": {}}, {}),
    ],
    ids=["a whole list", "an item by its place", "an empty list", "a field that is gone"],
)
def test_the_forms_of_fields(fields: dict[str, Any], seen: dict[str, Any]) -> None:
    assert as_applied(applied({"f:spec": fields}))["spec"] == seen


def test_values_of_a_set() -> None:
    body = applied({"f:spec": {"f:containers": {"i:0": {"f:args": {'v:"y"': {}}}}}})
    assert as_applied(body)["spec"] == {"containers": [{"args": ["y"]}]}


def test_a_value_that_one_manager_has_whole_is_whole() -> None:
    part: Fields = {"f:spec": {"f:containers": {'k:{"name":"a"}': {"f:args": {}}}}}
    whole: Fields = {"f:spec": {"f:containers": {}}}
    for fields in ([part, whole], [{"f:spec": {}}, part]):
        found = as_applied(applied(*fields))
        assert found["spec"]["containers"] == live()["spec"]["containers"]


@pytest.mark.parametrize("note", ["", "no JSON", "[]", "3"])
def test_a_broken_annotation_of_kubectl_says_nothing(note: str) -> None:
    assert as_applied(live({LAST: note})) == as_applied(live())


def test_without_records_the_whole_spec_is_its_users() -> None:
    found = as_applied(live({"note": "mine"}))
    assert found["spec"] == live()["spec"]
    assert found["metadata"] == {**NAMED, "annotations": {"note": "mine"}}
    assert "status" not in found


def service(**spec: Any) -> dict[str, Any]:
    own = {"selector": {"app": "chat"}, "ports": [{"port": 80}]}
    metadata = {"name": "chat", "namespace": "serving", **SERVER}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {**own, **spec}}


def test_a_service_loses_what_the_api_server_has_given_it() -> None:
    given = service(
        clusterIP="10.0.0.1", clusterIPs=["10.0.0.1"], ipFamilies=["IPv4"],
        ipFamilyPolicy="SingleStack", internalTrafficPolicy="Cluster", sessionAffinity="None",
        type="ClusterIP",
    )  # fmt: skip
    assert as_applied(given)["spec"] == service(type="ClusterIP")["spec"]
    stated = {"clusterIP": "None", "internalTrafficPolicy": "Local", "sessionAffinity": "ClientIP"}
    assert as_applied(service(**stated))["spec"] == service(**stated)["spec"]


class Answers(Cluster):
    """A cluster with some answers by path."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self._answers, self._resources = answers, {}

    def ask(self, method: str, path: str, *_: Any, **__: Any) -> Any:
        assert method == "GET"
        found = self._answers.get(path, 404)
        if isinstance(found, int):
            raise ClusterError(found, "", "no")
        return found


def resources(*names: tuple[str, str]) -> dict[str, Any]:
    return {"resources": [{"name": n, "kind": k, "namespaced": True} for n, k in names]}


LWS = ("leaderworkerset.x-k8s.io", "LeaderWorkerSet")
SERVED = {
    "/apis/leaderworkerset.x-k8s.io": {
        "preferredVersion": {"groupVersion": "leaderworkerset.x-k8s.io/v1"}
    },
    "/apis/leaderworkerset.x-k8s.io/v1": resources(("leaderworkersets", "LeaderWorkerSet")),
    "/api/v1": resources(("services", "Service")),
}
LISTED = "/apis/leaderworkerset.x-k8s.io/v1/namespaces/serving/leaderworkersets"


def page(*items: dict[str, Any]) -> dict[str, Any]:
    return {"items": items, "metadata": {}}


def test_what_a_controller_has_created_belongs_to_something_else() -> None:
    owned = live(ownerReferences=[{"kind": "DisaggregatedSet", "controller": True}])
    tied = live(ownerReferences=[{"kind": "App", "uid": "2"}])
    cluster = Answers({**SERVED, LISTED: page(live(), owned, tied)})
    kinds = [LWS, ("kaito.sh", "Workspace"), ("leaderworkerset.x-k8s.io", "Other")]
    found = fetch_live(cluster, kinds, "serving")
    assert [body["metadata"].get("ownerReferences") for body in found] == [
        None,
        [{"kind": "App", "uid": "2"}],
    ]


def test_a_kind_that_may_not_be_read_is_named() -> None:
    with pytest.raises(ClusterError, match=r"^you may not read LeaderWorkerSets$"):
        fetch_live(Answers({**SERVED, LISTED: 403}), [LWS], "serving")


def test_whether_an_object_exists_is_asked_or_refused() -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": NAMED}
    path = "/api/v1/namespaces/serving/services/chat"
    assert not exists(Answers(SERVED), service)
    assert exists(Answers({**SERVED, path: service}), service)
    with pytest.raises(ClusterError, match=r"^you may not read Service chat$"):
        exists(Answers({**SERVED, path: 403}), service)
