"""The commands that start an engine, word by word, and what cannot be written."""

from typing import Any

import pytest

from kthena_components.core.engines import (
    Commands,
    Launch,
    Refusal,
    Transfer,
    counted_flags,
    read_command,
    unsupported,
    write_commands,
)
from tests.support.launches import launch

SCRIPT = "/vllm-workspace/examples/ray_serving/multi-node-serving.sh"


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


VLLM = "vllm serve org/M --port 8080 --tensor-parallel-size"
SGLANG = "python3 -m sglang.launch_server --model-path org/M --host 0.0.0.0 --port 8080 --tp-size"
NATIVE = (
    f"{VLLM} 8 --pipeline-parallel-size 2 --nnodes 2 --node-rank $(WORKER_INDEX)"
    " --master-addr $(ENTRY_ADDRESS) --master-port 29501 --distributed-executor-backend mp"
)
RANKS = (
    f"{VLLM} 4 --pipeline-parallel-size 1 --enable-expert-parallel --data-parallel-size 4"
    " --data-parallel-size-local 2 --data-parallel-address $(ENTRY_ADDRESS)"
    " --data-parallel-rpc-port 13345 --distributed-executor-backend mp"
)
JOINED = (
    f"{SGLANG} 16 --pp-size 1 --ep-size 16 --nnodes 2 --node-rank $(WORKER_INDEX)"
    " --dist-init-addr $(ENTRY_ADDRESS):20000"
)
TRTLLM = "trtllm-serve org/M --host 0.0.0.0 --port 8080 --tp_size"
LEADER = f"bash {SCRIPT} leader --ray_cluster_size=2"
RAY_SPLIT = (
    f"{VLLM} 8 --pipeline-parallel-size 2 --distributed-executor-backend ray --max-model-len 8k"
)
RAY_COPIES = (
    f"{VLLM} 8 --pipeline-parallel-size 1 --data-parallel-size 2 --data-parallel-size-local 1"
    " --data-parallel-backend ray --distributed-executor-backend ray"
)
RAY_JOIN = words(f"bash {SCRIPT} worker --ray_address=$(ENTRY_ADDRESS)")

WRITTEN: dict[str, tuple[Launch, Commands]] = {
    "vllm in one pod, on one GPU": (
        launch(tensor=1),
        Commands(words(f"{VLLM} 1 --pipeline-parallel-size 1"), None, (("http", 8080),)),
    ),
    "vllm in one pod, whatever the launcher": (
        launch(launcher="ray", data=2, tensor=4),
        Commands(
            words(
                f"{VLLM} 4 --pipeline-parallel-size 1 --data-parallel-size 2"
                " --distributed-executor-backend mp"
            ),
            None,
            (("http", 8080),),
        ),
    ),
    "vllm over two pods by itself": (
        launch(pipeline=2, pods=2),
        Commands(words(NATIVE), words(f"{NATIVE} --headless"), (("http", 8080), ("master", 29501))),
    ),
    "vllm over two pods with Ray": (
        launch(launcher="ray", pipeline=2, pods=2, extra_args=("--max-model-len", "8k")),
        Commands(
            ("sh", "-c", f"{LEADER} && exec {RAY_SPLIT}"), RAY_JOIN, (("http", 8080), ("ray", 6379))
        ),
    ),
    "vllm copies in two pods with Ray": (
        launch(launcher="ray", data=2, pods=2),
        Commands(
            ("sh", "-c", f"{LEADER} && exec {RAY_COPIES}"),
            RAY_JOIN,
            (("http", 8080), ("ray", 6379)),
        ),
    ),
    "vllm copies in two pods by themselves": (
        launch(tensor=4, data=4, pods=2, expert=True),
        Commands(
            words(RANKS),
            (
                "sh",
                "-c",
                f"exec {RANKS} --headless --data-parallel-start-rank $((WORKER_INDEX * 2))",
            ),
            (("http", 8080), ("dp-rpc", 13345)),
        ),
    ),
    "sglang in one pod": (
        launch(kind="sglang", tensor=4, data=2, extra_args=("--enable-metrics",)),
        Commands(
            words(f"{SGLANG} 4 --pp-size 1 --dp-size 2 --enable-metrics"), None, (("http", 8080),)
        ),
    ),
    "sglang over two pods": (
        launch(kind="sglang", tensor=16, pods=2, expert=True),
        Commands(words(JOINED), words(JOINED), (("http", 8080), ("dist-init", 20000))),
    ),
    "trtllm in one pod": (
        launch(kind="trtllm", launcher="mpi", expert=True, extra_args=("--log_level", "info")),
        Commands(
            words(f"{TRTLLM} 8 --pp_size 1 --ep_size 8 --log_level info"), None, (("http", 8080),)
        ),
    ),
}


