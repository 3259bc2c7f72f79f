"""The recorder itself: it must see what an engine would refuse."""

import pulumi
import pytest

from tests.support.recorder import attempt, record


def service(name: str, parent: pulumi.Resource | None = None) -> None:
    opts = pulumi.ResourceOptions(parent=parent)
    pulumi.CustomResource("kubernetes:core/v1:Service", name, {"spec": {}}, opts)


def test_a_name_used_twice_below_parents_of_one_type_is_found() -> None:
    def program() -> None:
        for parent in ("one", "two"):
            service("same", pulumi.ComponentResource("test:index:Parent", parent))

    with pytest.raises(AssertionError, match="registered twice"):
        record(program)


def test_a_name_used_below_parents_of_two_types_is_fine() -> None:
    def program() -> None:
        service("same", pulumi.ComponentResource("test:index:One", "parent"))
        service("same", pulumi.ComponentResource("test:index:Two", "parent"))

    assert [r.urn.split("::")[2] for r in record(program).of_kind("Service")] == [
        "test:index:One$kubernetes:core/v1:Service",
        "test:index:Two$kubernetes:core/v1:Service",
    ]


def test_an_error_in_an_apply_is_not_lost() -> None:
    def program() -> None:
        pulumi.Output.from_input(1).apply(lambda value: value / 0)

    with pytest.raises(ZeroDivisionError):
        record(program)


def test_what_was_registered_before_an_error_is_kept() -> None:
    def program() -> None:
        service("first")
        raise pulumi.RunError("stop")

    tried = attempt(program)
    assert [r.name for r in tried.resources] == ["first"]
    assert str(tried.error) == "stop"


def test_one_run_leaves_nothing_to_the_next() -> None:
    def program() -> None:
        service("left")
        raise pulumi.RunError("stop")

    attempt(program)
    assert record(lambda: None).resources == []
