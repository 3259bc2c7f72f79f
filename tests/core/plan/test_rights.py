"""The role of a deployer against what the package emits."""

import pytest
import yaml

from kthena_components.cli.main import main
from kthena_components.compiler.compile import compile_serving
from kthena_components.core.plan.manifest import WRITE, roles
from kthena_components.systems import EMITTERS, extras, resources_of
from tests.support.goldens import CASES
from tests.support.specs import example_for


@pytest.mark.parametrize("backend", EMITTERS)
def test_a_deployer_may_write_exactly_the_kinds_that_are_emitted(backend: str) -> None:
    examples = [example_for(backend, name) for name in ("engine-ray", "prefill-decode")]
    examples += [args for name, args in CASES.items() if name.startswith(f"{backend}/")]
    emitted = {
        (manifest.body["apiVersion"].rpartition("/")[0], plural_of(manifest.kind))
        for args in examples
        for manifest in compile_serving(args).manifests
    }
    written = {(r.group, r.plural) for r in resources_of([backend]) if r.verbs == WRITE}
    assert written == emitted


def test_a_deployer_of_a_monitored_serving_may_write_what_is_added() -> None:
    examples = [args for name, args in CASES.items() if name.startswith("prometheus/")]
    assert examples
    added = {
        (manifest.body["apiVersion"].rpartition("/")[0], plural_of(manifest.kind))
        for args in examples
        for manifest in compile_serving(args).manifests
    } - {(r.group, r.plural) for r in resources_of(["native", "lws"])}
    assert {(r.group, r.plural) for r in resources_of([], ["monitoring"])} == added


def plural_of(kind: str) -> str:
    """Name a kind as its CRD does in the API."""
    name = kind.lower()
    return f"{name.removesuffix('y')}ies" if name.endswith("y") else f"{name}s"


def test_nothing_is_granted_as_a_whole() -> None:
    granted = [right.rule() for right in resources_of(EMITTERS, extras())]
    assert "*" not in str(granted)


def test_what_belongs_to_no_namespace_stays_in_a_cluster_role() -> None:
    written = roles(resources_of(["kthena"], ["queues", "secrets"]), "serving")
    assert [(role["kind"], role["metadata"].get("namespace")) for role in written] == [
        ("ClusterRole", None), ("Role", "serving"),
    ]  # fmt: skip
    assert [rule["resources"] for rule in written[0]["rules"]] == [["queues"]]
    assert ["secrets"] in [rule["resources"] for rule in written[1]["rules"]]


def test_the_command_prints_roles_that_kubectl_takes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rights", "--backend", "native", "--namespace", "serving"]) == 0
    (role,) = yaml.safe_load_all(capsys.readouterr().out)
    assert role["kind"] == "Role"
    assert role["rules"] == [right.rule() for right in resources_of(["native"])]


def test_a_namespace_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["rights", "--namespace", "Not_One"])
    assert "'Not_One' is not a valid namespace" in capsys.readouterr().err
