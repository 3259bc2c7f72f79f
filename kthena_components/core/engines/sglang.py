"""Reads SGLang's command lines. sglang_launch.py writes them."""

from collections.abc import Sequence
from dataclasses import replace

from kthena_components.core.engines.arguments import Reading
from kthena_components.core.engines.config_files import add_file, config_of
from kthena_components.core.engines.dialects import dialect_inside, dialect_of
from kthena_components.core.engines.facts import CommandFacts
from kthena_components.core.engines.files import as_flags, sglang_flag
from kthena_components.core.engines.placeholders import Scope
from kthena_components.core.engines.table import release_for
from kthena_components.core.engines.vllm import ignores_config, is_set, offloads
from kthena_components.core.values.unknown import MaybeBool, MaybeInt, Unknown

_NO_EXCHANGE = frozenset({"none", "ascend_tp"})
"""Values of --moe-a2a-backend that do not change --ep-size."""
_YES = ("yes", "y")
"""What SGLang takes for true as well (sglang/srt/environ.py EnvBool)."""


def read_sglang(
    words: Sequence[str], scope: Scope, *, positional: bool = False, inside: bool = False
) -> CommandFacts:
    """Read the arguments behind `sglang serve` or `python -m sglang.launch_server`.

    Attention data parallelism is inside the tensor group: it adds no GPUs. The old
    `--enable-dp-attention` turns `--dp-size` into it (sglang/srt/arg_groups/parallel_hook.py
    `_handle_deprecated_dp_attention`). The command line overrides a config file.

    Args:
        words: The arguments.
        scope: The variables and files of the container.
        positional: Whether a bare word is the model: `sglang serve`.
        inside: Whether another program, such as Dynamo, accepts SGLang's options and its own.
    """
    own = dialect_inside("sglang") if inside else dialect_of(release_for("sglang", scope.image))
    reading = Reading(own, scope).read(words)
    # `sglang serve` takes a model as the very first word only (sglang/cli/serve.py).
    reading.take_model(positional=positional and reading.bare[:1] == list(words[:1]))
    if not ignores_config(reading):
        config = config_of(reading)
        if config is not None:
            add_file(reading, as_flags(config, sglang_flag))
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
