"""How the cluster of a stack is found, and what its user gets when it is not there."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kthena_components.core.findings import Level
from kthena_components.core.plan.stack_file import OutputMode, StackSpec
from kthena_components.resources.cluster import check_cluster

CONTENT = {
    "current-context": "staging",
    "users": [{"name": "me", "user": {"token": "t"}}],
    "contexts": [
        {"name": "staging", "context": {"cluster": "here", "user": "me"}},
        {"name": "production", "context": {"cluster": "there", "user": "me"}},
    ],
    "clusters": [
        {"name": "here", "cluster": {"server": "https://127.0.0.1:1"}},
        {"name": "there", "cluster": {"server": "https://there.invalid", "proxy-url": "http://p"}},
    ],
}


def told(environ: dict[str, str], **fields: Any) -> str | None:
    found = check_cluster(StackSpec(**{"output": "cluster", **fields}), environ)
    return str(found) if found else None


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(CONTENT))
    return path


@pytest.fixture
def listening() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_cluster_that_does_not_answer_is_named_with_its_context(kubeconfig: Path) -> None:
    assert told({"KUBECONFIG": str(kubeconfig)}) == (
        f"output: is cluster, but context 'staging' of {kubeconfig}, https://127.0.0.1:1, does not "
        "answer: Connection refused. Start it or connect to it, choose another one with kubeconfig "
        "and context, or write output: render. [cluster-unreachable]"
    )


def test_a_cluster_that_answers_is_not_mentioned(kubeconfig: Path, listening: int) -> None:
    text = kubeconfig.read_text().replace("127.0.0.1:1", f"127.0.0.1:{listening}")
    assert told({"HTTPS_PROXY": "http://proxy"}, kubeconfig=text) is None


def test_an_unknown_context_is_refused_with_the_one_that_was_meant(kubeconfig: Path) -> None:
    assert told({}, kubeconfig=str(kubeconfig), context="prodution") == (
        f"context: there is no context 'prodution' of {kubeconfig}. Write 'production'. "
        "[kubeconfig]"
    )


def test_an_unknown_context_is_refused_with_all_that_there_are(kubeconfig: Path) -> None:
    assert told({}, kubeconfig=str(kubeconfig), context="x") == (
        f"context: there is no context 'x' of {kubeconfig}. Known: production, staging. "
        "[kubeconfig]"
    )


def test_a_kubeconfig_that_is_named_must_exist(tmp_path: Path) -> None:
    path = tmp_path / "config"
    assert told({}, kubeconfig=str(path)) == (
        f"kubeconfig: there is no file '{path}'. Write the path of one. [kubeconfig]"
    )


def test_no_kubeconfig_at_all_means_no_cluster(tmp_path: Path) -> None:
    assert told({"KUBECONFIG": str(tmp_path / "none")}) == (
        "output: is cluster, but there is no kubeconfig, neither at KUBECONFIG nor at "
        "~/.kube/config. Set KUBECONFIG or the config value kubeconfig, or write output: render. "
        "[cluster-unreachable]"
    )


def test_inside_a_cluster_no_kubeconfig_is_needed(tmp_path: Path) -> None:
    inside = {"KUBECONFIG": str(tmp_path / "none"), "KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    assert told(inside) is None


def test_a_kubeconfig_without_a_current_context_asks_for_one(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump({**CONTENT, "current-context": ""}))
    assert told({"KUBECONFIG": str(path)}) == (
        f"output: is cluster, but {path} has no current context. Write context; known: production, "
        "staging, or write output: render. [cluster-unreachable]"
    )


def test_several_kubeconfigs_are_read_as_one_and_the_first_wins(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    own = {"name": "there", "cluster": {"server": "https://first.invalid", "proxy-url": "http://p"}}
    first.write_text(yaml.safe_dump({"current-context": "production", "clusters": [own]}))
    second.write_text(yaml.safe_dump(CONTENT))
    found = told({"KUBECONFIG": f"{first}:{tmp_path / 'none'}:{second}"})
    assert found is not None
    assert found.startswith(
        f"output: context 'production' of {first} and {second}, https://first.invalid,"
    )


@pytest.mark.parametrize(
    "users", [[], [{"name": "me", "user": {}}], [{"name": "me", "user": None}]]
)
def test_a_context_without_credentials_would_make_the_provider_wait_for_a_password(
    tmp_path: Path, users: list[dict[str, Any]]
) -> None:
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump({**CONTENT, "users": users}))
    title = f"context 'staging' of {path}, https://127.0.0.1:1,"
    assert told({}, kubeconfig=str(path)) == (
        f"output: is cluster, but {title} has no credentials, so it would wait for a user name and "
        "a password. Add a user with credentials to it. [kubeconfig]"
    )
    assert told({"KUBECONFIG": str(path)}, output="render") == (
        f"output: is render, but the provider reads KUBECONFIG nevertheless, and {title} has no "
        "credentials, so it would wait for a user name and a password. Run with "
        "KUBECONFIG=/dev/null. [kubeconfig]"
    )


def test_a_plain_connection_needs_no_credentials(tmp_path: Path, listening: int) -> None:
    plain = {"name": "here", "cluster": {"server": f"http://127.0.0.1:{listening}"}}
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump({**CONTENT, "users": [], "clusters": [plain]}))
    assert told({"KUBECONFIG": str(path)}) is None


@pytest.mark.parametrize("kubeconfig", ["/dev/null", "none"])
def test_rendering_needs_no_cluster(tmp_path: Path, kubeconfig: str) -> None:
    assert told({"KUBECONFIG": str(tmp_path / kubeconfig)}, output="render") is None


def test_a_cluster_behind_a_proxy_is_not_tried(kubeconfig: Path) -> None:
    spec = StackSpec(output=OutputMode.CLUSTER, kubeconfig=str(kubeconfig), context="production")
    found = check_cluster(spec, {})
    assert found is not None
    assert found.level is Level.UNKNOWN
    assert str(found) == (
        f"output: context 'production' of {kubeconfig}, https://there.invalid, was not checked, "
        "because it cannot be tested with a TCP connection. [cluster-unreachable]"
    )


@pytest.mark.parametrize(
    "text", ["a: [", "- a\n- b", "contexts: 3\nclusters: x", "contexts:\n- name: a\n"]
)
def test_a_file_that_is_no_kubeconfig_is_refused_without_being_shown(text: str) -> None:
    assert told({}, kubeconfig=f"{text}\n") == (
        "kubeconfig: the config value kubeconfig contains no kubeconfig. Write the path of one. "
        "[kubeconfig]"
    )
