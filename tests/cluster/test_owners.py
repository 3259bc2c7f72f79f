"""The stacks that have objects in a cluster."""

from collections.abc import Sequence
from typing import Any, cast

import pytest

from kthena_components.cluster.client import Cluster, ClusterError
from kthena_components.cluster.fetch_servings_and_inventory import stacks_in
from kthena_components.convert.lost_fields import find_losses
from kthena_components.core.naming import STACK


def body(stack: str | None, **metadata: object) -> dict[str, Any]:
    annotations = {} if stack is None else {"annotations": {STACK: stack}}
    return {"metadata": {"name": "a", **annotations, **metadata}}


class Listing:
    """A cluster with StatefulSets, Secrets that may not be read, and Queues."""

    def serves(self, _version: str, kind: str) -> bool:
        return kind in {"StatefulSet", "Secret", "Queue"}

    def list(self, _version: str, kind: str, *_rest: object) -> Sequence[dict[str, Any]]:
        if kind == "Secret":
            raise ClusterError(403, "Forbidden", "no")
        if kind == "Queue":
            return [body("acme/shop/prod")]
        owned = body("acme/shop/dev", ownerReferences=[{"kind": "InferenceService"}])
        return [body("acme/shop/dev"), body("acme/shop/dev"), body(None), owned]


class Down(Listing):
    """A cluster that does not answer."""

    def serves(self, _version: str, _kind: str) -> bool:
        raise ClusterError(0, "Down", "no answer")


def test_objects_are_counted_by_stack() -> None:
    found = stacks_in(cast("Cluster", Listing()))
    assert found == {"acme/shop/dev": 2, "acme/shop/prod": 1}


def test_a_cluster_that_does_not_answer_is_an_error() -> None:
    with pytest.raises(ClusterError):
        stacks_in(cast("Cluster", Down()))


def test_a_conversion_does_not_lose_it() -> None:
    """The stack of the converted program writes its own."""
    assert list(find_losses(body("acme/shop/dev"), body(None))) == []