@pytest.mark.parametrize(("shape", "commands"), WRITTEN.values(), ids=WRITTEN)
def test_a_launch_is_written_word_by_word(shape: Launch, commands: Commands) -> None:
    assert unsupported(shape) == []
    assert write_commands(shape) == commands


def test_trtllm_over_pods_is_started_by_mpirun() -> None:
    """tests/pulumi/test_mpi_launch.py runs it."""
    shape = launch(kind="trtllm", launcher="mpi", pipeline=3, pods=3)

    written = write_commands(shape)

    assert written.entry[2].splitlines()[-1] == (
        "exec mpirun --allow-run-as-root --leave-session-attached --bind-to none -n 24 "
        "--map-by ppr:8:node -H localhost:8,worker-1:8,worker-2:8 "
        f"trtllm-llmapi-launch {TRTLLM} 8 --pp_size 3"
    )
    assert written.worker is not None
    assert '"$(ENTRY_ADDRESS)", 29400' in written.worker[2]
    assert '"/worker-$(WORKER_INDEX)"' in written.worker[2]
    assert written.ports == (("http", 8080), ("launch", 29400))


@pytest.mark.parametrize(("pods", "expert"), [(1, False), (2, True), (5, False)])
def test_what_is_written_for_trtllm_is_read_again(pods: int, expert: bool) -> None:
    shape = launch(kind="trtllm", launcher="mpi", pipeline=pods, pods=pods, expert=expert)

    facts = read_command(write_commands(shape).entry, {})

    assert facts is not None
    assert (facts.engine, facts.tensor, facts.pipeline, facts.data) == ("trtllm", 8, pods, 1)
    assert (facts.model, facts.expert_size, facts.problems) == ("org/M", 8 if expert else 1, ())
    spread = (8 * pods, 8, (8,) * pods, True) if pods > 1 else (None, None, None, False)
    assert (facts.mpi_ranks, facts.mpi_per_host, facts.mpi_slots, facts.mpi_session) == spread


def test_a_word_is_quoted_for_the_shell_but_a_reference_is_not() -> None:
    extra = ("--a", "it's $HOME", "--b=$(ENTRY_ADDRESS):1", "", '{"c": 1}')
    entry = write_commands(launch(launcher="ray", pods=2, extra_args=extra)).entry

    assert entry[2].endswith("""--a 'it'"'"'s $HOME' --b=$(ENTRY_ADDRESS):1 '' '{"c": 1}'""")


def test_an_output_stays_whole_in_a_script() -> None:
    entry = write_commands(launch(launcher="ray", pods=2, model="\ue00012\ue001")).entry

    assert "vllm serve '\ue00012\ue001' --port" in entry[2]


REFUSED: dict[str, tuple[Launch, list[Refusal]]] = {
    "an engine that is not written": (
        launch(kind="tgi"),
        [
            Refusal(
                "kind",
                "is 'tgi', for which no commands can be written",
                "write 'vllm', 'sglang' or 'trtllm', or use a template",
                "engine-launch",
            )
        ],
    ),
    "vllm with MPI": (
        launch(launcher="mpi"),
        [
            Refusal(
                "launcher",
                "is 'mpi', and the pods of vLLM are joined by ray or native",
                "write 'ray' or 'native'",
                "engine-launch",
            )
        ],
    ),
    "vllm copies that span pods": (
        launch(pipeline=2, data=2, pods=4),
        [
            Refusal(
                "parallelism.data",
                "is 2, and one copy has tensor 8 x pipeline 2 = 16 GPUs, more than the 8 of a "
                "pod; several copies that each span pods are not written",
                "set data to 1, or tensor x pipeline to what one pod has",
                "data-parallel-layout",
            )
        ],
    ),
    "vllm copies that do not spread evenly": (
        launch(launcher="ray", data=3, pods=2),
        [
            Refusal(
                "parallelism.data",
                "is 3, which does not spread evenly over 2 pods",
                "set data to a multiple of 2",
                "data-parallel-layout",
            )
        ],
    ),
    "sglang copies over pods, with Ray, unevenly": (
        launch(kind="sglang", launcher="ray", tensor=8, pods=3, data=2),
        [
            Refusal(
                "launcher",
                "is 'ray', and the pods of SGLang join by themselves",
                "write 'native'",
                "engine-launch",
            ),
            Refusal(
                "parallelism.data",
                "is 2 over 3 pods, and SGLang has data 1 across pods",
                "set data to 1 and use more replicas of the role",
                "sglang-data-multi-node",
            ),
            Refusal(
                "parallelism",
                "has tensor 8 x pipeline 1 = 8 GPUs, which SGLang cannot spread evenly over 3 pods",
                "make tensor x pipeline a multiple of 3",
                "engine-launch",
            ),
        ],
    ),
    "trtllm with everything that it cannot do": (
        launch(
            kind="trtllm",
            launcher="ray",
            tensor=8,
            data=2,
            pods=3,
            extra_args=("--log_level info", ""),
            transfer=Transfer(role="prefill", connector="nixl", port=None),
        ),
        [
            Refusal(
                "launcher",
                "is 'ray', and the pods of TensorRT-LLM are joined by MPI",
                "write 'mpi', or remove it",
                "engine-launch",
            ),
            Refusal(
                "kv_transfer",
                "is given, and TensorRT-LLM reads how its KV cache is transferred from a file",
                "remove it, and set cache_transceiver_config in the file of --config",
                "kv-transfer-supported",
            ),
            Refusal(
                "parallelism.data",
                "is 2, and an engine of TensorRT-LLM holds one copy of the model",
                "set data to 1 and use more replicas of the role",
                "engine-launch",
            ),
            Refusal(
                "parallelism",
                "has tensor 8 x pipeline 1 = 8 GPUs, which do not spread evenly over 3 pods",
                "make tensor x pipeline a multiple of 3",
                "engine-launch",
            ),
            *(
                Refusal(
                    "extra_args",
                    f"has the word {word!r}, which trtllm-llmapi-launch would split at its spaces",
                    "write it without spaces, or set it in the file of --config",
                    "engine-launch",
                )
                for word in ("--log_level info", "")
            ),
        ],
    ),
}


