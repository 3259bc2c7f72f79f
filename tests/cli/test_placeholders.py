"""Files that somebody fills in before they are applied: nothing in them is refused for that."""

import json

import pytest

from tests.cli.conftest import Command, Write

TEMPLATE = """\
apiVersion: workload.serving.volcano.sh/v1alpha1
kind: ModelServing
metadata: ${METADATA}
spec:
  schedulerName: volcano
  replicas: ${REPLICAS}
  template:
    gangPolicy: {minRoleReplicas: {serve: "${GANG}"}}
    roles:
      - name: serve
        replicas: ${ROLE_REPLICAS}
        workerReplicas: 0
        entryTemplate:
          spec:
            volumes: ${VOLUMES}
            containers:
              - name: engine
                image: ${IMAGE}
                command: [vllm, serve, m, "--tensor-parallel-size=${TP}"]
                ports: [{containerPort: PORT}]
                env: ${ENV}
                resources:
                  limits: {nvidia.com/gpu: "${GPUS}"}
                  requests: {nvidia.com/gpu: "${GPUS}"}
"""
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: <your name>}
spec:
  replicas: {{REPLICAS}}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - name: web
          image: registry/{{ image }}
          command: [vllm, serve, m, -tp, "8"]
          ports: [{containerPort: "${PORT:-8000}"}]
          resources: {limits: {nvidia.com/gpu: "%s"}, requests: {nvidia.com/gpu: "%s"}}
"""


def levels(run: Command, *arguments: str) -> list[str]:
    return [row["level"] for row in json.loads(run(*arguments, "--format", "json").out)]


def test_a_template_whose_values_are_not_filled_in_is_not_refused(
    run: Command, write: Write
) -> None:
    write("m/template.yaml", TEMPLATE)
    done = run("m")
    assert done.status == 0
    assert set(levels(run, "m")) == {"unknown"}
    assert (
        "m/template.yaml:6: not checked: ModelServing: spec.replicas: not checked, because "
        "'${REPLICAS}' is a placeholder, to be filled in first. [kthena-replicas]"
    ) in done.lines
    assert any(
        "'serve' was not checked, because it is a placeholder, to be filled in" in line
        for line in done.lines
    )


def test_what_is_known_beside_a_placeholder_is_checked(run: Command, write: Write) -> None:
    text = DEPLOYMENT.replace("{{REPLICAS}}", "2") % ("4", "4")
    write("web.yaml", text)
    (line,) = (line for line in run("web.yaml").lines if ": mandatory: " in line)
    assert line.startswith("web.yaml:13: mandatory: Deployment <your name>: ")
    assert "starts tensor 8 × pipeline 1 = 8 ranks, but its pod has 4 GPUs" in line


@pytest.mark.parametrize("wrap", ["json", "list", "json-list"])
def test_placeholders_are_known_in_every_form(run: Command, write: Write, wrap: str) -> None:
    body = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "template": {
                "spec": {
                    "containers": [
                        {"name": "a", "image": "a", "ports": [{"containerPort": "PORT"}]}
                    ]
                }
            }
        },
    }
    listed = {"apiVersion": "v1", "kind": "List", "items": [body]}
    content = json.dumps(body if wrap == "json" else listed)
    name = "m.yaml" if wrap == "list" else "m.json"
    write(name, f"# a comment\n{content}" if wrap == "list" else content)
    assert run(name).status == 0
    write(name, content.replace('"PORT"', '"port"'))
    assert "is 'port', but must be a whole number" in run(name).out


def test_a_text_template_that_is_no_yaml_yet_is_named_as_one(run: Command, write: Write) -> None:
    write("web.yaml", DEPLOYMENT)
    done = run("web.yaml")
    assert done.status == 2
    told = "is a template with {{ or {%, and not valid YAML: check its output"
    assert done.err.startswith("web.yaml:5:")
    assert told in done.err


HIDDEN = "ENC[AES256_GCM,data:eQ==,iv:a=,tag:b==,type:str]"
ENCRYPTED = f"""\
apiVersion: v1
kind: Secret
metadata: {{name: token}}
stringData: {{HF_TOKEN: "{HIDDEN}"}}
sops: {{mac: "{HIDDEN}", version: 3.12.1, encrypted_regex: ^(data|stringData)$, age: []}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: "{HIDDEN}"}}
spec:
  replicas: "{HIDDEN}"
  selector: {{matchLabels: {{app: "{HIDDEN}"}}}}
  template:
    metadata: {{labels: {{app: "{HIDDEN}"}}}}
    spec:
      containers:
        - name: engine
          image: vllm/vllm-openai:v0.11.0
          command: [vllm, serve, "{HIDDEN}", --tensor-parallel-size, "{HIDDEN}"]
          ports: [{{containerPort: "{HIDDEN}"}}]
          resources: {{limits: {{nvidia.com/gpu: "{HIDDEN}"}}}}
sops: {{mac: "{HIDDEN}", version: 3.12.1}}
"""


def test_what_sops_has_encrypted_is_unknown_and_its_own_part_no_mistake(
    run: Command, write: Write
) -> None:
    write("a.yaml", ENCRYPTED)
    done = run("a.yaml")
    assert (done.status, "2 objects checked" in done.lines[-1]) == (0, True), done.out
    assert all("not checked" in line for line in done.lines[:-1]), done.out
    assert "Pulumi" not in done.out


def test_a_field_sops_that_is_not_its_own_is_reported(run: Command, write: Write) -> None:
    write("a.yaml", ENCRYPTED.replace("mac:", "mac2:", 1))
    assert "sops: is not a field of Secret" in run("a.yaml").out
