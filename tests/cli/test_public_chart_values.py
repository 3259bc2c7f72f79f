"""Values of charts that rules know, of releases whose chart is elsewhere."""

import pytest

from tests.cli.conftest import Command, Write

VALUES = """\
servingEngineSpec:
  modelSpec:
    - name: a
      repository: vllm/vllm-openai
      tag: v0.11.0
      modelURL: m
      replicaCount: 1
      requestGPU: 4
      vllmConfig: {tensorParallelSize: TP}
"""
INLINE = (
    "{servingEngineSpec: {modelSpec: [{name: a, repository: vllm/vllm-openai, tag: v0.11.0, "
    "modelURL: m, replicaCount: 1, requestGPU: 4, vllmConfig: {tensorParallelSize: TP}}]}}"
)
REPOSITORY = "https://vllm-project.github.io/production-stack"
TERRAFORM = f"""\
resource "helm_release" "vllm" {{
  name       = "vllm"
  repository = "{REPOSITORY}"
  chart      = "vllm-stack"
  version    = "0.1.12"
  values     = [VALUES]
}}
"""
ENCODED = (
    'yamlencode({servingEngineSpec = {modelSpec = [{name = "a", repository = '
    '"vllm/vllm-openai", tag = "v0.11.0", modelURL = var.model, replicaCount = 1, '
    "requestGPU = 4, vllmConfig = {tensorParallelSize = TP}}]}})"
)
HELMFILE = "releases: [{name: vllm, chart: vllm/vllm-stack, values: [VALUES]SET}]\n"
FLEET = f"helm: {{chart: vllm-stack, repo: {REPOSITORY}, values: {INLINE}}}\n"
CHARTS = f"helmCharts: [{{name: vllm-stack, repo: {REPOSITORY}, REST}}]\n"
APPLICATION = f"""\
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {{name: app}}
spec:
  generators: [{{list: {{elements: [{{size: TP}}]}}}}]
  template:
    metadata: {{name: x}}
    spec:
      source:
        repoURL: {REPOSITORY}
        chart: vllm-stack
        targetRevision: 0.1.12
        helm: {{valuesObject: {INLINE.replace("TP", "'{{size}}'")}}}
"""
MODEL = "values.servingEngineSpec.modelSpec[0]"
FORMS = {
    "Terraform, a heredoc": {"main.tf": TERRAFORM.replace("[VALUES]", f"[<<-EOT\n{VALUES}EOT\n]")},
    "Terraform, a file": {
        "main.tf": TERRAFORM.replace("VALUES", 'file("${path.module}/v.yaml")'),
        "v.yaml": VALUES,
    },
    "Terraform, with a value that it computes": {"main.tf": TERRAFORM.replace("VALUES", ENCODED)},
    "Terraform, set": {
        "main.tf": TERRAFORM.removesuffix("}\n").replace("[VALUES]", '[file("v.yaml")]')
        + '  set {\n    name = "servingEngineSpec.modelSpec[0].vllmConfig.tensorParallelSize"\n'
        '    value = "TP"\n  }\n}\n',
        "v.yaml": VALUES.replace("TP", "4"),
    },
    "helmfile": {"helmfile.yaml": HELMFILE.replace("VALUES", INLINE).replace("SET", "")},
    "helmfile, a file and set": {
        "helmfile.yaml": HELMFILE.replace("VALUES", "v.yaml").replace(
            "SET",
            ", set: [{name: 'servingEngineSpec.modelSpec[0].vllmConfig.tensorParallelSize', "
            "value: TP}]",
        ),
        "v.yaml": VALUES.replace("TP", "4"),
    },
    "Fleet": {"fleet.yaml": FLEET},
    "Fleet, a target": {
        "fleet.yaml": FLEET.replace("TP", "4").replace("4}}]", "4}}]", 1)
        + f"targetCustomizations: [{{name: t, helm: {{values: {INLINE}}}}}]\n"
    },
    "Kustomize": {"kustomization.yaml": CHARTS.replace("REST", f"valuesInline: {INLINE}")},
    "Kustomize, over a file": {
        "kustomization.yaml": CHARTS.replace("REST", f"valuesFile: v.yaml, valuesInline: {INLINE}"),
        "v.yaml": VALUES.replace("TP", "4"),
    },
    "Kustomize, below a file": {
        "kustomization.yaml": CHARTS.replace(
            "REST", f"valuesMerge: merge, valuesFile: v.yaml, valuesInline: {INLINE}"
        ).replace("TP", "4"),
        "v.yaml": VALUES,
    },
    "Kustomize, one more file": {
        "kustomization.yaml": CHARTS.replace("REST", "additionalValuesFiles: [v.yaml]"),
        "v.yaml": VALUES,
    },
    "an ApplicationSet": {"app.yaml": APPLICATION},
}
"""The files of a repository in which a release states TP ranks on 4 GPUs."""


