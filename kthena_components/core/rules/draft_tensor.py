"""The rule draft-tensor."""

from collections.abc import Iterable, Mapping
from typing import Any

from kthena_components.core.findings import Finding
from kthena_components.core.rules.support.engine_startup import Start, each_start

_NO_MODEL = ("ngram", "[ngram]", "ngram_gpu", "suffix", "custom_class", "extract_hidden_states")
"""Methods that draft without a model, for which vLLM does not look at the size."""


@each_start("vllm")
def draft_tensor(start: Start) -> Iterable[Finding]:
    """A draft model has tensor size 1, or that of its target model.

    vLLM refuses to start otherwise.

    Pass: --speculative-config with draft_tensor_parallel_size 1 or 8, and --tensor-parallel-size 8.
    Fail: draft_tensor_parallel_size 4, and --tensor-parallel-size 8.
    Level: mandatory.
    Source: vllm/config/speculative.py __post_init__ and _verify_and_get_draft_tp.
    """
    config, tensor = start.option("--speculative-config"), start.command.tensor
    if not isinstance(config, Mapping) or not isinstance(tensor, int):
        return
    size = config.get("draft_tensor_parallel_size")
    if type(size) is not int or size in {1, tensor} or _drafts_without_model(config):
        return
    allowed = "1" if tensor == 1 else f"1 or {tensor}"
    seen = (
        f"gives its draft model tensor {size}, but vLLM accepts only {allowed} with tensor {tensor}"
    )
    yield from start.refused(
        seen, f"write draft_tensor_parallel_size {tensor}, or leave it out of --speculative-config"
    )


def _drafts_without_model(config: Mapping[str, Any]) -> bool:
    """Return whether vLLM makes no draft model, whose size it would look at.

    A model with dots and without a slash is a class of the user's.
    """
    method, model = config.get("method"), config.get("model")
    if method in _NO_MODEL or model in _NO_MODEL:
        return True
    return method is None and isinstance(model, str) and "." in model and "/" not in model
