"""What the command knows beside an object: ConfigMaps of the same paths, and model shapes."""

import io
import json
import sys

import pytest

from kthena_components.cli.check import context as surroundings
from tests.cli.conftest import Command, Write

CONFIG_MAP = """
apiVersion: v1
kind: ConfigMap
metadata: {name: engine}
data:
  config.yaml: |
    tensor-parallel-size: 8
    pipeline-parallel-size: 2
"""
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: llama}
spec:
  template:
    spec:
      containers:
        - name: engine
          image: vllm/vllm-openai:v0.33.0
          command: [vllm, serve, meta-llama/Llama-3.3-70B-Instruct, --config, /c/config.yaml]
          resources: {limits: {nvidia.com/gpu: 8}}
          volumeMounts: [{name: shm, mountPath: /dev/shm}, {name: config, mountPath: /c}]
      volumes:
        - {name: shm, emptyDir: {medium: Memory}}
        - {name: config, configMap: {name: engine}}
"""
FOUND = (
    "engine 'llama' starts tensor 8 × pipeline 2 = 16 ranks, as /c/config.yaml says, but its pod "
    "has 8 GPUs"
)
SHAPE = {"num_attention_heads": 6, "num_hidden_layers": 4}
UNKNOWN_MODEL = DEPLOYMENT.replace("meta-llama/Llama-3.3-70B-Instruct", "me/Own").replace(
    "--config, /c/config.yaml", "-tp, '8'"
)


@pytest.fixture(autouse=True)
def few_rules() -> None:
    """Judge by every rule: shapes and missing keys are what these tests are about."""


def test_a_limit_range_gives_gpus_to_the_containers_of_its_namespace(
    run: Command, write: Write
) -> None:
    limits = {"type": "Container", "default": {"nvidia.com/gpu": 4}}
    ranges = {"apiVersion": "v1", "kind": "LimitRange", "spec": {"limits": [limits]}}
    engine = {"name": "engine", "command": ["vllm", "serve", "m", "-tp", "4"]}
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [engine]}}
    for name, body, space in (("l", ranges, "here"), ("p", pod, "here"), ("q", pod, "elsewhere")):
        write(f"{name}.yaml", json.dumps({**body, "metadata": {"name": name, "namespace": space}}))

    none = "but its pod has 0 GPUs"
    assert none in run("p.yaml").out
    assert none not in run("p.yaml", "l.yaml").out
    assert none in run("q.yaml", "l.yaml").out


def test_values_of_a_chart_say_that_gpus_are_time_slices(run: Command, write: Write) -> None:
    engine = {"name": "engine", "command": ["vllm", "serve", "m", "-tp", "1"]}
    limits = {"resources": {"limits": {"nvidia.com/gpu": 4}}}
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{**engine, **limits}]}}
    write("all/pod.yaml", json.dumps({**pod, "metadata": {"name": "p"}}))
    assert "but its pod has 4 GPUs" in run("all").out
    shares = "sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}"
    write("all/plugin.yaml", f"config:\n  map:\n    any: |\n      {shares}\n")
    out = run("all").out
    assert "but its pod has 4 GPUs" not in out
    assert "nvidia.com/gpu may be time slices of fewer devices (all/plugin.yaml)" in out


def test_a_config_map_of_another_file_is_known(run: Command, write: Write) -> None:
    write("all/a.yaml", DEPLOYMENT)
    write("all/b.yaml", CONFIG_MAP)
    done = run("all")
    assert done.lines[0].startswith("all/a.yaml:11: mandatory: Deployment llama: ")
    assert FOUND in done.lines[0]
    assert run("all/b.yaml", "all/a.yaml").status == 1


def test_a_config_map_of_a_list_and_of_standard_input_is_known(
    run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": []}
    text = f"{DEPLOYMENT}---{CONFIG_MAP}---\n{json.dumps(listed)}\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert FOUND in run("-").out


def test_without_the_config_map_the_reason_is_told(run: Command, write: Write) -> None:
    write("a.yaml", DEPLOYMENT)
    done = run("a.yaml")
    assert done.status == 0
    assert "ConfigMap 'engine' is not among the objects that are checked" in done.lines[0]


def test_a_missing_key_is_advice(run: Command, write: Write) -> None:
    write("a.yaml", DEPLOYMENT)
    write("b.yaml", CONFIG_MAP.replace("config.yaml", "config.yml"))
    done = run("a.yaml", "b.yaml")
    assert "has no key that becomes /c/config.yaml. Add the key" in done.out
    assert "[config-map-key-exists]" in done.out
    assert done.status == 0


def test_no_file_without_a_config_map_is_parsed_twice(
    run: Command, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    def parse(*_: object) -> list[object]:
        pytest.fail("parsed for its ConfigMaps")

    monkeypatch.setattr(surroundings, "read_documents", parse)
    write("a.yaml", DEPLOYMENT)
    write("b.yaml", CONFIG_MAP.replace("ConfigMap", "Secret"))
    assert run("a.yaml", "b.yaml").status == 0
    write("c.yaml", CONFIG_MAP)
    assert run("b.yaml", "c.yaml").status == 0  # nothing refers to it


def test_too_many_config_maps_are_not_kept(
    run: Command, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(surroundings, "MOST_BYTES", 10)
    write("a.yaml", f"{DEPLOYMENT}---{CONFIG_MAP}")
    assert "all ConfigMaps together are larger than" in run("a.yaml").lines[0]


@pytest.mark.parametrize("path", ["model", "model/config.json"])
def test_a_shape_can_be_given_for_a_model(run: Command, write: Write, path: str) -> None:
    write("a.yaml", UNKNOWN_MODEL)
    write("model/config.json", json.dumps(SHAPE))
    assert "'me/Own' is not in the table of models" in run("a.yaml").out
    done = run("--model-config", f"ME/own={path}", "a.yaml")
    assert "splits 6 attention heads over tensor 8" in done.lines[0]
    assert done.status == 1


@pytest.mark.parametrize(
    ("stated", "sentence"),
    [
        ("me", "--model-config 'me' does not have the form MODEL=PATH"),
        ("me=none.json", "--model-config me: none.json cannot be read: No such file or directory"),
        ("me=broken.json", "--model-config me: broken.json is not JSON"),
        ("me=list.json", "--model-config me: list.json is not a JSON object"),
        (
            "me=few.json",
            (
                "--model-config me: few.json cannot be used: its config.json states no "
                "num_attention_heads"
            ),
        ),
    ],
)
def test_a_shape_that_cannot_be_used_is_refused(
    run: Command, write: Write, stated: str, sentence: str
) -> None:
    for name, text in {"broken": "{", "list": "[]", "few": '{"num_hidden_layers": 4}'}.items():
        write(f"{name}.json", text)
    done = run("--model-config", stated, "a.yaml")
    assert (done.status, done.out) == (2, "")
    assert done.err.strip().endswith(f": {sentence}")


# The end of a ConfigMap, and the keys whose values are no strings.
VALUES = [
    ("data:\n  MODEL: '8'\n\n  config.yaml: |\n    size: 8\n  LENGTH: 8192 # tokens\n", ["LENGTH"]),
    ("data:\n  # on: 1\n  config.yaml: |\n    size: 8\n    on: true\n", []),
    ("data:\n    config.yaml:\n      size: 8\n", ["config.yaml"]),
    ("data:\n  list:\n  - a\n", ["list"]),
    ("data: {A: true, B: b}\n", ["A"]),
    ("data: # all\n  A: yes\n  B:\n  C: 2026-01-01\n  D: 1.5\n  F: 0.11.0\n", ["A", "D"]),
    ('data:\n  "A": [1]\n  B: {}\n', ["A", "B"]),
    ("data:\n  A: >-\n    8\nbinaryData:\n  B: -1\n", ["B"]),
    ("data:\n  A: text\nimmutable: true\n", []),
]


@pytest.mark.parametrize(("end", "keys"), VALUES)
def test_a_config_map_is_parsed_if_a_value_may_be_no_string(
    end: str, keys: list[str], run: Command, write: Write
) -> None:
    write("a.yaml", f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: engine\n{end}")
    *lines, last = run("a.yaml").lines
    found = [line.partition("ata.")[2].partition(": ")[0] for line in lines]
    assert found == keys, lines
    assert f"{len(keys)} mandatory" in last
