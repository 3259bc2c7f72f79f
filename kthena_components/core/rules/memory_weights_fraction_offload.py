"""Rules of GPU memory: weights and a request fit, the fraction in use, and what is offloaded."""

import math
from collections.abc import Iterator
from decimal import Decimal

from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding, Level, advise, count_of, part_of_rule
from kthena_components.core.memory.engine import (
    EngineOnGpu,
    engines_on_gpu,
    engines_without_gpu,
    served_name,
)
from kthena_components.core.memory.estimate import (
    BATCH,
    SEQUENCES,
    Estimate,
    Verdict,
    estimate_of,
    sleep_mode_oversizes,
    smaller_batch,
    smaller_share,
    with_fewer_sequences,
)
from kthena_components.core.memory.sharding import NO_MODEL
from kthena_components.core.memory.sleep_mode import SLEEPS
from kthena_components.core.remedies import Remedy, either, set_option, together
from kthena_components.core.rules.support.engine_pods import ALWAYS, POSITIVE, all_starts, pods_of
from kthena_components.core.rules.support.messages import cannot_check, title
from kthena_components.core.rules.support.nearest_sizes import larger_sizes
from kthena_components.core.values.unknown import Unknown, known

ONE = "memory-one-sequence"
_NAME_IT = "write the model in the command line, or a known name in --served-model-name"
_EFFECTS = {
    Verdict.TIGHT: ", so it may not start",
    Verdict.SHORTER: ", so it starts and rejects the longest requests",
    Verdict.MAY_SHORTEN: ", so it starts and may reject the longest requests",
}
_DOUBTS = (Verdict.TIGHT, Verdict.MAY_SHORTEN)
_WIDER = "split the model over more GPUs"
_ROUND = 1024
"""A remedy's length is a multiple of this many tokens, if there is room for as many."""


def memory_weights_fit(facts: ServingFacts) -> Iterator[Finding]:
    """The weights of a model fit into the share of GPU memory that the engine may use.

    The node selector or the required node affinity names the GPU, else the annotation
    kthena-components/gpu of the pods, else --gpu. Its memory is what the driver reports. If nothing
    names it, the rule reports weights that no GPU in the table holds. That memory was not checked,
    `check` says once per object, and the policy pack once per preview. If a GPU is named but
    something else is unknown (the model, the format of its weights, the part that stays in host
    memory), this rule reports it once for both rules about memory. A local path or a bucket counts
    as the model that an init container downloads to it, else as the model that a part of the path
    names. Any other name counts as the model from which it, or --served-model-name, differs in
    separators only. The finding is then advice in every environment, because it may be a smaller
    copy. The default share is 0.92, or 0.9 up to vLLM 0.19. A share that SGLang chooses may be
    another one: weights that exceed only that one, or a stated one only with the factor of an
    attention backend that SGLang chooses, are advice in every environment as well.

    Pass: 756 GiB over tensor 8 × pipeline 2, 47.2 GiB on each H100 of 79.65 GiB.
    Fail: 756 GiB over tensor 8, 94.5 GiB on each H100 of 79.65 GiB.
    Level: mandatory.
    Source: vllm/v1/worker/gpu_worker.py determine_available_memory;
    sglang/srt/server_args.py --mem-fraction-static.
    """
    on_none = [
        placed
        for _, placed in engines_without_gpu(facts)
        if isinstance(placed, EngineOnGpu) and placed.weights > placed.budget
    ]
    for engine, placed in engines_on_gpu(facts):
        if any(one.engine is engine for one in on_none):
            continue
        if isinstance(placed, Unknown):
            way = f"; {_NAME_IT}" if placed == NO_MODEL else ""
            yield from cannot_check(engine, Unknown(f"{placed.because}{way}"))
        elif placed.weights > placed.budget:
            may = f"may use {_gib(placed.budget)} of it"
            yield _too_large(placed, may, _more_gpus(placed))
    yield from map(_on_no_gpu, on_none)
    yield from memory_unchecked(facts)