def told(run: Command, write: Write, folder: str, files: dict[str, str], size: str) -> list[str]:
    for name, text in files.items():
        write(f"{folder}/{name}", text.replace("TP", size))
    done = run("--no-render", folder)
    return [line for line in (*done.lines[:-1], *done.err.splitlines()) if folder in line]


@pytest.mark.parametrize("form", FORMS)
def test_the_values_of_a_chart_elsewhere_are_read(run: Command, write: Write, form: str) -> None:
    lines = told(run, write, "wrong", FORMS[form], "8")
    found = [line for line in lines if "world-size-equals-gpus" in line or "8 ranks" in line]
    assert found, lines
    assert all(": mandatory: " in line and MODEL.partition(".")[2] in line for line in found)
    right = told(run, write, "right", FORMS[form], "4")
    assert not [line for line in right if ": mandatory: " in line or "chart" in line], right


def test_values_over_a_file_that_is_not_read_are_not_known(run: Command, write: Write) -> None:
    files = {
        "helmfile.yaml": HELMFILE.replace("VALUES", "none.yaml, v.yaml").replace("SET", ""),
        "none.yaml": "a: *b\n",
        "v.yaml": VALUES,
    }
    lines = told(run, write, "late", files, "8")
    assert not [line for line in lines if ": mandatory: " in line]
    assert [line for line in lines if "not rendered: release vllm" in line], lines


def test_what_only_terraform_knows_is_not_checked(run: Command, write: Write) -> None:
    text = TERRAFORM.replace("VALUES", ENCODED.replace("TP", "var.size"))
    (line,) = (x for x in told(run, write, "m", {"main.tf": text}, "") if "world-size" in x)
    assert ": not checked: " in line


@pytest.mark.parametrize("rest", ["patches: [{patch: '{}', target: {kind: Deployment}}]"])
def test_a_chart_that_a_kustomization_patches_is_not_read(
    run: Command, write: Write, rest: str
) -> None:
    """The patch may change what the chart makes."""
    text = f"{CHARTS.replace('REST', f'valuesInline: {INLINE}')}{rest}\n"
    lines = told(run, write, "m", {"kustomization.yaml": text}, "8")
    assert not [line for line in lines if ": mandatory: " in line]
    assert "not rendered: " in "\n".join(lines)
    above = {
        "base/kustomization.yaml": CHARTS.replace("REST", f"valuesInline: {INLINE}"),
        "over/kustomization.yaml": f"resources: [../base]\n{rest}\n",
    }
    lines = told(run, write, "n", above, "8")
    assert not [line for line in lines if ": mandatory: " in line]


def test_another_chart_is_listed(run: Command, write: Write) -> None:
    text = TERRAFORM.replace("vllm-stack", "mine").replace("[VALUES]", f"[<<-EOT\n{VALUES}EOT\n]")
    line = "".join(told(run, write, "m", {"main.tf": text}, "8"))
    assert "not rendered: helm_release vllm: its chart mine is in the registry" in line
