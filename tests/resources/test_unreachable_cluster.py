"""A preview of a program says that the cluster of its default provider does not answer."""

from pathlib import Path
from typing import Any

import pulumi
import pytest

from tests.resources.build import serving
from tests.support.recorder import Recorded, record
from tests.support.specs import ENGINE_RAY

KUBECONFIG = """\
current-context: here
contexts: [{name: here, context: {cluster: here, user: me}}]
clusters: [{name: here, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: me, user: {token: secret}}]
"""


@pytest.fixture
def kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "kubeconfig"
    path.write_text(KUBECONFIG)
    monkeypatch.setenv("KUBECONFIG", str(path))
    return path


def warnings(seen: Recorded) -> list[str]:
    return [text for severity, text, _ in seen.logs if severity == "WARNING"]


def program() -> None:
    for name in ("one", "two"):
        serving({**ENGINE_RAY, "name": name}, name=name)


def test_a_preview_says_once_that_no_cluster_answers(kubeconfig: Path) -> None:
    (told,) = warnings(record(program, preview=True))
    assert told == (
        f"kubernetes:kubeconfig: context 'here' of {kubeconfig}, https://127.0.0.1:1, does not "
        "answer: Connection refused. Start it or connect to it, choose another one with "
        "KUBECONFIG or with 'pulumi config set kubernetes:context NAME', or write files with "
        "'pulumi config set kubernetes:renderYamlToDirectory rendered'. [cluster-unreachable]\n"
        "This preview only uses the state; an update fails until then."
    )


@pytest.mark.usefixtures("kubeconfig")
def test_an_update_fails_by_itself() -> None:
    assert warnings(record(program)) == []


@pytest.mark.usefixtures("kubeconfig")
def test_a_provider_of_the_user_is_not_asked() -> None:
    def own() -> None:
        provider: Any = pulumi.ProviderResource("kubernetes", "there", {})
        serving(ENGINE_RAY, pulumi.ResourceOptions(provider=provider))

    assert warnings(record(own, preview=True)) == []


@pytest.mark.usefixtures("kubeconfig")
def test_rendering_asks_no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_CONFIG", '{"kubernetes:renderYamlToDirectory": "rendered"}')
    assert warnings(record(program, preview=True)) == []


def test_an_unknown_context_is_named(kubeconfig: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kubeconfig.write_text(KUBECONFIG)
    monkeypatch.setenv("PULUMI_CONFIG", '{"kubernetes:context": "there"}')
    (told,) = warnings(record(program, preview=True))
    assert told.startswith("kubernetes:context: there is no context 'there' of ")
