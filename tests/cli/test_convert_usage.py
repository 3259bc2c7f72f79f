"""What `convert` says about wrong usage, and about files with nothing to convert."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Command
from tests.support.convertible import model_serving


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["--to", "typescript"], "the package has no components for TypeScript"),
        (["--to", "kthina"], "there is no such target; write kthena"),
        (["--to", "lws", "--backend", "lws"], "--backend is only for --to python or stack"),
        (["--to", "lws", "--set", "queue"], "--set queue: write FIELD=VALUE"),
        (["--to", "lws", "--set", "queue=[", "-"], "the value is not valid YAML"),
        (["--to", "lws", "--set", "roles[7].name=a"], "there is no [7] at its place"),
        (["--to", "lws", "--set", "name.x=a"], "what is before 'x' has no fields"),
        (["--to", "lws", "--set", ".=a"], "'.' is not the path of an argument"),
    ],
)
def test_wrong_usage_is_explained(command: Command, file: Any, asked: list[str], said: str) -> None:
    ran = command("convert", *asked, file(model_serving()))
    assert (ran.status, ran.out) == (2, "")
    assert said in ran.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [", "is not valid YAML"),
        ("a: 1\n", "model.yaml:1: is no Kubernetes object"),
        ("{{ if .Values.a }}\na: b: c\n", "is a template with {{ or {%"),
        ("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n", "there is nothing to convert"),
    ],
)
def test_a_file_that_cannot_be_converted_is_explained(
    command: Command, tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "model.yaml"
    path.write_text(text)
    ran = command("convert", "--to", "kthena", str(path))
    assert (ran.status, ran.out) == (2, "")
    assert said in ran.err
