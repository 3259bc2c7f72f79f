"""Reads and writes TensorRT-LLM's command lines.

Click parses them: no abbreviations, and underscores in nearly all options
(tensorrt_llm/commands/serve.py).
"""

from collections.abc import Iterator, Mapping, Sequence

from kthena_components.core.engines.arguments import Reading
from kthena_components.core.engines.config_files import add_file, config_of
from kthena_components.core.engines.dialects import dialect_of
from kthena_components.core.engines.facts import CommandFacts
from kthena_components.core.engines.files import engine_options
from kthena_components.core.engines.launch import Commands, Launch, Refusal, port_clash, script
from kthena_components.core.engines.option_table import release_for
from kthena_components.core.engines.options import Dialect, Option, Use, build_dialect
from kthena_components.core.engines.placeholders import Scope
from kthena_components.core.engines.programs import RANK_LAUNCHER
from kthena_components.core.findings import count_of
from kthena_components.core.remedies import either, remove, write


def _size(
    name: str, field: str, *others: str, least: int = 1
) -> tuple[Option, tuple[str, ...], tuple[str, ...]]:
    return Option(name, type="int", use=Use(field, least=least)), (name, *others), ()


def _text(name: str, field: str, *others: str) -> tuple[Option, tuple[str, ...], tuple[str, ...]]:
    return Option(name, use=Use(field)), (name, *others), ()


def _fraction(name: str) -> tuple[Option, tuple[str, ...], tuple[str, ...]]:
    return Option(name, type="float", use=Use("memory_fraction")), (name,), ()


_NO_EXPERTS = frozenset({-1, 0})
"""-1 leaves the size to TensorRT-LLM."""
MOE_TENSOR, MOE_CLUSTER = "--moe_tensor_parallel_size", "--moe_cluster_parallel_size"
CONTEXT_KIND, SPREAD = "--cp_config.cp_type", "--dwdp_config.dwdp_size"
FILE_DIALECT = build_dialect(
    "TensorRT-LLM",
    [
        _size("--tensor_parallel_size", "tensor"),
        _size("--pipeline_parallel_size", "pipeline"),
        _size("--context_parallel_size", "prefill_context"),
        _size("--moe_expert_parallel_size", "expert", least=-1),
        *((Option(name, type="int"), (name,), ()) for name in (MOE_TENSOR, MOE_CLUSTER)),
        *((Option(name), (name,), ()) for name in (CONTEXT_KIND, SPREAD)),
        _size("--gpus_per_node", "gpus_per_node"),
        _size("--max_seq_len", "max_model_len"),
        _fraction("--free_gpu_memory_fraction"),
    ],
)
"""The fields of a config file that are read, as flags. Not all of them are options."""

DYNAMO_DIALECT = build_dialect(
    "dynamo.trtllm",
    [
        _size("--tensor-parallel-size", "tensor"),
        _size("--pipeline-parallel-size", "pipeline"),
        _size("--expert-parallel-size", "expert"),
        _size("--gpus-per-node", "gpus_per_node"),
        _size("--max-seq-len", "max_model_len"),
        _fraction("--free-gpu-memory-fraction"),
        _text("--model-path", "model", "--model"),
        _text("--extra-engine-args", "config", "--override-engine-args"),
    ],
)
"""Dynamo starts the engine with argparse and hyphens (dynamo components/src/dynamo/trtllm)."""

