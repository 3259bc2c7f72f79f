import pytest
import yaml

from kthena_components.core.findings import Level
from kthena_components.core.plan.report import gpu_count, shape
from kthena_components.core.plan.stack_file import OutputMode
from kthena_components.core.spec.enums import TopologyMode
from kthena_components.resources.stack import load_stack
from sandbox.cluster import NAMESPACES, Size
from tests.stacks.handed import STACKS, handed, stack_file, written

LEADER = (
    "bash /vllm-workspace/examples/online_serving/multi-node-serving.sh leader "
    "--ray_cluster_size=2; python3 -m vllm.entrypoints.openai.api_server --port 8080 "
    "--model meta-llama/Llama-3.1-405B-Instruct --tensor-parallel-size 8 --pipeline-parallel-size 2"
)
WORKER = (
    "bash /vllm-workspace/examples/online_serving/multi-node-serving.sh worker "
    "--ray_address=$(ENTRY_ADDRESS)"
)


def test_every_stack_file_is_one_of_the_known_environments() -> None:
    files = {path.name for path in stack_file("dev").parent.iterdir()}
    assert files == {f"Pulumi.{stack}.yaml" for stack in STACKS}


@pytest.mark.parametrize("stack", STACKS)
def test_a_committed_stack_compiles_without_a_mandatory_finding(stack: str) -> None:
    for serving in load_stack(handed(stack)).servings:
        assert not [f for f in serving.findings if f.level is Level.MANDATORY]


@pytest.mark.parametrize("stack", STACKS)
def test_a_committed_stack_holds_nothing_of_a_machine(stack: str) -> None:
    content = yaml.safe_load(stack_file(stack).read_text())
    assert list(content) == ["config"], "a salt or a provider of secrets is the user's own"
    assert not {"kubeconfig", "context", "hf_token"}.intersection(written(stack))


@pytest.mark.parametrize(
    ("stack", "output", "backend", "pods", "gpus"),
    [
        ("dev", OutputMode.RENDER, "native", 2, 2),
        ("staging", OutputMode.CLUSTER, "kthena", 4, 32),
        ("prod", OutputMode.CLUSTER, "native", 4, 32),
    ],
)
def test_a_committed_stack_asks_for_these_gpus(
    stack: str, output: OutputMode, backend: str, pods: int, gpus: int
) -> None:
    loaded = load_stack(handed(stack))
    (serving,) = loaded.servings
    assert loaded.spec.output is output
    assert serving.plan.backend == backend
    assert serving.plan.pods == pods
    assert gpu_count(shape(serving.plan)) == gpus


def test_sandbox_is_one_serving_on_both_backends_in_racks_that_the_default_sandbox_has() -> None:
    kthena, native = (serving.plan for serving in load_stack(handed("sandbox")).servings)
    assert (kthena.backend, native.backend) == ("kthena", "native")
    assert [role.entry["spec"] for role in kthena.roles] == [
        role.entry["spec"] for role in native.roles
    ]
    size = Size()
    for plan in (kthena, native):
        topology = plan.group_topology
        assert topology is not None
        assert (topology.mode, topology.highest_tier_allowed) == (TopologyMode.HARD, 1)
        assert plan.namespace in NAMESPACES
        assert plan.pods_per_group <= size.nodes
        assert all(role.requests["nvidia.com/gpu"] == role.pods * size.gpus for role in plan.roles)
    assert kthena.pods + native.pods <= size.racks * size.nodes


def test_staging_runs_the_commands_of_the_guide_word_for_word() -> None:
    (role,) = written("staging")["servings"][0]["roles"]
    (leader,) = role["entry_template"]["spec"]["containers"]
    (worker,) = role["worker_template"]["spec"]["containers"]
    assert leader["command"] == ["sh", "-c", LEADER]
    assert worker["command"] == ["sh", "-c", WORKER]
    for container in (leader, worker):
        limits, requests = container["resources"]["limits"], container["resources"]["requests"]
        assert limits == {
            "nvidia.com/gpu": "8", "memory": "1124Gi", "ephemeral-storage": "800Gi",
        }  # fmt: skip
        assert requests == {"ephemeral-storage": "800Gi", "cpu": 125}


def test_staging_says_which_requests_it_filled_in() -> None:
    (serving,) = load_stack(handed("staging")).servings
    filled = [finding.path for finding in serving.findings if finding.rule == "requests-mirrored"]
    assert filled == ["roles[0].entry_template", "roles[0].worker_template"]


def test_prod_names_its_network_its_queue_and_its_token() -> None:
    spec = load_stack(handed("prod")).spec
    assert spec.topology is not None
    assert [(node.name, node.tier) for node in spec.topology.hyper_nodes] == [
        ("rack-1", 1), ("rack-2", 1), ("spine", 2),
    ]  # fmt: skip
    (queue,), (secret,) = spec.queues, spec.secrets
    (serving,) = load_stack(handed("prod")).servings
    assert serving.plan.queue == queue.name
    assert secret.data == {"HUGGING_FACE_HUB_TOKEN": "hf_token"}
