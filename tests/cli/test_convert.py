"""`convert`, run as a user does: what it writes, says and refuses."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kthena_components.cli.convert.output import plain
from kthena_components.compiler.compile import compile_serving
from kthena_components.core import naming
from tests.cli.conftest import Command, Ran
from tests.support.convertible import (
    LEADER,
    SECRET,
    SELECTOR,
    WORKER,
    leader_worker_set,
    model_serving,
    pods,
    service,
)
from tests.support.recorder import record
from tests.support.specs import NATIVE_8B

REWRITTEN = (
    "  rewrites LWS_LEADER_ADDRESS to ENTRY_ADDRESS in roles[0].worker_template.spec.containers[0]"
)
REFUSED = (
    "  recovery_policy: is RoleRecreate, but a StatefulSet recreates only the pod that failed "
    "(by default: the object does not state spec.leaderWorkerTemplate.restartPolicy). "
    "Remove it with --set recovery_policy=null, or convert it to lws. [backend-loss]"
)


def objects_in(ran: Ran) -> list[dict[str, Any]]:
    assert ran.status == 0, ran.err
    return list(yaml.safe_load_all(ran.out))


def told(ran: Ran, path: str) -> list[str]:
    return ran.err.replace(path, "model.yaml").splitlines()


def test_a_leader_worker_set_becomes_a_model_serving(command: Command, file: Any) -> None:
    path = file(leader_worker_set(), service(**SELECTOR), SECRET)
    ran = command("convert", "--to", "kthena", path)
    serving, front, secret = objects_in(ran)
    assert (serving["kind"], serving["metadata"]) == (
        "ModelServing",
        {"name": "llama", "namespace": "default"},
    )
    assert serving["spec"]["schedulerName"] == "default-scheduler"
    assert serving["spec"]["recoveryPolicy"] == "RoleRecreate"
    (role,) = serving["spec"]["template"]["roles"]
    assert role["entryTemplate"] == pods(
        "leader", LEADER.replace("LWS_GROUP_SIZE", "GROUP_SIZE"), role="leader"
    )
    assert role["workerTemplate"] == pods(
        "worker", WORKER.replace("LWS_LEADER_ADDRESS", "ENTRY_ADDRESS")
    )
    assert front["spec"]["selector"] == {naming.NAME: "llama", "role": "leader"}
    assert secret == SECRET
    lines = told(ran, path)
    assert lines[0] == "model.yaml:1: LeaderWorkerSet llama becomes ModelServing default/llama"
    assert lines[1:3] == [
        "  rewrites LWS_GROUP_SIZE to GROUP_SIZE in roles[0].entry_template.spec.containers[0]",
        REWRITTEN,
    ]
    assert lines[3].endswith("Service llama-leader is kept")
    assert lines[4] == (
        "  selects by modelserving.volcano.sh/name: llama instead of "
        "leaderworkerset.sigs.k8s.io/name: llama"
    )
    assert lines[5].endswith("Secret token is kept")
    assert len(lines) == 6


def test_what_is_not_kept_is_named_and_must_be_accepted(command: Command, file: Any) -> None:
    body = leader_worker_set(startupPolicy="LeaderReady", volumeClaimTemplates=[{"a": 1}])
    body["metadata"] |= {"finalizers": ["team/chat"], "annotations": {"note": "x"}}
    body["status"] = {"replicas": 2}
    path = file(body)
    ran = command("convert", "--to", "kthena", path)
    assert (ran.status, ran.out) == (1, "")
    lost = [line.partition(": loss: ")[2] for line in ran.err.splitlines() if ": loss: " in line]
    assert sorted(lost) == [
        "metadata.annotations.note: is not kept",
        "metadata.finalizers: is not kept",
        "spec.startupPolicy: 'LeaderReady' becomes 'LeaderCreated'",
        "spec.volumeClaimTemplates: is not kept",
        "status: is not kept",
    ]
    assert told(ran, path)[-1] == "nothing was written: 5 losses are not accepted"
    flags = told(ran, path)[-2].removeprefix("To convert without them: ").split()
    assert objects_in(command("convert", "--to", "kthena", path, *flags)) != []
    assert flags[-2:] == ["--accept-loss", "status"]
    assert command("convert", "--to", "kthena", path, *flags[:-2]).status == 1


def test_accepting_a_field_accepts_all_below_it_and_nothing_beside_it(
    command: Command, file: Any
) -> None:
    body = leader_worker_set()
    body["metadata"]["annotations"] = {"team": "chat"}
    body["metadata"]["annotationsets"] = {"a": "b"}
    ran = command("convert", "--to", "kthena", "--accept-loss", "metadata.annotations", file(body))
    assert ran.status == 1
    assert "accepted: metadata.annotations.team: is not kept" in ran.err
    assert "loss: metadata.annotationsets: is not kept" in ran.err
    whole = command("convert", "--to", "kthena", "--accept-loss", "metadata", file(body))
    assert whole.status == 0


def test_only_a_loss_that_there_is_can_be_accepted(command: Command, file: Any) -> None:
    body = leader_worker_set()
    path = file(body)
    accept = ("convert", "--to", "kthena", path, "--accept-loss")
    assert command(*accept, "status").status == 0
    ran = command(*accept, "status.replicas")
    assert (ran.status, ran.out) == (2, "")
    assert "--accept-loss status.replicas: nothing is lost; remove it" in ran.err
    body["metadata"]["annotations"] = {"team": "chat", "note": "x"}
    path = file(body)
    ran = command(*accept, "metadata", "--accept-loss", "metadata.annotations.tem")
    assert (ran.status, ran.out) == (2, "")
    told = "--accept-loss metadata.annotations.tem: there is no such loss; write metadata.annot"
    assert told in ran.err
    ran = command(*accept, "nonsense")
    assert "no such loss; known: metadata.annotations.team, metadata.annotations.note" in ran.err


def test_options_of_one_system_are_losses_in_another(command: Command, file: Any) -> None:
    path = file(model_serving(plugins=[{"name": "tweaks", "config": {"a": 1}}]))
    ran = command("convert", "--to", "lws", path)
    assert ran.status == 1
    assert "loss: spec.plugins: is not kept" in ran.err
    assert (
        "loss: gang: the pods are scheduled each engine by itself, and were 4 pods of a group"
        in (ran.err)
    )


def test_a_stronger_gang_is_told(command: Command, file: Any) -> None:
    body = leader_worker_set()
    for template in ("leaderTemplate", "workerTemplate"):
        body["spec"]["leaderWorkerTemplate"][template]["spec"]["schedulerName"] = "volcano"
    path = file(body)
    ran = command("convert", "--to", "kthena", "--set", "roles[0].replicas=3", path)
    assert objects_in(ran)[0]["spec"]["template"]["roles"][0]["replicas"] == 3
    assert "the pods are scheduled 6 pods of a group together, and were each engine" in ran.err


def test_a_refusal_is_shown_in_the_words_of_the_backend_and_can_be_settled(
    command: Command, file: Any
) -> None:
    path = file(leader_worker_set())
    ran = command("convert", "--to", "native", path)
    assert (ran.status, ran.out) == (1, "")
    assert told(ran, path)[:2] == ["model.yaml: LeaderWorkerSet llama: 1 problem", REFUSED]
    settled = objects_in(
        command("convert", "--to", "native", "--set", "recovery_policy=null", path)
    )
    assert [body["kind"] for body in settled].count("StatefulSet") == 4
    assert not any("pulumi.com" in json.dumps(body) for body in settled)


def test_a_front_service_is_part_of_its_serving(command: Command, file: Any) -> None:
    front = service(**{naming.NAME: "llama", naming.ENTRY: "true"})
    front["metadata"] = {"name": "llama", "namespace": "serving"}
    ran = command("convert", "--to", "python", file(model_serving(), front))
    assert ran.status == 0, ran.err
    assert '"expose": {"port": 8080, "target_port": 8080}' in ran.out
    assert ran.err.splitlines()[0].endswith(
        "becomes ModelServing serving/llama, Service serving/llama"
    )


def test_labels_without_a_counterpart_and_references_are_losses(
    command: Command, file: Any
) -> None:
    index = service(**SELECTOR, **{"leaderworkerset.sigs.k8s.io/group-index": "0"})
    target = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet"}
    scaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "scaler"},
        "spec": {"maxReplicas": 4, "scaleTargetRef": {**target, "name": "llama"}},
    }
    ran = command("convert", "--to", "kthena", file(leader_worker_set(), index, scaler))
    assert ran.status == 1
    assert (
        "loss: Service/llama-leader: selects by leaderworkerset.sigs.k8s.io/group-index: 0, which "
        "no pod has with kthena" in ran.err
    )
    assert (
        "loss: HorizontalPodAutoscaler/scaler: refers to LeaderWorkerSet llama, which is converted"
        in ran.err
    )


def test_another_servings_service_is_left_alone(command: Command, file: Any) -> None:
    other = service(**{**SELECTOR, "leaderworkerset.sigs.k8s.io/name": "other"})
    (_, kept) = objects_in(command("convert", "--to", "kthena", file(leader_worker_set(), other)))
    assert kept == other


def test_a_program_registers_the_same_objects(command: Command, file: Any) -> None:
    body = model_serving()
    ran = command("convert", "--to", "python", file(body))
    assert ran.status == 0, ran.err
    recorded = record(lambda: exec(compile(ran.out, "__main__.py", "exec"), {}))  # noqa: S102
    (made,) = recorded.of_kind("ModelServing")[-1:]
    assert (
        made.props["spec"]["template"]["roles"][0]["entryTemplate"]["spec"]
        == (body["spec"]["template"]["roles"][0]["entryTemplate"]["spec"])
    )


def test_a_stack_file_describes_the_same_serving(command: Command, file: Any) -> None:
    path = file(leader_worker_set())
    asked = ["--backend", "kthena", "--set", "namespace=serving"]
    ran = command("convert", "--to", "stack", *asked, path)
    config = objects_in(ran)[0]["config"]
    (args,) = config["kthena-components:servings"]
    (serving,) = (manifest.body for manifest in compile_serving(args).manifests)
    (same,) = objects_in(command("convert", "--to", "kthena", *asked[2:], path))
    assert serving["spec"] == same["spec"]
    assert serving["metadata"]["namespace"] == same["metadata"]["namespace"] == "serving"


@pytest.mark.parametrize("target", ["kthena", "python", "typescript", "stack"])
def test_waivers_are_kept(command: Command, file: Any, target: str) -> None:
    body = model_serving()
    body["spec"]["template"]["roles"][0]["workerReplicas"] = 2
    refused = command("convert", "--to", target, file(body))
    assert refused.status == 1
    assert "[world-size-equals-gpus]" in refused.err
    waiver = {"waive.kthena-components/world-size-equals-gpus": "2999-12-31 one pod is spare"}
    body["metadata"]["annotations"] = waiver
    ran = command("convert", "--to", target, file(body))
    assert ran.status == 0, ran.err
    assert "2999-12-31 one pod is spare" in ran.out


def test_each_serving_of_a_file_is_converted(command: Command, file: Any) -> None:
    second = leader_worker_set()
    second["metadata"]["name"] = "mistral"
    ran = command("convert", "--to", "kthena", file(leader_worker_set(), SECRET, second))
    names = [(body["kind"], body["metadata"]["name"]) for body in objects_in(ran)]
    assert names == [("ModelServing", "llama"), ("Secret", "token"), ("ModelServing", "mistral")]


def test_files_are_written_to_a_folder_and_never_overwritten(
    command: Command, file: Any, tmp_path: Path
) -> None:
    asked = ["convert", "--to", "kthena", "-o", str(tmp_path / "out"), file(leader_worker_set())]
    assert command(*asked).status == 0
    written = tmp_path / "out" / "model.yaml"
    assert yaml.safe_load(written.read_text())["kind"] == "ModelServing"
    written.write_text("mine")
    again = command(*asked)
    assert again.status == 2
    assert f"{written} exists already; remove it, or choose another folder" in again.err
    assert written.read_text() == "mine"


def test_a_kind_that_is_not_read_yet_is_refused(command: Command, file: Any) -> None:
    other = {
        "apiVersion": "kaito.sh/v1alpha1",
        "kind": "MultiRoleInference",
        "metadata": {"name": "chat"},
        "spec": {},
    }
    ran = command("convert", "--to", "kthena", file(leader_worker_set(), other))
    assert (ran.status, ran.out) == (1, "")
    assert "kind: is MultiRoleInference: a preset creates them. Convert the objects" in ran.err


def test_a_loss_of_a_native_serving_stands_at_its_object(command: Command, file: Any) -> None:
    made = compile_serving({**NATIVE_8B, "replicas": 2})
    bodies = [json.loads(json.dumps(plain(manifest.body))) for manifest in made.manifests]
    second = next(b for b in bodies if b["metadata"]["name"] == "small-1-server-0")
    second["metadata"]["annotations"] = {"team": "chat"}
    path = file(*bodies)
    ran = command("convert", "--to", "native", path)
    lines = Path(path).read_text().splitlines()
    (number,) = (n for n, line in enumerate(lines, 1) if "team: chat" in line)
    name = "Service/small-1-server-0.metadata.annotations.team"
    assert f"{path}:{number}: loss: {name}: is not kept" in ran.err