def memory_unchecked(facts: ServingFacts) -> Iterator[Finding]:
    """Report once what was not checked because nothing names the GPU, if there is a way to."""
    path, modelless = "", False
    for engine, placed in engines_without_gpu(facts):
        too_large = isinstance(placed, EngineOnGpu) and placed.weights > placed.budget
        if too_large or engine.entry.gpu is not None:
            continue
        if isinstance(placed, EngineOnGpu) or placed == NO_MODEL:
            path = path or engine.entry.command_path
            modelless = modelless or not isinstance(placed, EngineOnGpu)
    if path and facts.gpu_option:
        what = f"the GPU: name it with {facts.gpu_option}"
        if modelless:
            what = f"the GPU or the model: name the GPU with {facts.gpu_option}, and {_NAME_IT}"
        yield Finding(
            path=path,
            seen=f"memory was not checked, because nothing names {what}",
            level=Level.UNKNOWN,
        )


def _on_no_gpu(placed: EngineOnGpu) -> Finding:
    least = f"no known GPU that its pods may request has more than {_gib(placed.budget)} for it"
    smaller = "use a smaller model, or one with fewer bits"
    return _too_large(placed, least, _wider_split(placed) or smaller)


def _too_large(placed: EngineOnGpu, limit: str, remedy: str) -> Finding:
    """Report weights above the budget: as advice if only a share that SGLang chooses decides."""
    doubtful = placed.weights <= placed.most
    level = Level.ADVISORY if doubtful else _highest_level(placed)
    share = _share(placed)
    if doubtful:
        share = f"SGLang chooses {share}{_EFFECTS[Verdict.TIGHT]}"
    return Finding(
        path=placed.engine.entry.command_path,
        seen=f"{title(placed.engine)} puts {_gib(placed.weights)} of weights on each GPU, "
        f"{_gib(placed.gib)} of {_model(placed)} over {_split(placed)}, but {limit}: {share}",
        remedy=remedy,
        level=level,
        most=level,
    )


def memory_one_sequence(facts: ServingFacts) -> Iterator[Finding]:
    """A request of maximum length fits into the KV cache.

    The cache gets the memory that the weights of the fullest stage and the start-up of the engine
    leave. For vLLM, the start-up follows its sources by release: the peak of its profile run, with
    the default batch of the GPU's class, communication buffers, and CUDA graphs since 0.20. For
    SGLang, it is outside of the share. The length is the stated one, or the model's maximum.
    --kv-cache-dtype sets the bytes per number, including scales. Layers with a sliding window or a
    state do not count, except those of DeepSeek-V4 in vLLM. docs/memory.md has the model, its error
    on published start-ups, and the band around it: if the request fits within the band, the finding
    is advice in every environment. So it is for SGLang if its cache holds a shorter request: it
    starts, and rejects longer ones. And so it is if vLLM asks for more than an idle GPU has free,
    if its share leaves less than it may ask for after the cache is sized (CUDA's context, graphs
    that the share does not hold, a sampler of all sequences), if more sequences run at once than
    the cache has blocks of states, which vLLM refuses since 0.20, and if weights hardly fit
    in 16 bits, from which --quantization fp8 makes its own while it loads, before vLLM 0.16.

    Pass: 34.8 GiB left by Llama-3.3-70B over tensor 4 on H100 of 79.65 GiB, 10.0 GiB needed.
    Fail: 2.0 GiB ± 2.1 GiB left over tensor 2, 20.0 GiB needed.
    Level: advisory; never more within the band, or if SGLang takes shorter requests.
    Source: vllm/v1/worker/gpu_worker.py determine_available_memory; vllm/v1/core/
        kv_cache_utils.py check_enough_kv_cache_memory; request_memory in vllm/v1/worker/utils.py,
        in gpu_worker.py before; compile_or_warm_up_model in gpu_worker.py;
        resolve_cudagraph_mode_and_sizes in vllm/config/compilation.py;
        sglang/srt/arg_groups/memory_hook.py; max_req_len in sglang/srt/managers/tp_worker.py.
    """
    for engine, placed in engines_on_gpu(facts):
        if isinstance(placed, Unknown) or placed.weights > placed.budget or placed.left is None:
            continue
        estimate = estimate_of(placed)
        if isinstance(estimate, Unknown):
            yield from cannot_check(engine, estimate)
        elif not estimate.holds_one:
            yield _too_little(placed, estimate)
        elif estimate.is_full_while_loading:
            yield _unquantised(placed, estimate)
        elif estimate.free is not None:
            yield _busy(placed, estimate, estimate.free)
        elif estimate.lacks_states:
            yield _few_states(placed, estimate)
        elif estimate.is_crowded:
            yield _crowded(placed, estimate)


