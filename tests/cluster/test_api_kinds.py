"""A cluster that lacks Kthena or Volcano is told before anything is made."""

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.client import ApiClient
from kubernetes.config import kube_config

from kthena_components.cluster import api_kinds as served
from kthena_components.cluster import connect
from kthena_components.cluster.api_kinds import check_kinds
from kthena_components.compiler.compile import compile_serving
from kthena_components.core.plan.stack_file import StackSpec, parse_stack
from kthena_components.resources.cluster import askable_context
from tests.support.discovery import KNOWN, discovery, kubeconfig, tokens

KTHENA = "workload.serving.volcano.sh/v1alpha1"
VOLCANO = "scheduling.volcano.sh/v1beta1"
TREE = "topology.volcano.sh/v1alpha1"


def serving(backend: str) -> dict[str, Any]:
    resources = {"gpus_per_pod": 1}
    engine = {"kind": "vllm", "image": "vllm/vllm-openai:v0.33.0", "model": "Qwen/Qwen3-0.6B"}
    role = {"name": "serve", "engine": engine, "resources": resources}
    return {"name": f"llama-{backend}", "backend": backend, "roles": [role]}


def told(config: str, *backends: str, **fields: Any) -> list[str]:
    servings = [serving(backend) for backend in backends]
    stated = {"output": "cluster", "kubeconfig": config, "servings": servings, **fields}
    spec, findings = parse_stack(stated)
    assert not findings
    return [str(found) for found in check_kinds(spec, map(compile_serving, servings), None)]


def changed(config: str, user: dict[str, Any]) -> str:
    return yaml.safe_dump({**yaml.safe_load(config), "users": [{"name": "me", "user": user}]})


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served, "SETTLES", 0)


def test_a_cluster_with_everything_is_not_mentioned() -> None:
    with discovery() as config:
        assert not told(config, "kthena", "native", queues=[{"name": "q"}])


def test_a_cluster_without_kthena_says_what_to_install(tmp_path: Path) -> None:
    file = tmp_path / "config"
    with discovery(KTHENA) as config:
        server = yaml.safe_load(config)["clusters"][0]["cluster"]["server"]
        file.write_text(config)
        [found] = told(str(file), "native", "kthena")
        [hidden] = told(config, "native", "kthena")
    assert found == (
        f"servings[1]: creates a ModelServing of {KTHENA}, which {server} does not serve. "
        "Install Kthena 1.0 with its CRDs, or write backend: native. [kind-unserved]"
    )
    # A whole kubeconfig is a secret config value.
    assert hidden == found.replace(server, "[secret]")


def test_a_cluster_without_volcano_says_it_of_everything_that_needs_it() -> None:
    with discovery(VOLCANO, TREE) as config:
        found = told(config, "kthena", "native", queues=[{"name": "q"}])
    assert [text.partition(", which")[0] for text in found] == [
        f"queues: creates a Queue of {VOLCANO}",
        f"servings[1]: creates a PodGroup of {VOLCANO}",
    ]
    assert all("Install Volcano 1.14 or later. [kind-unserved]" in text for text in found)


def test_a_cluster_without_the_prometheus_operator_is_told_of_a_monitored_serving() -> None:
    servings = [{**serving("native"), "monitoring": True}]
    stated = {"output": "cluster", "servings": servings}
    with discovery(known=KNOWN) as config:
        spec, _ = parse_stack({**stated, "kubeconfig": config})
        found = [str(one) for one in check_kinds(spec, map(compile_serving, servings), None)]
    kinds = ("PodMonitor", "PrometheusRule")
    assert found == [
        f"servings[0]: creates a {kind} of monitoring.coreos.com/v1, which [secret] does not "
        "serve. Install the Prometheus Operator 0.79 or later with its CRDs, or remove "
        "monitoring. [kind-unserved]"
        for kind in kinds
    ]


def test_a_group_without_the_kind_is_told_too() -> None:
    with discovery(known={**KNOWN, VOLCANO: ("Queue",)}) as config:
        assert len(told(config, "native")) == 1


@pytest.mark.parametrize("status", [401, 403, 429, 500, 503])
def test_who_may_not_ask_is_not_refused(status: int) -> None:
    with discovery(KTHENA, status=status) as config:
        assert not told(config, "kthena")


