"""What a component says of Pulumi's resource options that do not reach its objects.

tests/pulumi/test_options.py has the engine as judge.
"""

import inspect
from typing import Any

import pulumi
import pytest

from kthena_components import RefusedError
from kthena_components.provider.host import KthenaProvider
from kthena_components.resources import _call
from tests.provider.test_host import ROLE
from tests.resources.build import serving
from tests.support.pages import ROOT
from tests.support.recorder import attempt, record
from tests.support.specs import ENGINE_RAY, example_for

VALUES: dict[str, Any] = {
    "ignore_changes": ["roles"],
    "replace_on_changes": ["replicas"],
    "hide_diffs": ["replicas"],
    "delete_before_replace": True,
    "replacement_trigger": "1",
    "additional_secret_outputs": ["endpoint"],
    "import_": "serving/chat",
    "id": "serving/chat",
    "urn": "urn:pulumi:dev::chat::kthena:index:ModelServing::chat",
    "env_var_mappings": {"A": "B"},
}
REACHING = {
    "parent", "depends_on", "protect", "provider", "providers", "aliases", "custom_timeouts",
    "transformations", "transforms", "hooks", "retain_on_delete", "deleted_with",
    "state_migrations",
}  # fmt: skip
"""Options that reach the objects, or that mean the component."""
OF_PLUGINS = {"version", "plugin_download_url"}
"""Every generated SDK sets them."""
IN_PLACE = ("kthena", "booster", "lws", "matrixinfer", "kserve")


def refused(args: dict[str, Any], **options: Any) -> list[str]:
    tried = attempt(lambda: serving(args, pulumi.ResourceOptions(**options)))
    assert isinstance(tried.error, RefusedError), tried.error
    assert tried.resources == []
    return [str(finding) for finding in tried.error.findings]


@pytest.mark.parametrize("option", VALUES)
def test_an_option_that_reaches_no_object_is_refused(option: str) -> None:
    (told,) = refused(ENGINE_RAY, **{option: VALUES[option]})
    assert told.startswith(f"opts.{option}: is given, but Pulumi applies it to the component and")
    assert told.endswith(f"[{_call.RULE}]")


def test_all_of_them_are_told_at_once() -> None:
    told = refused(ENGINE_RAY, ignore_changes=["roles"], replace_on_changes=["replicas"])
    assert len(told) == 2


def test_every_option_of_the_sdk_is_known_here() -> None:
    """A new one needs a decision: tried with the engine, then refused or documented."""
    stated = set(inspect.signature(pulumi.ResourceOptions.__init__).parameters) - {"self"}
    known = REACHING | OF_PLUGINS | set(_call._WITHOUT_EFFECT)
    assert stated - known == set()
    page = (ROOT / "docs" / "own-program.md").read_text()
    assert [each for each in known - OF_PLUGINS if f"`{each}`" not in page] == []


def test_an_update_that_replaces_makes_protection_impossible() -> None:
    (told,) = refused(ENGINE_RAY, protect=True)
    assert told == (
        "opts.protect: is true, but another image replaces StatefulSet serving/chat-0-decode-0-w, "
        "and Pulumi replaces no protected object: each such update would fail. Write "
        "protect=False, in an update without other changes; backends kthena and lws update their "
        "objects in place. [component-option]"
    )
    (told,) = refused(example_for("kaito", "native-8b"), protect=True)
    assert "another image replaces Workspace" in told


def test_a_parent_protects_too() -> None:
    def program(own: bool | None) -> None:
        parent = pulumi.ComponentResource(
            "t:i:Parent", "p", None, pulumi.ResourceOptions(protect=True)
        )
        serving(ENGINE_RAY, pulumi.ResourceOptions(parent=parent, protect=own))

    assert "opts.protect: is true" in str(attempt(lambda: program(None)).error)
    seen = record(lambda: program(False))
    assert not any(each.request.protect for each in seen.of_kind("StatefulSet"))


@pytest.mark.parametrize("backend", IN_PLACE)
def test_a_serving_that_is_updated_in_place_can_be_protected(backend: str) -> None:
    args = example_for(backend, "native-8b")
    options = pulumi.ResourceOptions(protect=True)
    seen = record(lambda: serving({**args, "replicas": 2}, options, name="small"))
    protected = {each.kind: each.request.protect for each in seen.resources}
    assert protected.pop("PodDisruptionBudget", False) is False, "one engine has none"
    assert protected
    assert all(protected.values())


def test_a_kept_object_would_have_the_name_of_its_replacement() -> None:
    (told,) = refused(ENGINE_RAY, retain_on_delete=True)
    assert "opts.retain_on_delete: is true, but another image replaces StatefulSet" in told
    args = example_for("kthena", "native-8b")
    seen = record(lambda: serving(args, pulumi.ResourceOptions(retain_on_delete=True)))
    assert seen.of_kind("ModelServing")


def test_what_a_component_of_another_language_gets_is_no_option() -> None:
    """The SDK fills in empty lists and False."""
    options = pulumi.ResourceOptions(
        protect=False, ignore_changes=[], replace_on_changes=[], retain_on_delete=False,
        delete_before_replace=False, additional_secret_outputs=[], hide_diffs=[],
    )  # fmt: skip
    kind = "kthena:index:ModelServing"
    provider = KthenaProvider()
    assert (
        attempt(lambda: provider.construct("chat", kind, {"roles": [ROLE]}, options)).error is None
    )
    options.ignore_changes = ["roles"]
    tried = attempt(lambda: provider.construct("chat", kind, {"roles": [ROLE]}, options))
    assert "opts.ignoreChanges: is given" in str(tried.error)