def _unquantised(placed: EngineOnGpu, estimate: Estimate) -> Finding:
    """Report that vLLM may run out of memory while it quantises the weights, or packs them."""
    sleeps = placed.command.options.get(SLEEPS) is True
    verb = "packs them again in sleep mode" if sleeps else "quantises them"
    return _doubtful(
        placed,
        f"{title(placed.engine)} has {_gib(estimate.loading)} of weights on each GPU while it "
        f"{verb}, and {placed.gpu.name} has {_gib(estimate.usable)}",
        either(f"leave out {SLEEPS}" if sleeps else "use vLLM 0.16 or later", _WIDER),
    )


def _few_states(placed: EngineOnGpu, estimate: Estimate) -> Finding:
    """Report that vLLM may have fewer blocks of states than requests at once."""
    most = _fewer(placed)
    if estimate.states and not estimate.is_crowded:
        most = _at_most(SEQUENCES, estimate.states)
    return _doubtful(
        placed,
        f"{title(placed.engine)} leaves about {_gib(estimate.cache)} of each GPU for the KV cache "
        f"(± {_gib(estimate.band)}), and {count_of(estimate.sequences, 'sequence')} at once need "
        f"{_gib(estimate.sequences * estimate.state_gib)} of it for blocks of states",
        either(most, _WIDER),
    )


def _crowded(placed: EngineOnGpu, estimate: Estimate) -> Finding:
    """Report that vLLM may ask for more than its share leaves, after it has sized the cache."""
    share, asleep = smaller_share(placed, estimate), sleep_mode_oversizes(placed)
    smaller = _at_most(_SHARES["vllm"], f"{share:g}") if share else ""
    return _doubtful(
        placed,
        f"{title(placed.engine)} leaves {_gib(estimate.outside)} of each GPU outside of its share, "
        f"{placed.share:g} × {_gib(placed.usable)} of {placed.gpu.name}, and may ask for "
        f"{_gib(estimate.later)} of it after it has sized the KV cache: for CUDA's context, CUDA "
        f"graphs,{' memory that sleep mode has given back,' * asleep} and a sampler of "
        f"{count_of(estimate.sequences, 'sequence')}",
        either(f"leave out {SLEEPS}" * asleep, smaller, _fewer(placed), _WIDER),
    )


def _fewer(placed: EngineOnGpu) -> str:
    """Return the way to run fewer sequences at once."""
    found = with_fewer_sequences(placed)
    return _at_most(SEQUENCES, found.sequences) if found else ""


def _at_most(option: str, value: int | str) -> Remedy:
    return set_option(option, value, f"set {option} to {value} or less")


def _doubtful(placed: EngineOnGpu, seen: str, remedy: str) -> Finding:
    path, level = placed.engine.entry.command_path, Level.ADVISORY
    seen += _EFFECTS[Verdict.TIGHT]
    return Finding(path=path, seen=seen, remedy=remedy, level=level, most=level)


def _busy(placed: EngineOnGpu, estimate: Estimate, free: float) -> Finding:
    """Report that vLLM asks for more than an idle GPU has free."""
    share = math.floor(100 * free / placed.usable) / 100
    below = smaller_share(placed, estimate) if estimate.is_crowded else share
    return _doubtful(
        placed,
        f"{title(placed.engine)} asks for {_gib(placed.room)} of each GPU ({placed.share:g} × "
        f"{_gib(placed.usable)} of {placed.gpu.name}), and about {_gib(free)} are free on an idle "
        "one",
        _at_most(_SHARES["vllm"], f"{below:g}") if below else _WIDER,
    )


