"""Charts are rendered by the real helm, and what they render is judged."""

import io
import json
import os
import tarfile
import textwrap
from pathlib import Path

import pytest
import yaml

from kthena_components.rendering import helm
from tests.cli.conftest import Command, Server, Write
from tests.support.manifests import CHART

pytestmark = [pytest.mark.programs, pytest.mark.on_path("helm")]

TEMPLATE = """\
{{- if .Values.enabled }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}-chat
spec:
  selector: {matchLabels: {app: chat}}
  template:
    metadata: {labels: {app: chat}}
    spec:
      containers:
        - name: engine
          image: vllm/vllm-openai:v0.11.0
          args: [--model, m, --tensor-parallel-size, {{ .Values.tensor | quote }}]
          resources: {limits: {nvidia.com/gpu: {{ .Values.gpus }}}}
{{- end }}
"""
LINE = 14
"""Where the arguments stand."""
VALUES = "enabled: true\ntensor: {}\ngpus: {}\n"


@pytest.fixture
def chart(write: Write) -> None:
    write("m/chat/Chart.yaml", CHART.format("chat"))
    write("m/chat/values.yaml", VALUES.format(8, 8))
    write("m/chat/templates/chat.yaml", TEMPLATE)


def mandatory(run: Command, *arguments: str) -> list[str]:
    return [line for line in run(*arguments).lines if ": mandatory: " in line]


@pytest.mark.usefixtures("chart")
def test_a_chart_is_checked_with_its_own_values(run: Command, write: Write) -> None:
    done = run("m")
    assert (done.status, done.err) == (0, "")
    assert done.lines[-1].startswith("1 object checked in 2 files and 1 rendering: 0 mandatory")
    write("m/chat/values.yaml", VALUES.format(8, 4))
    (line,) = mandatory(run, "m")
    assert line.startswith(
        f"m/chat/templates/chat.yaml:{LINE}: mandatory: Deployment release-name-chat as rendered "
        "by m/chat: spec.template.spec.containers[0].args: engine 'release-name-chat' starts "
        "tensor 8 × pipeline 1 = 8 ranks, but its pod has 4 GPUs"
    )


@pytest.mark.usefixtures("chart")
def test_other_values_are_tried_each_by_itself(run: Command, write: Write) -> None:
    wrong = "gpus: 4\n"
    for name in ("values-prod.yaml", "values.dev.yaml", "a100-values.yaml", "ci/small-values.yaml"):
        write(f"m/chat/{name}", wrong)
    write("m/chat/other.yaml", wrong)
    write("m/chat/values-right.yml", "gpus: 8\n")
    (row,) = (r for r in json.loads(run("m", "--format", "json").out) if r["level"] == "mandatory")
    assert row["rendered_by"] == [
        "m/chat with a100-values.yaml",
        "m/chat with ci/small-values.yaml",
        "m/chat with values-prod.yaml",
        "m/chat with values.dev.yaml",
    ]
    assert "and 6 renderings" in run("m").lines[-1]


@pytest.mark.usefixtures("chart")
def test_a_field_that_a_chart_leaves_empty_is_not_checked(run: Command, write: Write) -> None:
    volumes = "      volumes: [{name: disk, hostPath: {path: {{ .Values.disk }}}}]\n{{- end }}"
    write("m/chat/templates/chat.yaml", TEMPLATE.replace("{{- end }}", volumes))
    empty = "spec.template.spec.volumes[0].hostPath.path: is"
    told = run("m")
    assert told.status == 0
    assert f"{empty} empty with the chart's own values, so it was not checked" in told.out
    # What somebody gives as values is all that the chart gets.
    write("m/chat/values-prod.yaml", "disk: null\n")
    (line,) = mandatory(run, "m")
    assert f"by m/chat with values-prod.yaml: {empty} missing" in line


@pytest.mark.usefixtures("chart")
def test_a_name_with_a_part_that_a_chart_leaves_empty_is_not_checked(
    run: Command, write: Write
) -> None:
    write("m/chat/templates/chat.yaml", TEMPLATE.replace("engine\n", "engine-{{ .Values.v }}\n"))
    told = run("m")
    assert told.status == 0
    assert "with the chart's own values, so it was not checked" in told.out
    write("m/chat/values-prod.yaml", "v: null\n")
    (line,) = mandatory(run, "m")
    assert "is 'engine-', which is not a DNS-1123 label" in line