_FIELDS = {
    "tensor_parallel_size": "--tensor_parallel_size",
    "pipeline_parallel_size": "--pipeline_parallel_size",
    "context_parallel_size": "--context_parallel_size",
    "moe_expert_parallel_size": "--moe_expert_parallel_size",
    "moe_tensor_parallel_size": MOE_TENSOR,
    "moe_cluster_parallel_size": MOE_CLUSTER,
    "cp_config.cp_type": CONTEXT_KIND,
    "dwdp_config.dwdp_size": SPREAD,
    "gpus_per_node": "--gpus_per_node",
    "max_seq_len": "--max_seq_len",
    "kv_cache_config.free_gpu_memory_fraction": "--free_gpu_memory_fraction",
}
"""Fields of a config file, and the equivalent flags."""
_DYNAMO_FIELDS = {
    "tensor_parallel_size": "--tensor-parallel-size",
    "pipeline_parallel_size": "--pipeline-parallel-size",
    "moe_expert_parallel_size": "--expert-parallel-size",
    "gpus_per_node": "--gpus-per-node",
    "max_seq_len": "--max-seq-len",
    "kv_cache_config.free_gpu_memory_fraction": "--free-gpu-memory-fraction",
}


def read_trtllm(words: Sequence[str], scope: Scope) -> CommandFacts:
    """Read the arguments of `trtllm-serve`.

    A config file overrides the command line, unlike in vLLM and SGLang, so everything is unknown
    without it (tensorrt_llm/llmapi/llm_args.py `update_llm_args_with_extra_dict`). This is so up to
    1.2. In the last candidates of 1.3 the command line overrides the file; while the release is
    uncertain, the file is taken to override.
    """
    reading = Reading(dialect_of(release_for("trtllm", scope.image)), scope).read(words)
    return _facts(reading, FILE_DIALECT, _FIELDS, positional=True)


def read_dynamo(words: Sequence[str], scope: Scope) -> CommandFacts:
    """Read the arguments of Dynamo's `dynamo.trtllm`, whose config file overrides them, too."""
    reading = Reading(DYNAMO_DIALECT, scope).read(words)
    return _facts(reading, DYNAMO_DIALECT, _DYNAMO_FIELDS, positional=False)


def _facts(
    reading: Reading, file: Dialect, names: Mapping[str, str], *, positional: bool
) -> CommandFacts:
    """Read TensorRT-LLM's options with its config file, whose values win over the command line."""
    reading.take_model(positional=positional)
    config = config_of(reading, wins=True)
    if config is not None:
        add_file(reading, list(engine_options(config, names)), wins=True, dialect=file)
    if reading.values.get("expert") in _NO_EXPERTS:
        del reading.values["expert"]  # moe-ranks reports 0
    return reading.facts("trtllm")


# Writes TensorRT-LLM's command lines.
#
# Over several pods, MPI starts one rank per GPU, and trtllm-llmapi-launch connects the ranks.
# Open MPI reaches other hosts through a program, the agent, which is usually ssh. Here the agent
# writes down the command that a host must run, and each worker fetches its own from the entry: no
# keys, no sshd, no rights in the cluster, and a worker needs no address.


LAUNCH_PORT = 29400
"""Port on which workers fetch their command. Any free port."""
_EVERYWHERE = "0.0.0.0"  # noqa: S104 - trtllm-serve's default is the pod's own loopback
_AGENT = 'd=${0%/*}; h=$1; shift; printf %s "$*" >"$d/.$h" && mv "$d/.$h" "$d/$h"'
"""Writes the command of a host to a file of the host's name, whole or not at all."""
_PREPARE = f"""\
d=$(mktemp -d)
printf '%s\\n' '#!/bin/sh' '{_AGENT}' >"$d/agent"
chmod +x "$d/agent"
export OMPI_MCA_plm_rsh_agent="$d/agent" OMPI_MCA_plm_rsh_no_tree_spawn=1
export PRTE_MCA_plm_ssh_agent="$d/agent" PRTE_MCA_plm_ssh_no_tree_spawn=1
python3 -m http.server {LAUNCH_PORT} --directory "$d" &
"""
"""Variables of Open MPI 4 (orte/mca/plm/rsh), then of Open MPI 5 (PRRTE's plm/ssh)."""
_FETCH = (
    "import http.client as h; "
    f'c = h.HTTPConnection("$(ENTRY_ADDRESS)", {LAUNCH_PORT}, timeout=5); '
    'c.request("GET", "/worker-$(WORKER_INDEX)"); r = c.getresponse(); '
    "print(r.read().decode()); raise SystemExit(r.status != 200)"
)
_JOIN = f"""\
trap 'exit 143' TERM
until c=$(python3 -c '{_FETCH}' 2>/dev/null); do sleep 1; done
sh -c "$c" & wait $!
"""
"""A shell that is process 1 of a pod ignores TERM unless it has a trap."""


