"""`convert` of several servings: each keeps its own name, or nothing is written."""

import ast
from pathlib import Path
from typing import Any

import pytest
import yaml

from kthena_components.core.plan.stack_file import StackConfig, check_stack, parse_stack
from tests.cli.conftest import Command
from tests.support.convertible import leader_worker_set, model_serving, service
from tests.support.specs import template

STACK = StackConfig(project="p", stack="s", file="f", values={}, secret_keys=frozenset())


def named(name: str, body: dict[str, Any]) -> dict[str, Any]:
    return {**body, "metadata": {**body["metadata"], "name": name}}


def sets(*names: str) -> list[dict[str, Any]]:
    return [named(name, leader_worker_set()) for name in names]


def workspaces(*names: str) -> list[dict[str, Any]]:
    nodes = {"instanceType": "Standard_ND96isr_H100_v5"}
    labels = {"labelSelector": {"matchLabels": {"apps": "chat"}}}
    body = {
        "apiVersion": "kaito.sh/v1beta1",
        "kind": "Workspace",
        "metadata": {},
        "resource": {**nodes, **labels},
        "inference": {"template": template()},
    }
    return [named(name, body) for name in names]


def test_sets_whose_names_begin_alike_are_servings_of_their_own(
    command: Command, file: Any
) -> None:
    bodies = sets("llama-prefill", "llama-decode", "mistral-chat")
    ran = command("convert", "--to", "stack", file(*bodies))
    assert ran.status == 0, ran.err
    config = yaml.safe_load(ran.out)["config"]
    spec, findings = parse_stack({key.partition(":")[2]: value for key, value in config.items()})
    assert [*findings, *check_stack(spec, STACK)] == []
    assert [serving["name"] for serving in spec.servings] == [
        "llama-prefill",
        "llama-decode",
        "mistral",
    ]
    again = command("convert", "--to", "lws", file(*bodies))
    made = [body["metadata"]["name"] for body in yaml.safe_load_all(again.out)]
    assert made == ["llama-prefill", "llama-decode", "mistral-chat"]


def test_servings_of_one_name_are_registered_under_names_of_their_own(
    command: Command, file: Any
) -> None:
    ran = command("convert", "--to", "python", file(*workspaces("phi-a", "phi-b", "phi-4-a")))
    assert ran.status == 0, ran.err
    calls = [node.value for node in ast.parse(ran.out).body if isinstance(node, ast.Expr)]
    first = [call.args[0] for call in calls if isinstance(call, ast.Call)]
    assert [ast.literal_eval(name) for name in first] == ["default/phi-a", "default/phi-b", "phi-4"]


def test_servings_of_one_name_are_not_written_to_one_stack(command: Command, file: Any) -> None:
    ran = command("convert", "--to", "stack", file(*workspaces("phi-a", "phi-b")))
    assert (ran.status, ran.out) == (1, "")
    assert "would create the serving default/phi, which" in ran.err
    assert "Workspace phi-a also creates. Rename one of the two" in ran.err


SERVING = {**model_serving(), "metadata": {"name": "llama"}}


@pytest.mark.parametrize("others", [[SERVING], sets("llama")])
def test_an_object_is_not_written_twice(
    command: Command, file: Any, tmp_path: Path, others: list[dict[str, Any]]
) -> None:
    out = tmp_path / "out"
    path = file(*sets("llama"), *others)
    ran = command("convert", "--to", "kthena", "-o", str(out), path)
    assert ran.status == 1
    assert "would create the ModelServing default/llama, which" in ran.err
    assert ran.err.endswith("nothing was written\n")
    assert not out.exists()


def test_an_object_of_a_serving_is_not_one_that_is_kept(command: Command, file: Any) -> None:
    kept = named("llama-serve", service(app="another"))
    for target, status in (("native", 0), ("lws", 0)):
        asked = ["convert", "--to", target, "--set", "recovery_policy=null"]
        assert command(*asked, file(*sets("llama"), kept)).status == status
