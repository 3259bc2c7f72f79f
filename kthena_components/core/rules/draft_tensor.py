"""The rule draft-tensor."""

from collections.abc import Iterable, Mapping

from kthena_components.core.findings import Finding
from kthena_components.core.rules.support.engine_startup import Start, each_start

_NO_MODEL = frozenset({"ngram", "[ngram]", "ngram_gpu", "suffix", "custom_class"})
"""Methods that draft without a model, for which vLLM does not look at the size."""


@each_start("vllm")
def draft_tensor(start: Start) -> Iterable[Finding]:
    """A draft model has tensor size 1, or that of its target model.

    vLLM refuses to start otherwise.

    Pass: --speculative-config with draft_tensor_parallel_size 1 or 8, and --tensor-parallel-size 8.
    Fail: draft_tensor_parallel_size 4, and --tensor-parallel-size 8.
    Level: mandatory.
    Source: vllm/config/speculative.py _verify_and_get_draft_tp, since vLLM 0.8.
    """
    config, tensor = start.option("--speculative-config"), start.command.tensor
    if not isinstance(config, Mapping) or not isinstance(tensor, int):
        return
    size, drafter = config.get("draft_tensor_parallel_size"), {config.get("method")}
    without = (drafter | {config.get("model")}) & _NO_MODEL
    if not isinstance(size, int) or isinstance(size, bool) or size in {1, tensor} or without:
        return
    allowed = "1" if tensor == 1 else f"1 or {tensor}"
    seen = (
        f"gives its draft model tensor {size}, but vLLM accepts only {allowed} with tensor {tensor}"
    )
    yield from start.refused(
        seen, f"Write draft_tensor_parallel_size {tensor}, or leave it out of --speculative-config"
    )
