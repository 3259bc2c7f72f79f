"""Dynamo: the accelerators that a stack counts of a graph are those of its engines."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kthena_components.checker.manifest import read_demand, reduce_object
from kthena_components.core.values.unknown import MaybeInt, Unknown, total
from tests.support.groups import DYNAMO, DYNAMO_BETA, DYNAMO_ONE
from tests.support.peers import LATE, Manifest, changed
from tests.support.stacks import gpus_by_facts, gpus_by_pods
from tests.systems.dynamo.samples import SAMPLES

AT = "spec/services/decode"
EXTRA = f"{AT}/extraPodSpec"
BETA_POD = "spec/components/1/podTemplate/spec"


def counted(graph: Manifest) -> MaybeInt:
    """Count the accelerators of a graph as the budget of a stack does."""
    demand = read_demand(graph)
    return total([gpus_by_pods(graph), *([demand.gpus] if demand else [])])


def components(graph: Manifest) -> list[str]:
    """List where the components of a graph stand."""
    spec = graph["spec"]
    listed = [f"spec/components/{index}" for index in range(len(spec.get("components", ())))]
    return [*(f"spec/services/{name}" for name in spec.get("services", ())), *listed] or ["spec"]


NUMBERS = {
    "replicas": st.integers(0, 4),
    "multinode": st.fixed_dictionaries({"nodeCount": st.integers(2, 9)}),
}


@pytest.mark.property
@settings(max_examples=150, deadline=None)
@given(st.sampled_from(SAMPLES), st.data())
def test_pods_have_the_accelerators_that_the_engines_have(
    graph: Manifest, data: st.DataObject
) -> None:
    for at in components(graph):
        drawn = data.draw(st.fixed_dictionaries({}, optional=NUMBERS), label=at)
        graph = changed(graph, {f"{at}/{field}": value for field, value in drawn.items()})
        if graph["apiVersion"].endswith("v1alpha1"):
            gpu = data.draw(st.integers(0, 9), label="GPUs")
            graph = changed(graph, {f"{at}/resources": {"limits": {"gpu": gpu}}})
    assert isinstance(counted(graph), int)
    assert counted(graph) == gpus_by_pods(graph) == gpus_by_facts(graph)
    assert gpus_by_pods(reduce_object(graph)) == gpus_by_facts(graph)


@pytest.mark.parametrize(
    ("graph", "path"),
    [
        *((DYNAMO, path) for path in ("spec", "spec/services", AT, EXTRA)),
        (DYNAMO, f"{EXTRA}/mainContainer"),
        (DYNAMO, f"{AT}/replicas"),
        (DYNAMO, f"{AT}/multinode"),
        (DYNAMO, f"{AT}/multinode/nodeCount"),
        (DYNAMO, f"{AT}/resources"),
        (DYNAMO, f"{AT}/resources/limits"),
        (DYNAMO, f"{AT}/resources/limits/gpu"),
        (DYNAMO, f"{AT}/resources/limits/gpuType"),
        (DYNAMO_BETA, "spec/components"),
        (DYNAMO_BETA, "spec/components/1"),
        (DYNAMO_BETA, "spec/components/1/podTemplate"),
        (DYNAMO_BETA, f"{BETA_POD}/containers"),
        (DYNAMO_BETA, f"{BETA_POD}/containers/0/resources"),
        (DYNAMO_BETA, f"{BETA_POD}/containers/0/resources/limits"),
    ],
)
def test_what_is_not_known_yet_is_not_counted(graph: Manifest, path: str) -> None:
    late = changed(graph, {path: LATE})
    assert isinstance(gpus_by_facts(late), Unknown)
    assert isinstance(gpus_by_pods(late), Unknown)
    assert isinstance(gpus_by_pods(reduce_object(late)), Unknown)


def test_devices_that_a_claim_stands_for_stay_open() -> None:
    claims = {"claims": [{"name": "gpus"}]}
    graph = changed(DYNAMO_ONE, {"spec/resources": claims})
    assert isinstance(gpus_by_facts(graph), Unknown)
    assert isinstance(counted(graph), Unknown)