@pytest.mark.usefixtures("chart")
def test_a_name_that_fits_a_release_with_it_is_not_checked(run: Command, write: Write) -> None:
    """Charts name objects as the release if that contains the chart's name, else with both."""
    inside = "      volumes: [{name: {{ .Release.Name }}-chat, emptyDir: {}}]\n{{- end }}"
    mount = "- volumeMounts: [{name: chat, mountPath: /data}]\n          name: engine"
    mounted = TEMPLATE.replace("{{- end }}", inside).replace("- name: engine", mount)
    write("m/chat/templates/chat.yaml", mounted)
    told = run("m")
    assert told.status == 0
    assert "is 'chat', which fits a release with that name, so it was not checked" in told.out
    write("m/chat/templates/chat.yaml", mounted.replace("name: chat,", "name: a,"))
    (line,) = mandatory(run, "m")
    assert "is 'a', but the pod has no such volume" in line


@pytest.mark.usefixtures("chart")
@pytest.mark.parametrize("value", ["", "[]"])
def test_containers_that_a_chart_leaves_empty_are_not_checked(
    run: Command, write: Write, value: str
) -> None:
    write("m/chat/values.yaml", f"{VALUES.format(8, 8)}containers: {value}\n")
    pods = "      containers: {{ .Values.containers | toJson }}\n{{- end }}\n"
    start, _, _ = TEMPLATE.partition("      containers:")
    write("m/chat/templates/chat.yaml", start + pods)
    told = run("m")
    assert told.status == 0
    assert "spec.template.spec.containers: is empty with the chart's own values" in told.out


@pytest.mark.usefixtures("chart")
def test_a_secret_that_a_chart_leaves_without_keys_is_not_checked(
    run: Command, write: Write
) -> None:
    listed = (
        "apiVersion: v1\nkind: Secret\nmetadata: {name: hf}\ndata: {{ .Values.secrets | toJson }}"
    )
    source = "valueFrom: {secretKeyRef: {name: hf, key: token}}"
    pods = TEMPLATE.replace(
        "          args:", f"          env: [{{name: A, {source}}}]\n          args:"
    )
    write("m/chat/templates/chat.yaml", pods)
    write("m/chat/templates/secret.yaml", listed)
    write("m/chat/values.yaml", f"{VALUES.format(8, 8)}secrets: {{}}\n")
    assert run("m").status == 0
    write("m/chat/values.yaml", f"{VALUES.format(8, 8)}secrets: {{tokens: YQ==}}\n")
    (line,) = mandatory(run, "m")
    assert "is 'token', but the Secret 'hf' has no such key" in line


@pytest.mark.usefixtures("chart")
def test_a_scaffold_of_a_chart_is_not_checked(run: Command, write: Write) -> None:
    kind = "apiVersion: workloads.x-k8s.io/v1alpha1\nkind: RoleBasedGroup\nmetadata: {name: chat}"
    write("m/chat/templates/sample.yaml", f"{kind}\nspec:\n  # TODO(user): Add fields here\n")
    told = run("m")
    assert told.status == 0
    assert "because it looks like a patch or a part of a template: its spec is empty" in told.out


@pytest.mark.usefixtures("chart")
def test_containers_that_a_condition_leaves_out_are_not_checked(run: Command, write: Write) -> None:
    start, key, end = TEMPLATE.partition("      containers:")
    part = end.removesuffix("{{- end }}\n")
    pods = f"      {{{{- if .Values.model }}}}\n{key}{part}      {{{{- end }}}}\n{{{{- end }}}}\n"
    write("m/chat/templates/chat.yaml", f"{start}      serviceAccountName: chat\n{pods}")
    told = run("m")
    assert told.status == 0
    assert "spec.template.spec.containers: is empty with the chart's own values" in told.out
    # A template that has no containers at all has a mistake.
    write("m/chat/templates/chat.yaml", f"{start}      serviceAccountName: chat\n{{{{- end }}}}\n")
    (line,) = mandatory(run, "m")
    assert "spec.template.spec.containers: is missing" in line
    # So has one in which only a container lacks a field that others have.
    nameless = TEMPLATE.replace("        - name: engine\n          image", "        - image")
    write("m/chat/templates/chat.yaml", nameless)
    (line,) = mandatory(run, "m")
    assert "spec.template.spec.containers[0].name: is missing" in line


@pytest.mark.usefixtures("chart")
def test_words_that_a_chart_leaves_empty_are_not_checked(run: Command, write: Write) -> None:
    none = "{{ .Values.none }}"
    words = f'          args: [--model=m, "", --max-num-seqs={none}, "--port={none}"]\n'
    start, _, rest = TEMPLATE.partition("          args:")
    assert rest
    write("m/chat/templates/chat.yaml", start + words + rest.partition("\n")[2])
    assert run("m").status == 0


