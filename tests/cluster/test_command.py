"""What the commands say when a cluster cannot be used: one sentence, never a traceback."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import kthena_components.cluster
from kthena_components.cli.main import main
from kthena_components.cluster.doctor import check_stack_file
from kthena_components.cluster.snapshot import Status
from kthena_components.cluster.stack_servings import StackFileError, read_stack_file

ROOT = Path(__file__).parents[2]
COMMANDS = pytest.mark.parametrize("command", ["doctor", "status"])


def kubeconfig(folder: Path, user: dict[str, Any]) -> str:
    path = folder / "kubeconfig"
    body = {
        "apiVersion": "v1", "kind": "Config", "current-context": "here",
        # Port 9 of loopback: nobody listens there.
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:9"}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
    }  # fmt: skip
    path.write_text(yaml.safe_dump(body))
    return str(path)


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    said = capsys.readouterr()
    assert (ended.value.code, said.out) == (2, "")
    assert said.err.count("\n") == 1
    return said.err.rstrip("\n")


@COMMANDS
def test_a_cluster_that_does_not_answer_is_named(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refusal(capsys, command, "--kubeconfig", kubeconfig(tmp_path, {"token": "t"}))
    assert said == (
        f"kthena-components {command}: https://127.0.0.1:9 does not answer: Connection refused. "
        "Start it or connect to it. Name another cluster with --kubeconfig or --context"
    )


@COMMANDS
@pytest.mark.parametrize("host", ["127.0.0.1:9", "127.0.0.1:port", "[::x", "nowhere.invalid"])
def test_a_password_in_the_address_of_a_server_is_never_shown(
    command: str, host: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(kubeconfig(tmp_path, {"token": "t"}))
    path.write_text(path.read_text().replace("127.0.0.1:9", f"me:pe@rl@{host}"))
    said = refusal(capsys, command, "--kubeconfig", str(path))
    assert "pe@rl" not in said
    assert "rl@" not in said


@COMMANDS
def test_a_missing_program_for_credentials_is_named(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-login"}
    said = refusal(capsys, command, "--kubeconfig", kubeconfig(tmp_path, {"exec": plugin}))
    assert "from the program 'no-such-login', which is not installed. Install it" in said


def test_a_program_for_credentials_that_fails_is_quoted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "login"
    script.write_text("#!/bin/sh\necho token expired >&2\nexit 1\n")
    script.chmod(0o755)
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(script)}
    said = refusal(capsys, "status", "--kubeconfig", kubeconfig(tmp_path, {"exec": plugin}))
    assert "has failed: process returned 1. token expired. Log in again" in said


@COMMANDS
def test_no_kubeconfig_and_no_context_are_told(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refusal(capsys, command, "--kubeconfig", str(tmp_path / "none"))
    assert f"there is no kubeconfig at {tmp_path / 'none'}. Name a file with --kubeconfig" in said
    assert "--inventory" not in said
    own = kubeconfig(tmp_path, {"token": "t"})
    said = refusal(capsys, command, "--kubeconfig", own, "--context", "there")
    assert "the kubeconfig has no context 'there'" in said


@pytest.mark.parametrize("text", ["[", "a: b", "just", "", "\x00", "contexts: 3\nclusters: []"])
def test_what_is_no_kubeconfig_is_told(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    said = refusal(capsys, "status", "--kubeconfig", str(path))
    assert "Name another cluster" in said or "Name a context with --context" in said


@COMMANDS
def test_without_the_extra_its_name_is_told(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # What is imported here again must not stay the attribute of the package afterwards.
    monkeypatch.setattr(kthena_components, "cluster", kthena_components.cluster)
    for name in [name for name in sys.modules if name.startswith("kthena_components.cluster")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "kubernetes", None)
    assert refusal(capsys, command).endswith("pip install 'kthena-components[cluster]'")


def test_an_unknown_stack_is_told_with_those_that_there_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    said = refusal(capsys, "doctor", "--stack", "sandbax")
    assert said.endswith("there is no stack 'sandbax': write 'sandbox'")


def test_a_folder_without_a_project_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "contains no Pulumi project; for manifests" in refusal(
        capsys, "doctor", "--stack", "dev"
    )


def test_a_stack_file_is_read_without_pulumi() -> None:
    prod = read_stack_file(ROOT, "prod")
    assert prod.need.backends == {"native"}
    assert (prod.need.secrets, prod.need.queues) == ((), ())  # the stack makes them
    assert [body["metadata"]["name"] for body in prod.need.hyper_nodes] == [
        "rack-1", "rack-2", "spine",
    ]  # fmt: skip
    staging = read_stack_file(ROOT, "staging")
    assert [str(secret) for secret in staging.need.secrets] == ["default/hf-token"]
    assert read_stack_file(ROOT, "dev").renders
    assert not staging.renders


def project(folder: Path, config: dict[str, Any]) -> Path:
    (folder / "Pulumi.yaml").write_text("name: p\nruntime: python\n")
    (folder / "Pulumi.s.yaml").write_text(json.dumps({"config": config}))
    return folder


def test_refusals_of_a_stack_have_the_coordinates_of_its_file(tmp_path: Path) -> None:
    read = read_stack_file(project(tmp_path, {"p:servings": [{"name": "Chat"}]}), "s")
    assert read.refusals
    assert all(str(found).startswith("Pulumi.s.yaml: p:servings[0].") for found in read.refusals)


def test_a_key_that_is_no_field_may_have_dots_in_it(tmp_path: Path) -> None:
    read = read_stack_file(project(tmp_path, {"p:a.b": 1, "p:queues[0]": 1}), "s")
    assert {finding.rule for finding in read.refusals} >= {"unknown-field"}


def test_a_kubeconfig_that_is_encrypted_is_not_looked_at(tmp_path: Path) -> None:
    config = {"p:output": "cluster", "p:kubeconfig": {"secure": "v1:abc"}, "p:context": "c"}
    read = read_stack_file(project(tmp_path, config), "s")
    assert (read.kubeconfig, read.spec.context) == (None, "c")


def test_a_stack_of_a_program_of_ones_own_is_told(tmp_path: Path) -> None:
    config = {"p:model": "meta-llama/Llama-3.1-8B", "kubernetes:context": "c"}
    (found,) = check_stack_file(read_stack_file(project(tmp_path, config), "s"))
    assert (found.mark, found.subject) == (Status.WARN, "stack")
    assert found.text == (
        "Pulumi.s.yaml lists no servings, so only the cluster is checked. If a program of your own "
        "makes them, `pulumi preview` checks them"
    )
    (empty,) = read_stack_file(project(tmp_path, {"p:output": "cluster"}), "s").refusals
    assert empty.rule == "stack-empty"
    (tmp_path / "Pulumi.s.yaml").unlink()
    with pytest.raises(StackFileError, match=r"no stack 's': the project has no Pulumi\.s\.yaml$"):
        read_stack_file(tmp_path, "s")


def test_a_budget_that_is_exceeded_is_told(tmp_path: Path) -> None:
    servings = yaml.safe_load((ROOT / "stacks" / "Pulumi.dev.yaml").read_text())["config"]
    config = {"p:gpu_budget": 1, "p:servings": servings["kthena-components:servings"]}
    (found,) = read_stack_file(project(tmp_path, config), "s").refusals
    assert str(found) == (
        "Pulumi.s.yaml: p:gpu_budget: is 1, but the servings of this stack request 2 GPUs. "
        "Request 1 fewer, or write 2. [gpu-budget]"
    )


@pytest.mark.parametrize("text", ["[", "- a", "", "config: {p:a: {!!binary YQ==: 1}}"])
def test_a_broken_stack_file_is_told(text: str, tmp_path: Path) -> None:
    project(tmp_path, {})
    (tmp_path / "Pulumi.s.yaml").write_text(text)
    with pytest.raises(StackFileError, match=r"Pulumi\.s\.yaml"):
        read_stack_file(tmp_path, "s")


def test_fit_needs_no_cluster_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = tmp_path / "a.yaml"
    manifest.write_text("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
    said = refusal(capsys, "fit", str(manifest), "--kubeconfig", str(tmp_path / "none"))
    assert "; or name a file that describes the cluster with --inventory" in said


def test_a_command_that_there_is_not_has_a_near_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert (main(["chekc"]), main(["x"])) == (2, 2)
    near, other = capsys.readouterr().err.splitlines()
    assert near.endswith("there is no command 'chekc'; write check")
    assert "there is no command 'x'; known: new, check" in other
