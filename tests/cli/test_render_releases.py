"""Charts and kustomizations are rendered with what other files state, by the real programs."""

import re
from itertools import count, pairwise

import pytest

from tests.cli.conftest import Command, Ran, Write
from tests.support.for_each import for_each
from tests.support.manifests import CHART

pytestmark = [pytest.mark.programs, pytest.mark.on_path("helm", "kustomize")]

POD = """\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}}}
spec:
  selector: {{matchLabels: {{app: chat}}}}
  template:
    metadata: {{labels: {{app: chat}}}}
    spec:
      containers:
        - name: engine
          image: vllm/vllm-openai:v0.11.0
          args: [--model, m, --tensor-parallel-size, {tensor}]
          resources: {{limits: {{nvidia.com/gpu: {gpus}}}}}
"""
TEMPLATE = POD.format(
    name="{{ .Release.Name }}", tensor="{{ .Values.tensor | quote }}", gpus="{{ .Values.gpus }}"
)
FILES = {
    "charts/chat/Chart.yaml": CHART.format("chat"),
    "charts/chat/values.yaml": "tensor: 8\ngpus: 8\n",
    "charts/chat/more.yaml": "tensor: 3\n",
    "charts/chat/templates/chat.yaml": TEMPLATE,
    "envs/a/prod.yaml": "tensor: 5\n",
    "envs/b/prod.yaml": "tensor: 6\n",
    "envs/a/config.json": '{"cluster": {"tp": 11}}',
    "base/kustomization.yaml": "resources: [pod.yaml]\n",
    "base/pod.yaml": POD.format(name="pod", tensor='"8"', gpus=8),
}
"""A repository in which everything is right as it is."""
_NUMBER = count()

HERE = "repoURL: https://github.com/x/y, path: charts/chat"
APPLICATION = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: app}\n"
SET = APPLICATION.replace("Application\n", "ApplicationSet\n")
HELM_RELEASE = """\
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: app, namespace: m}
"""
SOURCE = "sourceRef: {kind: GitRepository, name: flux-system}"
KUSTOMIZATION = """\
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: app, namespace: m}
"""
OBJECTS = f"template: {{metadata: {{name: x-NAME}}, spec: {{source: {{{HERE}, helm: HELM}}}}}}"


def application(helm: str) -> str:
    return f"{APPLICATION}spec: {{source: {{{HERE}, helm: {helm}}}}}\n"


def application_set(generator: str, helm: str, options: str = "") -> str:
    made = OBJECTS.replace("HELM", helm)
    return f"{SET}spec: {{{options}generators: [{generator}], {made}}}\n"


def helm_release(rest: str, chart: str = "") -> str:
    stated = f"chart: {{spec: {{chart: ./charts/chat, {SOURCE}{chart}}}}}"
    return f"{HELM_RELEASE}spec: {{{stated}, {rest}}}\n"


def patched(value: str) -> str:
    place = "/spec/template/spec/containers/0/args/3"
    change = f'- {{op: replace, path: {place}, value: "{value}"}}'
    return f"patches: [{{target: {{kind: Deployment}}, patch: '{change}'}}]"


