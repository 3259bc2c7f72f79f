"""Compares what KAITO's webhook rejects of an inference_config.yaml with our reading of it."""

import random
from collections.abc import Iterator
from functools import partial
from typing import Any

from conformance.__main__ import Context
from conformance.kaito.cluster import SORTS
from conformance.support.cluster import said_by_webhook
from conformance.support.waiting import wait
from kthena_components.cluster.client import Cluster
from kthena_components.core.models import ModelShape
from kthena_components.systems.kaito.estimator import find_preset
from kthena_components.systems.kaito.inference_config import config_map, rejected_file
from kthena_components.systems.kaito.view import WORKSPACE

FILES = 300
_SPACE, _PRESET = "serving", "llama-3.1-8b-instruct"
_UNKNOWN = "not found in namespace"
_LENGTHS = (
    "4096", "131072", "131073", "999999", "-1", "+5", "0", "auto", "4k", "1_000", "0x10", "010",
    "0o17", "1e3", "4096.0", '"4096"', "' 4096 '", '"131073"', "true", "null", "~", "", '""',
    "9223372036854775807", "9223372036854775808", "-9223372036854775809", "4096 # the longest",
    "[1]", "{a: 1}", "2026-01-01",
)  # fmt: skip
_OTHERS = (
    "swap-space: 4", "enforce-eager: true", "compilation-config: {level: 3}", "a: [b]",
    "compilation-config: '{\"level\": 3}'", "1: 2", "max_model_len: 999999", "tool: null",
    "long: |\n    a\n    b",
)  # fmt: skip
_WHOLE = (
    "", "vllm:\n", "vllm: {}\n", "vllm: []\n", "vllm: a\n", "vllm: ''\n", "- a\n", "text\n",
    "max_probe_steps: 6\n", "max_probe_steps: [6]\n", "vllm: [\n", "vllm: 5\n", "vllm: true\n",
    "other: {a: {b: c}}\n", "{}\n", "# nothing\n", "vLLM:\n  max-model-len: 999999\n",
    "vllm: {max-model-len: 131073}\n", "vllm:\n  a: 1\n b: 2\n", "vllm: ~\n",
)  # fmt: skip
Body = dict[str, Any]


def compare(context: Context, api: Cluster) -> None:
    """Create a ConfigMap of each file, and a Workspace that names it in a dry run."""
    shape = find_preset(_PRESET)
    most = shape.context if isinstance(shape, ModelShape) else None
    rng = random.Random(f"kaito configs {context.seed}")  # noqa: S311 - to repeat, not to hide
    for number, text in enumerate(_files(rng, context.many(FILES))):
        name = f"config-{number}"
        api.create(config_map(name, _SPACE, {}, text))
        body = _workspace(name)
        # KAITO reads ConfigMaps from its cache.
        wait(partial(_is_known, api, body))
        said, ours = said_by_webhook(api, body), rejected_file(text, most)
        context.part.check(
            "KAITO rejects what we say",
            holds=bool(said) == (ours is not None),
            seen=f"{text!r}: {said or 'accepted'}: {ours}",
        )
        context.part.count("files rejected by KAITO" if said else "files accepted by KAITO")


def _files(rng: random.Random, number: int) -> Iterator[str]:
    yield from _WHOLE
    yield from (f"vllm:\n  max-model-len: {length}\n" for length in _LENGTHS)
    for _ in range(number):
        flags = rng.sample(_OTHERS, rng.randint(0, 2))
        if rng.random() < 2 / 3:
            flags.insert(rng.randint(0, len(flags)), f"max-model-len: {rng.choice(_LENGTHS)}")
        before = rng.choice(("", "max_probe_steps: 6\n", "# all\n"))
        yield before + "vllm:\n" + "".join(f"  {flag}\n" for flag in flags)


def _workspace(config: str) -> Body:
    return {
        "apiVersion": "kaito.sh/v1beta1",
        "kind": WORKSPACE,
        "metadata": {"name": config, "namespace": _SPACE},
        "resource": {"labelSelector": {"matchLabels": SORTS[0].labels}},
        "inference": {"preset": {"name": _PRESET}, "config": config},
    }


def _is_known(api: Cluster, body: Body) -> bool:
    return _UNKNOWN not in said_by_webhook(api, body)