def test_nothing_is_said_of_a_server_that_is_away_or_of_a_way_in_that_fails() -> None:
    away = kubeconfig("http://127.0.0.1:1")
    assert not told(away, "kthena")
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-thing"}}
    odd = {**yaml.safe_load(away), "users": [{"name": "me", "user": user}]}
    assert not told(yaml.safe_dump(odd), "kthena")
    damaged = {"server": "https://127.0.0.1:1", "certificate-authority-data": "%"}
    odd = {**yaml.safe_load(away), "clusters": [{"name": "it", "cluster": damaged}]}
    assert not told(yaml.safe_dump(odd), "kthena")


def test_a_file_and_a_context_are_heeded(tmp_path: Path) -> None:
    with discovery(KTHENA) as config:
        path = tmp_path / "config"
        path.write_text(config)
        spec = StackSpec.model_validate(
            {"output": "cluster", "kubeconfig": str(path), "context": "here"}
        )
        assert len(check_kinds(spec, [compile_serving(serving("kthena"))], "here")) == 1


def test_a_definition_that_was_made_a_moment_ago_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(served, "SETTLES", 30)
    known = dict(KNOWN)
    late = known.pop(KTHENA)
    with discovery(known=known) as config:
        threading.Timer(0.7, lambda: known.update({KTHENA: late})).start()
        assert not told(config, "kthena")


def test_of_what_kubernetes_itself_serves_nothing_is_said() -> None:
    with discovery("apps/v1") as config:
        assert not told(config, "native")


def test_a_token_is_sent_without_the_newline_at_its_end(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("hush\n")
    with discovery(KTHENA) as config:
        tokens.clear()
        for user in ({"tokenFile": str(tmp_path / "token")}, {"token": "hush\n"}):
            assert len(told(changed(config, user), "kthena")) == 1
    assert set(tokens) == {"Bearer hush"}


@pytest.mark.parametrize("user", [{"token": "hu\nsh"}, {"token": "h\u0416sh"}])
def test_a_token_that_cannot_be_sent_is_shown_nowhere(
    user: dict[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    with discovery(KTHENA) as config:
        assert not told(changed(config, user), "kthena")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "says", [b"<html>", b"[]", b"{}", b'{"resources": null}', b'{"resources": [1]}', b"\xff", b""]
)
def test_what_is_no_api_server_is_left_to_the_provider(says: bytes) -> None:
    with discovery(says=says) as config:
        assert not told(config, "kthena")


def test_a_login_that_hangs_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect, "PATIENCE", 0.3)
    login = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
             "status": {"token": "late"}}  # fmt: skip
    script = tmp_path / "login"
    script.write_text(f"#!/bin/sh\nsleep 2\necho '{json.dumps(login)}'\n")
    script.chmod(0o755)
    user = {"exec": {"apiVersion": login["apiVersion"], "command": str(script)}}
    with discovery(KTHENA) as config:
        assert not told(changed(config, user), "kthena"), "that would be known after two seconds"


def test_another_release_of_the_client_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(ApiClient, "param_serialize")
    with discovery(KTHENA) as config:
        assert not told(config, "kthena")


def test_of_several_kubeconfigs_the_provider_s_context_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with discovery() as good, discovery(KTHENA) as bad:
        files = [tmp_path / name for name in ("one", "two")]
        for file, text in zip(files, (good, bad), strict=True):
            file.write_text(text.replace("here", file.name).replace("it", f"it-{file.name}"))
        both = os.pathsep.join(map(str, files))
        # The client reads KUBECONFIG when it is imported.
        monkeypatch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", both)
        spec = StackSpec.model_validate({"output": "cluster"})
        servings = [compile_serving(serving("kthena"))]
        chosen = askable_context(spec, {"KUBECONFIG": both})
        assert chosen == "one", "the first current-context wins, as in kubectl"
        assert not check_kinds(spec, servings, chosen)
        assert check_kinds(spec, servings, "two")


def test_a_login_that_writes_into_the_kubeconfig_is_not_used(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(changed(kubeconfig("https://127.0.0.1:1"), {"auth-provider": {"name": "oidc"}}))
    spec = StackSpec.model_validate({"output": "cluster"})
    assert askable_context(spec, {"KUBECONFIG": str(file)}) is None
    assert askable_context(spec, {"KUBECONFIG": str(tmp_path / "none")}) is None


def test_a_cluster_without_lws_says_what_to_install() -> None:
    with discovery() as config:
        [found] = told(config, "native", "lws")
    assert found.startswith("servings[1]: creates a LeaderWorkerSet of leaderworkerset.x-k8s.io/v1")
    assert "Install LeaderWorkerSet 0.9 or later with its CRDs, or write backend: native" in found