def _too_little(placed: EngineOnGpu, estimate: Estimate) -> Finding:
    """Write the finding of too little memory for the KV cache, with each term in GiB."""
    cache, verdict, back = estimate.cache, estimate.verdict, placed.unmapped
    leaves = f"leaves about {_gib(cache)} of each GPU" if cache > 0 else "leaves nothing of a GPU"
    one = f"one request of {count_of(estimate.length, 'token')} needs {_gib(estimate.needed)}"
    wants = one if estimate.needed else "it needs some"
    return Finding(
        path=placed.engine.entry.command_path,
        seen=f"{title(placed.engine)} {leaves} for the KV cache ({_share(placed)}, less "
        f"{_gib(estimate.weights)} of weights and about {_gib(estimate.overhead)} of overhead, "
        f"{f'plus {_gib(back)} that sleep mode has given back, ' if back else ''}"
        f"± {_gib(estimate.band)}), {'and' if verdict in _DOUBTS else 'but'} {wants}"
        f"{_EFFECTS.get(verdict, '')}",
        remedy=either(_shorter(placed, estimate), _smaller_batch(placed, estimate), _WIDER),
        level=Level.ADVISORY,
        most=_highest_level(placed) if verdict is Verdict.TOO_SMALL else Level.ADVISORY,
    )


def _shorter(placed: EngineOnGpu, estimate: Estimate) -> str:
    """Write the remedy: a shorter maximum, and fewer sequences at once if they are too many."""
    many = estimate.is_crowded or estimate.lacks_states
    found = with_fewer_sequences(placed) if many else estimate
    if found is None:
        return ""
    flag, tokens = placed.length_flag, found.longest
    tokens -= tokens % _ROUND if tokens >= _ROUND else 0
    fewer, shorter = _at_most(SEQUENCES, found.sequences), _at_most(flag, tokens)
    if found is estimate:
        return shorter if tokens else ""
    if found.holds_one:
        return fewer
    return together(shorter, fewer) if tokens else ""


def _smaller_batch(placed: EngineOnGpu, estimate: Estimate) -> str:
    """Return the way to keep less for windows and states: they need cache for each token."""
    found = smaller_batch(placed) if estimate.request_bytes else None
    return _at_most(BATCH, found) if found else ""


def _model(placed: EngineOnGpu) -> str:
    model = placed.command.model
    named = model if isinstance(model, str) else str(served_name(placed.command))
    return f"{named} (if it is {placed.shape.name})" if placed.assumed else named


def _highest_level(placed: EngineOnGpu) -> Level:
    return Level.ADVISORY if placed.assumed else Level.MANDATORY


def _share(placed: EngineOnGpu) -> str:
    memory = f"{_gib(placed.gpu.memory_gib)} of {placed.gpu.name}"
    return memory if placed.share == 1 else f"{placed.share:g} × {memory}"


def _split(placed: EngineOnGpu) -> str:
    command = placed.engine.entry.command
    if command is None:
        return "its GPUs"
    sizes = [("tensor", command.tensor), ("pipeline", command.pipeline)]
    words = [f"{word} {size}" for word, size in sizes if size != 1 or word == "tensor"]
    return " × ".join(words)


def _more_gpus(placed: EngineOnGpu) -> str:
    bigger = f"use GPUs of {math.ceil(placed.weights / placed.share)} GiB or more"
    more = "" if placed.budget <= 0 else _wider_split(placed)
    return f"{more}, or {bigger}" if more else bigger


def _wider_split(placed: EngineOnGpu) -> str:
    sizes = larger_sizes(placed)
    if not sizes:
        return ""
    gpus = count_of(sizes[0][0] * sizes[0][1], "GPU")
    ways = ", or ".join(f"tensor {tensor} × pipeline {pipeline}" for tensor, pipeline in sizes)
    return f"split the model over {gpus} or more ({ways})"


def _gib(size: float) -> str:
    return f"{f'{size:.1f}'.removesuffix('.0')} GiB"


