"""Which program a command starts, behind whatever stands in front of it."""

import shlex

import pytest

from kthena_components.core.engines import image_entrypoint, option_table, read_command
from kthena_components.core.values.unknown import MaybeInt, Unknown


@pytest.mark.parametrize(
    ("command", "engine"),
    [
        ("vllm serve M", "vllm"),
        ("/usr/local/bin/vllm serve M", "vllm"),
        ("python -m vllm.entrypoints.openai.api_server --model M", "vllm"),
        ("python3.12 -u -X dev -mvllm.entrypoints.api_server --model M", "vllm"),
        ("python -m vllm.entrypoints.cli.main serve M", "vllm"),
        ("python3 /app/vllm/entrypoints/openai/api_server.py --model M", "vllm"),
        ("python3 /workspace/vllm/inference_api.py --tensor-parallel-size 8", "vllm"),
        ("python3 -m dynamo.vllm --model M", "vllm"),
        ("sglang serve M", "sglang"),
        ("python3 -m sglang.launch_server --model-path M", "sglang"),
        ("python3 -m dynamo.sglang --model-path M", "sglang"),
        ("trtllm-serve M", "trtllm"),
        ("trtllm-serve serve M", "trtllm"),
        ("python3 -m dynamo.trtllm --model-path M", "trtllm"),
        ("python3 -m huggingfaceserver --model_id M", "huggingfaceserver"),
        ("tini -g -- env A=b nice -n 5 vllm serve M", "vllm"),
        ("uv run --no-sync vllm serve M", "vllm"),
        ("uvx --from vllm vllm serve M", "vllm"),
        ("mamba run -n serving vllm serve M", "vllm"),
        ("pipenv run python -m sglang.launch_server --model-path M", "sglang"),
        ("doppler run -- vllm serve M", "vllm"),
        ("python3 /opt/venv/bin/vllm serve M", "vllm"),
        ("torchrun --nproc-per-node 1 -m sglang.launch_server --model-path M", "sglang"),
        ("python -m torch.distributed.run -m sglang.launch_server --model-path M", "sglang"),
        ("srun --ntasks=16 trtllm-llmapi-launch trtllm-serve M", "trtllm"),
    ],
)
def test_an_engine_is_found(command: str, engine: str) -> None:
    facts = read_command(command.split(), {})

    assert facts is not None
    assert (facts.engine, facts.problems) == (engine, ())


@pytest.mark.parametrize(
    "command",
    [
        "vllm bench serve",
        "vllm",
        "env vllm",
        "pip install vllm serve",
        "python -m vllm.entrypoints.cli.main bench",
        "python -m vllm.entrypoints.openai.run_batch -i in.jsonl -o out.jsonl --model M",
        "python -m ray.scripts.scripts status",
        "python vllm serve M",
        "torchrun --nproc-per-node 8 train.py -m",
        "torchrun -m vllm.entrypoints.api_server --distributed-executor-backend external_launcher",
        "python -m vllm",
        "python -c 'vllm serve'",
        "python",
        "python /workspace/tfs/inference_api.py --vllm",
        "trtllm-serve disaggregated -c x",
        "ray status",
        "bash",
        "bash -c",
        "bash --rcfile vllm",
        "bash -- vllm",
    ],
)
def test_another_program_is_no_engine(command: str) -> None:
    assert read_command(command.split(), {}) is None


@pytest.mark.parametrize(
    ("command", "model"),
    [
        ("vllm serve M", "M"),
        ("vllm serve --model M", "M"),
        ("vllm serve --trust-remote-code M", "M"),
        ("vllm serve --served-model-name a b --model M", "M"),
        ("vllm serve M -- x", "M"),
        ("sglang serve M --tp-size 2", "M"),
        ("sglang serve --model M x", "M"),
        ("python -m sglang.launch_server --model-path M x", "M"),
        ("trtllm-serve M --backend pytorch", "M"),
        ("python3 -m tensorrt_llm.commands.serve serve M --tp_size 8", "M"),
        ("python3 -m tensorrt_llm.commands.serve M --tp_size 8", "M"),
        ("python -m huggingfaceserver --model_id M --model_name n", "M"),
        ("vllm serve -tp 8", None),
    ],
)
def test_the_model_is_found(command: str, model: str | None) -> None:
    facts = read_command(command.split(), {})

    assert facts is not None
    assert facts.model == model


