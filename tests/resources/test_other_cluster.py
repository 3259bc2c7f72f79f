"""A state that describes another cluster is told, by one request for each provider.

conformance/pulumi/other_cluster.py does this with the real engine and two real clusters.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml
from kubernetes.config import kube_config

from kthena_components.resources import _cluster_objects as _elsewhere
from kthena_components.resources import cluster
from tests.resources.build import late, serving, unknown
from tests.support.discovery import discovery, paths, tokens
from tests.support.pages import block
from tests.support.recorder import RecordingMonitor, record
from tests.support.specs import ENGINE_RAY

UID, OLD, NEW = "in-the-state", "2020-01-01T00:00:00Z", "2999-01-01T00:00:00Z"
Warnings = Callable[..., list[str]]


@pytest.fixture
def warnings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Warnings:
    """Run a program under a state, and give what it warns of, without the server's address."""

    def run(
        created: str = OLD,
        program: Callable[[], object] = program,
        *,
        preview: bool = False,
        **server: Any,
    ) -> list[str]:
        def stored(_monitor: object, request: Any) -> Any:
            answer = type(request.object)()
            answer.CopyFrom(request.object)
            if "metadata" in answer.fields and answer.fields["metadata"].HasField("struct_value"):
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
            paths.clear()
            address = yaml.safe_load(config)["clusters"][0]["cluster"]["server"]
            seen = record(program, preview=preview)
        return [text.replace(address, "SERVER") for severity, text, _ in seen.logs
                if severity == "WARNING" and _elsewhere.OF_ANOTHER_CLUSTER in text]  # fmt: skip

    return run


def program() -> None:
    serving(ENGINE_RAY)
    serving({**ENGINE_RAY, "name": "code"}, name="code")


def test_an_object_that_is_not_there_is_told_once(warnings: Warnings) -> None:
    (told,) = warnings()
    seen = (
        f" is in the state of this stack, created {OLD}, but not on SERVER: the state is of "
        "another cluster, or somebody has deleted the object. Pulumi does not create what the "
        "state has. Run 'pulumi up --refresh', which forgets what is gone and creates it again. "
        "[state-of-another-cluster]"
    )
    assert told.endswith(seen)
    shown = block("docs/sandbox.md", "warning: PodDisruptionBudget")
    there = seen.replace(OLD, "2026-11-23T19:07:46Z").replace("SERVER", "https://127.0.0.1:16594")
    assert shown == f"warning: PodDisruptionBudget serving/chat-kthena:{there}\n"


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


def test_an_object_made_since_the_package_was_loaded_is_told(warnings: Warnings) -> None:
    """A process may run several programs: those of the Automation API, or forks of one process."""
    created = (datetime.now(UTC) - timedelta(seconds=3)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert len(warnings(created=created)) == 1


@pytest.mark.parametrize("part", [0, 1, 500_000, 999_999])
def test_an_object_of_the_second_in_which_the_program_began_is_silent(
    part: int, warnings: Warnings, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> "Clock":
            return cls(2026, 1, 31, 12, 0, 5, part, tzinfo=tz)

    monkeypatch.setattr(_elsewhere, "datetime", Clock)
    assert not warnings(created="2026-01-31T12:00:05Z")
    assert not tokens
    assert len(warnings(created="2026-01-31T12:00:03Z")) == 1


def test_a_file_is_silent(warnings: Warnings) -> None:
    assert not warnings(created="")


def test_a_cluster_that_does_not_answer_is_silent(
    warnings: Warnings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "askable_context", lambda *_: None)
    assert not warnings()


def test_an_object_is_looked_up_in_the_namespace_that_an_output_gives(warnings: Warnings) -> None:
    """And not in one named after the token for which the Output stands in the manifests."""

    def program() -> None:
        serving({**ENGINE_RAY, "namespace": late("team-a")})

    same = {"kind": "Any", "metadata": {"uid": UID}}
    assert warnings(program=program, everything=same) == []
    assert [path for path in paths if "/namespaces/" in path] == [
        "/api/v1/namespaces/team-a/services/chat-0-decode-0-0"
    ]
    (told,) = warnings(program=program)
    assert "Service team-a/chat-0-decode-0-0: is in the state of this stack" in told


def test_a_namespace_that_is_not_known_yet_is_silent(warnings: Warnings) -> None:
    def program() -> None:
        serving({**ENGINE_RAY, "namespace": unknown()})

    assert warnings(program=program, preview=True) == []
    assert paths == []


def test_a_secret_namespace_is_asked_for_and_not_shown(warnings: Warnings) -> None:
    def program() -> None:
        serving({**ENGINE_RAY, "namespace": pulumi.Output.secret("acquisition")})

    (told,) = warnings(program=program)
    assert "Service <Output>/chat-0-decode-0-0: is in the state" in told
    assert "acquisition" not in told
    assert "/api/v1/namespaces/acquisition/services/chat-0-decode-0-0" in paths