@pytest.mark.parametrize(("shape", "refusals"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_written_is_refused(shape: Launch, refusals: list[Refusal]) -> None:
    assert unsupported(shape) == refusals


@pytest.mark.parametrize(
    ("shape", "port", "purpose"),
    [
        ({"launcher": "ray"}, 6379, "Ray"),
        ({}, 29501, "--master-port"),
        ({"tensor": 4, "data": 4}, 13345, "data parallel RPC"),
        ({"kind": "sglang"}, 20000, "--dist-init-addr"),
        ({"kind": "trtllm", "launcher": "mpi"}, 29400, "MPI launch"),
    ],
)
def test_http_keeps_off_the_port_where_pods_meet(
    shape: dict[str, Any], port: int, purpose: str
) -> None:
    seen = f"is {port}, which the pods of an engine use among themselves ({purpose})"
    refusal = Refusal("port", seen, "choose another port", "engine-launch")

    assert unsupported(launch(**shape, pods=2, port=port)) == [refusal]
    assert unsupported(launch(**shape, pods=1, port=port)) == []


def test_writing_what_is_refused_is_the_callers_mistake() -> None:
    with pytest.raises(ValueError, match=r"^launcher is 'mpi', and the pods of vLLM are joined"):
        write_commands(launch(launcher="mpi"))


@pytest.mark.parametrize(
    ("kind", "extra", "counted"),
    [
        ("vllm", "--max-model-len 8k --dtype auto --config x -dcp 2", []),
        ("vllm", "-tp 8 --pipe 2 --data_parallel_size=2 -n2", ["-tp", "--pipe", "-dp2", "-n"]),
        ("vllm", "--headless --port 1 --model M -ep", ["--headless", "--port", "--model", "-ep"]),
        ("vllm", "--no-enable-expert-parallel", ["--no-enable-expert-parallel"]),
        ("vllm", "-tp8 --tp 8 --data-parallel 2", ["-tp8", "--tp", "--data-parallel"]),
        ("sglang", "--tp 8 --dp-size 2 --host x", ["--tp", "--dp-size", "--host"]),
        ("sglang", "--context-length 8 --attn-dp-size 2", []),
        ("trtllm", "--tp_size 8 --host x --max_batch_size 8", ["--tp_size", "--host"]),
        ("trtllm", "--config /etc/x.yaml --cp_size 2", []),
        ("tgi", "--num-shard 8", []),
    ],
)
def test_flags_that_the_package_states_itself_are_told(
    kind: str, extra: str, counted: list[str]
) -> None:
    told = counted_flags(launch(kind, extra_args=tuple(extra.split())))

    wanted = {"-dp2": "--data_parallel_size", "-n": "-n2"}
    assert told == [wanted.get(flag, flag) for flag in counted]


def test_a_line_of_flags_in_one_word_is_told_too() -> None:
    assert counted_flags(launch(extra_args=("--dtype auto -tp 8",))) == ["-tp"]


@pytest.mark.parametrize(
    ("release", "drain", "counted"),
    [((0, 18, 0), 30, ["--shutdown-timeout"]), ((0, 18, 0), 0, []), (None, 30, [])],
)
def test_the_drain_is_stated_twice_only_where_the_package_states_it(
    release: tuple[int, ...] | None, drain: int, counted: list[str]
) -> None:
    asked = launch(release=release, drain=drain, extra_args=("--shutdown-timeout=60",))
    assert counted_flags(asked) == counted
