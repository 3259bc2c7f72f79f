"""No template, whatever it holds, makes a rule about pods and launches raise."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kthena_components.checker.manifest import check_manifest
from kthena_components.core.facts.container import SHM_PATH, TOKEN_VARIABLES
from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.rules.registry import run_checks
from tests.support.specs import Args, changed, gpu_template
from tests.support.strategies import LATE, law

TOKEN = "hf_" + "aB3" * 11
POD = "spec.containers[0]"
MOUNT = f"{POD}.volumeMounts[0]"


def serving(entry: object, worker: object) -> ServingFacts:
    """Give an engine of two pods made of these templates."""
    first, second = read_pod(entry, "t"), read_pod(worker, "w")
    engine = EngineFacts(path="e", name="e", pods=2, replicas=1, entry=first, worker=second)
    return ServingFacts(path="", name="s", engines=(engine,))


def deployment(template: object) -> Args:
    spec = {"template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "c"}, "spec": spec}


NAMES = st.sampled_from(
    ["name", "image", "env", "value", "valueFrom", "secretKeyRef", "configMapKeyRef", "args",
     "command", "volumeMounts", "mountPath", "volumes", "emptyDir", "medium", "hostPath", "path",
     "resources", "limits", "nvidia.com/gpu"]
)  # fmt: skip
TEXTS = st.sampled_from(
    [
        *sorted(TOKEN_VARIABLES),
        LATE,
        SHM_PATH,
        "Memory",
        TOKEN,
        "vllm serve m -tp 2 --nnodes 0",
        "a:b@c",
        "",
    ]
)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES | st.text(max_size=2), inner),
    max_leaves=12,
)
FIELDS = st.sampled_from(
    [POD, "spec", "spec.volumes", "spec.initContainers", "spec.hostIPC", MOUNT]
    + [f"{POD}.{f}" for f in ("image", "env", "command", "args", "volumeMounts", "name")]
)


@pytest.mark.property
@law
@given(JSON, JSON, st.dictionaries(FIELDS, JSON, min_size=1, max_size=1))
def test_no_rule_raises_whatever_a_template_is(entry: object, worker: object, damage: Args) -> None:
    for command in ("vllm serve m -tp 8 --nnodes 2", "python -m sglang.launch_server --tp 8"):
        right = gpu_template(command)
        damaged = changed(right, damage)
        for first, second in ((entry, worker), (damaged, right), (right, damaged), (right, entry)):
            run_checks(serving(first, second))
        check_manifest(deployment(damaged))