def test_a_chart_that_needs_a_value_is_told_with_helms_reason(run: Command, write: Write) -> None:
    write("m/chat/Chart.yaml", CHART.format("chat"))
    write("m/chat/values-prod.yaml", VALUES.format(8, 4))
    needs = '# {{ required "the number of GPUs is needed" .Values.gpus }}\n'
    write("m/chat/templates/chat.yaml", needs + TEMPLATE)
    done = run("m")
    (told,) = done.err.splitlines()
    assert told.startswith(
        "m/chat: not rendered: execution error at (chat/templates/chat.yaml:1:5)"
    )
    assert told.endswith("the number of GPUs is needed")
    assert str(Path.cwd()) not in told
    assert done.lines[-1].endswith(", 1 not rendered")
    # What can be rendered is checked all the same.
    assert "as rendered by m/chat with values-prod.yaml: " in mandatory(run, "m")[0]


@pytest.mark.usefixtures("chart")
def test_dependencies_of_the_checkout_are_rendered_and_the_others_named(
    run: Command, write: Write
) -> None:
    depends = (
        "dependencies:\n"
        "- {name: chat, version: 1.0.0, repository: 'file://../chat', alias: small}\n"
        "- {name: redis, version: 1.0.0, repository: 'https://charts.example.com'}\n"
        "- {name: local, version: 1.0.0}\n"
        "- {name: packed, version: 1.0.0, repository: 'oci://example.com'}\n"
    )
    write("m/whole/Chart.yaml", CHART.format("whole") + depends)
    write("m/whole/values.yaml", "small: {gpus: 2}\nlocal: {gpus: 3}\npacked: {gpus: 5}\n")
    for name, at in (("local", "m/whole/charts/local"), ("packed", "packed")):
        write(f"{at}/Chart.yaml", CHART.format(name))
        write(f"{at}/values.yaml", VALUES.format(8, 8))
        write(f"{at}/templates/x.yaml", TEMPLATE.replace("chat", name))
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        archive.add("packed", "packed")
    write("m/whole/charts/packed-1.0.0.tgz", packed.getvalue())
    done = run("m")
    assert done.err == "m/whole: rendered without redis: not in its charts/\n"
    places = [line.partition(": mandatory")[0] for line in done.lines if ": mandatory: " in line]
    assert sorted(places) == [
        f"m/chat/templates/chat.yaml:{LINE}",
        "m/whole/Chart.yaml:1",
        f"m/whole/charts/local/templates/x.yaml:{LINE}",
    ]
    assert "its pod has 2 GPUs" in done.out
    assert "its pod has 5 GPUs" in done.out


@pytest.mark.parametrize("name", ["../../../../out", "..", "a/b", "/out", ".hidden"])
@pytest.mark.usefixtures("chart")
def test_the_name_of_a_dependency_leads_nowhere(
    run: Command, write: Write, tmp_path: Path, name: str
) -> None:
    listed = json.dumps([{"name": name, "version": "1.0.0", "repository": "file://../chat"}])
    write("m/whole/Chart.yaml", CHART.format("whole") + f"dependencies: {listed}\n")
    write("m/whole/templates/x.yaml", "")
    before = sorted(tmp_path.rglob("*"))
    assert f"m/whole: rendered without {name}" in run("m").err
    assert sorted(tmp_path.rglob("*")) == before


def test_dependencies_in_a_circle_come_to_an_end(run: Command, write: Write) -> None:
    for one, other in (("a", "b"), ("b", "a")):
        depends = (
            f"dependencies: [{{name: {other}, version: 1.0.0, repository: 'file://../{other}'}}]"
        )
        write(f"m/{one}/Chart.yaml", CHART.format(one) + depends)
        write(f"m/{one}/templates/x.yaml", "")
    assert run("m").err.count("rendered without") == 2


@pytest.mark.usefixtures("chart")
def test_no_link_leads_out_of_the_checkout(run: Command, write: Write, tmp_path: Path) -> None:
    write("secret", "s3cret")
    write("m/.git/HEAD", "")
    write("m/shared/lib.tpl", '{{ define "gpus" }}4{{ end }}')
    Path("m/chat/templates/_lib.tpl").symlink_to("../../shared/lib.tpl")
    write("m/chat/templates/chat.yaml", TEMPLATE.replace(".Values.gpus", 'include "gpus" .'))
    assert "its pod has 4 GPUs" in run("m").out
    Path("m/chat/files").symlink_to(tmp_path)
    text = TEMPLATE.replace("release", "x").replace("m, --", '{{ .Files.Get "files/secret" }}, --')
    write("m/chat/templates/chat.yaml", text)
    done = run("m")
    assert "m/chat: not rendered: files is a link that leads out of the checkout\n" in done.err
    assert "s3cret" not in done.out


