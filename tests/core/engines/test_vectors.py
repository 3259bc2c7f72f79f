"""Command lines as people write them, and what they say."""

import shlex
from typing import Any

import pytest

from kthena_components.core.engines import CommandFacts, read_command
from kthena_components.core.values.unknown import OfController, Unknown, Varying

KTHENA_EXAMPLE = (
    "bash /vllm-workspace/examples/online_serving/multi-node-serving.sh leader"
    " --ray_cluster_size=2;\n  python3 -m vllm.entrypoints.openai.api_server --port 8080"
    " --model M --tensor-parallel-size 8 --pipeline_parallel_size 2"
)
ONE_LINE = "--tensor-parallel-size 8 --data-parallel-size 2 --data-parallel-size-local 1"

VECTORS: dict[str, tuple[list[str], dict[str, Any]]] = {
    "a Ray leader script that goes on to serve": (
        ["sh", "-c", KTHENA_EXAMPLE],
        {"engine": "vllm", "tensor": 8, "pipeline": 2, "ray_role": "head", "ray_cluster_size": 2},
    ),
    "short flags, apart and with an equals sign": (
        shlex.split("vllm serve M -tp 8 -pp=2"),
        {"engine": "vllm", "tensor": 8, "pipeline": 2, "model": "M"},
    ),
    "underscores": (
        shlex.split("vllm serve M --tensor_parallel_size=8"),
        {"tensor": 8, "pipeline": 1},
    ),
    "a whole line of flags in one item": (
        ["vllm", "serve", "M", ONE_LINE],
        {"tensor": 8, "data": 2, "data_local": 1},
    ),
    "a repeated flag": (
        shlex.split("vllm serve M --tensor-parallel-size 4 --seed 1 --tensor-parallel-size 8"),
        {"tensor": 8},
    ),
    "an abbreviation": (shlex.split("vllm serve M --tensor 8"), {"tensor": 8}),
    "KServe's own server": (
        ["bash", "-c", "python -m huggingfaceserver --tensor-parallel-size=${SIZE}"],
        {"engine": "huggingfaceserver", "tensor": 4},
    ),
    "SGLang over two nodes": (
        shlex.split(
            "python3 -m sglang.launch_server --model-path M --tp 16 --nnodes 2"
            " --node-rank '$(LWS_WORKER_INDEX)' --dist-init-addr '$(LWS_LEADER_ADDRESS):20000'"
        ),
        {
            "engine": "sglang",
            "tensor": 16,
            "nnodes": 2,
            "node_rank": Varying(
                "no env sets LWS_WORKER_INDEX; LeaderWorkerSet does in the pods that it creates"
            ),
        },
    ),
    "TensorRT-LLM under MPI": (
        shlex.split(
            "mpirun -n 16 trtllm-llmapi-launch trtllm-serve M --tp_size 8 --pp_size 2"
            " --gpus_per_node 8"
        ),
        {
            "engine": "trtllm",
            "tensor": 8,
            "pipeline": 2,
            "mpi_ranks": 16,
            "gpus_per_node": 8,
            "model": "M",
        },
    ),
    "a native worker of vLLM": (
        shlex.split("vllm serve M --nnodes 2 --node-rank 1 --master-addr L --headless -tp 8 -pp 2"),
        {"tensor": 8, "pipeline": 2, "nnodes": 2, "node_rank": 1, "headless": True},
    ),
    "a Ray worker": (
        shlex.split("ray start --address=$LEADER:6379 --block"),
        {"engine": None, "ray_role": "worker", "ray_cluster_size": None},
    ),
    "a variable with a literal value": (
        ["vllm", "serve", "M", "--tensor-parallel-size", "$(SIZE)"],
        {"tensor": 4},
    ),
    "a variable with a value from elsewhere": (
        ["vllm", "serve", "M", "--tensor-parallel-size", "$(SECRET)", "-pp", "2"],
        {"tensor": Unknown("SECRET comes from a Secret"), "pipeline": 2},
    ),
}
ENV: dict[str, str | Unknown] = {"SIZE": "4", "SECRET": Unknown("SECRET comes from a Secret")}


def read(*argv: str, **env: str) -> CommandFacts:
    facts = read_command(argv, {**ENV, **env})
    assert facts is not None
    return facts


@pytest.mark.parametrize(("argv", "expected"), VECTORS.values(), ids=VECTORS)
def test_a_command_line_says_what_it_says(argv: list[str], expected: dict[str, Any]) -> None:
    facts = read(*argv)

    assert {name: getattr(facts, name) for name in expected} == expected


