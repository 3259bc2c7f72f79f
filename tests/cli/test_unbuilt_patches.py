"""What the patches of a kustomization that is not built leave certain of an object."""

import pytest

from tests.cli.conftest import Command, Write
from tests.support.for_each import for_each
from tests.support.manifests import FOUND, deployment

OBJECT = deployment(gpus=4)
"""Deployment chat, whose container `engine` has too few GPUs."""


def merged(spec: str, *, name: str = "chat", kind: str = "Deployment") -> str:
    """Give a strategic merge patch of a workload, as an entry of `patches`."""
    version = "apps/v1" if kind == "Deployment" else "v1"
    body = f"{{apiVersion: {version}, kind: {kind}, metadata: {{name: {name}}}, spec: {spec}}}"
    return f"patches: [{{patch: '{body}'}}]"


def of_pod(fields: str) -> str:
    return merged(f"{{template: {{spec: {{{fields}}}}}}}")


def of_engine(fields: str) -> str:
    return of_pod(f"containers: [{{name: engine, {fields}}}]")


def json_patch(operation: str, target: str = "{kind: Deployment}") -> str:
    return f"patches: [{{target: {target}, patch: '[{operation}]'}}]"


ENGINE = "/spec/template/spec/containers/0"
NO_CHANGE = {
    "another name": merged("{replicas: 2}", name="other"),
    "another kind": merged("{replicas: 2}", kind="Service"),
    "a field that no size depends on": merged("{replicas: 2}"),
    "the node": of_pod("nodeSelector: {a: b}"),
    "another container": of_pod("containers: [{name: proxy, image: nginx:1}]"),
    "another resource": of_engine("resources: {limits: {memory: 3Gi}}"),
    "a label": json_patch('{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}'),
    "one more container": json_patch(
        '{"op": "add", "path": "/spec/template/spec/containers/-", "value": {"name": "b", '
        '"image": "nginx:1"}}'
    ),
    "a test": json_patch('{"op": "test", "path": "/spec/replicas", "value": 1}'),
    "a pattern of another name": json_patch(
        f'{{"op": "remove", "path": "{ENGINE}/args"}}', "{name: db-.*}"
    ),
    "another group": json_patch(f'{{"op": "remove", "path": "{ENGINE}/args"}}', "{group: batch}"),
    "another namespace": json_patch(
        f'{{"op": "remove", "path": "{ENGINE}/args"}}', "{namespace: x}"
    ),
    "the number of copies": "replicas: [{name: chat, count: 2}]",
    "another image": "images: [{name: nginx, newTag: v1}]",
    "the old lists": "patchesStrategicMerge: ['{kind: Deployment, apiVersion: apps/v1, metadata: "
    "{name: chat}, spec: {replicas: 2}}']",
    "the old JSON patches": "patchesJson6902: [{target: {kind: Deployment, name: chat}, patch: "
    '\'[{"op": "replace", "path": "/spec/replicas", "value": 2}]\'}]',
    "labels everywhere": "commonLabels: {tier: a}",
    "annotations": "commonAnnotations: {a: b}",
    "labels at a field": "labels: [{pairs: {a: b}, fields: [{path: metadata/labels}]}]",
    "labels at a field of another kind": "labels: [{pairs: {a: b}, fields: "
    "[{group: batch, kind: Job, path: spec, create: true}]}]",
}
"""Fields of a kustomization that cannot mend the object."""
MENDS = {
    "the GPUs": of_engine('resources: {limits: {nvidia.com/gpu: "8"}}'),
    "the words": of_engine("args: [serve, m]"),
    "a directive": of_pod("containers: [{name: engine, $patch: delete}]"),
    "all containers": of_pod("containers: [{$patch: replace}]"),
    "no more object": "patches: [{patch: '{$patch: delete, apiVersion: apps/v1, kind: Deployment, "
    "metadata: {name: chat}}'}]",
    "a word more": json_patch(f'{{"op": "add", "path": "{ENGINE}/args/-", "value": "-tp=4"}}'),
    "a word less": json_patch(f'{{"op": "remove", "path": "{ENGINE}/args/3"}}'),
    "a container less": json_patch(f'{{"op": "remove", "path": "{ENGINE}"}}'),
    "an escaped name": json_patch(
        f'{{"op": "replace", "path": "{ENGINE}/resources/limits/nvidia.com~1gpu", "value": 8}}'
    ),
    "another place": json_patch('{"op": "move", "from": "/a", "path": "/spec/replicas"}'),
    "a pattern": json_patch(
        f'{{"op": "remove", "path": "{ENGINE}/args"}}', "{kind: Deploy.*, name: ch.t|x}"
    ),
    "a pattern that is not plain": json_patch(
        f'{{"op": "remove", "path": "{ENGINE}/args"}}', '{name: "(x|y)+"}'
    ),
    "a selector": json_patch(
        f'{{"op": "remove", "path": "{ENGINE}/args"}}', "{labelSelector: app=x}"
    ),
    "a name that a prefix makes": "namePrefix: my-\n"
    + json_patch(f'{{"op": "remove", "path": "{ENGINE}/args"}}', "{name: my-chat}"),
    "two patches": f"{of_engine('args: [serve, m]')}\nreplicas: [{{name: chat, count: 2}}]",
    "a file that is not here": "patches: [{path: gone.yaml, target: {kind: Deployment}}]",
    "no YAML": "patches: [{patch: '{', target: {kind: Deployment}}]",
    "a replacement": "replacements: [{source: {kind: Deployment}}]",
    "a remote component": "components: [https://example.com/c]",
    "a component that is not here": "components: [../c]",
    "a variable": "vars: [{name: RANKS, objref: {kind: ConfigMap, name: c, apiVersion: v1}}]",
    "labels at a place in a list": "labels: [{pairs: {a: b}, fields: [{path: 'spec/a[]/b'}]}]",
    "labels in what an engine needs": "labels: [{pairs: {a: b}, fields: "
    "[{kind: Deployment, path: spec/template/spec/containers}]}]",
}
"""Fields of a kustomization that may mend the object."""