@pytest.mark.usefixtures("chart")
@pytest.mark.parametrize("link", [".git/config", ".git"])
def test_no_link_leads_to_the_data_of_git(run: Command, write: Write, link: str) -> None:
    write("m/.git/HEAD", "")
    write("m/.git/config", "s3cret")
    Path("m/chat/files").symlink_to(f"../{link}")
    read = '{{ .Files.Get "files" }}{{ .Files.Get "files/config" }}'
    write("m/chat/templates/chat.yaml", TEMPLATE.replace("release", "x").replace("m, --", read))
    done = run("m")
    assert "m/chat: not rendered: files is a link to the data of git\n" in done.err
    assert "s3cret" not in done.out


@pytest.mark.usefixtures("chart")
def test_a_chart_has_limits(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helm, "_MOST_FILES", 20)
    for level in range(12):
        Path(f"m/chat/{level}").mkdir()
        for link in "ab":
            Path(f"m/chat/{level}/{link}").symlink_to(f"../{level + 1}")
    assert run("m").err == "m/chat: not rendered: the chart is larger than 20 files and 64 MiB\n"


@pytest.mark.usefixtures("chart")
def test_nothing_is_fetched(run: Command, write: Write, server: Server) -> None:
    url = f"http://127.0.0.1:{server.server_port}"
    write("m/chat/values.schema.json", json.dumps({"$ref": f"{url}/schema.json"}))
    depends = f"dependencies: [{{name: far, version: 1.0.0, repository: '{url}'}}]\n"
    write("m/chat/Chart.yaml", CHART.format("chat") + depends)
    asks = '# {{ lookup "v1" "Secret" "" "" }} {{ getHostByName "x.example" }}\n'
    write("m/chat/templates/x.yaml", asks)
    assert run("m").err == "m/chat: rendered without far: not in its charts/\n"
    assert server.asked == 0


