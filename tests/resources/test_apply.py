"""From single manifests to registrations, where no backend's own shape matters."""

import subprocess
import sys
from dataclasses import replace

import pulumi
import pytest

from kthena_components.core.plan.manifest import Manifest
from kthena_components.core.values.unknown import OUTPUT_CLOSE, OUTPUT_OPEN
from kthena_components.resources import _apply
from kthena_components.resources._apply import Scope, apply
from kthena_components.resources._outputs import Outputs
from tests.support.recorder import Recorded, attempt, record


def manifest(name: str, *after: str, replace_with: tuple[str, ...] = ()) -> Manifest:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    return Manifest(
        body=body,
        after=tuple(f"ConfigMap/{key}" for key in after),
        replace_with=tuple(f"ConfigMap/{key}" for key in replace_with),
    )


def applied(*manifests: Manifest) -> Recorded:
    def program() -> None:
        root = pulumi.ComponentResource("test:index:Root", "root")
        apply(Scope(root=root, name="root", serving="m"), manifests, Outputs({}))

    return record(program)


def stated(seen: Recorded, name: str) -> set[str]:
    urns = seen.named(name, "ConfigMap").request.dependencies
    return {seen.by_urn(urn).name for urn in urns}


def test_what_another_dependency_waits_for_is_not_stated_again() -> None:
    seen = applied(
        manifest("m-a"),
        manifest("m-b", "m-a"),
        manifest("m-c"),
        manifest("m-d", "m-a", "m-b", "m-c", "m-b"),
    )
    assert stated(seen, "root-d") == {"root-b", "root-c"}
    assert seen.waits_for(seen.named("root-d", "ConfigMap")) == {
        "ConfigMap/root-a", "ConfigMap/root-b", "ConfigMap/root-c",
    }  # fmt: skip


def test_dependencies_stay_linear_where_everything_waits_for_everything() -> None:
    names = [f"m-{i}" for i in range(30)]
    seen = applied(*(manifest(name, *names[:i]) for i, name in enumerate(names)))
    assert sum(len(r.request.dependencies) for r in seen.of_kind("ConfigMap")) == 29


def test_what_is_replaced_together_says_so() -> None:
    seen = applied(manifest("m-a"), manifest("m-b", replace_with=("m-a",)))
    (urn,) = seen.named("root-b", "ConfigMap").request.replace_with
    assert seen.by_urn(urn).name == "root-a"


def chain(length: int) -> list[Manifest]:
    names = [f"m-{i}" for i in range(length)]
    return [manifest(name, *names[max(0, i - 1) : i]) for i, name in enumerate(names)]


def test_a_chain_longer_than_the_stack_is_deep_is_registered() -> None:
    length, limit = 450, sys.getrecursionlimit()
    sys.setrecursionlimit(length)
    try:
        seen = applied(*chain(length))
    finally:
        sys.setrecursionlimit(limit)
    assert len(seen.of_kind("ConfigMap")) == length
    assert stated(seen, f"root-{length - 1}") == {f"root-{length - 2}"}


def chain_with(late: pulumi.Input[str]) -> tuple[list[Manifest], Outputs]:
    """Return a chain in which the first manifest waits for an Output."""
    first, *rest = chain(8)
    data = {"a": f"{OUTPUT_OPEN}0{OUTPUT_CLOSE}"}
    outputs = Outputs({0: pulumi.Output.from_input(late)})
    return [replace(first, body={**first.body, "data": data}), *rest], outputs


@pytest.mark.parametrize("many", [0, 1000])
def test_a_failure_ends_the_program_with_its_own_error(
    many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused() -> str:
        raise LookupError("the engine's answer")

    def program() -> None:
        root = pulumi.ComponentResource("test:index:Root", "root")
        apply(Scope(root=root, name="root"), *chain_with(refused()))

    monkeypatch.setattr(_apply, "MANY_OUTPUTS", many)
    assert str(attempt(program).error) == "the engine's answer"


def test_another_sdk_may_wait_as_it_likes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_apply, "MANY_OUTPUTS", 0)
    monkeypatch.setattr(_apply, "settings", object())
    assert len(applied(*chain(8)).of_kind("ConfigMap")) == 8


MOCKED = """
import pulumi
from kthena_components import ModelServing
from kthena_components.resources import _apply
class Mocks(pulumi.runtime.Mocks):
    def new_resource(self, args): return f"{args.name}-id", args.inputs
    def call(self, args): return {}
_apply.MANY_OUTPUTS = 0
pulumi.runtime.set_mocks(Mocks())
role = {"name": "a", "entry_template": {"spec": {"containers": [{"name": "a", "image": "b"}]}}}
serving = ModelServing("chat", {"roles": [role]})
pulumi.runtime.test(lambda: serving.pod_count.apply(print))()
"""


def test_components_can_be_made_with_mocks_before_an_event_loop_runs() -> None:
    done = subprocess.run(
        [sys.executable, "-c", MOCKED], capture_output=True, text=True, check=True
    )
    assert done.stdout == "1\n"
