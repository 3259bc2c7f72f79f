"""`check` finds a wrong name wherever the file states it."""

import pytest

from kthena_components.checker.manifest import check_manifest
from tests.cli.conftest import Command, Write

LINES = "".join(f"    note-{number}: some words about this object\n" for number in range(90))


@pytest.mark.parametrize(
    "text",
    [
        f"kind: ConfigMap\nmetadata:\n  annotations:\n{LINES}  name: Chat_1\ndata: {{a: b}}\n",
        "# metadata\nkind: ConfigMap\nmetadata: # its name\n\n  # here\n  name: Chat_1",
        "kind: ConfigMap\ndata: {a: b}\nmetadata: {name: Chat_1}\n",
        "kind: ConfigMap\nmetadata:\n  name:\n    Chat_1\n",
    ],
)
def test_a_wrong_name_is_found_anywhere_in_the_metadata(
    run: Command, write: Write, text: str
) -> None:
    write("a.yaml", f"apiVersion: v1\n{text}")
    assert "[object-name]" in run("a.yaml").out


def test_a_name_in_the_data_is_no_name_of_the_object(run: Command, write: Write) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  name: Chat_1\n"
    write("a.yaml", text)
    assert "[object-name]" not in run("a.yaml").out


@pytest.mark.parametrize(
    "name",
    ["@MODEL@-chat", "#{model}#", "[[ model ]]", "%MODEL%-chat", "<model>_chat", "{model}_a"],
)
def test_a_placeholder_in_a_name_is_for_files_only(run: Command, write: Write, name: str) -> None:
    """A preview has the names themselves."""
    write("a.yaml", f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: '{name}'}}\n")
    assert "[object-name]" not in run("a.yaml").out
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    assert [found.rule for found in check_manifest(body)] == ["object-name"]
