"""Checks that no probe ends a container while it still sleeps, or its engine loads the weights."""

import math
from collections.abc import Iterator

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.listening import restarting_probe
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.ports import ProbeFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding, Level
from kthena_components.core.memory.engine import assumed_model
from kthena_components.core.memory.held_weights import weights_of
from kthena_components.core.memory.sharding import ENGINES, model_shape, split_of
from kthena_components.core.memory.share import vllm_release
from kthena_components.core.memory.sizes import Split, weights_on_gpu
from kthena_components.core.memory.states_and_drafts import loaded_part
from kthena_components.core.models import ModelShape
from kthena_components.core.rules.support.engine_pods import pods_of
from kthena_components.core.rules.support.messages import title
from kthena_components.core.values.dataclass import dataclass

_LEAST: tuple[tuple[int, int], ...] = ((400, 75), (250, 57), (100, 40), (0, 10))
"""Seconds in which no start ends, by the GiB of all weights. The fastest published start of 125 GiB
takes 57 s, with its files in the page cache and its kernels compiled (marin-community/marin#7136:
3 s to load, and 54 s for the rest). A model of 250 GiB has twice as many weights, one of 400 GiB
three times as many."""
_BESIDE, _RATE = 30, 1
"""What a usual start takes: seconds beside loading, and GiB in a second. A disk in a network reads
0.3 to 1 GiB/s, one in the node 4."""
_PATIENCE = 600
"""Seconds that a remedy asks for, and multiples of them."""
_LOADERS = frozenset({"auto", "safetensors", "hf", "pt"})
"""Values of --load-format that read files as without it. Others load from other pods, or nothing.
"""
_LOAD_FORMAT = ("--load-format", "--load_format")
_EAGER = ("--enforce-eager", "--disable-cuda-graph")
"""Options that leave out CUDA graphs, so the least times are shorter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Load:
    """The weights that an engine loads. Sizes in GiB."""

    all: float
    pod: float
    """The part of one pod."""
    assumed: bool
    """Whether the model is assumed from the name of its folder, which may hold a copy."""


def probe_covers_loading(facts: ServingFacts) -> Iterator[Finding]:
    """A startupProbe, or a livenessProbe without one, outlasts the loading of the weights.

    An engine answers no probe until its weights are loaded. If the kubelet restarts the container
    before that, the engine never starts. Compared are the seconds after which it does so at the
    latest (initialDelaySeconds + periodSeconds × (failureThreshold + 1) + timeoutSeconds, with the
    defaults of Kubernetes: 0, 10, 3 and 1) with the weights in the table of models. Not checked are
    loaders that --load-format names, since they may take weights from another pod.

    Pass: DeepSeek-R1 and a startupProbe with periodSeconds 10 and failureThreshold 180.
    Fail: DeepSeek-R1 and a startupProbe with failureThreshold 3, or a livenessProbe alone with
    initialDelaySeconds 30.
    Level: mandatory if no start is as fast: 10 s for any model, 40 s from 100 GiB of weights, 57 s
    from 250 GiB, 75 s from 400 GiB, with CUDA graphs. Advisory if a start takes longer that reads
    1 GiB/s and needs 30 s for the rest, or if a folder's name suggests the model.
    Source: kubernetes pkg/kubelet/prober/worker.go doProbe and pkg/apis/core/v1/defaults.go
    SetDefaults_Probe; vllm/entrypoints/openai/api_server.py and
    sglang/srt/entrypoints/http_server.py, which start their servers after the engine; the fastest
    start: marin-community/marin#7136.
    """
    for engine in facts.engines:
        pod = engine.entry
        probe = restarting_probe(pod, first=True)
        if probe is None or not isinstance(probe.patience, int) or pod.command is None:
            continue
        patience = probe.patience - pod.command.slept
        load = _load(engine, pod, pod.command) if patience > 0 else None
        if load is not None and patience < _usual(load):
            yield _finding(engine, probe, load, _level(pod.command, load, patience))


def _usual(load: _Load) -> int:
    return math.ceil(_BESIDE + load.pod / _RATE)


def _level(command: CommandFacts, load: _Load, patience: int) -> Level:
    eager = any(name in command.options for name in _EAGER)
    least = next(seconds for gib, seconds in _LEAST if load.all >= gib and not (eager and gib))
    return Level.ADVISORY if load.assumed or patience >= least else Level.MANDATORY


def _finding(engine: EngineFacts, probe: ProbeFacts, load: _Load, level: Level) -> Finding:
    """Write the finding of a probe that ends a loading container; times in s, weights in GiB."""
    part = f"{load.pod:.0f} GiB"
    if load.pod < load.all:
        part = f"{part} of {load.all:.0f} GiB in each pod"
    usual = _usual(load)
    seen = f"restarts the container after {probe.patience} s at the latest, but {title(engine)} "
    if level is Level.MANDATORY:
        seen += f"loads {part} before it answers, and no start of such a model is as fast"
    else:
        seen += f"loads {part} before it answers: {usual} s if it reads 1 GiB/s and "
        seen += f"needs {_BESIDE} s for the rest"
    wanted = max(1, math.ceil(2 * usual / _PATIENCE)) * _PATIENCE
    remedy = f"raise failureThreshold of the {probe.kind}, so that it waits {wanted} s"
    if probe.kind == "livenessProbe":
        remedy = f"add a startupProbe that waits {wanted} s (periodSeconds × failureThreshold)"
    return Finding(path=probe.path, seen=seen, remedy=remedy, level=level)


def _load(engine: EngineFacts, pod: PodFacts, command: CommandFacts) -> _Load | None:
    """Return the weights of an engine whose loader reads files; None if they are not known."""
    stated = next((command.options[name] for name in _LOAD_FORMAT if name in command.options), None)
    if command.engine not in ENGINES or (stated is not None and stated not in _LOADERS):
        return None
    shape, split, gpus = model_shape(command, pod.shape), split_of(command), pod.gpus
    assumed = not isinstance(shape, ModelShape)
    if assumed and pod.shape is None:
        shape = assumed_model(pod, command) or shape
    if not isinstance(shape, ModelShape) or not isinstance(split, Split):
        return None
    release = vllm_release(engine, command)
    shape = loaded_part(command, shape, release)
    gib = weights_of(command, shape, release)
    if not isinstance(gib, float) or not isinstance(gpus, int):
        return None
    own = min(gib, weights_on_gpu(shape, split, gib) * gpus)
    return _Load(all=gib, pod=own, assumed=assumed)


def probe_covers_sleep(facts: ServingFacts) -> Iterator[Finding]:
    """A startupProbe, or a livenessProbe without one, outlasts a sleep before the engine.

    A script that sleeps before it starts the engine answers no probe until then. If the kubelet
    restarts the container before that, the engine never starts. How long the engine itself takes to
    load is probe-covers-loading's concern.

    Pass: sleep 30 and a startupProbe with periodSeconds 10 and failureThreshold 60.
    Fail: sleep 300 and a startupProbe with periodSeconds 10 and failureThreshold 3.
    Level: mandatory.
    Source: kubernetes pkg/kubelet/prober/worker.go doProbe; Kubernetes documentation, Configure
    Liveness, Readiness and Startup Probes.
    """
    for engine in facts.engines:
        for pod in pods_of(engine):
            slept = pod.command.slept if pod.command is not None else 0
            probe = restarting_probe(pod)
            patience = probe.patience if probe is not None else None
            if probe is not None and isinstance(patience, int) and slept > patience:
                yield Finding(
                    path=probe.path,
                    seen=f"restarts the container after {patience} s at the latest, but its script "
                    f"sleeps {slept} s before it starts the engine",
                    remedy="remove the sleep, or raise failureThreshold of a startupProbe",
                )