def test_an_invalid_flag_leaves_its_size_unknown() -> None:
    facts = read("vllm", "serve", "M", "-tp8")

    assert facts.tensor == Unknown("vLLM has no flag '-tp8' and does not start with it")
    assert [problem.hard for problem in facts.problems] == [True]


def test_a_config_file_leaves_open_only_what_the_command_line_does_not_state() -> None:
    facts = read("vllm", "serve", "--config", "/etc/v.yaml", "-tp", "8")

    unknown = Unknown("the file of --config /etc/v.yaml is not available")
    assert (facts.tensor, facts.pipeline, facts.data, facts.nnodes) == (8, *[unknown] * 3)
    assert facts.world == unknown


def test_a_config_file_of_tensorrt_wins_so_that_nothing_is_known() -> None:
    facts = read("trtllm-serve", "M", "--tp_size", "8", "--extra_llm_api_options", "x.yaml")

    assert facts.tensor == Unknown(
        "the file of --extra_llm_api_options x.yaml is not available, and it overrides the command "
        "line"
    )
    assert facts.model == "M"


def test_a_late_variable_is_unknown_with_the_controller_that_sets_it() -> None:
    script = "python -m huggingfaceserver --tensor-parallel-size=${TENSOR_PARALLEL_SIZE}"

    because = "no env sets TENSOR_PARALLEL_SIZE; KServe does in the pods that it creates"
    assert read("bash", "-c", script).tensor == OfController(because, "TENSOR_PARALLEL_SIZE")
    assert read("bash", "-c", script, TENSOR_PARALLEL_SIZE="8").tensor == 8


def test_a_shell_variable_without_a_shell_is_unknown() -> None:
    facts = read("python", "-m", "huggingfaceserver", "--tensor-parallel-size=${SIZE}")

    assert facts.tensor == Unknown(
        "--tensor-parallel-size has '${SIZE}', which no shell expands here"
    )


def test_each_value_has_the_text_it_came_from() -> None:
    facts = read("vllm", "serve", "M", "-tp=8", "--pipeline_parallel_size", "2", "-n2")

    assert dict(facts.where) == {
        "model": "M",
        "tensor": "-tp=8",
        "pipeline": "--pipeline_parallel_size 2",
        "nnodes": "-n2",
    }


def test_an_output_makes_only_its_own_value_unknown() -> None:
    facts = read("vllm", "serve", "\ue0007\ue001", "-tp", "8", "--nnodes", "\ue0008\ue001")

    late = Unknown("its value is a Pulumi Output, which is known only after the deployment")
    assert (facts.model, facts.tensor, facts.nnodes) == (late, 8, late)
    assert facts.where["nnodes"] == "--nnodes <output>"


@pytest.mark.parametrize("argv", [[], ["sleep", "3600"], ["sh", "-c", "echo vllm serve M"]])
def test_a_command_without_an_engine_gives_nothing(argv: list[str]) -> None:
    assert read_command(argv, {}) is None


@pytest.mark.parametrize(
    ("argv", "world", "per_rank"),
    [
        ("vllm serve M -tp 8 -pp 2 -dp 2 -pcp 2 -dcp 4", 64, 32),
        ("sglang serve M --tp-size 8 --pp-size 2 --dp-size 2 --attn-cp-size 2", 32, 16),
        ("python -m sglang.launch_server --tp-size 8 --dp-size 8 --enable-dp-attention", 8, 8),
        ("trtllm-serve M --tp_size 4 --pp_size 2 --cp_size 2", 16, 16),
    ],
)
def test_world_counts_every_rank_that_takes_a_gpu(argv: str, world: int, per_rank: int) -> None:
    facts = read(*argv.split())

    assert (facts.world, facts.per_rank_world) == (world, per_rank)


def test_a_ray_worker_has_no_world_of_its_own() -> None:
    assert read("ray", "start", "--address=x").world == Unknown("no engine is started here")


@pytest.mark.parametrize(
    ("argv", "size"),
    [
        ("vllm serve M -tp 8 -dp 2", 1),
        ("vllm serve M -tp 8 -dp 2 -ep", 16),
        ("vllm serve M -tp 8 -dp 2 -ep --no-enable-expert-parallel", 1),
        ("sglang serve M --tp-size 8 --ep 4", 4),
        ("trtllm-serve M --tp_size 8 --ep_size 8", 8),
    ],
)
def test_expert_size_is_the_same_question_to_every_engine(argv: str, size: int) -> None:
    assert read(*argv.split()).expert_size == size
