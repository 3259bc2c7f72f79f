"""`convert --from-cluster`. `conformance adoption` runs it against real controllers."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from kthena_components.cluster import connect
from kthena_components.cluster.client import ClusterError
from kthena_components.cluster.live import as_applied
from tests.cli.conftest import Command
from tests.support.convertible import SELECTOR, leader_worker_set, model_serving, service

Body = dict[str, Any]


class Live:
    """A cluster with some objects."""

    server = "https://cluster.example:6443"

    def __init__(self, *bodies: Body) -> None:
        self.bodies = bodies

    def preferred(self, group: str) -> str | None:
        found = (body["apiVersion"] for body in self.bodies)
        own = [version for version in found if version.rpartition("/")[0] == group]
        return own[0] if own else None

    def serves(self, version: str, kind: str) -> bool:
        return any((b["apiVersion"], b["kind"]) == (version, kind) for b in self.bodies)

    def list(self, version: str, kind: str, namespace: str | None = None) -> list[Body]:
        return [
            body for body in self.bodies
            if (body["apiVersion"], body["kind"]) == (version, kind)
            and namespace in (None, body["metadata"]["namespace"])
        ]  # fmt: skip

    def get(self, body: Body) -> Body:
        for found in self.list(body["apiVersion"], body["kind"], body["metadata"]["namespace"]):
            if found["metadata"]["name"] == body["metadata"]["name"]:
                return found
        raise ClusterError(404, "NotFound", "no")


def placed(body: Body, namespace: str = "serving") -> Body:
    metadata = {**body["metadata"], "namespace": namespace, "uid": "1", "generation": 4}
    return {**body, "metadata": metadata, "status": {"replicas": 2}}


@pytest.fixture
def live(monkeypatch: pytest.MonkeyPatch) -> Any:
    def holds(*bodies: Body) -> Live:
        cluster = Live(*bodies)
        monkeypatch.setattr(connect, "open_cluster", lambda *_: (cluster, "v1.34"))
        return cluster

    return holds


ACCEPTED = ("--accept-loss", "spec")
"""LWS gets labels and variables of the package in its pods."""
FRONT = placed(service(**SELECTOR))
OTHER = placed({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "db"},
                "spec": {"selector": {"app": "db"}, "ports": [{"port": 1}]}})  # fmt: skip


def test_a_program_and_the_file_for_its_import_are_written(
    live: Any, command: Command, tmp_path: Path
) -> None:
    live(placed(leader_worker_set()), FRONT, OTHER)
    asked = ("convert", "--from-cluster", "--to", "python", "-o", str(tmp_path / "out"))
    ran = command(*asked)
    assert ran.status == 1, "its pods would restart"
    label = "spec.leaderWorkerTemplate.workerTemplate.metadata: is added, which changes the object"
    assert f"loss: {label}" in ran.err
    assert not (tmp_path / "out").exists()
    ran = command(*asked, *ACCEPTED)
    assert ran.status == 0, ran.err
    assert "https://cluster.example:6443: LeaderWorkerSet serving/llama becomes" in ran.err
    assert "db" not in ran.err, "a cluster has many other Services"
    assert ran.err.endswith(
        f"Before the first `pulumi up`, in {tmp_path / 'out'}: pulumi import --file import.json "
        "--generate-code=false --protect=false\n"
    )
    program = (tmp_path / "out" / "__main__.py").read_text()
    assert any(isinstance(node, ast.Call) for node in ast.walk(ast.parse(program)))
    entries = json.loads((tmp_path / "out" / "import.json").read_text())["resources"]
    (component, *objects) = entries
    assert component == {
        "type": "kthena:index:ModelServing", "name": "llama", "component": True,
    }  # fmt: skip
    assert ("kubernetes:leaderworkerset.x-k8s.io/v1:LeaderWorkerSet", "serving/llama") in [
        (each["type"], each["id"]) for each in objects
    ]
    assert {each["parent"] for each in objects} == {"llama"}
    assert len({each["name"] for each in objects}) == len(objects)


def test_only_what_exists_is_imported(live: Any, command: Command, tmp_path: Path) -> None:
    body = leader_worker_set()
    live(placed({**body, "metadata": {"name": "llama-serve"}}))
    out = str(tmp_path / "out")
    setting = ("--set", "expose={port: 80}")
    options = (*setting, "--from-cluster", "--to", "python", "-o", out, *ACCEPTED)
    assert command("convert", *options).status == 0
    found = json.loads((tmp_path / "out" / "import.json").read_text())["resources"]
    assert [each["type"].rpartition(":")[2] for each in found] == [
        "ModelServing",
        "LeaderWorkerSet",
    ]


def test_servings_of_one_name_are_told_apart(live: Any, command: Command, tmp_path: Path) -> None:
    live(placed(leader_worker_set(), "a"), placed(leader_worker_set(), "b"))
    out = tmp_path / "out"
    command("convert", "--from-cluster", "--to", "python", "-o", str(out), *ACCEPTED)
    found = json.loads((out / "import.json").read_text())["resources"]
    named = {each["name"] for each in found if each.get("component")}
    assert named == {"a/llama", "b/llama"}
    assert '"a/llama"' in (out / "__main__.py").read_text()


def test_a_namespace_may_be_named(live: Any, command: Command) -> None:
    live(placed(leader_worker_set(), "a"), placed(leader_worker_set(), "b"))
    ran = command("convert", "--from-cluster", "-n", "b", "--to", "lws")
    assert ran.out.count("kind: LeaderWorkerSet") == 1
    assert "namespace: b" in ran.out


def test_another_backend_gets_the_changed_service_and_no_other(live: Any, command: Command) -> None:
    live(placed(leader_worker_set()), FRONT, OTHER)
    ran = command("convert", "--from-cluster", "--to", "kthena")
    assert ran.status == 0, ran.err
    assert "name: llama-leader" in ran.out
    assert "name: db" not in ran.out


def test_a_loss_is_told_without_a_line(live: Any, command: Command) -> None:
    body = placed(leader_worker_set())
    live({**body, "metadata": {**body["metadata"], "annotations": {"team": "chat"}}})
    ran = command("convert", "--from-cluster", "--to", "kthena")
    assert (ran.status, ran.out) == (1, "")
    assert "https://cluster.example:6443: loss: metadata.annotations.team: is not kept" in ran.err


def test_a_cluster_without_servings_is_told(live: Any, command: Command) -> None:
    live(OTHER)
    ran = command("convert", "--from-cluster", "--to", "kthena")
    assert (ran.status, ran.out) == (2, "")
    assert "there is nothing to convert; --from-cluster reads ModelServing, " in ran.err


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["--to", "lws"], "name files, or write --from-cluster"),
        (["--to", "lws", "--from-cluster", "a.yaml"], "name files, or write --from-cluster"),
        (["--to", "lws", "-n", "a", "a.yaml"], "--namespace is only for --from-cluster"),
        (["--to", "python", "--from-cluster"], "writes two files; write -o FOLDER"),
    ],
)
def test_wrong_usage_is_explained(command: Command, asked: list[str], said: str) -> None:
    ran = command("convert", *asked)
    assert (ran.status, ran.out) == (2, "")
    assert said in ran.err


def test_what_was_applied_is_converted_as_from_a_file(
    live: Any, command: Command, file: Any
) -> None:
    body = model_serving()
    applied = {**body, "metadata": {**body["metadata"], "uid": "1"}, "status": {"replicas": 2}}
    live(applied)
    there = command("convert", "--from-cluster", "--to", "kthena")
    here = command("convert", "--to", "kthena", file(as_applied(applied)))
    assert (there.status, there.out) == (0, here.out)
