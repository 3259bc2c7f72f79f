"""A start script in a ConfigMap is read as a command line: its ports, and parts of engines."""

from tests.cli.conftest import Command, Write
from tests.support.for_each import for_each

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, namespace: m}
spec:
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec:
      containers:
        - name: engine
          image: vllm/vllm-openai:RELEASE
          command: COMMAND
          PROBE
          resources: {limits: {nvidia.com/gpu: GPUS}}
          volumeMounts: [{name: start, mountPath: /scripts}]
      volumes: [{name: start, configMap: {name: start-NAME, defaultMode: 0755}}]
---
"""
OBJECTS = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: start-chat, namespace: m}
data:
  start.sh: |
    #!/bin/bash
    SCRIPT
  other.sh: |
    OTHER
---
apiVersion: v1
kind: Service
metadata: {name: chat, namespace: m}
spec: {selector: {app: chat}, ports: [{port: 8000}]}
---
"""
CHAT = (
    DEPLOYMENT.replace("NAME", "chat")
    .replace("RELEASE", "v0.11.0")
    .replace("GPUS", "1")
    .replace("PROBE", "readinessProbe: {httpGet: {path: /health, port: 8000}}")
)
SERVE = "exec vllm serve m --port PORT"
FORMS = {
    "a shell runs the script": ("[bash, /scripts/start.sh]", SERVE, ""),
    "the script is the program": ("[/scripts/start.sh]", SERVE, ""),
    "a line runs it": ('[sh, -c, "sleep 5; /scripts/start.sh"]', SERVE, ""),
    "it runs another one": ("[/scripts/start.sh]", "exec /scripts/other.sh", SERVE),
    "a variable in it": ("[bash, /scripts/start.sh]", f"P=PORT\n    {SERVE}", ""),
}
OPEN = {
    "a script that is not here": ("[sh, -c, '/opt/run.sh; vllm serve m --port 9000']", "", ""),
    "a server in the script": ("[bash, /scripts/start.sh]", f"nginx &\n    {SERVE}", ""),
    "one in the script that it runs": (
        "[bash, /scripts/start.sh]",
        f"/scripts/other.sh\n    {SERVE}",
        "nginx",
    ),
    "one that names the port": (
        "[bash, /scripts/start.sh]",
        f"/usr/bin/proxy-of 8000\n    {SERVE}",
        "",
    ),
}
"""Lines beside which something else may listen."""


def told(run: Command, write: Write, form: tuple[str, str, str], port: str) -> list[str]:
    command, script, other = (part.replace("PORT", port) for part in form)
    texts = ((OBJECTS + CHAT).replace("COMMAND", command), script or "true", other or "true")
    write("a.yaml", texts[0].replace("SCRIPT", texts[1]).replace("OTHER", texts[2]))
    done = run("a.yaml")
    return [line for line in done.lines if ": mandatory: " in line]


@for_each("name", FORMS)
def test_a_script_states_the_port(run: Command, write: Write, name: str) -> None:
    (found,) = told(run, write, FORMS[name], "9000")
    assert "port: is 8000, but vLLM listens on 9000 in the pods of Deployment 'chat'" in found
    assert told(run, write, FORMS[name], "8000") == []


@for_each("name", OPEN)
def test_another_server_may_have_the_port(run: Command, write: Write, name: str) -> None:
    assert told(run, write, OPEN[name], "9000") == []


SCRIPT = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: start-NAME, namespace: m}
data:
  start.sh: |
    #!/bin/bash
    SCRIPT
---
"""
PART = SCRIPT + (
    DEPLOYMENT.replace("RELEASE", "v0.10.2")
    .replace("GPUS", "8")
    .replace("COMMAND", "[bash, /scripts/start.sh]")
    .replace("          PROBE\n", "")
)
SERVICE = """\
apiVersion: v1
kind: Service
metadata: {name: head, namespace: m}
spec: {clusterIP: None, selector: {app: head}, ports: [{port: 6379}]}
"""


def test_parts_of_an_engine_are_compared_by_their_scripts(run: Command, write: Write) -> None:
    serve = "vllm serve m -tp 8 -pp STAGES --distributed-executor-backend ray"
    head = PART.replace("SCRIPT", f"ray start --head && {serve}").replace("NAME", "head")
    join = "ray start --address=head:6379 --block"
    worker = PART.replace("SCRIPT", join).replace("NAME", "worker")

    write("a.yaml", head.replace("STAGES", "2") + worker + SERVICE)
    assert [line for line in run("a.yaml").lines if ": mandatory: " in line] == []

    write("a.yaml", head.replace("STAGES", "3") + worker + SERVICE)
    (found,) = [line for line in run("a.yaml").lines if ": mandatory: " in line]
    assert "= 24 ranks" in found