MEMORY = "memory-fraction-range"
_SHARES = {"vllm": "--gpu-memory-utilization", "sglang": "--mem-fraction-static"}
_WITHOUT_POOL = ("--max-total-tokens", "--device", "--encoder-only")  # it may be small, or none


def memory_fraction_range(facts: ServingFacts) -> Iterator[Finding]:
    """An engine's share of each GPU's memory is above 0 and at most 1.

    vLLM up to 0.11.0 has no lower bound. SGLang has no upper bound, and asks the GPU for more
    memory than it has.

    Pass: --gpu-memory-utilization 0.95.
    Fail: --gpu-memory-utilization 90, or 0 from vLLM 0.11.1 on; --mem-fraction-static 0.
    Level: mandatory; advisory above 1 in SGLang with --max-total-tokens, which limits its pool,
    with --device or without a pool, and for 0 and less if the image states no release of vLLM.
    Source: vllm/config/cache.py gpu_memory_utilization; sglang/srt/model_executor/model_runner.py
        (0.5.1) and pool_configurator.py (0.5.23).
    """
    for start in all_starts(facts, *_SHARES):
        share, option = start.command.memory_fraction, _SHARES[start.command.engine or ""]
        if not isinstance(share, int | float):
            continue
        checked = option == _SHARES["vllm"]
        if share > 1:
            percent = 1 < share <= 100  # noqa: PLR2004 - per cent
            right = share / 100 if percent and share > 10 else 0.9  # noqa: PLR2004
            seen = f"has {option} {share:g}, and the whole memory is 1"
            sure = checked or all(start.option(name) is None for name in _WITHOUT_POOL)
            near = set_option(option, f"{right:g}")
            yield from start.refused(seen, near, ALWAYS if sure else Level.ADVISORY)
        elif share <= 0 and (level := start.since(POSITIVE) if checked else ALWAYS) is not None:
            seen = f"has {option} {share:g}, and {start.product} requires more than 0"
            yield from start.refused(seen, set_option(option, "0.9"), level)


_GIB = 2**30


def offload_within_memory(facts: ServingFacts) -> Iterator[Finding]:
    """Weights that --cpu-offload-gb keeps in host memory fit into the container's memory limit.

    The option is an amount for each GPU. The weights are in pinned memory, which counts as the
    container's, and which the kernel cannot free. Weights that are only read from files do not
    count: their pages are a cache.

    Pass: --cpu-offload-gb 10 on 8 GPUs with a memory limit of 128Gi; no limit.
    Fail: --cpu-offload-gb 10 on 8 GPUs with a memory limit of 64Gi.
    Level: advisory, because fewer weights than the option allows may be kept there.
    Source: vllm/config/offload.py UVAOffloadConfig, vllm/model_executor/offloader/uva.py; SGLang
    srt/model_executor/model_runner.py set_cpu_offload_max_bytes; Kubernetes documentation,
    Resource Management for Pods and Containers.
    """
    for engine in facts.engines:
        yield from dict.fromkeys(f for pod in pods_of(engine) for f in _check(engine, pod))


@part_of_rule
def _check(engine: EngineFacts, pod: PodFacts) -> Iterator[Finding]:
    """Report weights offloaded to the host that exceed the memory limit of the container."""
    command, own = pod.command, pod.own
    if command is None or own is None or not command.cpu_offload_gib or own.memory_limit is None:
        return
    path = pod.flags_path or pod.command_path
    each = known(command.cpu_offload_gib, path)
    gpus, most = known(pod.gpus, pod.gpus_path), known(own.memory_limit, own.path)
    if each * gpus * _GIB >= most > 0 and gpus:
        seen = f"{title(engine)} keeps up to {each:g} GiB of weights of each of "
        seen += f"{count_of(gpus, 'GPU')} in host memory, {each * gpus:g} GiB, but container "
        seen += f"'{own.name}' may use {Decimal(most) / _GIB:.4g} GiB"
        remedy = f"raise its limit above {each * gpus:g}Gi, or write a smaller --cpu-offload-gb"
        yield advise(path, seen, remedy)
