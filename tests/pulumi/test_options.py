"""What Pulumi's options on a component do to its objects: the engine, and rendered manifests."""

import json
from pathlib import Path
from typing import Any, Protocol

import pytest

from tests.support.engine import ROOT, Run, Stack
from tests.support.pages import block

pytestmark = pytest.mark.programs
OLD, NEW = "vllm/vllm-openai:v0.33.0", "vllm/vllm-openai:v0.32.0"
LAST = "pulumi.export"
PAGE = "docs/own-program.md"
CALL = 'chat = ModelServing("chat", {"roles": [{**pods, "engine": engine}], "expose": {"port": 80}}'


class Make(Protocol):
    """Gives a stack of ten-lines with options, which renders."""

    def __call__(self, options: str, before: str = "", backend: str = "native") -> Stack: ...


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def made(options: str, before: str = "", backend: str = "native") -> Stack:
        stack = Stack.make(ROOT / "examples" / "ten-lines", "dev", tmp_path)
        stack.change(lambda config: config.update({"kubernetes:renderYamlToDirectory": "rendered"}))
        main = stack.project / "__main__.py"
        program = main.read_text()
        assert f"{CALL})" in program
        stated = CALL.replace('"expose"', f'"backend": "{backend}", "expose"')
        call = f"{before}\n{stated}, pulumi.ResourceOptions({options}))"
        main.write_text(program.replace(f"{CALL})", call))
        return stack

    return made


def edit(stack: Stack, old: str, new: str) -> None:
    main = stack.project / "__main__.py"
    program = main.read_text()
    assert old in program
    main.write_text(program.replace(old, new))


def replaced(run: Run) -> int:
    run.require()
    return run.changes.get("replace", 0)


def resources(stack: Stack) -> list[dict[str, Any]]:
    exported = stack.pulumi("stack", "export", "--stack", stack.name)
    exported.require()
    found: list[dict[str, Any]] = json.loads(exported.text)["deployment"]["resources"]
    return found


def test_protection_is_refused_where_an_update_replaces(make: Make) -> None:
    stack = make("protect=True")
    refused = stack.up()
    assert refused.code != 0
    assert "opts.protect: is true, but another image replaces StatefulSet" in refused.text
    edit(stack, "protect=True", "protect=False")
    stack.up().require()
    edit(stack, OLD, NEW)
    assert replaced(stack.up()) == 2


def test_a_stack_that_was_protected_is_unprotected_alone(make: Make) -> None:
    """What the message says is what works: not together with another image."""
    stack = make("protect=False")
    stack.up().require()
    for each in resources(stack):
        if "StatefulSet" in each["type"]:
            stack.pulumi("state", "protect", each["urn"], "--yes", "--stack", stack.name).require()
    edit(stack, OLD, NEW)
    together = stack.up()
    assert together.code != 0
    assert "marked for protection" in together.text
    edit(stack, NEW, OLD)
    stack.up().require()
    edit(stack, OLD, NEW)
    assert replaced(stack.up()) == 2


def test_a_protected_serving_is_updated_in_place_and_not_deleted(make: Make) -> None:
    stack = make("protect=True", backend="kthena")
    stack.up().require()
    edit(stack, OLD, NEW)
    updated = stack.up()
    assert replaced(updated) == 0
    assert updated.ops("ModelServing")["update"] == 1
    destroyed = stack.destroy()
    assert destroyed.code != 0
    assert "cannot be deleted" in destroyed.text
    assert any("ModelServing" in each["type"] and each.get("protect") for each in resources(stack))


def test_changes_are_ignored_by_a_transform_and_not_by_the_component(make: Make) -> None:
    stack = make('ignore_changes=["roles"]')
    refused = stack.preview()
    assert refused.code != 0
    assert "opts.ignore_changes: is given" in refused.text


def test_the_transform_of_the_page_keeps_the_pods(make: Make) -> None:
    shown = block(PAGE, "def keep_pods(")
    stack = make("transforms=[keep_pods]", before=shown.partition("\n\n\noptions")[0])
    stack.up().require()
    edit(stack, OLD, NEW)
    assert replaced(stack.up()) == 0


def test_the_objects_are_deleted_with_what_the_component_names(make: Make) -> None:
    other = 'other = pulumi.ComponentResource("t:i:Other", "other")'
    stack = make("deleted_with=other, retain_on_delete=False", before=other)
    stack.up().require()
    urns = {each["type"]: each.get("deletedWith", "") for each in resources(stack)}
    assert urns["kubernetes:apps/v1:StatefulSet"].endswith("::other")


def test_the_objects_are_kept_where_none_is_replaced(make: Make) -> None:
    stack = make("retain_on_delete=True", backend="kthena")
    stack.up().require()
    kept = {
        each["type"].rpartition(":")[2]: each.get("retainOnDelete") for each in resources(stack)
    }
    assert kept["ModelServing"] is True
    assert kept["Service"] is True
    stack.destroy().require()
    assert list((stack.project / "rendered").rglob("*modelserving*.yaml"))


def test_the_timeouts_of_the_component_are_those_of_its_objects(make: Make) -> None:
    stack = make('custom_timeouts=pulumi.CustomTimeouts(create="7m")')
    stack.up().require()
    stated = [
        each.get("customTimeouts")
        for each in resources(stack)
        if each["type"].startswith("kubernetes:")
    ]
    assert len(stated) == 6
    assert {each["create"] for each in stated if each} == {420}
    assert all(stated)
