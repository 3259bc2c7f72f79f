"""All objects of all paths are checked together: what is found, where, and what it costs."""

import io
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import yaml

from kthena_components.cli.check.files import CheckOptions, check
from kthena_components.cli.check.results import Summary
from kthena_components.compiler.compile import compile_serving
from kthena_components.systems.volcano.rules.queue_references import queue_cycle
from tests.checker.cluster_samples import SECRET, SERVICE, STACK
from tests.cli.conftest import Command, Write
from tests.support.specs import ENGINE_RAY, Args, changed
from tests.systems.volcano.samples import POD_GROUP, exact, hyper_node, pods, secret_env

ALONE = {"world-size-equals-gpus"}
"""What is said of pods without a command line."""
PATH = "spec.template.spec.containers[0].env[0].valueFrom.secretKeyRef.key"


def text(*bodies: Args) -> str:
    """Write objects as documents of a file."""
    return "---\n".join(yaml.safe_dump(body, sort_keys=False) for body in bodies)


def found(run: Command, *arguments: str) -> list[tuple[str, int, str]]:
    """Run the command; give file, line and rule of each finding, but of single objects."""
    return [(row["file"], row["line"], row["rule"]) for row in rows_of(run, *arguments)]


def rows_of(run: Command, *arguments: str) -> list[dict[str, Any]]:
    rows = json.loads(run(*arguments, "--format", "json").out)
    return [row for row in rows if row["rule"] not in ALONE]


def line_with(run: Command, rule: str, *arguments: str) -> str:
    """Give the line that a rule is named in."""
    (line,) = [line for line in run(*arguments).lines if line.endswith(f"[{rule}]")]
    return line


def line_of(content: str, part: str) -> int:
    return next(n for n, line in enumerate(content.splitlines(), 1) if part in line)


def test_a_key_is_compared_with_a_secret_of_another_file(run: Command, write: Write) -> None:
    leader = text({"kind": "List", "apiVersion": "v1", "items": [
        SERVICE, pods("chat-a", 1, env=secret_env("tokens"))]})  # fmt: skip
    write(
        "m/a.yaml", f"# a comment\n---\n{text(SERVICE | {'metadata': {'name': 'x'}})}---\n{leader}"
    )
    write("m/sub/secret.json", json.dumps(SECRET))
    line = line_of((Path("m/a.yaml")).read_text(), "key: tokens")
    assert line_with(run, "secret-key-exists", "m") == (
        f"m/a.yaml:{line}: mandatory: StatefulSet serving/chat-a: {PATH}: is 'tokens', but the "
        "Secret 'hf' has no such key, and the container does not start without it. "
        "Write 'token'. [secret-key-exists]"
    )
    assert run("m").status == 1
    assert run("m/a.yaml").status == 0


def test_standard_input_is_checked_together_with_files(
    run: Command, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = f"---\n{text(pods('chat-a', 1, env=secret_env('tokens')))}"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
    write("secret.yaml", text(SECRET))
    wanted = ("<stdin>", line_of(content, "key: tokens"), "secret-key-exists")
    assert found(run, "-", "secret.yaml") == [wanted]


def test_an_object_that_is_in_a_file_twice_is_named_with_its_first_line(
    run: Command, write: Write
) -> None:
    write("a.yaml", text(SERVICE, SECRET, SERVICE))
    line = line_with(run, "object-twice", "a.yaml")
    assert line.startswith("a.yaml:20: mandatory: Service serving/chat: metadata.name: is 'chat', ")
    assert "which is also the Service in namespace 'serving' of a.yaml:1, and" in line


def test_two_environments_in_two_folders_are_two_clusters(run: Command, write: Write) -> None:
    broken = pods("chat-a", 1, env=secret_env("tokens"))
    for folder in ("dev", "prod"):
        write(f"m/{folder}/chat.yaml", text(broken if folder == "prod" else STACK["leader"]))
        write(f"m/{folder}/secret.yaml", text(SECRET))
    assert [(file, rule) for file, _, rule in found(run, "m")] == [
        ("m/prod/chat.yaml", "secret-key-exists")
    ]
    whole = found(run, "--whole", "m")
    assert {(file, rule) for file, _, rule in whole} >= {
        ("m/prod/secret.yaml", "object-twice"),
        ("m/prod/chat.yaml", "object-twice"),
    }


def test_variants_in_one_folder_are_checked_file_by_file(run: Command, write: Write) -> None:
    racks = [hyper_node(f"spine-{i}", 2, exact("rack", "HyperNode")) for i in range(2)]
    rack = hyper_node("rack", 1, exact("gpu-1"))
    for i in range(2):
        write(f"m/variant-{i}.yaml", text(rack, racks[i]))
    assert found(run, "m") == []
    assert "hypernode-two-parents" in {rule for *_, rule in found(run, "--whole", "m")}


def scaler(name: str, version: str = "v2") -> Args:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    return {
        "apiVersion": f"autoscaling/{version}",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, "namespace": "serving"},
        "spec": {"scaleTargetRef": target, "maxReplicas": 3},
    }


