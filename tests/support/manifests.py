"""Manifests as text, as a user has them in files."""

WRONG = """\
apiVersion: workload.serving.volcano.sh/v1alpha1
kind: ModelServing
metadata:
  name: llama
  namespace: serving
spec:
  schedulerName: volcano
  template:
    roles:
      - name: decode
        workerReplicas: 2
        entryTemplate:
          spec:
            containers:
              - name: engine
                command: [vllm, serve, m, --tensor-parallel-size=8, --pipeline-parallel-size=2]
                resources:
                  limits: {nvidia.com/gpu: 8}
                  requests: {nvidia.com/gpu: 8}
        workerTemplate:
          spec:
            containers:
              - name: engine
                command: [ray, start, --block, --address=$(ENTRY_ADDRESS)]
                resources:
                  limits: {nvidia.com/gpu: 8}
                  requests: {nvidia.com/gpu: 8}
"""
"""TP 8 × PP 2 on 3 × 8 GPUs."""
COMMAND = "spec.template.roles[0].entryTemplate.spec.containers[0].command"
SENTENCE = (
    "engine 'decode' starts tensor 8 × pipeline 2 = 16 ranks, but its 3 pods × 8 GPUs hold 24. "
    "Set pipeline to 3, or give the engine 2 pods. [world-size-equals-gpus]"
)
SUBJECT = "ModelServing serving/llama"
RIGHT = WRONG.replace("workerReplicas: 2", "workerReplicas: 1")

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: NAME}
spec:
  containers:
    - name: engine
      args: [serve, m, -tp, "4"]
      command: [vllm]
      resources: {limits: {nvidia.com/gpu: 8}}
"""
"""TP 4 on 8 GPUs: the finding is in line 7."""
ADVISED = RIGHT.replace("requests: {nvidia.com/gpu: 8}", "requests: {}")
UNKNOWN = POD.replace('"4"', "$(TP)")


def pod(name: str = "p") -> str:
    """Give a Pod with one mandatory finding."""
    return POD.replace("NAME", name)


FOUND = "starts tensor 8 × pipeline 1 = 8 ranks, but its pod has 4 GPUs"
"""What is said of `deployment(gpus=4)`."""
CHART = "apiVersion: v2\nname: {}\nversion: 1.0.0\n"
"""Chart.yaml of a chart with a name."""


def deployment(*, gpus: int) -> str:
    """Give a Deployment that starts 8 ranks in a pod with these GPUs. Line 12 has the ranks."""
    return f"""\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: chat}}
spec:
  selector: {{matchLabels: {{app: chat}}}}
  template:
    metadata: {{labels: {{app: chat}}}}
    spec:
      containers:
        - name: engine
          image: vllm/vllm-openai:v0.11.0
          args: [--model, m, --tensor-parallel-size, "8"]
          resources: {{limits: {{nvidia.com/gpu: "{gpus}"}}}}
"""