MAP = """\
---
apiVersion: v1
kind: ConfigMap
metadata: {name: own, namespace: m}
data: {values.yaml: 'tensor: 7', number: '12'}
"""
RENDERED: dict[str, tuple[str, str, set[int]]] = {
    "values as text": ("app.yaml", application("{values: 'tensor: 16'}"), {16}),
    "an object overrides a string": (
        "app.yaml",
        application("{values: 'tensor: 16', valuesObject: {tensor: 32}}"),
        {32},
    ),
    "files, in their order": (
        "app.yaml",
        application("{valueFiles: [more.yaml, ../../envs/a/prod.yaml]}"),
        {5},
    ),
    "a file from the root of the repository": (
        "app.yaml",
        application("{valueFiles: [/envs/b/prod.yaml]}"),
        {6},
    ),
    "a pattern of files": ("app.yaml", application("{valueFiles: [/envs/*/prod.yaml]}"), {6}),
    "values override files, and parameters override values": (
        "app.yaml",
        application(
            "{valueFiles: [more.yaml], values: 'tensor: 9', parameters: "
            "[{name: tensor, value: '10'}]}"
        ),
        {10},
    ),
    "a missing file that may be missing": (
        "app.yaml",
        application("{ignoreMissingValueFiles: true, valueFiles: [no.yaml, more.yaml]}"),
        {3},
    ),
    "values of another source in the same repository": (
        "app.yaml",
        (
            f"{APPLICATION}spec: {{sources: [{{{HERE}, helm: {{valueFiles: "
            "[$v/envs/a/prod.yaml]}}, {repoURL: https://github.com/x/y, ref: v}]}\n"
        ),
        {5},
    ),
    "patches of an Application": (
        "app.yaml",
        (
            f"{APPLICATION}spec: {{source: {{repoURL: u, path: base, kustomize: "
            f"{{{patched('13')}}}}}}}\n"
        ),
        {13},
    ),
    "a list of an ApplicationSet": (
        "set.yaml",
        application_set(
            "{list: {elements: [{tp: 8}, {tp: '17'}, {tp: 18}]}}",
            "{parameters: [{name: tensor, value: '{{tp}}'}]}",
        ),
        {17, 18},
    ),
    "folders of git": (
        "set.yaml",
        application_set(
            "{git: {repoURL: u, directories: [{path: envs/*}, {path: envs/b, exclude: true}]}}",
            "{valueFiles: ['/{{path}}/prod.yaml']}",
        ),
        {5},
    ),
    "folders of git in Go templates": (
        "set.yaml",
        application_set(
            "{git: {repoURL: u, directories: [{path: envs/*}]}}",
            "{valueFiles: ['/envs/{{ .path.basename }}/prod.yaml']}",
            "goTemplate: true, ",
        ),
        {5, 6},
    ),
    "files of git": (
        "set.yaml",
        application_set(
            "{git: {repoURL: u, files: [{path: 'envs/**/config.json'}]}}",
            "{values: 'tensor: {{cluster.tp}}'}",
        ),
        {11},
    ),
    "a matrix": (
        "set.yaml",
        application_set(
            "{matrix: {generators: [{list: {elements: [{tp: 2}, {tp: 4}]}}, "
            "{git: {repoURL: u, directories: [{path: envs/a}]}}]}}",
            "{valueFiles: ['/{{path}}/prod.yaml'], parameters: [{name: tensor, value: '{{tp}}'}]}",
        ),
        {2, 4},
    ),
    "a HelmRelease": ("hr.yaml", helm_release("values: {tensor: 16}"), {16}),
    "files of a chart replace its own": (
        "hr.yaml",
        helm_release("values: {gpus: 4}", ", valuesFiles: [charts/chat/more.yaml]"),
        {3},
    ),
    "a ConfigMap, and values that override it": (
        "hr.yaml",
        helm_release("valuesFrom: [{kind: ConfigMap, name: own}], values: {gpus: 4}") + MAP,
        {7},
    ),
    "one value of a ConfigMap": (
        "hr.yaml",
        helm_release(
            "valuesFrom: [{kind: ConfigMap, name: own, valuesKey: number, targetPath: tensor}]"
        )
        + MAP,
        {12},
    ),
    "a post-renderer": (
        "hr.yaml",
        helm_release(f"postRenderers: [{{kustomize: {{{patched('14')}}}}}]"),
        {14},
    ),
    "a Kustomization of Flux": (
        "ks.yaml",
        f"{KUSTOMIZATION}spec: {{path: ./base, {SOURCE}, {patched('15')}}}\n",
        {15},
    ),
    "a variable of a Kustomization of Flux": (
        "ks.yaml",
        (
            f"{KUSTOMIZATION}spec: {{path: ./base, {SOURCE}, {patched('${TP}')}, "
            "postBuild: {substitute: {TP: '19'}}}\n"
        ),
        {19},
    ),
    "variables of a ConfigMap, which its own override": (
        "ks.yaml",
        f"{KUSTOMIZATION}spec: {{path: ./base, {SOURCE}, {patched('${number}${A}')}, postBuild: "
        "{substituteFrom: [{kind: ConfigMap, name: own}], substitute: {A: '1'}}}\n" + MAP,
        {121},
    ),
    "the default of a variable": (
        "ks.yaml",
        (
            f"{KUSTOMIZATION}spec: {{path: ./base, {SOURCE}, {patched('${TP:=19}')}, "
            "postBuild: {substitute: {A: '1'}}}\n"
        ),
        {19},
    ),
    "no default, where a Secret may set the variable": (
        "ks.yaml",
        (
            f"{KUSTOMIZATION}spec: {{path: ./base, {SOURCE}, {patched('${TP:=19}')}, "
            "postBuild: {substituteFrom: [{kind: Secret, name: own}]}}\n"
        ),
        set(),
    ),
    "a helmfile": (
        "deploy/helmfile.yaml",
        (
            "releases:\n- {name: a, chart: ../charts/chat, values: [../envs/a/prod.yaml]}\n"
            "- {name: b, chart: ../charts/chat, values: [{tensor: 9}], "
            "set: [{name: tensor, value: 10}]}\n"
            "- {name: c, chart: ../charts/chat, installed: false, values: [{tensor: 11}]}\n"
        ),
        {5, 10},
    ),
    "a folder of helmfiles": (
        "helmfile.d/10-chat.yaml",
        "releases: [{name: a, chart: ../charts/chat, values: [{tensor: 9}]}]\n",
        {9},
    ),
    "Fleet": (
        "deploy/fleet.yaml",
        (
            "helm: {chart: ../charts/chat, values: {tensor: 9}, "
            "valuesFiles: [../envs/a/prod.yaml]}\n"
            "targetCustomizations:\n- {name: x, helm: {values: {tensor: 10}}}\n"
            "- {name: y, doNotDeploy: true, helm: {values: {tensor: 11}}}\n"
        ),
        {5, 10},
    ),
    "Fleet beside a chart": ("charts/chat/fleet.yaml", "helm: {values: {tensor: 9}}\n", {9}),
    "nothing that differs": ("app.yaml", application("{values: 'tensor: 8'}"), set()),
    "another folder without a chart": (
        "app.yaml",
        f"{APPLICATION}spec: {{source: {{repoURL: u, path: envs}}}}\n",
        set(),
    ),
    "values of Terraform": (
        "main.tf",
        (
            'resource "helm_release" "chat" {\n  chart  = "./charts/chat"\n'
            '  values = [yamlencode({ tensor = 16 }), file("charts/chat/more.yaml")]\n}\n'
        ),
        {3},
    ),
    "blocks of Terraform": (
        "infra.tf",
        (
            'resource "helm_release" "chat" {\n  chart  = "${path.module}/charts/chat"\n'
            '  values = ["tensor: 16"]\n  set {\n    name  = "tensor"\n    value = "32"\n  }\n}\n'
        ),
        {32},
    ),
    "lists of Terraform": (
        "infra.tf",
        (
            'resource "helm_release" "chat" {\n  chart  = "${path.module}/charts/chat"\n'
            '  set = [{ name = "tensor", value = "32" }]\n}\n'
        ),
        {32},
    ),
    "a value that only Terraform knows": (
        "infra.tf",
        (
            'resource "helm_release" "chat" {\n  chart  = "${path.module}/charts/chat"\n'
            '  set = [{ name = "tensor", value = var.tensor }]\n}\n'
        ),
        set(),
    ),
}


