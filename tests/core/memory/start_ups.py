"""Published start-ups of engines, and what the model of their memory says about each.

`start_ups.jsonl` has one start-up a line: where it was published, the command line, the GPU, what
was measured on one GPU (GiB of weights and of KV cache), whether it started, and the fields that
the source does not state (`assumed`). `held_out` start-ups were collected after the terms of the
model had been written.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding, run_rule
from kthena_components.core.memory.engine import engines_on_gpu
from kthena_components.core.memory.estimate import Estimate, estimate_of
from kthena_components.core.rules.memory_weights_fraction_offload import (
    memory_one_sequence,
    memory_weights_fit,
)
from kthena_components.core.values.unknown import Unknown
from tests.support.specs import gpu_template

_FILE = Path(__file__).with_name("start_ups.jsonl")
_IMAGES = {"vllm": "vllm/vllm-openai", "sglang": "lmsysorg/sglang"}
_COMMANDS = {
    "vllm": "vllm serve {model} --tensor-parallel-size {tensor}",
    # A wheel: images of others may lack what vLLM's own image has.
    "wheel": "pip install vllm=={version} && vllm serve {model} --tensor-parallel-size {tensor}",
    "sglang": "python3 -m sglang.launch_server --model-path {model} --tp-size {tensor}",
}


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One published start-up."""

    id: str
    source: str
    engine: str
    version: str
    gpu: str
    tensor: int
    model: str
    args: tuple[str, ...]
    weights_gib: float | None = None
    kv_gib: float | None = None
    started: bool
    failure: str | None = None
    assumed: tuple[str, ...] = ()
    held_out: bool = False
    env: tuple[str, ...] = ()
    """Variables of the container that its source states, as NAME=value."""
    own_image: bool = False
    """Whether its source states that it runs in the image of vLLM's project."""

    @property
    def serving(self) -> ServingFacts:
        """The facts of a pod that starts it."""
        wheel = self.engine == "vllm" and not self.own_image
        form = _COMMANDS["wheel" if wheel else self.engine]
        command = form.format(model=self.model, tensor=self.tensor, version=self.version)
        words = [f"'{word}'" if "{" in word else word for word in self.args]
        pod: dict[str, Any] = gpu_template(" ".join((command, *words)), self.tensor)
        pod["spec"]["containers"][0]["image"] = f"{_IMAGES[self.engine]}:v{self.version}"
        pairs = (pair.split("=", 1) for pair in self.env)
        env = [{"name": name, "value": value} for name, value in pairs]
        pod["spec"]["containers"][0]["env"] = env
        pod["spec"]["nodeSelector"] = {_label(self.gpu): self.gpu}
        entry = read_pod(pod, "entry", command_path="here")
        engine = EngineFacts(path="e", name="e", pods=1, replicas=1, entry=entry, worker=None)
        return ServingFacts(path="", name="s", engines=(engine,))

    @property
    def estimate(self) -> Estimate | Unknown:
        """What the model says about it."""
        for _, placed in engines_on_gpu(self.serving):
            return placed if isinstance(placed, Unknown) else estimate_of(placed)
        return Unknown("no engine of a known GPU")

    @property
    def findings(self) -> list[Finding]:
        """What the rules about memory report."""
        rules = (memory_weights_fit, memory_one_sequence)
        return [found for rule in rules for found in run_rule(rule, self.serving)]

    @property
    def error(self) -> float | None:
        """Predicted less measured GiB of KV cache; None if one of them is not known."""
        estimate = self.estimate
        if self.kv_gib is None or isinstance(estimate, Unknown):
            return None
        return estimate.cache - self.kv_gib


def _label(gpu: str) -> str:
    return "amd.com/gpu.product-name" if gpu.startswith("AMD") else "nvidia.com/gpu.product"


@cache
def start_ups() -> tuple[Measured, ...]:
    """Read all start-ups."""
    return tuple(_read())


def _read() -> Iterator[Measured]:
    for line in _FILE.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        lists = {key: tuple(row.get(key, ())) for key in ("args", "assumed", "env")}
        yield Measured(**{**row, **lists})
