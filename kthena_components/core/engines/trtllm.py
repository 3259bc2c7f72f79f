"""TensorRT-LLM: the reader of its command lines. trtllm_launch.py writes them.

Click parses them: no abbreviations, and underscores in nearly all options
(tensorrt_llm/commands/serve.py).
"""

from collections.abc import Mapping, Sequence

from kthena_components.core.engines.arguments import Reading
from kthena_components.core.engines.config_files import add_file, config_of
from kthena_components.core.engines.dialects import dialect_of
from kthena_components.core.engines.facts import CommandFacts
from kthena_components.core.engines.files import engine_options
from kthena_components.core.engines.options import Dialect, Option, Use, build_dialect
from kthena_components.core.engines.placeholders import Scope
from kthena_components.core.engines.table import release_for


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
    reading.take_model(positional=positional)
    config = config_of(reading, wins=True)
    if config is not None:
        add_file(reading, list(engine_options(config, names)), wins=True, dialect=file)
    if reading.values.get("expert") in _NO_EXPERTS:
        del reading.values["expert"]  # moe-ranks reports 0
    return reading.facts("trtllm")
