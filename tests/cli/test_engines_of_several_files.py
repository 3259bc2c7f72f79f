"""An engine whose pods are in several objects: one file shows that they are in one cluster."""

from tests.cli.conftest import Command, Write
from tests.support.for_each import for_each

HEAD = "ray start --head --port=6379 && vllm serve m -tp 8 -pp 2 --distributed-executor-backend ray"


def deployment(name: str, command: str) -> str:
    return f"""\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}}}
spec:
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}, of: chat}}}}
    spec:
      containers:
        - name: engine
          image: vllm/vllm-openai:v0.10.2
          command: [bash, -c, "{command}"]
          resources: {{limits: {{nvidia.com/gpu: 8}}}}
"""


SERVICE = """\
apiVersion: v1
kind: Service
metadata: {name: SERVICE}
spec: {clusterIP: None, publishNotReadyAddresses: true, selector: {app: OF}}
"""
OTHER = SERVICE.replace("SERVICE", "other").replace("OF", "head")


def levels(run: Command, *files: str) -> set[str]:
    lines = run("--no-render", *files).lines
    return {line.split(": ")[1] for line in lines if "[leader-selected]" in line}


JOINS = "ray start --block --address="
FAULTS = {
    "pods that sleep": (deployment("head", HEAD), deployment("worker", "sleep infinity")),
    "a second Ray cluster": (
        deployment("head", HEAD) + "---\n" + SERVICE.replace("SERVICE", "h").replace("OF", "head"),
        deployment("worker", "ray start --head --block").replace(
            "app: worker, of", "app: head, of"
        ),
    ),
}
"""What is advice if the two are in several files, which may be alternatives."""


@for_each("name", FAULTS)
def test_objects_of_one_file_are_in_one_cluster(run: Command, write: Write, name: str) -> None:
    write("all.yaml", "---\n".join(FAULTS[name]))
    assert levels(run, "all.yaml") == {"mandatory"}


@for_each("name", FAULTS)
def test_objects_of_two_files_may_be_alternatives(run: Command, write: Write, name: str) -> None:
    for number, text in enumerate(FAULTS[name]):
        write(f"{number}.yaml", text)
    assert levels(run, "0.yaml", "1.yaml") == {"advisory"}


def test_a_service_of_the_head_alone_is_no_service_of_unread_pods(
    run: Command, write: Write
) -> None:
    joins = deployment("worker", f"{JOINS}third:6379")
    third = SERVICE.replace("SERVICE", "third").replace("OF", "gone")
    write("all.yaml", "---\n".join([deployment("head", HEAD), joins, OTHER, third]))
    assert levels(run, "all.yaml") == {"mandatory"}
