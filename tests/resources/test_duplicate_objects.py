"""Two components of one program never create the same object."""

import pulumi
import pytest

from kthena_components import RefusedError
from tests.resources.build import group, role, serving
from tests.support.recorder import attempt, record
from tests.support.specs import ENGINE_RAY, GROUP, REMOVED, ROLE, Args, changed

ARGS = changed(ENGINE_RAY, {"name": "chat"})


def provider(name: str) -> pulumi.ProviderResource:
    return pulumi.ProviderResource("kubernetes", name, {})


def on(made: pulumi.ProviderResource) -> pulumi.ResourceOptions:
    return pulumi.ResourceOptions(provider=made)


@pytest.mark.parametrize("first", [ARGS, changed(ARGS, {"expose": {"port": 80}})])
def test_a_second_serving_of_one_name_is_refused_before_it_registers(first: Args) -> None:
    def program() -> None:
        serving(first, name="one")
        serving(ARGS, name="two")

    tried = attempt(program)
    assert isinstance(tried.error, RefusedError)
    assert str(tried.error).startswith(
        "ModelServing 'two' is refused: 1 problem\n  name: would create the "
    )
    assert str(tried.error).endswith(
        "which ModelServing 'one' also creates. Rename one of the two, or give it another "
        "namespace. [object-twice]"
    )
    assert not [made for made in tried.resources if made.name.startswith("two")]


def test_other_names_namespaces_and_backends_are_taken() -> None:
    def program() -> None:
        serving(ARGS, name="one")
        serving(changed(ARGS, {"namespace": "other"}), name="two")
        serving(changed(ARGS, {"name": "other"}), name="three")
        other = {"backend": "kthena", "expose": REMOVED, "pod_disruption_budget": False}
        serving(changed(ARGS, other), name="four")

    assert record(program).error is None


def test_two_clusters_may_have_the_same_objects() -> None:
    def program() -> None:
        serving(ARGS, on(provider("a")), name="one")
        serving(ARGS, on(provider("b")), name="two")
        serving(ARGS, pulumi.ResourceOptions(providers=[provider("c")]), name="three")
        serving(ARGS, pulumi.ResourceOptions(providers={"kubernetes": provider("d")}), name="four")

    assert record(program).error is None


def test_the_provider_of_a_parent_counts() -> None:
    def program() -> None:
        cluster = provider("a")
        parent = pulumi.ComponentResource(
            "test:index:Team", "team", {}, pulumi.ResourceOptions(providers=[cluster])
        )
        serving(ARGS, on(cluster), name="one")
        serving(ARGS, pulumi.ResourceOptions(parent=parent), name="two")

    assert "which ModelServing 'one' also creates" in str(attempt(program).error)


def test_groups_and_roles_are_compared_with_servings() -> None:
    def program() -> None:
        group(changed(GROUP, {"name": "chat", "group": 0}), name="alone")
        role(changed(ROLE, {"serving": "other"}), name="decode")
        role(changed(ROLE, {"serving": "other", "group": 1}), name="decode-1")
        serving(ARGS, name="whole")

    text = str(attempt(program).error)
    assert "ModelServing 'whole' is refused" in text
    assert "which ServingGroup 'alone' also creates" in text