@pytest.mark.parametrize(
    ("image", "entrypoint"),
    [
        ("vllm/vllm-openai", ("vllm", "serve")),
        ("reg.example:5000/vllm/vllm-openai:v0.18.0", ("vllm", "serve")),
        ("lmcache/vllm-openai@sha256:0123", ("vllm", "serve")),
        ("vllm/vllm-openai-rocm:latest", ("vllm", "serve")),
        ("ghcr.io/volcano-sh/kthena-engine:vllm-ascend_v0.10.1rc1", ("vllm", "serve")),
        ("ghcr.io/volcano-sh/kthena-engine:sglang", ()),
        ("kserve/huggingfaceserver:v0.16.0-gpu", ("python3", "-m", "huggingfaceserver")),
        ("lmsysorg/sglang:latest", ()),
        ("", ()),
    ],
)
def test_an_image_may_start_the_engine_itself(image: str, entrypoint: tuple[str, ...]) -> None:
    assert image_entrypoint(image) == entrypoint


@pytest.mark.parametrize(
    ("command", "role", "size"),
    [
        ("bash multi-node-serving.sh leader --ray_cluster_size=2", "head", 2),
        ("sh -c 'multi-node-serving.sh worker --ray_address=a'", "worker", None),
        (
            "bash multi-node-serving.sh leader --ray_port=1 $(ARGS)",
            "head",
            Unknown("$(ARGS) may contain it"),
        ),
        ("bash multi-node-serving.sh worker $(ARGS)", "worker", None),
        ("bash multi-node-serving.sh help", None, None),
        ("/vllm-workspace/ray_init.sh leader --ray_cluster_size=2", "head", 2),
        ("bash ray_init.sh worker --ray_address=a", "worker", None),
        ("ray_init.sh leader $(ARGS)", "head", Unknown("$(ARGS) may contain it")),
        ("ray start --head --port=6379", "head", None),
        ("ray start --address a:6379 --block", "worker", None),
        ("python -m ray.scripts.scripts start --head --port=6379", "head", None),
        ("python3 /opt/venv/bin/ray start --address a:6379 --block", "worker", None),
        ("ray symmetric-run --address a --min-nodes 2 -- vllm serve M", None, 2),
        ("ray symmetric-run --min-nodes=3", None, 3),
    ],
)
def test_a_ray_helper_is_found(command: str, role: str | None, size: MaybeInt | None) -> None:
    words = command.split() if "'" not in command else ["sh", "-c", command.split("'")[1]]
    facts = read_command(words, {})

    assert facts is not None
    assert (facts.ray_role, facts.ray_cluster_size, facts.problems) == (role, size, ())


@pytest.mark.parametrize("command", ["ray_init.sh", "ray_init.sh leader", "ray_init.sh worker 8"])
def test_a_script_of_that_name_may_be_another_one(command: str) -> None:
    facts = read_command(command.split(), {})

    assert facts is None or (facts.ray_role, facts.problems) == (None, ())


def test_one_script_may_start_either_side_of_ray() -> None:
    script = (
        "if [ $POD_INDEX = 0 ]; then multi-node-serving.sh leader --ray_cluster_size=3;"
        " else multi-node-serving.sh worker --ray_address=$A; fi"
    )
    facts = read_command(["bash", "-c", script], {})

    assert facts is not None
    assert (facts.ray_role, facts.ray_cluster_size) == ("head", 3)
    assert dict(facts.where) == {"ray_cluster_size": "--ray_cluster_size=3"}


@pytest.mark.parametrize(
    ("command", "ranks"),
    [
        ("mpirun -np 16 trtllm-serve M", 16),
        ("srun --ntasks=16 --mpi=pmix trtllm-serve M", 16),
        ("nice -n 5 trtllm-serve M", None),
        ("mpirun trtllm-serve M", None),
    ],
)
def test_mpi_ranks_are_those_of_an_mpi_launcher(command: str, ranks: int | None) -> None:
    facts = read_command(command.split(), {})

    assert facts is not None
    assert facts.mpi_ranks == ranks


@pytest.mark.parametrize(
    ("launcher", "per_host", "slots", "session"),
    [
        ("mpirun -n 4 -H a:2,b:2 trtllm-llmapi-launch", None, (2, 2), True),
        ("mpirun -n 4 --host a,b,a", None, (2, 1), False),
        ("mpirun -np 4 --map-by ppr:2:node:pe=4 -H a:2,b:2", 2, (2, 2), False),
        ("mpirun -N 8 --hostfile /etc/mpi/hostfile", 8, None, False),
        ("mpiexec -ppn 8 -n 16", 8, None, False),
        ("srun -N 2 --ntasks 16 --ntasks-per-node=8", 8, None, False),
        ("srun -N 2 --ntasks 16", None, None, False),
        ("mpirun --oversubscribe -n 4 -H a", None, None, False),
        ("mpirun --map-by slot:OVERSUBSCRIBE -n 4 -H a", None, None, False),
        ("mpirun -n 4 -H a:$SLOTS,b", None, None, False),
        ("mpirun -N many -n 4", None, None, False),
        ("nice -n 5 trtllm-llmapi-launch", None, None, False),
    ],
)
def test_the_hosts_of_an_mpi_launcher_are_read(
    launcher: str, per_host: int | None, slots: tuple[int, ...] | None, session: bool
) -> None:
    facts = read_command(f"{launcher} trtllm-serve M".split(), {})

    assert facts is not None
    assert (facts.mpi_per_host, facts.mpi_slots, facts.mpi_session) == (per_host, slots, session)


