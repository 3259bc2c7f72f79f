"""What is read and judged, where findings are shown, and how the command ends."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import kthena_components
from kthena_components.checker.manifest import check_manifest
from kthena_components.cli.check import files as check
from kthena_components.cli.check.reports import FORMATS
from kthena_components.core.findings import rule_name
from kthena_components.core.rules import registry as checks
from tests.cli.conftest import Command, Write
from tests.support.manifests import ADVISED, COMMAND, RIGHT, SENTENCE, SUBJECT, UNKNOWN, WRONG, pod

ROOT = Path(__file__).parent.parent.parent


def test_a_wrong_product_is_refused_with_the_words_of_the_pack(run: Command, write: Write) -> None:
    write("llama.yaml", WRONG)
    done = run("llama.yaml")
    assert done.lines == [
        f"llama.yaml:16: mandatory: {SUBJECT}: {COMMAND}: {SENTENCE}",
        "1 object checked in 1 file: 1 mandatory, 0 advisory, 0 not checked",
    ]
    assert (done.status, done.err) == (1, "")
    assert [str(f) for f in check_manifest(yaml.safe_load(WRONG))] == [f"{COMMAND}: {SENTENCE}"]


def test_a_right_one_is_clean(run: Command, write: Write) -> None:
    write("llama.yaml", RIGHT)
    done = run("llama.yaml")
    assert (done.status, done.err) == (0, "")
    assert done.lines == ["1 object checked in 1 file: 0 mandatory, 0 advisory, 0 not checked"]


@pytest.mark.parametrize(
    ("text", "level", "counts"),
    [(ADVISED, "advisory", "2 advisory, 0 not"), (UNKNOWN, "not checked", "0 advisory, 1 not")],
    ids=["advisory", "unknown"],
)
def test_nothing_but_mandatory_findings_fails(
    run: Command, write: Write, text: str, level: str, counts: str
) -> None:
    write("a.yaml", text)
    done = run("a.yaml")
    assert f": {level}: " in done.lines[0]
    assert counts in done.lines[-1]
    assert done.status == 0


def test_each_document_of_a_file_is_checked_at_its_own_lines(run: Command, write: Write) -> None:
    write("all.yaml", f"# made by helm\n---\n{pod('a')}---\n# nothing\n---\n{pod('b')}...\n")
    done = run("all.yaml")
    assert done.err == ""
    found = [line.split(": ")[:3] for line in done.lines[:-1]]
    assert found == [["all.yaml:9", "mandatory", "Pod a"], ["all.yaml:21", "mandatory", "Pod b"]]


@pytest.mark.parametrize("kind", ["List", "PodList"])
def test_the_items_of_a_list_are_checked_one_by_one(run: Command, write: Write, kind: str) -> None:
    items = [yaml.safe_load(pod(name)) for name in "ab"]
    version = "v1"
    if kind == "PodList":
        items = [{k: v for k, v in item.items() if k in {"metadata", "spec"}} for item in items]
    listed = {"apiVersion": version, "kind": kind, "items": [*items, 7, None]}
    text = yaml.safe_dump(listed, sort_keys=False)
    write("all.yaml", text)
    done = run("all.yaml")
    lines = [n for n, line in enumerate(text.splitlines(), 1) if "args:" in line]
    assert [line.split(": ")[0] for line in done.lines[:-1]] == [f"all.yaml:{n}" for n in lines]
    assert [line.split(": ")[2] for line in done.lines[:-1]] == ["Pod a", "Pod b"]
    assert done.lines[-1].startswith("2 objects checked in 1 file:")


def test_json_is_read_one_document_after_another(run: Command, write: Write) -> None:
    text = "\n".join(json.dumps(yaml.safe_load(pod(name)), indent=1) for name in "ab")
    write("pods.json", text)
    second = text.splitlines().index("}") + 2
    assert [line.split(": ")[0] for line in run("pods.json").lines[:-1]] == [
        "pods.json:1",
        f"pods.json:{second}",
    ]


def test_yaml_may_begin_with_a_bracket(run: Command, write: Write) -> None:
    write(
        "flow.yaml",
        "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: b}]}}",
    )
    done = run("flow.yaml")
    assert (done.status, done.lines[-1][:28]) == (0, "1 object checked in 1 file: ")


def test_standard_input_is_read(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(WRONG.encode())))
    done = run("-")
    assert done.lines[0].startswith(f"<stdin>:16: mandatory: {SUBJECT}: ")
    assert done.status == 1


def test_folders_are_read_whole_and_in_order_but_hidden_ones(run: Command, write: Write) -> None:
    names = ["m/b.yml", "m/a.yaml", "m/sub/c.json", "m/.git/d.yaml", "m/e.txt", "m/F.YAML"]
    for name in names:
        text = pod("x")
        write(name, json.dumps(yaml.safe_load(text)) if name.endswith("json") else text)
    found = [line.split(":")[0] for line in run("m").lines[:-1]]
    assert found == ["m/F.YAML", "m/a.yaml", "m/b.yml", "m/sub/c.json"]


def test_a_folder_without_manifests_is_no_clean_one(run: Command, write: Write) -> None:
    write("m/readme.txt", "")
    done = run("m")
    assert done.err == "m: contains no file that ends in .yaml or .yml or .json\n"
    assert done.status == 2


def test_what_is_no_object_is_passed_over(run: Command, write: Write) -> None:
    write("values.yaml", "a: 1\n---\n- 1\n---\ntext\n---\n\n---\nkind: Pod\n---\n!!python/name:x\n")
    done = run("values.yaml")
    assert (done.status, done.err) == (0, "")
    assert done.lines[-1].startswith("0 objects checked in 1 file:")


def test_kinds_without_rules_are_counted_apart(run: Command, write: Write) -> None:
    write("a.yaml", "apiVersion: v1\nkind: ConfigMap\n---\napiVersion: v1\nkind: Event\n")
    assert "0 objects checked in 1 file (2 more without rules):" in run("a.yaml").out


def test_an_object_that_nobody_reads_is_listed_where_it_matters(run: Command, write: Write) -> None:
    small = "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: tune}\nspec:\n"
    asks = "  master:\n    resources: {limits: {nvidia.com/gpu: %d}}\n"
    write("a.yaml", f"{small}{asks % 1}---\n{small}{asks % 8}---\n{small}  broken: [\n")
    done = run("a.yaml")
    assert done.lines[0] == (
        "a.yaml:12: not checked: PyTorchJob tune: spec.master: not checked, because no rule reads "
        "objects of kind PyTorchJob (kubeflow.org/v1); this one asks for 8 nvidia.com/gpu. "
        "[kind-read]"
    )
    assert done.lines[-1] == (
        "0 objects checked in 1 file (3 more without rules): 0 mandatory, 0 advisory, 1 not checked"
    )
    assert done.status == 0
    write("levels.json", '{"serving-rules": {"levels": {"kind-read": "disabled"}}}')
    assert "0 not checked" in run("a.yaml", "--level", "levels.json").out


@pytest.mark.parametrize(
    ("version", "kind", "right"),
    [
        ("workload.serving.volcano.sh/v1alpha1", "Modelserving", "ModelServing"),
        ("leaderworkerset.x-k8s.io/v1", "leaderworkerset", "LeaderWorkerSet"),
        ("apps/v1", "Statefulset", "StatefulSet"),
    ],
)
def test_kinds_are_case_sensitive(
    version: str, kind: str, right: str, run: Command, write: Write
) -> None:
    write("a.yaml", f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: chat}}\nspec: {{}}\n")
    done = run("a.yaml")
    group = version.partition("/")[0]
    assert done.lines[0] == (
        f"a.yaml:2: mandatory: {kind} chat: kind: is {kind}, but {group} has {right}, "
        f"and the API server rejects any other spelling. Write {right}. [kind-read]"
    )
    assert done.status == 1


@pytest.mark.parametrize("kind", ["Modelserver2", "pods", "Podset", "secret"])
def test_another_name_is_no_slip_in_upper_and_lower_case(
    kind: str, run: Command, write: Write
) -> None:
    version = "v1" if kind == "secret" else "workload.serving.volcano.sh/v1alpha1"
    write("a.yaml", f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: chat}}\nspec: {{}}\n")
    assert run("a.yaml").status == 0


def test_objects_in_a_list_and_in_json_are_listed_as_well(run: Command, write: Write) -> None:
    job = '{"apiVersion": "x.io/v1", "kind": "Job", "spec": {"args": ["--tensor-parallel-size=8"]}}'
    write("a.json", f'{{"apiVersion": "v1", "kind": "List", "items": [{job}, {job}]}}')
    found = run("a.json").out
    assert found.count("spec.args: not checked, because no rule reads objects of kind Job") == 2
    assert "(x.io/v1); this one states --tensor-parallel-size. [kind-read]" in found


def broken(*_: object, **__: object) -> None:
    raise KeyError("a piece of input")


@pytest.mark.usefixtures("faults_told")
@pytest.mark.parametrize("form", FORMATS)
def test_a_rule_that_fails_hides_nothing_else_and_is_no_clean_end(
    run: Command, write: Write, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    write("a.yaml", WRONG)
    assert run("a.yaml", "--format", form).status == 1
    monkeypatch.setattr(checks.CHECKS[-1], "__code__", broken.__code__)
    done = run("a.yaml", "--format", form)
    name = rule_name(checks.CHECKS[-1])
    assert done.status == 2
    assert f"the rule {name} failed with KeyError at " in done.out
    assert "world-size-equals-gpus" in done.out
    assert "a piece of input" not in done.out + done.err


@pytest.mark.usefixtures("faults_told")
def test_an_object_that_cannot_be_read_is_told_and_the_others_are_checked(
    run: Command, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("a.yaml", pod("a"))
    write("b.yaml", pod("b"))
    monkeypatch.setattr(check, "check_whole", broken)
    done = run(".")
    assert [line.split(":")[0] for line in done.lines[:-1]] == ["a.yaml", "b.yaml"]
    assert "because reading the object failed with KeyError at kthena_" in done.lines[0]
    assert done.lines[-1].endswith("0 mandatory, 0 advisory, 2 not checked, 2 rule faults")
    assert done.status == 2


@pytest.mark.usefixtures("faults_told")
def test_an_object_that_cannot_be_held_is_told(
    run: Command, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("a.yaml", pod("a"))
    monkeypatch.setattr("kthena_components.cli.check.kept_objects.reduce_object", broken)
    done = run("a.yaml")
    assert "because reading the object failed with KeyError at kthena_" in done.out
    assert done.status == 2


def test_texts_of_manifests_cannot_begin_a_line_of_their_own(run: Command, write: Write) -> None:
    write("a.yaml", pod('"x\\n::error::pwned\\e[31m"'))
    done = run("a.yaml")
    assert done.lines[0].startswith("a.yaml:7: mandatory: Pod x\\x0a::error::pwned\\x1b[31m: ")
    assert done.lines[1].startswith("a.yaml:3: mandatory: Pod x\\x0a::error::pwned\\x1b[31m: ")
    assert len(done.lines) == 3


def test_the_module_runs_without_the_engine_of_pulumi(write: Write) -> None:
    path = write("a.yaml", WRONG)
    program = (
        "import sys; from kthena_components.cli.main import main\n"
        f"status = main(['check', {str(path)!r}])\n"
        "sys.exit(9 if any(name.startswith('pulumi') for name in sys.modules) else status)"
    )
    root = Path(kthena_components.__file__).parent.parent
    for command in (["-c", program], ["-m", "kthena_components", "check", str(path)]):
        done = subprocess.run(
            [sys.executable, *command], cwd=root, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (1, "")
        assert SENTENCE in done.stdout


def test_ctrl_c_ends_it_without_a_traceback() -> None:
    """It waits for its standard input when the signal comes.

    A process that was started in the background, as its children, ignores the signal unless it asks
    for it. On a busy machine it may come just before the wait, and Python then sees the next one.
    """
    program = (
        "import os, signal, sys, threading, time; from kthena_components.cli.main import main\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "def interrupt():\n"
        "    for seconds in (0.2, 10, 10, 10):\n"
        "        time.sleep(seconds)\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "threading.Thread(target=interrupt, daemon=True).start()\n"
        "sys.exit(main(['check', '-']))"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as waiting:
        assert waiting.stderr is not None
        said = waiting.stderr.read()
        status = waiting.wait()

    assert (status, said) == (130, "interrupted\n")
