"""A serving that is hidden from a search in texts is found, or its file is named.

Each attack really gives the wrong object: by kustomize, by helm, or in a file that kubectl applies.
"""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from kthena_components.reading.loader import Loader
from tests.cli.conftest import Command, Ran, Write
from tests.support.for_each import for_each
from tests.support.manifests import CHART, FOUND, deployment
from tests.support.programs import program

pytestmark = [pytest.mark.programs, pytest.mark.on_path("helm", "kustomize")]

GOOD, BAD = deployment(gpus=8), deployment(gpus=4)
WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: chat}
spec:
  selector: {matchLabels: {app: chat}}
  template:
    metadata: {labels: {app: chat}}
    spec:
      containers:
        - name: engine
          image: app
          args: [--model, m]
"""
"""A workload without a sign."""
ESCAPED = (
    BAD.replace("vllm/vllm-openai:v0.11.0", r'"\x76\u006clm/\x76llm-openai:v0.11.0"')
    .replace("nvidia.com/gpu", r'"nvidi\x61.com/g\x70u"')
    .replace("--tensor-parallel-size", r'"--tensor-p\x61rallel-size"')
)
"""The wrong workload, in which no word of an engine stands as it is read."""
BINARY = BAD.replace(
    "vllm/vllm-openai:v0.11.0", "!!binary dmxsbS92bGxtLW9wZW5haTp2MC4xMS4w"
).replace("nvidia.com/gpu", r'"nvidia.com/\u0067pu"')
HELM = {
    "Chart.yaml": CHART.format("chat"),
    "values.yaml": "on: false\n",
    "templates/good.yaml": GOOD,
}
SECOND = BAD.replace("name: chat}", "name: second}")
TEMPLATED = "{{ if .Values.on }}\n---\n" + SECOND + "{{ end }}\n"
STRATEGIC = """\
apiVersion: apps/v1
kind: {kind}
metadata: {{name: chat}}
spec: {{template: {{spec: {{containers: [{{name: engine, image: {image}, args: {args}, resources: {{limits: {limits}}}}}]}}}}}}
"""
IMAGE, ARGS = "vllm/vllm-openai:v0.11.0", '[--model, m, --tensor-parallel-size, "8"]'
LIMITS = '{nvidia.com/gpu: "4"}'
INTO = STRATEGIC.format(kind="Deployment", image=IMAGE, args=ARGS, limits=LIMITS)
INTO_ESCAPED = STRATEGIC.format(
    kind="Deployment",
    image=r'"\x76llm/\x76llm-openai:v0.11.0"',
    args=ARGS,
    limits=r'{"n\x76idia.com/g\x70u": "4"}',
)


@dataclass(frozen=True)
class Attack:
    """Files, how the wrong object comes from them, and what is told."""

    files: dict[str, str]
    by: tuple[str, ...]
    """A program with its arguments, or `kubectl` with a file."""
    told: str = FOUND


def kustomized(*told: str, **files: str) -> Attack:
    named = {
        name.replace("__", "/").replace("_yaml", ".yaml").replace("_txt", ".txt"): text
        for name, text in files.items()
    }
    return Attack(
        {"kustomization.yaml": named.pop("kustomization"), **named},
        ("kustomize", "build", "."),
        *told,
    )


ON_WEB = "resources: [a.yaml]\n"
LISTED = "is not checked: "
KUSTOMIZED: dict[str, Attack] = {
    "an escaped resource": kustomized(kustomization="resources: [a.txt]\n", a_txt=ESCAPED),
    "an escaped resource in yaml": kustomized(kustomization=ON_WEB, a_yaml=ESCAPED),
    "a binary resource": kustomized(kustomization="resources: [a.txt]\n", a_txt=BINARY),
    "json with escaped slashes and words": kustomized(
        kustomization="resources: [a.txt]\n",
        a_txt=json.dumps(yaml.safe_load(BAD))
        .replace("vllm", r"\u0076llm")
        .replace("gpu", r"g\u0070u"),
    ),
    "a patch in the kustomization": kustomized(
        kustomization=ON_WEB
        + "patches:\n- patch: |\n"
        + "".join(f"    {line}\n" for line in INTO.splitlines()),
        a_yaml=WEB,
    ),
    "an escaped patch in the kustomization": kustomized(
        kustomization=ON_WEB + "patches: " + json.dumps([{"patch": INTO_ESCAPED}]) + "\n",
        a_yaml=WEB,
    ),
    "a folded patch in the kustomization": kustomized(
        kustomization=ON_WEB
        + "patches:\n- target: {kind: Deployment}\n  patch: >-\n    "
        + json.dumps(yaml.safe_load(INTO))
        + "\n",
        a_yaml=WEB,
    ),
    "an escaped patch in a file": kustomized(
        kustomization=ON_WEB + "patches: [{path: p.yaml}]\n", a_yaml=WEB, p_yaml=INTO_ESCAPED
    ),
    "a patch of a definition with another target": kustomized(
        kustomization=ON_WEB + "patches: [{path: p.yaml, target: {kind: Deployment}}]\n",
        a_yaml=WEB,
        p_yaml=INTO.replace("kind: Deployment", "kind: CustomResourceDefinition"),
    ),
    "images alone": kustomized(
        kustomization=ON_WEB
        + f"images: [{{name: app, newName: vllm/vllm-openai, newTag: v0.11.0}}]\n"
        "patches: [{path: p.yaml}]\n",
        a_yaml=WEB,
        p_yaml=INTO.replace(f"image: {IMAGE}, ", ""),
    ),
    "escaped images, devices by a json patch": kustomized(
        kustomization=ON_WEB
        + r"""images: [{name: app, newName: "\x76llm/\x76llm-openai", newTag: v0.11.0}]
