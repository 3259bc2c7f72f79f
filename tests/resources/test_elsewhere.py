"""A state that describes another cluster is told, by one request for each provider.

conformance/other_cluster.py does this with the real engine and two real clusters.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.config import kube_config

from kthena_components.resources import _elsewhere, cluster
from tests.resources.build import serving
from tests.support.discovery import discovery, tokens
from tests.support.recorder import RecordingMonitor, record
from tests.support.specs import ENGINE_RAY

UID, OLD, NEW = "in-the-state", "2020-01-01T00:00:00Z", "2999-01-01T00:00:00Z"
Warnings = Callable[..., list[str]]


@pytest.fixture
def warnings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Warnings:
    """Run a program under a state, and give what it warns of, without the server's address."""

    def run(created: str = OLD, **server: Any) -> list[str]:
        def stored(_monitor: object, request: Any) -> Any:
            answer = type(request.object)()
            answer.CopyFrom(request.object)
            if request.custom:
                answer["metadata"].update({"uid": UID, "creationTimestamp": created})
            return answer

        monkeypatch.setattr(RecordingMonitor, "stored", stored)
        with discovery(**server) as config:
            path = tmp_path / "kubeconfig"
            path.write_text(config)
            monkeypatch.setenv("KUBECONFIG", str(path))
            # The client's library reads the variable when it is imported.
            monkeypatch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", str(path))
            tokens.clear()
            address = yaml.safe_load(config)["clusters"][0]["cluster"]["server"]
            seen = record(program)
        return [text.replace(address, "SERVER") for severity, text, _ in seen.logs
                if severity == "WARNING" and _elsewhere.RULE in text]  # fmt: skip

    return run


def program() -> None:
    serving(ENGINE_RAY)
    serving({**ENGINE_RAY, "name": "code"}, name="code")


def test_an_object_that_is_not_there_is_told_once(warnings: Warnings) -> None:
    (told,) = warnings()
    assert told.endswith(
        f" is in the state of this stack, created {OLD}, but not on SERVER: the state is of "
        "another cluster, or somebody has deleted the object. Pulumi does not create what the "
        "state has. Run 'pulumi up --refresh', which forgets what is gone and creates it again. "
        "[state-of-another-cluster]"
    )


def test_an_object_of_the_same_name_is_told_too(warnings: Warnings) -> None:
    assert len(warnings(everything={"kind": "Any", "metadata": {"uid": "another"}})) == 1


def test_an_object_with_the_same_uid_is_silent(warnings: Warnings) -> None:
    assert not warnings(everything={"kind": "Any", "metadata": {"uid": UID}})
    assert tokens


def test_an_object_that_may_not_be_read_is_silent(warnings: Warnings) -> None:
    assert not warnings(status=403)
    assert tokens


def test_an_object_of_this_run_is_silent(warnings: Warnings) -> None:
    assert not warnings(created=NEW)
    assert not tokens


def test_a_file_is_silent(warnings: Warnings) -> None:
    assert not warnings(created="")


def test_a_cluster_that_does_not_answer_is_silent(
    warnings: Warnings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "askable_context", lambda *_: None)
    assert not warnings()
