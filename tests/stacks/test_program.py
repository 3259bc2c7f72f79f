"""What the stack program asks of an engine, recorded without one."""

import json
from pathlib import Path
from typing import Any

import pulumi
import pytest

from kthena_components.core.plan.stack_file import StackConfig
from kthena_components.resources import stack as program
from tests.stacks.handed import TOKEN, handed
from tests.support.discovery import discovery
from tests.support.recorder import UNKNOWN, Recorded, attempt, record, secrets_in
from tests.support.specs import template

FILES = {"output": "render", "allow_plain_secrets": ["hf-token"]}
KUBECONFIG = """\
current-context: here
contexts: [{name: here, context: {cluster: here, user: me}}]
clusters: [{name: here, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: me, user: {token: for-the-test}}]
"""


@pytest.fixture
def deploy(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run the program with a config, as an update or as a preview."""

    def run(config: StackConfig, *, preview: bool = False) -> Recorded:
        own = {f"project:{key}": value for key, value in config.values.items()}
        monkeypatch.setenv("PULUMI_CONFIG", json.dumps(own))
        monkeypatch.setenv("KUBECONFIG", "/dev/null")
        monkeypatch.setattr(program, "read_config", lambda: config)
        return record(program.deploy, preview=preview)

    return run


def test_a_token_travels_as_a_secret_and_nowhere_else(deploy: Any) -> None:
    recorded = deploy(handed("prod", FILES))
    (secret,) = recorded.of_kind("Secret")
    assert list(secrets_in(secret.props["stringData"])) == [TOKEN["hf_token"]]
    assert set(secret.request.additionalSecretOutputs) == {"data", "stringData"}
    others = [str(item.props) for item in recorded.resources if item is not secret]
    assert TOKEN["hf_token"] not in f"{others} {recorded.logs} {recorded.exports}"


def test_a_kubeconfig_in_the_config_travels_as_a_secret(deploy: Any) -> None:
    config = handed("dev", {"output": "cluster"}, {"kubeconfig": KUBECONFIG})
    recorded = deploy(config, preview=True)
    (provider,) = recorded.of_kind("kubernetes")
    assert list(secrets_in(provider.props["kubeconfig"])) == [KUBECONFIG]
    (severity, warning, _) = recorded.logs[0]
    assert severity == "WARNING"
    assert "context '[secret]' of the config value kubeconfig, [secret], does not" in warning
    assert "for-the-test" not in str(recorded.logs)


def test_a_serving_waits_for_the_network_its_queue_and_its_token(deploy: Any) -> None:
    recorded = deploy(handed("prod", FILES))
    serving = recorded.named("default/llama-405b", "ModelServing")
    assert {"Secret/default/hf-token", "Queue/llm-prod", "HyperNode/topology-spine"} <= (
        recorded.waits_for(serving)
    )


def test_a_queue_is_made_after_the_one_above_it(deploy: Any) -> None:
    queues = [{"name": "team", "parent": "org"}, {"name": "org"}]
    recorded = deploy(handed("dev", {"queues": queues}))
    team = next(queue for queue in recorded.of_kind("Queue") if queue.name == "team")
    assert "Queue/org" in recorded.waits_for(team)


def queues_named(recorded: Recorded) -> dict[str, Any]:
    """What PodGroups and Queues say of the queue that they are in."""
    specs = {r.name: r.props["spec"] for kind in ("PodGroup", "Queue")
             for r in recorded.of_kind(kind) if r.type.startswith("kubernetes:")}  # fmt: skip
    return {name: spec.get("queue", spec.get("parent")) for name, spec in specs.items()}


def test_a_queue_of_a_cluster_has_no_name_in_a_preview_before_it_is_made(deploy: Any) -> None:
    org = {"name": "org", "capability": {"nvidia.com/gpu": 64}}
    changes = {"output": "cluster", "queues[1]": org, "queues[0].parent": "org"}
    groups = [f"default/llama-405b-{number}" for number in (0, 1)]
    with discovery() as kubeconfig:
        config = handed("prod", changes, {**TOKEN, "kubeconfig": kubeconfig})
        early, made = deploy(config, preview=True), deploy(config)
    names = {**dict.fromkeys(groups, "llm-prod"), "llm-prod": "org", "org": None}
    assert queues_named(made) == names
    unknown = {name: UNKNOWN if queue else None for name, queue in names.items()}
    assert queues_named(early) == unknown
    files = {**FILES, "queues[1]": org, "queues[0].parent": "org"}
    assert queues_named(deploy(handed("prod", files), preview=True)) == names


def test_a_queue_that_the_stack_does_not_make_keeps_its_name(deploy: Any) -> None:
    with discovery() as kubeconfig:
        changes = {"output": "cluster", "queues[0].name": "other"}
        config = handed("prod", changes, {**TOKEN, "kubeconfig": kubeconfig})
        recorded = deploy(config, preview=True)
    assert "llm-prod" in queues_named(recorded).values()


def test_servings_of_one_name_in_two_namespaces_are_two_resources(deploy: Any) -> None:
    role = {"name": "serve", "entry_template": template()}
    other = {"name": "llama-8b", "namespace": "team", "roles": [role]}
    recorded = deploy(handed("dev", {"servings[1]": other}))
    assert recorded.names_of("ModelServing") == ["default/llama-8b", "team/llama-8b"]
    assert recorded.exports["totals"] == {"servings": 2, "pods": 3, "gpus": 2}


def test_a_stack_without_servings_shows_no_empty_table(deploy: Any) -> None:
    recorded = deploy(handed("dev", {"servings": [], "queues": [{"name": "org"}]}))
    assert recorded.names_of("Queue") == ["org", "org"], "the component and the custom resource"
    assert not recorded.infos()


def test_a_refusal_registers_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "read_config", lambda: handed("dev", {"output": "file"}))
    recorded = attempt(program.deploy)
    assert isinstance(recorded.error, pulumi.RunError)
    assert not recorded.resources


@pytest.mark.parametrize(
    ("folder", "file"),
    [
        ("stackConfigDir: environments\n", "environments/Pulumi.stack.yaml"),
        ("", "Pulumi.stack.yaml"),
    ],
)
def test_messages_name_the_file_that_the_project_keeps_its_stacks_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, file: str
) -> None:
    (tmp_path / "Pulumi.yaml").write_text(f"name: project\nruntime: python\n{folder}")
    values = {"project:hf_token": "t", "project:output": "render", "other:servings": "[]"}
    monkeypatch.setenv("PULUMI_CONFIG", json.dumps(values))
    monkeypatch.setenv("PULUMI_CONFIG_SECRET_KEYS", '["project:hf_token", "other:token"]')
    monkeypatch.setattr(pulumi, "get_root_directory", lambda: str(tmp_path))
    read: list[StackConfig] = []
    record(lambda: read.append(program.read_config()))
    assert read == [
        StackConfig(
            project="project",
            stack="stack",
            file=file,
            values={"hf_token": "t", "output": "render"},
            secret_keys=frozenset({"hf_token"}),
        )
    ]
