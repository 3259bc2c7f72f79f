"""From single manifests to registrations, where no backend's own shape matters."""

import pulumi

from kthena_components.core.plan.manifest import Manifest
from kthena_components.resources._apply import Scope, apply
from kthena_components.resources._outputs import Outputs
from tests.support.recorder import Recorded, record


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
