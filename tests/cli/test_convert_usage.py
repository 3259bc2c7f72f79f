"""What `convert` says about wrong usage, and about files with nothing to convert."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Command
from tests.support.convertible import model_serving


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["--to", "kthina"], "there is no such target; write kthena"),
        (
            ["--to", "lws", "--backend", "lws"],
            "--backend is only for --to python, typescript or stack",
        ),
        (["--to", "lws", "--set", "queue"], "--set queue: write FIELD=VALUE"),
        (["--to", "lws", "--set", "queue=[", "-"], "the value is not valid YAML"),
        (["--to", "lws", "--set", "roles[7].name=a"], "there is no [7] at its place"),
        (["--to", "lws", "--set", "name.x=a"], "what stands before 'x' has no fields"),
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
        ("a: 1\n", "model.yaml:1: is not a Kubernetes object"),
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


def test_a_program_in_typescript_uses_the_names_of_its_sdk(command: Command, file: Any) -> None:
    ran = command("convert", "--to", "typescript", file(model_serving()))
    assert ran.status == 0, ran.err
    head, _, call = ran.out.partition("\n\n")
    assert head.endswith('import * as kthena from "@pulumi/kthena";')
    assert call.startswith('new kthena.ModelServing("llama", {\n    name: "llama",\n')
    assert "workerReplicas: 1," in call
    assert "worker_replicas" not in call


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda key: json.dumps(key.replace("schedulerName", "queue")), "reads differently"),
        (lambda key: json.dumps(f"x{key}"), "what was written is refused: "),
        (lambda key: key, "the program cannot be read again"),
    ],
    ids=["other", "refused", "broken"],
)
def test_a_program_that_is_not_what_was_converted_is_not_written(
    command: Command,
    file: Any,
    monkeypatch: pytest.MonkeyPatch,
    wrong: Callable[[str], str],
    said: str,
) -> None:
    monkeypatch.setattr("kthena_components.languages._key", wrong)
    ran = command("convert", "--to", "typescript", file(model_serving()))
    assert (ran.status, ran.out) == (2, "")
    assert said in ran.err


def test_a_path_of_too_many_parts_is_no_path(command: Command, file: Any) -> None:
    ran = command("convert", "--to", "lws", "--set", f"a{'.b' * 5000}=1", file(model_serving()))
    assert ran.status == 2
    assert "is not the path of an argument, such as roles[0].replicas" in ran.err