@pytest.mark.usefixtures("chart")
def test_no_plugin_is_started(
    run: Command, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("plugins/x", "data/helm/plugins/x"):
        script = write(f"{folder}/run.sh", f"#!/bin/sh\necho ran >> {tmp_path}/ran\n")
        script.chmod(0o755)
        hooks = "platformHooks: {install: []}\ndownloaders: [{command: run.sh, protocols: [x]}]\n"
        write(f"{folder}/plugin.yaml", f"name: template\nversion: 1.0.0\ncommand: run.sh\n{hooks}")
    monkeypatch.setenv("HELM_PLUGINS", str(tmp_path / "plugins"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert run("m").err == ""
    assert not (tmp_path / "ran").exists()


@pytest.mark.usefixtures("chart")
def test_nothing_is_written_into_the_checkout(run: Command, tmp_path: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert run("m").status == 0
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


@pytest.mark.usefixtures("chart")
def test_a_template_without_end_is_ended(
    run: Command, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kthena_components.rendering.isolation.SECONDS", 3)
    loop = "{{ range untilStep 0 2000000000 1 }}{{ range untilStep 0 2000 1 }}{{ end }}{{ end }}"
    write("m/chat/templates/loop.yaml", loop)
    told = run("m").err
    assert told.startswith("m/chat: not rendered: it took ")


@pytest.mark.usefixtures("chart")
def test_what_is_no_yaml_when_it_is_rendered_is_told(run: Command, write: Write) -> None:
    write("m/chat/templates/x.yaml", "a: [\n")
    done = run("m")
    assert done.err.startswith("m/chat: not rendered: YAML parse error on chat/templates/x.yaml")
    assert os.sep + "kthena-components-" not in done.err


DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: bad}
spec:
  selector: {matchLabels: {app: chat}}
  template:
    metadata: {labels: {app: chat}}
    spec:
      containers:
        - name: engine
          image: vllm/vllm-openai:v0.11.0
          args: [--model, m, --tensor-parallel-size, "8"]
          resources: {limits: {nvidia.com/gpu: "4"}}
"""


@pytest.mark.usefixtures("chart")
def test_an_object_in_crds_is_checked_as_helm_installs_it(run: Command, write: Write) -> None:
    write("m/chat/crds/bad.yaml", DEPLOYMENT)
    done = run("m")
    assert done.lines[0].startswith(
        "m/chat/crds/bad.yaml:12: mandatory: Deployment bad as rendered"
    )


@pytest.mark.usefixtures("chart")
@pytest.mark.parametrize(
    ("template", "line"),
    [
        (DEPLOYMENT, 13),
        (DEPLOYMENT.replace("kind:", '"kind" :'), 13),
        (textwrap.indent(f"# a\n{DEPLOYMENT}", "  "), 14),
        (f"{json.dumps(yaml.safe_load(DEPLOYMENT))}\n", 1),
    ],
    ids=["plain", "quoted", "indented", "JSON"],
)
def test_a_template_that_no_values_render_is_told(
    run: Command, write: Write, template: str, line: int
) -> None:
    write("m/chat/templates/bad.yaml", f"{{{{ if .Values.bad }}}}\n{template}{{{{ end }}}}\n")
    assert run("m").err == (
        "m/chat/templates/bad.yaml: is not checked: no values of the chart render the Deployment "
        "in it: add a file ci/NAME-values.yaml to the chart that does, or remove it\n"
    )
    write("m/chat/ci/bad-values.yaml", "bad: true\n")
    done = run("m")
    assert done.err == ""
    place = f"m/chat/templates/bad.yaml:{line}: mandatory: "
    assert any(told.startswith(place) for told in done.lines)
    write("m/chat/.helmignore", "bad.yaml\n")
    assert run("m").err.startswith("m/chat/templates/bad.yaml: is not checked: ")


def test_a_chart_whose_file_is_a_link_is_rendered(
    run: Command, write: Write, tmp_path: Path
) -> None:
    """Helm follows the link, and renders templates of any name."""
    write("m/chat/about.txt", CHART.format("chat"))
    write("m/chat/values.yaml", VALUES.format(8, 4))
    write("m/chat/templates/chat.txt", TEMPLATE)
    (tmp_path / "m/chat/Chart.yaml").symlink_to("about.txt")
    (line,) = mandatory(run, "m")
    assert "as rendered by m/chat" in line


@pytest.mark.parametrize("target", ["../../about.txt", "Chart.yaml", "nothing", "/dev/zero"])
def test_a_chart_whose_file_is_a_link_to_something_else_is_told(
    run: Command, write: Write, tmp_path: Path, target: str
) -> None:
    write("about.txt", CHART.format("chat"))
    write("m/chat/templates/chat.txt", TEMPLATE)
    (tmp_path / "m/chat/Chart.yaml").symlink_to(target)
    ran = run("m")
    assert "m/chat/Chart.yaml: is a link to" in ran.err
    assert "1 file not read" in ran.out


def test_a_packed_chart_is_counted(run: Command, write: Write, chart: None) -> None:  # noqa: ARG001
    assert "not read" not in run("m").out
    write("m/chat/charts/part-1.0.0.tgz", b"")
    write("m/charts/other-1.0.0.tgz", b"")
    assert ", 1 .tgz file not read" in run("m", "--no-render").out


BUDGET = """\
apiVersion: {{{{ .Capabilities.APIVersions.Has "{asked}" | ternary "{then}" "{other}" }}}}
kind: PodDisruptionBudget
metadata: {{name: chat}}
spec: {{maxUnavailable: 1, selector: {{matchLabels: {{app: chat}}}}}}
"""


@pytest.mark.parametrize(
    ("asked", "either", "told"),
    [
        ("policy/v1/PodDisruptionBudget", ("policy/v1", "policy/v1beta1"), ""),
        ("policy/v1", ("policy/v1", "policy/v1beta1"), ""),
        ("policy/v1beta1", ("policy/v1beta1", "policy/v1"), "not checked"),
        ("example.com/v1", ("policy/v1", "policy/v1beta1"), "mandatory"),
    ],
)
def test_templates_ask_for_what_clusters_have(
    run: Command, write: Write, asked: str, either: tuple[str, str], told: str
) -> None:
    """Without a cluster, Helm knows no kinds, and versions that are gone."""
    write("m/chat/Chart.yaml", CHART.format("chat"))
    budget = BUDGET.format(asked=asked, then=either[0], other=either[1])
    write("m/chat/templates/pdb.yaml", budget)
    lines = [line for line in run("m").lines if "apiVersion: " in line]
    assert len(lines) == bool(told)
    assert all(f": {told}: PodDisruptionBudget" in line for line in lines)