def check(run: Command, write: Write, file: str, text: str) -> tuple[str, Ran]:
    """Write the repository with one more file into a folder of its own, and check it."""
    folder = f"m{next(_NUMBER)}"
    for name, content in {**FILES, file: text}.items():
        write(f"{folder}/{name}", content)
    return folder, run(folder)


def tensors(done: Ran) -> set[int]:
    found = (re.search(r"mandatory: .*starts tensor (\d+)", line) for line in done.lines)
    return {int(each[1]) for each in found if each}


@for_each("name", RENDERED)
def test_a_release_is_rendered_with_its_values(run: Command, write: Write, name: str) -> None:
    file, text, wrong = RENDERED[name]
    folder, done = check(run, write, file, text)
    assert done.err == ""
    assert tensors(done) == wrong
    told = [line for line in done.lines if "mandatory: " in line]
    assert all(f" as rendered by {folder}/{file} (" in line for line in told)


OUTSIDE: dict[str, tuple[str, str, str]] = {
    "a registry": (
        "app.yaml",
        (
            f"{APPLICATION}spec: {{source: {{repoURL: https://c.example.com, chart: vllm, "
            "helm: {values: 'gpus: 4'}}}\n"
        ),
        "Application app: its chart vllm is in the registry https://c.example.com",
    ),
    "two in one file": (
        "app.yaml",
        application("{valueFiles: [no-a-gpus.yaml]}")
        + "---\n"
        + application("{valueFiles: [no-b-gpus.yaml]}").replace("name: app", "name: other"),
        (
            "Application app: its values are in no-a-gpus.yaml, which is not in the repository; "
            "and 1 more"
        ),
    ),
    "values in another repository": (
        "app.yaml",
        (
            f"{APPLICATION}spec: {{sources: [{{{HERE}, helm: {{valueFiles: [$v/envs/a/prod.yaml], "
            "values: 'gpus: 4'}}, {repoURL: https://github.com/x/z, ref: v}]}\n"
        ),
        "Application app: its values are in the repository https://github.com/x/z",
    ),
    "another revision": (
        "app.yaml",
        (
            f"{APPLICATION}spec: {{source: {{{HERE}, targetRevision: v1.2.3, helm: "
            "{values: 'gpus: 4'}}}\n"
        ),
        "Application app: it is of the revision v1.2.3, and the checkout may be another",
    ),
    "out of the repository": (
        "app.yaml",
        application("{valueFiles: [../../../secret.yaml], values: 'gpus: 4'}"),
        "Application app: its values are in ../../../secret.yaml, which is not in the repository",
    ),
    "a generator of clusters": (
        "set.yaml",
        application_set("{clusters: {}}", "{values: 'gpus: 4'}"),
        "ApplicationSet app: its generator clusters needs a cluster or a server",
    ),
    "a function in a Go template": (
        "set.yaml",
        application_set(
            "{list: {elements: [{tp: 2}]}}",
            "{values: 'gpus: {{ .tp | add 1 }}'}",
            "goTemplate: true, ",
        ),
        "ApplicationSet app: its template has {{ .tp | add 1 }}, which only Argo CD evaluates",
    ),
    "a Secret": (
        "hr.yaml",
        helm_release("valuesFrom: [{kind: Secret, name: own}], values: {gpus: 4}"),
        "HelmRelease app: it takes values from the Secret own, which is not in the files",
    ),
    "a patch in a file": (
        "app.yaml",
        (
            f"{APPLICATION}spec: {{source: {{repoURL: u, path: base, kustomize: "
            "{patches: [{path: https://example.com/gpu.yaml}]}}}\n"
        ),
        "Application app: it has a patch in a file, which is not read",
    ),
    "a helmfile with templates": (
        "helmfile.yaml",
        "releases: [{name: a, chart: ./charts/chat, values: ['{{ .gpu }}']}]\n",
        "helmfile: it is a template, which only helmfile evaluates",
    ),
    "Terraform": (
        "main.tf",
        (
            'resource "helm_release" "chat" {\n  chart  = "./charts/chat"\n'
            "  values = var.values\n}\n"
        ),
        "helm_release chat: only Terraform evaluates its values",
    ),
    "a chart of Fleet": (
        "fleet.yaml",
        "helm: {chart: vllm, repo: https://c.example.com, values: {gpus: 4}}\n",
        "Fleet: its chart vllm is not in the repository",
    ),
}