patches:
- target: {kind: Deployment}
  patch: |
    - {op: add, path: /spec/template/spec/containers/0/resources, value: {limits: {"\x6evidia.com/g\x70u": "4"}}}
    - {op: add, path: /spec/template/spec/containers/0/args/-, value: "--tensor-p\x61rallel-size=8"}
""",
        a_yaml=WEB,
    ),
    "patchesJson6902 in a file": kustomized(
        kustomization=ON_WEB
        + "patchesJson6902: [{path: p.yaml, target: {group: apps, version: v1, kind: Deployment, name: chat}}]\n",
        a_yaml=GOOD.replace("vllm/vllm-openai", r'"\x76llm/\x76llm-openai')
        .replace(":v0.11.0", ':v0.11.0"')
        .replace("nvidia.com/gpu", r'"nvidi\x61.com/g\x70u"'),
        p_yaml=r'- {op: replace, path: "/spec/template/spec/containers/0/resources/limits/nvidi\u0061.com~1g\u0070u", value: "4"}',
    ),
    "patchesStrategicMerge": kustomized(
        kustomization=ON_WEB + "patchesStrategicMerge: [p.yaml]\n", a_yaml=WEB, p_yaml=INTO_ESCAPED
    ),
    "a component": kustomized(
        kustomization="resources: [a.yaml]\ncomponents: [c]\n",
        a_yaml=WEB,
        c__kustomization_yaml="apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"
        "patches: " + json.dumps([{"patch": INTO_ESCAPED}]) + "\n",
    ),
    "a replacement behind a delimiter": kustomized(
        kustomization="resources: [a.yaml, map.yaml]\n"
        "replacements:\n- source: {kind: ConfigMap, name: parts, fieldPath: data.a}\n"
        "  targets:\n  - select: {kind: Deployment}\n"
        "    fieldPaths: ['spec.template.spec.containers.0.image']\n"
        "    options: {delimiter: m, index: 0}\n"
        "patches: "
        + json.dumps(
            [{"patch": INTO_ESCAPED.replace(r'image: "\x76llm/\x76llm-openai:v0.11.0", ', "")}]
        )
        + "\n",
        a_yaml=WEB.replace("image: app", "image: xm-openai:v0.11.0"),
        map_yaml="apiVersion: v1\nkind: ConfigMap\nmetadata: {name: parts}\ndata: {a: vll}\n",
    ),
    "a kind that a json patch changes": kustomized(
        kustomization=ON_WEB + "patches:\n- target: {kind: ConfigMap}\n  patch: |\n"
        "    - {op: replace, path: /kind, value: Deployment}\n    - {op: replace, path: /apiVersion, value: apps/v1}\n",
        a_yaml=BAD.replace("apps/v1", "v1").replace("kind: Deployment", "kind: ConfigMap"),
    ),
    "a kind that a patch may change": kustomized(
        kustomization=ON_WEB
        + "patches:\n- target: {kind: ConfigMap}\n  options: {allowKindChange: true}\n"
        "  patch: '{apiVersion: apps/v1, kind: Deployment, metadata: {name: chat}}'\n",
        a_yaml=BAD.replace("kind: Deployment", "kind: ConfigMap"),
    ),
    "a transformer in the kustomization": kustomized(
        kustomization=ON_WEB
        + "transformers:\n- |-\n  apiVersion: builtin\n  kind: PatchTransformer\n"
        "  metadata: {name: x}\n  patch: " + json.dumps(INTO_ESCAPED) + "\n",
        a_yaml=WEB,
    ),
    "variables": kustomized(
        kustomization="resources: [a.yaml, s.yaml]\nvars:\n- name: X\n  objref: {apiVersion: v1, kind: Service, name: llm}\n"
        "  fieldref: {fieldpath: metadata.name}\n"
        r"""patches: [{patch: '{apiVersion: apps/v1, kind: Deployment, metadata: {name: chat}, spec: {template: {spec: {containers: [{name: engine, resources: {limits: {"n\x76idia.com/g\x70u": "4"}}}]}}}}'}]"""
        "\nconfigurations: [c.yaml]\n",
        a_yaml=WEB.replace("image: app", "image: v$(X)/v$(X)-openai:v0.11.0").replace(
            "[--model, m]", r'[--model, m, "--tensor-p\x61rallel-size", "8"]'
        ),
        s_yaml="apiVersion: v1\nkind: Service\nmetadata: {name: llm}\n",
        c_yaml="varReference:\n- {path: spec/template/spec/containers/image, kind: Deployment}\n",
    ),
    "a list": kustomized(
        kustomization="resources: [a.txt]\n",
        a_txt=r'{"apiVersion": "v1", "kin\u0064": "L\u0069st", "items": ['
        + json.dumps(yaml.safe_load(ESCAPED))
        .replace("vllm", r"\u0076llm")
        .replace("gpu", r"g\u0070u")
        + "]}",
    ),
    "a kind with an escape": kustomized(
        kustomization="resources: [a.txt]\n",
        a_txt=ESCAPED.replace("kind: Deployment", r'"k\x69nd": "D\x65ployment"'),
    ),
    "an alias": kustomized(
        kustomization="resources: [a.txt]\n",
        a_txt=ESCAPED.replace(
            "metadata: {name: chat}",
            r'metadata: {name: chat, annotations: {a: &e "\x76llm/\x76llm-openai:v0.11.0"}}',
        ).replace(r'image: "\x76\u006clm/\x76llm-openai:v0.11.0"', "image: *e"),
    ),
    "a text that is continued": kustomized(
        kustomization="resources: [a.txt]\n",
        a_txt=ESCAPED.replace(
            r'"\x76\u006clm/\x76llm-openai:v0.11.0"', '"vl\\\n            lm-openai:v0.11.0"'
        ),
    ),
}


def charted(*told: str, options: tuple[str, ...] = (), release: str = "x", **files: str) -> Attack:
    named = {
        name.replace("__", "/")
        .replace("_yaml", ".yaml")
        .replace("_txt", ".txt")
        .replace("_tpl", ".tpl"): text
        for name, text in files.items()
    }
    return Attack({**HELM, **named}, ("helm", "template", release, ".", *options), *told)


ON = ("--set", "on=true")
CHARTED: dict[str, Attack] = {
    "a condition beside a definition": charted(
        LISTED, options=ON, templates__b_yaml='{{ define "x" }}{{ end }}' + TEMPLATED
    ),
    "a definition that is not included": charted(
        LISTED,
        options=ON,
        templates___h_tpl='{{ define "x" }}\n---\n' + SECOND + "{{ end }}",
        templates__b_yaml='{{ if .Values.on }}{{ include "x" . }}{{ end }}',
    ),
    "a template with another suffix": charted(LISTED, options=ON, templates__b_txt=TEMPLATED),
    "a file of the chart": charted(
        LISTED,
        options=ON,
        b_txt=SECOND,
        templates__b_yaml='{{ if .Values.on }}{{ .Files.Get "b.txt" }}{{ end }}',
    ),
    "a file of the chart, beside another object": charted(
        LISTED,
        options=ON,
        b_txt=f"\n---\n{SECOND}",
        templates__good_yaml=GOOD + '{{ if .Values.on }}{{ .Files.Get "b.txt" }}{{ end }}',
    ),
    "a text in the values": charted(
        LISTED,
        options=ON,
        values_yaml="on: false\nmore: |\n" + "".join(f"  {line}\n" for line in SECOND.splitlines()),
        templates__b_yaml="{{ if .Values.on }}{{ tpl .Values.more . }}{{ end }}",
    ),
    "an object in the values": charted(
        LISTED,
        options=ON,
        values_yaml="on: false\nmore:\n" + "".join(f"  {line}\n" for line in SECOND.splitlines()),
        templates__b_yaml="{{ if .Values.on }}{{ toYaml .Values.more }}{{ end }}",
    ),
    "an upgrade": charted(
        options=("--is-upgrade",),
        templates__b_yaml=TEMPLATED.replace(".Values.on", ".Release.IsUpgrade"),
    ),
    "no install, in a variable": charted(
        options=("--is-upgrade",),
        templates__b_yaml=TEMPLATED.replace(
            "{{ if .Values.on", '{{ $r := .Release }}{{ if not (index $r "IsInstall")'
        ),
    ),
    "a value of an upgrade": charted(
        options=("--is-upgrade",),
        templates__good_yaml=GOOD.replace(
            'gpu: "8"', 'gpu: "{{ ternary 4 8 .Release.IsUpgrade }}"'
        ),
    ),
    "the name of the release": charted(
        release="prod",
        templates__good_yaml=GOOD.replace(
            'gpu: "8"', 'gpu: "{{ if eq .Release.Name `prod` }}4{{ else }}8{{ end }}"'
        ),
    ),
    "the namespace of the release": charted(
        options=("--namespace=prod",),
        templates__good_yaml=GOOD.replace(
            'gpu: "8"', 'gpu: "{{ if eq .Release.Namespace "prod" }}4{{ else }}8{{ end }}"'
        ),
    ),
    "what the cluster has": charted(
        options=("--api-versions=serving.example.com/v1",),
        templates__good_yaml=GOOD.replace(
            'gpu: "8"',
            'gpu: "{{ if .Capabilities.APIVersions.Has "serving.example.com/v1" }}4{{ else }}8{{ end }}"',
        ),
    ),
    "a later cluster": charted(
        options=("--kube-version=1.60.0",),
        templates__good_yaml=GOOD.replace(
            'gpu: "8"',
            'gpu: "{{ if semverCompare ">=1.50.0" .Capabilities.KubeVersion.Version }}4{{ else }}8{{ end }}"',
        ),
    ),
    "an escaped kind in a template": charted(
        LISTED,
        options=ON,
        templates__b_yaml=TEMPLATED.replace("kind: Deployment", r'"kin\x64": "Deploy\x6dent"'),
    ),
    "a computed kind in a template": charted(
        LISTED,
        options=ON,
        templates__b_yaml=TEMPLATED.replace(
            "kind: Deployment", '{{ "ki" }}{{ "nd" }}: {{ "Deployment" }}'
        ),
    ),
    "words that are joined in a template": charted(
        LISTED,
        options=ON,
        templates__b_yaml=TEMPLATED.replace("vllm", '{{ print "vl" "lm" }}').replace(
            "gpu", '{{ print "g" "pu" }}'
        ),
    ),
    "an action with quoted braces": charted(
        LISTED,
        options=ON,
        templates__b_yaml='{{ define "y" }}{{ end }}{{ "{{/*" | trunc 0 }}'
        + TEMPLATED
        + '{{ "*/}}" | trunc 0 }}',
    ),
    "a chart inside": charted(
        LISTED,
        options=("--set", "in.on=true"),
        **{
            "charts/in/Chart.yaml": CHART.format("in"),
            "charts/in/values.yaml": "on: false\n",
            "charts/in/templates/_.tpl": '{{ define "q" }}{{ end }}',
            "charts/in/templates/b.tpl": TEMPLATED,
        },
    ),
}


def _attacks() -> dict[str, Attack]:
    return {**KUSTOMIZED, **CHARTED}


def is_wrong(value: Any) -> bool:
    """Return whether objects have 8 ranks on 4 devices."""
    text = json.dumps(value)
    return '"nvidia.com/gpu": "4"' in text and "tensor-parallel-size" in text and "vllm" in text


def yields(attack: Attack, folder: Path) -> Any:
    named, *words = attack.by
    if named == "kubectl":
        text = Path(folder, words[0]).read_text()
    else:
        done = subprocess.run(
            [program(named), *words], cwd=folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        text = done.stdout
    return [Loader(part).get_single_data() for part in text.split("\n---\n")]


@for_each("name", _attacks())
def test_a_hidden_serving_is_found_or_named(
    run: Command, write: Write, name: str, tmp_path: Path
) -> None:
    attack = _attacks()[name]
    folder = f"m{list(_attacks()).index(name)}"
    for file, text in attack.files.items():
        write(f"{folder}/{file}", text)
    assert is_wrong(yields(attack, tmp_path / folder)), "it is no attack"
    done = run(folder)
    assert attack.told in done.out + done.err, done.out + done.err
