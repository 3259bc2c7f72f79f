"""Files with workloads that no rendering contains are named, where neither program is there."""

import pytest

from tests.cli.conftest import Command, Write
from tests.support.manifests import CHART, deployment

pytestmark = pytest.mark.on_path()
BAD = deployment(gpus=4)
CHAT = CHART.format("chat")


def test_a_workload_in_a_library_chart_is_told(run: Command, write: Write) -> None:
    write("m/lib/Chart.yaml", f"{CHAT}type: library\n")
    write("m/lib/templates/_helpers.tpl", '{{ define "x" }}{{ end }}')
    write("m/lib/templates/chat.yaml", BAD)
    write("m/lib/charts/inner/Chart.yaml", CHAT)
    done = run("m")
    assert done.err.splitlines() == [
        "m/lib/charts/inner: not rendered: there is no helm on PATH",
        ("m/lib/templates/chat.yaml: is not checked: m/lib is a library chart, which Helm does not "
        "render"),
    ]  # fmt: skip
    assert done.status == 0
    assert run("m", "--strict-read").status == 2


def test_a_chart_below_another_one_that_is_not_read_is_rendered(run: Command, write: Write) -> None:
    write("m/.git/HEAD", "")
    write("m/chat/Chart.yaml", CHAT)
    write("m/chat/charts/sub/Chart.yaml", CHAT)
    write("m/chat/charts/sub/templates/chat.yaml", BAD)
    for named in ("m/chat/charts/sub", "m/chat/charts/sub/templates"):
        assert run(named).err == "m/chat/charts/sub: not rendered: there is no helm on PATH\n"


@pytest.mark.parametrize(
    "stated", ["patches: [{path: bad.yaml}]", "resources: [bad.txt]", "generators: [bad.yaml]"]
)
def test_a_file_of_a_kustomization_that_is_not_built_is_told(
    run: Command, write: Write, stated: str
) -> None:
    name = "bad.txt" if "txt" in stated else "bad.yaml"
    write("m/k/kustomization.yaml", stated)
    write(f"m/k/{name}", BAD)
    told = run("m").err.splitlines()
    assert told[0] == "m/k: not rendered: there is no kustomize or kubectl on PATH"
    assert told[1].startswith(f"m/k/{name}: is not checked: it is a ")
    assert told[1].endswith(" m/k/kustomization.yaml, which is not rendered")


def test_a_file_named_by_its_suffix_is_read(run: Command, write: Write) -> None:
    write("m/.yaml", BAD)
    assert "m/.yaml:12: mandatory: " in run("m").out


def test_a_patch_with_a_word_of_a_definition_is_a_patch(run: Command, write: Write) -> None:
    plain = BAD.replace("vllm/vllm-openai:v0.11.0", "x").replace("--tensor-parallel-size", "-a")
    write("m/kustomization.yaml", "resources: [a.yaml]\npatches: [{path: p.yaml}]")
    write("m/a.yaml", plain.replace("nvidia.com/gpu", "memory"))
    write("m/p.yaml", f"# openAPIV3Schema of a CustomResourceDefinition\n{BAD}")
    assert "m: not rendered: " in run("m").err


def test_a_kustomization_that_states_a_key_twice_fails_the_run(run: Command, write: Write) -> None:
    """Kustomize builds it, with the last of the two."""
    write("m/kustomization.yaml", "resources: []\nresources: [bad.txt]\n")
    write("m/bad.txt", BAD)
    done = run("m")
    assert done.err.startswith("m/kustomization.yaml:2:1: states 'resources' twice in one map")
    assert done.status == 2


def test_an_object_that_is_not_utf_8_is_told(run: Command, write: Write) -> None:
    write("m/kustomization.yaml", "resources: [bad.txt]\n")
    write("m/bad.txt", BAD.encode() + b"# \xff\n")
    assert "m/bad.txt: is not checked: it is a part of m/kustomization.yaml" in run("m").err


STACK = "servingEngineSpec:\n  modelSpec:\n  - name: chat\n"
MODELSERVICE = "modelArtifacts: {uri: hf://a/b}\ndecode:\n  parallelism: {tensor: 8}\n"
OWN = "image: vllm/vllm-openai:v0.20.0\nargs: [--tensor-parallel-size=8]\n"
TOLD = (
    "and is not in that chart's folder: check the chart's folder with this file in it, or the "
    "output of `helm template` with it\n"
)


@pytest.mark.parametrize(
    ("file", "text", "chart"),
    [
        ("values.yaml", STACK, "the chart vllm-stack"),
        ("chat.yaml", MODELSERVICE, "the chart llm-d-modelservice"),
        ("values-prod.yaml", OWN, "a Helm chart"),
        ("chat_values.yml", OWN, "a Helm chart"),
    ],
)
def test_values_whose_chart_is_elsewhere_are_told_once(
    run: Command, write: Write, file: str, text: str, chart: str
) -> None:
    write(f"m/{file}", f"{text}---\nother: {{}}\n")
    for named in ("m", f"m/{file}"):
        done = run(named)
        assert done.err == f"m/{file}: is not checked: it has values of {chart} {TOLD}"
        assert "1 file not read" in done.out
        assert done.status == 0
    assert run("m", "--strict-read").status == 2


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("values.yaml", "image: nginx\nreplicas: 8\n"),
        ("docker-compose.yaml", OWN),
        ("revalues.yaml", OWN),
        ("values.yaml", f"{BAD}---\n{OWN}"),
        ("values.yaml", "modelArtifacts: {uri: a}\n"),
        ("values.yaml", "[]\n"),
        ("values.yaml", ""),
    ],
)
def test_other_files_are_passed_over(run: Command, write: Write, file: str, text: str) -> None:
    write(f"m/{file}", text)
    write("m/other.yaml", BAD)
    assert run("m").err == ""


def test_values_in_the_folder_of_a_chart_are_told_with_the_chart(
    run: Command, write: Write
) -> None:
    write("m/chat/Chart.yaml", CHAT)
    write("m/chat/values.yaml", STACK)
    write("m/chat/examples/chat.yaml", STACK)
    assert run("m").err == "m/chat: not rendered: there is no helm on PATH\n"