@for_each("name", OUTSIDE)
def test_what_lies_outside_is_listed_once_for_its_file(
    run: Command, write: Write, name: str
) -> None:
    file, text, why = OUTSIDE[name]
    folder, done = check(run, write, file, text)
    assert done.err == f"{folder}/{file}: not rendered: {why}\n"
    assert done.status == 0
    assert done.lines[-1].endswith(", 1 not rendered")


def test_a_release_of_something_else_is_not_listed(run: Command, write: Write) -> None:
    text = f"{APPLICATION}spec: {{source: {{repoURL: https://c.example.com, chart: redis}}}}\n"
    _, done = check(run, write, "app.yaml", text)
    assert done.err == ""


def test_a_chart_of_applications_states_releases_too(run: Command, write: Write) -> None:
    write("m0x/apps/Chart.yaml", CHART.format("apps"))
    write("m0x/apps/values.yaml", "tensor: 8\n")
    stated = application("{values: 'tensor: {{ .Values.tensor }}'}")
    write("m0x/apps/templates/app.yaml", stated)
    root = application("{values: 'tensor: 21'}").replace("charts/chat", "apps")
    for name, content in {**FILES, "root.yaml": root.replace("name: app", "name: root")}.items():
        write(f"m0x/{name}", content)
    assert tensors(run("m0x")) == {21}


def test_releases_inside_of_too_many_others_are_listed(run: Command, write: Write) -> None:
    charts = ["first", "second", "third", "charts/chat"]
    for name, content in FILES.items():
        write(f"m0y/{name}", content)
    for name, inner in pairwise(charts):
        write(f"m0y/{name}/Chart.yaml", CHART.format(name))
        write(f"m0y/{name}/values.yaml", "tensor: 8\n")
        stated = application("{values: 'tensor: {{ .Values.tensor }}'}").replace(
            "charts/chat", inner
        )
        write(f"m0y/{name}/templates/app.yaml", stated)
    write("m0y/root.yaml", application("{values: 'tensor: 21'}").replace("charts/chat", "second"))
    assert tensors(run("m0y")) == {21}
    write("m0y/root.yaml", application("{values: 'tensor: 22'}").replace("charts/chat", "first"))
    done = run("m0y")
    assert tensors(done) == set()
    assert done.err == (
        "m0y/root.yaml: not rendered: Application app: releases are rendered inside of 2 others at "
        "most\n"
    )


