"""Servings of engines that share a KV cache, and what is said of them."""

from collections.abc import Iterable
from dataclasses import replace

from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Finding
from kthena_components.core.findings import run_rule as run
from kthena_components.core.rules.kv_connector_and_halves import (
    kv_connector_known,
    kv_halves_alike,
    kv_halves_complete,
)
from kthena_components.core.rules.kv_halves_parallel import kv_halves_parallel
from tests.support.startup import IMAGES, LAUNCH, serving

RULES = (kv_connector_known, kv_halves_complete, kv_halves_alike, kv_halves_parallel)
MODEL = "Qwen/Qwen3-32B"
Role = tuple[str, str]
"""An engine with its release, and what follows its model: `vllm 0.33.0`, `-tp 8`."""


def roles(*described: Role) -> ServingFacts:
    """Give a serving whose roles are named first, second and so on."""
    engines = []
    for name, (release, line) in zip(("first", "second", "third"), described, strict=False):
        engine, _, version = release.partition(" ")
        known = engine in LAUNCH
        image = f"{IMAGES[engine]}:v{version}" if version else f"registry.example.com/{engine}"
        command = f"{LAUNCH[engine]} {MODEL} {line}" if known else line
        made = serving(command, image, pods=1).engines[0]
        engines.append(replace(made, name=name))
    return ServingFacts(path="", name="s", engines=tuple(engines))


def checked(*described: Role) -> list[Finding]:
    facts = roles(*described)
    return [finding for rule in RULES for finding in run(rule, facts)]


def told(found: Iterable[Finding]) -> list[str]:
    return [f"{finding.level} {finding.rule}: {finding.seen}" for finding in found]


def vllm(connector: str, role: str, more: str = "", release: str = "0.33.0") -> Role:
    flags = f"--kv-transfer-config.kv_connector={connector} --kv-transfer-config.kv_role={role}"
    return f"vllm {release}".strip(), f"{flags} {more}"


def sglang(mode: str, more: str = "", release: str = "0.5.23") -> Role:
    return f"sglang {release}".strip(), f"--disaggregation-mode {mode} {more}"