def write_trtllm(launch: Launch) -> Commands:
    """Write the commands of a launch that `unsupported_trtllm` accepts."""
    words = ["trtllm-serve", launch.model, "--host", _EVERYWHERE, "--port", str(launch.port)]
    words += ["--tp_size", str(launch.tensor), "--pp_size", str(launch.pipeline)]
    words += ["--ep_size", str(launch.tensor)] if launch.expert else []
    serve, http = (*words, *launch.extra_args), ("http", launch.port)
    if launch.pods == 1:
        return Commands(serve, None, (http,))
    entry = f"{_PREPARE}exec {script(*_mpirun(launch), RANK_LAUNCHER, *serve)}"
    ports = (http, ("launch", LAUNCH_PORT))
    return Commands(("sh", "-c", entry), ("sh", "-c", _JOIN), ports)


def _mpirun(launch: Launch) -> tuple[str, ...]:
    """Write mpirun with literal numbers: readers of the manifest can compare them with the pods."""
    here = launch.copy // launch.pods
    hosts = ["localhost", *(f"worker-{index}" for index in range(1, launch.pods))]
    return (
        # An attached session: otherwise the worker's command returns while its ranks run.
        *("mpirun", "--allow-run-as-root", "--leave-session-attached", "--bind-to", "none"),
        *("-n", str(launch.copy), "--map-by", f"ppr:{here}:node"),
        *("-H", ",".join(f"{host}:{here}" for host in hosts)),
    )


def unsupported_trtllm(launch: Launch) -> list[Refusal]:
    """Report what `write_trtllm` cannot express. GPU counts are not checked here."""
    return [*port_clash(launch, LAUNCH_PORT, "MPI launch"), *_refused(launch)]


def _refused(launch: Launch) -> Iterator[Refusal]:
    """Report what TensorRT-LLM cannot do of a launch."""
    if launch.launcher != "mpi":
        seen = f"is '{launch.launcher}', and the pods of TensorRT-LLM are joined by MPI"
        yield Refusal("launcher", seen, either(write("mpi"), remove()), "engine-launch")
    if launch.transfer is not None:
        seen = "is given, and TensorRT-LLM reads how its KV cache is transferred from a file"
        remedy = "remove it, and set cache_transceiver_config in the file of --config"
        yield Refusal("kv_transfer", seen, remedy, "kv-transfer-supported")
    if launch.data > 1:
        seen = f"is {launch.data}, and an engine of TensorRT-LLM holds one copy of the model"
        remedy = write(1, "set data to 1 and use more replicas of the role")
        yield Refusal("parallelism.data", seen, remedy, "engine-launch")
    if launch.copy % launch.pods:
        seen = (
            f"has tensor {launch.tensor} x pipeline {launch.pipeline} = "
            f"{count_of(launch.copy, 'GPU')}, which "
            f"do not spread evenly over {count_of(launch.pods, 'pod')}"
        )
        remedy = f"make tensor x pipeline a multiple of {launch.pods}"
        yield Refusal("parallelism", seen, remedy, "engine-launch")
    if launch.pods > 1:
        yield from _split_words(launch)


def _split_words(launch: Launch) -> Iterator[Refusal]:
    """Reject words that trtllm-llmapi-launch would split: it joins its arguments with spaces."""
    given = [("model", launch.model), *(("extra_args", word) for word in launch.extra_args)]
    for field, word in given:
        if len(word.split()) != 1:
            seen = f"has the word {word!r}, which {RANK_LAUNCHER} would split at its spaces"
            remedy = "write it without spaces, or set it in the file of --config"
            yield Refusal(field, seen, remedy, "engine-launch")