def test_the_url_of_the_checkout_tells_another_repository(run: Command, write: Write) -> None:
    write("m/.git/config", '[core]\n\tbare = false\n[remote "origin"]\n\turl = git@h:o/Y.git\n')
    for name, content in FILES.items():
        write(f"m/{name}", content)
    write("m/app.yaml", application("{values: 'tensor: 16'}"))
    assert tensors(run("m")) == {16}
    write("m/app.yaml", application("{values: 'tensor: 16'}").replace("x/y", "x/parallel"))
    done = run("m")
    assert (tensors(done), done.status) == (set(), 0)
    assert "it is in the repository https://github.com/x/parallel" in done.err


def test_other_names_of_values_files_count(run: Command, write: Write) -> None:
    for name, content in FILES.items():
        write(f"m/{name}", content)
    write("m/charts/chat/prod_values.yaml", "tensor: 22\n")
    write("m/charts/chat/values_prod.yaml", "tensor: 23\n")
    assert tensors(run("m")) == {22, 23}


def test_a_chart_is_not_installed_beside_its_release(run: Command, write: Write) -> None:
    for name in (name for name in FILES if name.startswith("charts/")):
        write(f"m/{name}", FILES[name].replace("{{ .Release.Name }}", "chat"))
    write("m/app.yaml", application("{valuesObject: {tensor: 8}}"))
    done = run("m", "--whole")
    assert "2 renderings" in done.out
    assert "[object-twice]" not in done.out


TWICE = "[object-twice]"


def test_a_folder_that_flux_deploys_is_in_the_cluster_once(run: Command, write: Write) -> None:
    """The folder's kustomization is built by itself, too, and by another folder's."""
    write("m/apps/chat/kustomization.yaml", "resources: [pod.yaml]\nnamespace: ai\n")
    write("m/apps/chat/pod.yaml", FILES["base/pod.yaml"])
    write("m/apps/kustomization.yaml", "resources: [ks.yaml]\n")
    spec = f"spec: {{path: ./apps/chat, prune: true, interval: 1h, {SOURCE},\n"
    write("m/apps/ks.yaml", KUSTOMIZATION + spec + "  postBuild: {substitute: {APP: chat}}}\n")
    done = run("m", "--whole")
    assert "3 renderings" in done.out or "2 renderings" in done.out
    assert TWICE not in done.out


def test_overlays_of_one_base_are_no_objects_that_are_there_twice(
    run: Command, write: Write
) -> None:
    write("m/base/kustomization.yaml", FILES["base/kustomization.yaml"])
    write("m/base/pod.yaml", FILES["base/pod.yaml"])
    for name in ("dev", "prod"):
        write(f"m/{name}/kustomization.yaml", "resources: [../base]\n")
    assert TWICE not in run("m", "--whole").out
    for name in ("dev", "more"):
        write(f"m/{name}/pod.yaml", FILES["base/pod.yaml"])
        write(f"m/{name}/kustomization.yaml", "resources: [pod.yaml]\nnamespace: ai\n")
    assert TWICE in run("m", "--whole").out


def test_charts_that_no_release_installs_do_not_share_a_name(run: Command, write: Write) -> None:
    for chart in ("chat", "code"):
        write(f"m/{chart}/Chart.yaml", CHART.format(chart))
        write(f"m/{chart}/values.yaml", FILES["charts/chat/values.yaml"])
        write(f"m/{chart}/prod-values.yaml", "gpus: 8\n")
        write(f"m/{chart}/templates/pod.yaml", TEMPLATE)
    done = run("m", "--whole")
    assert "4 renderings" in done.out
    assert TWICE not in done.out
    service = "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {ports: [{port: 80}]}\n"
    write("m/code/templates/more.yaml", f"{service}---\n{service}")
    assert TWICE in run("m", "--whole").out


def test_a_folder_without_an_engine_is_not_in_the_default_namespace(
    run: Command, write: Write
) -> None:
    """Its kustomization is not built, so the namespace that Flux gives it is not known."""
    config = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{port: 80}]}\n"
    for space in ("network", "downloads"):
        write(f"m/{space}/kustomization.yaml", "resources: [web.yaml]\n")
        write(f"m/{space}/web.yaml", config)
        spec = f"spec: {{path: ./{space}, prune: true, {SOURCE}, targetNamespace: {space}}}\n"
        write(f"m/{space}.yaml", KUSTOMIZATION.replace("app,", f"{space},") + spec)
    assert TWICE not in run("m", "--whole").out
    for space in ("network", "downloads"):
        write(f"m/{space}/web.yaml", config.replace("web}", "web, namespace: x}"))
    assert TWICE in run("m", "--whole").out