@pytest.fixture
def level(run: Command, write: Write) -> object:
    """Return a function that gives the level of the finding, with fields of a kustomization."""

    def level_with(fields: str) -> str:
        write("m/chat.yaml", OBJECT)
        write("m/kustomization.yaml", f"resources: [chat.yaml]\n{fields}\n")
        lines = [line for line in run("--no-render", "m").lines if "world-size" in line]
        assert len(lines) == 1, lines
        return "mandatory" if FOUND in lines[0] else lines[0].split(": ")[1]

    return level_with


@for_each("name", NO_CHANGE)
def test_a_finding_stays_that_no_patch_mends(level: object, name: str) -> None:
    assert level(NO_CHANGE[name]) == "mandatory"  # type: ignore[operator]


@for_each("name", MENDS)
def test_a_finding_is_left_open_that_a_patch_may_mend(level: object, name: str) -> None:
    assert level(MENDS[name]) == "not checked"  # type: ignore[operator]


ASKING = OBJECT.replace("{matchLabels: {app: chat}}", "{matchLabels: {app: chat, tier: a}}")
"""The same, with a selector of which its template lacks a label."""
LABELS = {
    "commonLabels: {tier: a}": "not checked",
    "labels: [{pairs: {tier: a}, includeTemplates: true}]": "not checked",
    "labels: [{pairs: {tier: a}, includeSelectors: true}]": "not checked",
    "labels: [{pairs: {tier: a}}]": "mandatory",
    "labels: [{pairs: {other: a}, includeTemplates: true}]": "mandatory",
    "commonAnnotations: {tier: a}": "mandatory",
}
"""Labels that a kustomization adds, and what remains of a finding about the labels of a template.

Source: sigs.k8s.io/kustomize/api v0.20 types/labels.go (includeSelectors, includeTemplates).
"""


@for_each("fields", LABELS)
def test_labels_of_a_kustomization_may_complete_a_template(
    run: Command, write: Write, fields: str
) -> None:
    write("m/chat.yaml", ASKING)
    write("m/kustomization.yaml", f"resources: [chat.yaml]\n{fields}\n")

    (line,) = (each for each in run("--no-render", "m").lines if "selector-matches" in each)

    level = "mandatory" if "so the API server refuses" in line else line.split(": ")[1]
    assert level == LABELS[fields]


SELECTING = """\
apiVersion: v1
kind: Service
metadata: {name: h}
spec: {clusterIP: None, publishNotReadyAddresses: true, selector: {app: nope}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: head}
spec:
  serviceName: h
  replicas: 2
  selector: {matchLabels: {app: chat}}
  template:
    metadata: {labels: {app: chat}}
    spec:
      containers:
        - name: engine
          image: vllm/vllm-openai:v0.14.0
          command: [bash, -c, "vllm serve m --nnodes 2 --node-rank 1 --master-addr head-0.h"]
          resources: {limits: {nvidia.com/gpu: 8}}
"""
OF_SERVICE = "patches: [{patch: '{apiVersion: v1, kind: Service, metadata: {name: h}, spec: "
SELECTORS = {
    "commonLabels: {app: chat}": "not checked",
    "labels: [{pairs: {app: chat}, includeSelectors: true}]": "not checked",
    OF_SERVICE + "{selector: {app: chat}}}'}]": "not checked",
    OF_SERVICE + "{clusterIP: None}}'}]": "mandatory",
    "labels: [{pairs: {app: chat}, includeTemplates: true}]": "mandatory",
    "labels: [{pairs: {app: chat}}]": "mandatory",
    "images: [{name: vllm/vllm-openai, newTag: v0.15.0}]": "mandatory",
    "commonAnnotations: {app: chat}": "mandatory",
}
"""What a kustomization changes, and what remains of a finding about the selector of a Service."""


@for_each("fields", SELECTORS)
def test_a_finding_over_all_objects_is_left_open_that_a_kustomization_may_mend(
    run: Command, write: Write, fields: str
) -> None:
    write("m/chat.yaml", SELECTING)
    write("m/kustomization.yaml", f"resources: [chat.yaml]\n{fields}\n")

    (line,) = (each for each in run("--no-render", "m").lines if "[first-pod-selected]" in each)

    assert line.split(": ")[1] == SELECTORS[fields]


@pytest.mark.programs
@pytest.mark.parametrize(
    ("fields", "level"), [(of_engine("args: [serve, m]"), "not checked"), ("", "mandatory")]
)
def test_a_base_that_is_built_alone_lacks_what_an_overlay_changes(
    run: Command, write: Write, fields: str, level: str
) -> None:
    """The overlay is not built, because it needs something from elsewhere."""
    write("base/chat.yaml", OBJECT)
    write("base/kustomization.yaml", "resources: [chat.yaml]\n")
    write("over/kustomization.yaml", f"resources: [../base, 'https://example.com/b']\n{fields}\n")

    (line,) = (each for each in run(".").lines if "world-size" in each)

    assert ("mandatory" if FOUND in line else line.split(": ")[1]) == level
