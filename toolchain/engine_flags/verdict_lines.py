"""Valid and invalid command lines of vLLM, to compare our rules with vLLM's releases."""

import random
from collections.abc import Iterator
from typing import Any

MODELS: dict[str, dict[str, Any]] = {
    "Qwen/Qwen3-32B": {"heads": 64, "kv_heads": 8, "mla": False, "experts": 0},
    "Qwen/Qwen3-235B-A22B": {"heads": 64, "kv_heads": 4, "mla": False, "experts": 128},
    "deepseek-ai/DeepSeek-V3": {"heads": 128, "kv_heads": 128, "mla": True, "experts": 256},
}
"""The models of the command lines, with names from core/models/known_models.json."""
_ROWS = 120
"""Number of command lines for each kind of sizes."""


def lines(seed: str) -> Iterator[str]:
    """Yield command lines, the same for the same seed."""
    dice = random.Random(seed)  # noqa: S311 - no secret
    for kind in (_context, _balance, _experts, _batches):
        for _ in range(_ROWS):
            model = dice.choice(list(MODELS))
            yield " ".join([model, *filter(None, kind(dice))])


def _some(dice: random.Random, flag: str, values: object, often: float) -> str:
    value = dice.choice(list(values))  # type: ignore[call-overload]
    return f"{flag} {value}".strip() if dice.random() < often else ""


def _context(dice: random.Random) -> list[str]:
    return [
        _some(dice, "-tp", (1, 2, 4, 8, 16, 32), 0.95),
        _some(dice, "-dcp", (1, 2, 3, 4, 8, 16), 0.9),
        _some(dice, "-pcp", (1, 2, 4), 0.3),
        _some(dice, "-dp", (1, 2), 0.2),
    ]


def _balance(dice: random.Random) -> list[str]:
    nodes = dice.random() < 0.4  # noqa: PLR2004 - some of them
    return [
        _some(dice, "-tp", (1, 2, 4, 8), 0.7),
        _some(dice, "-pp", (1, 2, 3), 0.2),
        _some(dice, "-dp", (1, 2, 4, 6, 8), 0.9),
        _some(dice, "-dpl", (1, 2, 3, 4, 8), 0.5),
        _some(dice, "-dpn", (0, 1, 4), 0.2),
        _some(dice, "-dpr", (0, 1, 4, 8), 0.2),
        _some(dice, "-dpe", [""], 0.2),
        _some(dice, "-dph", [""], 0.2),
        _some(dice, "-dpm", [""], 0.1),
        _some(dice, "--headless", [""], 0.1),
        _some(dice, "--nnodes", (2, 3, 4), 1.0) if nodes else "",
        _some(dice, "--node-rank", (0, 1, 3), 0.7) if nodes else "",
        _some(dice, "-dpb", ["ray"], 0.15) if nodes else "",
        _some(dice, "-pcp", (2, 4), 0.1),
    ]


def _experts(dice: random.Random) -> list[str]:
    return [
        _some(dice, "--enable-eplb", [""], 0.7),
        _some(dice, "--enable-expert-parallel", [""], 0.7),
        _some(dice, "-tp", (1, 2, 8), 0.6),
        _some(dice, "-dp", (1, 2), 0.4),
        _some(dice, "-pp", (1, 2), 0.2),
        _some(dice, "-pcp", (1, 2), 0.1),
        _some(dice, "--num-redundant-experts", (0, 32), 0.3),
        _some(dice, "--eplb-config.num_redundant_experts", (0, 32), 0.3),
        _some(dice, "--enable-elastic-ep", [""], 0.2),
        _some(dice, "--elastic-ep-max-dp-size", (1, 4), 0.1),
        _some(dice, "--eplb-config.use_async", ["false"], 0.5),
    ]


def _batches(dice: random.Random) -> list[str]:
    tokens = _some(dice, "--max-num-batched-tokens", (0, 64, 128, 255, 256, 512, 2048, 8192), 0.8)
    longest = _some(dice, "--max-model-len", (128, 1024, 4096, 8192), 0.7)
    # With 256 or more tokens, always set the number of sequences: its default depends on the GPU.
    often = 0.5 if tokens.rpartition(" ")[2] in {"0", "64", "128", "255"} else 1.0
    return [
        tokens,
        longest,
        _some(dice, "--max-num-seqs", (0, 64, 128, 256, 257, 1024), often) if tokens else "",
        _some(dice, "--no-enable-chunked-prefill", [""], 0.4) if tokens and longest else "",
        _some(dice, "--gpu-memory-utilization", (0, 0.5, 1, 1.01, 90), 0.3),
    ]
