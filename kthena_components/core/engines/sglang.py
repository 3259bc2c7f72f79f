"""Reads and writes SGLang's command lines, and which server `sglang serve` starts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kthena_components.core.engines.arguments import Reading
from kthena_components.core.engines.config_files import (
    add_file,
    as_words,
    config_of,
    is_read,
    sglang_words,
)
from kthena_components.core.engines.dialects import dialect_inside, dialect_of
from kthena_components.core.engines.facts import CommandFacts
from kthena_components.core.engines.kv_transfer import (
    refused_transfer,
    transfer_ports,
    transfer_words,
)
from kthena_components.core.engines.launch import (
    Commands,
    Launch,
    Refusal,
    Since,
    missing_options,
    port_clash,
)
from kthena_components.core.engines.option_table import release_for
from kthena_components.core.engines.placeholders import Scope, stated_variable
from kthena_components.core.engines.vllm import is_set, offloads
from kthena_components.core.findings import count_of
from kthena_components.core.remedies import write
from kthena_components.core.values.images import Version
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import MaybeBool, MaybeInt, Unknown

_NO_EXCHANGE = frozenset({"none", "ascend_tp"})
"""Values of --moe-a2a-backend that do not change --ep-size."""
_YES = ("yes", "y")
"""What SGLang takes for true as well (sglang/srt/environ.py EnvBool)."""
_MEETING = "SGLANG_DISTRIBUTED_INIT_METHOD_OVERRIDE"
"""Where the ranks meet, whatever the options say (sglang/srt/distributed/bootstrap.py)."""


def read_sglang(
    words: Sequence[str], scope: Scope, *, positional: bool = False, inside: bool = False
) -> CommandFacts:
    """Read the arguments behind `sglang serve` or `python -m sglang.launch_server`.

    Attention data parallelism is inside the tensor group: it adds no GPUs. The old
    `--enable-dp-attention` turns `--dp-size` into it (sglang/srt/arg_groups/parallel_hook.py
    `_handle_deprecated_dp_attention`). The command line overrides a config file.

    Args:
        scope: The variables and files of the container.
        positional: Whether a bare word is the model: `sglang serve`.
        inside: Whether another program, such as Dynamo, accepts SGLang's options and its own.
    """
    own = dialect_inside("sglang") if inside else dialect_of(release_for("sglang", scope.image))
    reading = Reading(own, scope).read(words)
    # `sglang serve` takes a model as the very first word only (sglang/cli/serve.py).
    reading.take_model(positional=positional and reading.bare[:1] == list(words[:1]))
    config = config_of(reading) if is_read(reading, words) else None
    if config is not None:
        add_file(reading, as_words(config, sglang_words(reading)))
    if stated_variable(scope, _MEETING):
        reading.options["--dist-init-addr"] = Unknown(f"{_MEETING} replaces it")
    facts = reading.facts(
        "sglang",
        host_offload=offloads(reading),
        long_context_allowed=is_set(scope, "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN", *_YES),
        stages_draft=is_set(scope, "SGLANG_ENABLE_PP_SPEC", *_YES),
    )
    if reading.values.get("use_ray"):
        facts = replace(facts, executor="ray")
    if reading.values.get("dp_attention"):
        width = facts.data if facts.attention_data == 1 else facts.attention_data
        facts = replace(facts, attention_data=width, data=1)
    return replace(facts, expert=_expert(reading, facts))


def _expert(reading: Reading, facts: CommandFacts) -> MaybeBool | MaybeInt:
    """Return the ranks that share the experts; an exchange backend uses the whole tensor group.

    Source: sglang/srt/server_args.py `_handle_a2a_moe`, whatever --ep-size says.
    """
    exchange = reading.values.get("exchange", "none")
    if isinstance(exchange, Unknown):
        return exchange
    return facts.expert if exchange in _NO_EXCHANGE else facts.tensor


# Writes SGLang's command lines.


IMAGE = "lmsysorg/sglang"
INIT_PORT = 20000
"""Port that connects the pods of an engine. Any free port: `--dist-init-addr` has no default."""
PIPELINE_SINCE: Version = (0, 4, 6, 2)
"""The first SGLang with pipeline parallelism (--pp-size)."""
EXPERT_SIZE_ALONE: Version = (0, 4, 10, 2)
"""The first SGLang in which --ep-size alone enables expert parallelism. Before, the switch
--enable-ep-moe does (sglang/srt/layers/moe/ep_moe/layer.py), which 0.5.3 rejects.
"""
_SINCE: Mapping[str, Since] = {
    "--pp-size": Since(PIPELINE_SINCE, "parallelism.pipeline", "set pipeline to 1")
}
_EVERYWHERE = "0.0.0.0"  # noqa: S104 - SGLang's default is the pod's own loopback


def write_sglang(launch: Launch) -> Commands:
    """Write the commands of a launch that `unsupported_sglang` accepts.

    Every pod runs the same command and reads its rank from WORKER_INDEX.
    """
    words = ["python3", "-m", "sglang.launch_server", "--model-path", launch.model]
    words += ["--host", _EVERYWHERE, "--port", str(launch.port)]
    words += ["--tp-size", str(launch.tensor)]
    if launch.pipeline > 1 or not launch.before(PIPELINE_SINCE):
        words += ["--pp-size", str(launch.pipeline)]
    if launch.data > 1:
        words += ["--dp-size", str(launch.data)]
    if launch.expert:
        words += ["--ep-size", str(launch.tensor)]
        words += ["--enable-ep-moe"] if launch.before(EXPERT_SIZE_ALONE) else []
    words += transfer_words(launch.kind, launch.transfer)
    shared = transfer_ports(launch)
    if launch.pods == 1:
        return Commands((*words, *launch.extra_args), None, (("http", launch.port), *shared))
    words += ["--nnodes", str(launch.pods), "--node-rank", "$(WORKER_INDEX)"]
    words += ["--dist-init-addr", f"$(ENTRY_ADDRESS):{INIT_PORT}"]
    command = (*words, *launch.extra_args)
    ports = (("http", launch.port), ("dist-init", INIT_PORT), *shared)
    return Commands(command, command, ports)


def unsupported_sglang(launch: Launch) -> list[Refusal]:
    """Report what SGLang itself rejects, and `write_sglang` cannot express.

    Source: sglang/srt/arg_groups/parallel_hook.py, the assertions on nnodes.
    """
    refusals = port_clash(launch, INIT_PORT, "--dist-init-addr")
    used = {INIT_PORT: "--dist-init-addr"} if launch.pods > 1 else {}
    refusals += refused_transfer(launch, {launch.port: "HTTP", **used})
    if launch.launcher != "native":
        seen = f"is '{launch.launcher}', and the pods of SGLang join by themselves"
        refusals.append(Refusal("launcher", seen, write("native"), "engine-launch"))
    if launch.pods > 1 and launch.data > 1:
        seen = (
            f"is {launch.data} over {count_of(launch.pods, 'pod')}, and SGLang has data "
            "1 across pods"
        )
        remedy: str = write(1, "set data to 1 and use more replicas of the role")
        refusals.append(Refusal("parallelism.data", seen, remedy, "sglang-data-multi-node"))
    if launch.copy % launch.pods:
        seen = (
            f"has tensor {launch.tensor} x pipeline {launch.pipeline} = "
            f"{count_of(launch.copy, 'GPU')}, which "
            f"SGLang cannot spread evenly over {count_of(launch.pods, 'pod')}"
        )
        remedy = f"make tensor x pipeline a multiple of {launch.pods}"
        refusals.append(Refusal("parallelism", seen, remedy, "engine-launch"))
    return refusals + missing_options(launch, write_sglang(launch), _SINCE, "SGLang", IMAGE)


_MODEL_TYPE = "--model-type"
_OF_DIFFUSION = regex(
    r"--(num-gpus|sp-degree|ulysses-degree|ring-degree|enable-cfg-parallel|pipeline-class-name"
    r"|(dit|vae|text-encoder|image-encoder|hsdp)-[a-z0-9-]+)"
)
"""Options of the server for images and videos that the one for language models does not have.

Source: sglang/multimodal_gen/runtime/server_args.py.
"""


def serves_diffusion(words: Sequence[str]) -> bool:
    """Return whether the arguments start the server for images and videos.

    Without --model-type, the files of the model decide, which are not here; the options tell then.
    Source: sglang/cli/serve.py; sglang/cli/utils.py get_is_diffusion_model.
    """
    stated, rest = _model_type(words)
    if stated in {"diffusion", "llm"}:
        return stated == "diffusion"
    names = (word.partition("=")[0].replace("_", "-") for word in rest)
    return any(_OF_DIFFUSION.fullmatch(name) for name in names)


def without_model_type(words: Sequence[str]) -> Sequence[str]:
    """Return the arguments that the server gets: --model-type is not among them."""
    return _model_type(words)[1]


def _model_type(words: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Return the last value of --model-type, empty without one, and the other words."""
    stated, rest, at = "", [], 0
    while at < len(words):
        option, has_value, value = words[at].partition("=")
        if option == _MODEL_TYPE:
            stated = value if has_value else "".join(words[at + 1 : at + 2])
            at += 1 if has_value else 2
        else:
            rest.append(words[at])
            at += 1
    return stated, rest