def test_one_autoscaler_in_several_api_versions_is_one_object(run: Command, write: Write) -> None:
    for version in ("v1", "v2beta2", "v2"):
        write(f"m/hpa-{version}.yaml", text(scaler("cpu", version), scaler("memory", version)))
    told = rows_of(run, "m")
    conflicts = {(row["rule"], row["name"]) for row in told if row["rule"] != "object-version"}
    assert conflicts == {("autoscaler-conflict", "memory")}
    # In each file of its own: the copies of one scaler do not get in each other's way.
    write("one/v1.yaml", text(scaler("cpu", "v1")))
    write("one/v2.yaml", text(scaler("cpu", "v2")))
    assert found(run, "one") == []
    assert {rule for *_, rule in found(run, "--whole", "one")} == {"object-twice"}


def test_alternatives_in_one_folder_are_no_conflict(run: Command, write: Write) -> None:
    write("m/hpa.yaml", text(scaler("hpa")))
    write("m/other.yaml", text(scaler("other")))
    assert found(run, "m") == []
    assert line_with(run, "autoscaler-conflict", "--whole", "m") == (
        "m/other.yaml:7: mandatory: HorizontalPodAutoscaler serving/other: spec.scaleTargetRef: is "
        "the Deployment 'web', which the HorizontalPodAutoscaler 'hpa' scales too, and "
        "each would undo what the other does. Keep one of the two. [autoscaler-conflict]"
    )
    write("m/both.yaml", text(scaler("a"), scaler("b")))
    assert [(file, rule) for file, _, rule in found(run, "m")] == [
        ("m/both.yaml", "autoscaler-conflict")
    ]


def test_a_model_server_may_be_for_the_pods_of_an_alternative(run: Command, write: Write) -> None:
    base = Path(__file__).parents[1] / "systems/kthena/bases/kthena-selected.yaml"
    serving, *others = yaml.safe_load_all(base.read_text(encoding="utf-8"))
    (server,) = (body for body in others if body["kind"] == "ModelServer")
    server["spec"]["model"] = "llama"
    write("m/serving.yaml", text(serving))
    write("m/server.yaml", text(server))
    for options, level in (([], "advisory"), (["--whole"], "mandatory")):
        rows = [row for row in rows_of(run, *options, "m") if row["rule"] == "model-server-model"]
        assert [(row["file"], row["level"]) for row in rows] == [("m/server.yaml", level)]


def test_what_is_missing_is_told_where_all_is_there(run: Command, write: Write) -> None:
    write("a.yaml", text(POD_GROUP, pods("chat-a", 1)))
    assert found(run, "a.yaml") == []
    rules = {rule for *_, rule in found(run, "--whole", "a.yaml")}
    assert rules >= {"gang-has-pods", "queue-exists", "headless-service"}


def test_a_native_group_in_several_files_is_one_engine(run: Command, write: Write) -> None:
    args = changed(ENGINE_RAY, {"replicas": 1})
    bodies = [json.loads(json.dumps(dict(m.body))) for m in compile_serving(args).manifests]
    for i, body in enumerate(bodies):
        if body["kind"] == "StatefulSet" and body["metadata"]["name"].endswith("-w"):
            (container,) = body["spec"]["template"]["spec"]["containers"]
            for amounts in container["resources"].values():
                amounts["nvidia.com/gpu"] = "4"
        write(f"m/{i}.yaml", text(body))
    rows = rows_of(run, "m")
    told = [row for row in rows if row["rule"] in {"leader-worker-same-gpus", "nodes-whole"}]
    assert [row["level"] for row in told] == ["mandatory"] * len(told) != []
    assert all(row["path"].startswith("spec.template") and row["line"] > 1 for row in told)


