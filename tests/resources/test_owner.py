"""The stack that an object belongs to. That the API server holds it is shown by conformance."""

import pulumi
import pytest

from kthena_components.core.naming import STACK
from kthena_components.systems import EMITTERS
from tests.resources.build import group, queue, role, serving, topology
from tests.resources.test_standalone import INVENTORY
from tests.support.recorder import record
from tests.support.specs import ENGINE_RAY, GROUP, ROLE, example_for

OWNER = "organization/project/stack"


@pytest.mark.parametrize("backend", EMITTERS)
def test_every_object_states_its_stack(backend: str) -> None:
    args = ENGINE_RAY if backend == "native" else example_for(backend, "native-8b")

    def program() -> None:
        serving(args, name="served")
        group(GROUP, name="third")
        role({**ROLE, "serving": "alone"})
        topology(INVENTORY)
        queue({})

    made = [each for each in record(program).resources if each.request.custom]
    assert {each.type.partition(":")[0] for each in made} == {"kubernetes"}
    owners = {each.props["metadata"]["annotations"].get(STACK) for each in made}
    assert owners == {OWNER}


def test_pods_do_not_state_it() -> None:
    seen = record(lambda: serving(ENGINE_RAY))
    for each in seen.of_kind("StatefulSet"):
        assert STACK not in str(each.props["spec"])


def test_the_other_annotations_stay() -> None:
    (gang, *_) = record(lambda: serving(ENGINE_RAY)).of_kind("PodGroup")
    assert gang.props["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == "chat-0"


def test_a_file_does_not_state_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_CONFIG", '{"kubernetes:renderYamlToDirectory": "out"}')
    made = record(lambda: serving(ENGINE_RAY)).resources
    assert STACK not in str([each.props for each in made])
    assert pulumi.Config("kubernetes").get("renderYamlToDirectory") == "out"