@pytest.mark.parametrize(
    "command",
    ["vllm serve M --omni -tp 2", "vllm-omni serve M --omni", "bash -c 'exec vllm serve M --omni'"],
)
def test_the_stages_of_vllm_omni_are_not_read(command: str) -> None:
    facts = read_command(shlex.split(command), {})

    assert facts is not None
    assert (facts.engine, facts.problems) == (None, ())
    assert facts.hidden == Unknown(
        "vLLM-Omni runs a model in stages, and its own config file assigns GPUs to each stage"
    )


def test_without_its_switch_vllm_omni_is_vllm() -> None:
    facts = read_command(["vllm-omni", "serve", "M", "-tp", "2"], {})

    assert facts is not None
    assert (facts.engine, facts.tensor) == ("vllm", 2)


@pytest.mark.parametrize(
    "command",
    [
        "sglang serve --model-path Wan-AI/Wan2.1-T2V-1.3B-Diffusers --num-gpus=4 --port 30000",
        "sglang serve --model-path M --tp-size 2 --num_gpus 2 --backend sglang",
        "sglang serve --model-path M --vae-path V --dit-cpu-offload",
        "sglang serve --model-path M --model-type diffusion",
        "bash -c 'exec sglang serve M --model-type=diffusion'",
    ],
)
def test_the_server_for_images_of_sglang_is_not_read(command: str) -> None:
    facts = read_command(shlex.split(command), {})

    assert facts is not None
    assert (facts.engine, facts.problems) == (None, ())
    assert facts.hidden == Unknown(
        "sglang serve starts its server for images and videos, which splits models in other ways"
    )


@pytest.mark.parametrize("stated", ["--model-type llm", "--model-type=auto", ""])
def test_sglang_serve_keeps_the_type_of_the_model_for_itself(stated: str) -> None:
    facts = read_command(["sglang", "serve", *stated.split(), "M", "--tp-size", "2"], {})

    assert facts is not None
    assert (facts.engine, facts.model, facts.tensor) == ("sglang", "M", 2)
    assert facts.problems == ()


@pytest.mark.parametrize(
    "command",
    [
        "dynamo.vllm --model M --dyn-tool-call-parser hermes --dyn-reasoning-parser qwen3",
        "dynamo.vllm --model M --swap-space 4 --enable-rl",
        "dynamo.sglang --model-path M --dyn-enable-structural-tag --endpoint a.b.c",
        "dynamo.sglang --model-path M --nsa-decode-backend trtllm --cuda-graph-max-bs 8",
        "huggingfaceserver --model_id M --backend=vllm --model_revision main --workers 2",
    ],
)
def test_a_program_has_its_own_options_and_those_of_any_release(command: str) -> None:
    facts = read_command(["python3", "-m", *command.split(), "--tensor-parallel-size", "4"], {})

    assert facts is not None
    assert (facts.tensor, facts.problems) == (4, ())


def test_a_misspelt_option_of_a_program_is_reported() -> None:
    facts = read_command(
        ["python3", "-m", "dynamo.vllm", "--model", "M", "--tensor-paralel-size", "4"], {}
    )

    assert facts is not None
    (problem,) = facts.problems
    assert "no known flag '--tensor-paralel-size'" in problem.text
    assert not problem.hard


@pytest.mark.parametrize(
    ("command", "tables"),
    [("nginx -g 'daemon off;'", []), ("sglang serve M", ["sglang"]), ("vllm serve M", ["vllm"])],
)
def test_a_table_is_read_with_the_first_command_of_its_engine(
    command: str, tables: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def load(engine: str) -> option_table.Table:
        read.append(engine)
        return real(engine)

    real = option_table.load
    monkeypatch.setattr(option_table, "load", load)
    option_table.release_for.cache_clear()
    read_command(shlex.split(command), {})
    option_table.release_for.cache_clear()

    assert sorted(set(read)) == tables