def test_the_budget_is_of_all_files(run: Command, write: Write) -> None:
    for i in range(3):
        write(f"m/{i}.yaml", text(pods(f"chat-{i}", 2)))
    assert run("m", "--gpu-budget", "48").status == 0
    assert line_with(run, "gpu-budget", "m", "--gpu-budget", "47") == (
        "m/0.yaml:1: mandatory: all objects: these pods request 48 GPUs, but the "
        "budget is 47. Request 1 fewer, or ask for a larger budget. [gpu-budget]"
    )
    assert run("m", "--gpu-budget", "47").status == 1
    wrong = run("m", "--gpu-budget", "many")
    assert (wrong.status, wrong.err.count("'many' is not a number of GPUs")) == (2, 1)


def test_types_of_gpus_are_those_of_the_list(run: Command, write: Write) -> None:
    write("a.yaml", text(pods("chat", 2)))
    assert run("a.yaml", "--gpu-types", "nvidia.com/gpu, NVIDIA-H100-80GB-HBM3").status == 0
    assert [rule for *_, rule in found(run, "a.yaml", "--gpu-types", "amd.com/gpu")] == [
        "gpu-type-allowed"
    ]


def test_levels_weigh_what_is_found_together(run: Command, write: Write) -> None:
    write("a.yaml", text(SERVICE, SERVICE))
    write("levels.json", json.dumps({"object-twice": "disabled"}))
    assert run("a.yaml").status == 1
    assert run("a.yaml", "--level", "levels.json").status == 0


@pytest.mark.usefixtures("faults_told")
@pytest.mark.parametrize("what", ["compare_objects", "join_parts", "rule"])
def test_a_fault_of_a_rule_for_all_objects_hides_nothing_else(
    run: Command, write: Write, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise KeyError("x")

    if what == "rule":
        monkeypatch.setattr(queue_cycle, "__code__", broken.__code__)
    else:
        monkeypatch.setattr(f"kthena_components.checker.check_cluster_objects.{what}", broken)
    write("a.yaml", text(SERVICE, SERVICE))
    done = run("a.yaml")
    failed = "the rule queue-cycle" if what == "rule" else "reading the objects"
    assert f"because {failed} failed with KeyError at kthena_components" in done.out
    assert ("object-twice" in done.out) == (what != "compare_objects")
    assert done.status == 2


def test_little_is_held_of_each_object(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """Besides the strings of the first files, up to 8 Mi characters, which are read once."""
    monkeypatch.setattr("kthena_components.cli.check.context._MOST_KEPT", 0)
    words = ["--some-flag=of-a-long-command-line"] * 400
    for i in range(60):
        body = pods(f"chat-{i}", 1, gang=f"g-{i}", command=[*words, f"--number={i}"])
        path = write(f"m/{i}.yaml", text(body))
    assert path.stat().st_size > 12_000
    list(check([str(path)], CheckOptions(), Summary()))
    # The interpreter's table of strings grows now and then, by megabytes, but not in each run.
    # And the first run fills what is kept of templates.
    peak = min(peak_of(path.parent) for _ in range(4))
    assert peak < 25 * path.stat().st_size + 60 * 8_000


def peak_of(folder: Path) -> int:
    """The most memory that a check of `folder` takes, in bytes."""
    tracemalloc.start()
    try:
        list(check([str(folder)], CheckOptions(), Summary()))
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_selector_of_other_pods_is_reported_once(run: Command, write: Write) -> None:
    base = Path(__file__).parents[1] / "systems/kubernetes/bases/found-set.yaml"
    write(
        "m/a.yaml",
        base.read_text().replace("true, selector: {app: chat}", "true, selector: {app: b}"),
    )
    rules = {rule for *_, rule in found(run, "--whole", "m")}
    assert {"first-pod-selected", "service-selects-pods"} & rules == {"first-pod-selected"}
